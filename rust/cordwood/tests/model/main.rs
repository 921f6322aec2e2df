//! A model of the log writer, its file and the processes that have it, explored exhaustively, with
//! the real `LogFile` held to it.
//!
//! # The state
//!
//! [`World`](world::World) is the file, two processes A and B, and what is known of each record.
//!
//! * The file ([`File`](disk::File)) is what the page cache shows and what the disk holds: a write
//!   goes to the cache, a sync to the disk.
//! * A process has a real `LogFile` or none, whose [`Storage`](cordwood_log::write::Storage) is that file. Its
//!   whole memory, as `Debug` prints it, is a part of the state.
//! * A record is in a buffer, written or durable: that is what the calls said that were made for
//!   it. What is in the file is for a [reader] to say that shares nothing with the crate.
//!
//! # The actions
//!
//! [`Action`](world::Action) lists them:
//!
//! * a call: create, open for append with each policy, append, append and sync, flush, sync, close,
//!   drop, which flushes (the Python classes close a log that is dropped: here, that is a close);
//! * a call during which something goes wrong ([`Fault`](disk::Fault)): a write fails in its
//!   middle, and then perhaps the cut that undoes it; a sync fails; the process is killed in the
//!   middle of a write, or before a cut or a sync;
//! * a fork; a kill;
//! * a loss of power, with each of several files left ([`Loss`](disk::Loss));
//! * a bit that flips in a record that is on the disk.
//!
//! A world begins with no file, with a log in one of several dialects, or with a text
//! ([`Content`](world::Content)).
//!
//! **A sync that fails** does what it does on Linux: the cache keeps the bytes and takes them for
//! written, so that the next sync succeeds without them ([`Byte::Lost`](disk::Byte)). The model
//! counts bytes where Linux counts pages: what holds here holds for pages of any length.
//!
//! **A fork** gives B the memory of A. A `LogFile` cannot be copied, so the calls of A are made
//! again, with the answers that A has got. Then the copy is given the descriptor that A has.
//!
//! **A lock** ends when the process that took it closes or drops the log, even if a child has the
//! descriptor; or else with the last descriptor.
//!
//! # What must hold
//!
//! Each rule has a test below. Where not said otherwise, the rule is one of
//! `docs/format/writing.md`. In each state that is reached:
//!
//! * What a sync or `durable_offset` covered is found after any loss of power (promise 1).
//! * What was written is found, whoever is killed (promise 1).
//! * Nothing comes up that was not appended, whose append failed, or that a loss of power took;
//!   nothing comes up twice; the order stays (promise 2).
//! * The crate's reader finds what the model's does (`reading.md`), and so does a follower that has
//!   been there all the while (`following.md`).
//!
//! When a call returns:
//!
//! * What `append` returned is found, once it is written (promise 3).
//! * A process changes no file but by a writer that it opened itself ("One writer").
//! * Opening neither cuts nor changes a record that is whole, or one that was synced and has lost
//!   one bit since, nor a file of another dialect ("Where appending resumes").
//! * `durable_offset` covers no byte of a sync that failed in the same process, be it with a log
//!   that was opened later ("When a sync fails"). Of a sync that failed in another process nothing
//!   is known: `durable_offset` promises nothing after its bytes.
//! * A log without damage opens; one with a torn tail opens to be cut off or padded.
//! * A write that failed leaves no trace, or ends the writer ("When a write fails").
//!
//! # The exploration
//!
//! [`explore`] is breadth first: of each rule that is broken, it prints the shortest way there in
//! each setup. States that are alike are continued once. What could go on forever is limited
//! ([`Limits`]): three records, three openings, one fault, one fork, one kill, one loss of power
//! and one flipped bit in each world. `MODEL_DEPTH` is the number of actions; `make model` explores
//! more of them than `cargo test` does.

mod disk;
mod explore;
mod follower;
mod reader;
mod world;

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Instant;

use cordwood_log::SyncPolicy;

use explore::{Counterexample, Outcome, explore_all};
use world::{Content, Flush, Limits, Rule, Setup};

/// Deep enough for each defect that has been found so far.
const DEPTH: usize = 5;

/// When the writers of the setups write.
const FLUSHES: &[Flush] = &[Flush::EveryAppend, Flush::OnClose];

fn setups(flush: Flush) -> Vec<Setup> {
    let new = Setup {
        content: Content::None,
        pebble: None,
        flush,
        sync: SyncPolicy::Never,
        preallocate_len: 0,
        limits: Limits {
            records: 3,
            opens: 3,
            faults: 1,
            forks: 1,
            power_losses: 1,
            flips: 1,
            deaths: 1,
        },
        levels_less: 0,
        has_follower: false,
    };
    let room = Setup {
        sync: SyncPolicy::OnClose,
        preallocate_len: 4096,
        levels_less: 1,
        has_follower: true,
        ..new
    };
    let pebble = Setup {
        pebble: Some(3),
        levels_less: 1,
        ..new
    };
    // A padded log is long, and slow to open again and again.
    let old = |content| Setup {
        content,
        levels_less: 2,
        has_follower: true,
        ..new
    };
    // So is one with a damaged record that is long.
    let nearly_full = Setup {
        limits: Limits { flips: 0, ..new.limits },
        ..old(Content::NearlyFullBlock)
    };
    let foreign = |content| Setup {
        limits: Limits {
            faults: 0,
            forks: 0,
            flips: 0,
            ..new.limits
        },
        ..old(content)
    };
    vec![
        new,
        room,
        pebble,
        old(Content::LevelDb),
        nearly_full,
        foreign(Content::Wandb),
        foreign(Content::Recycled),
        foreign(Content::PebbleClosed),
        foreign(Content::Text),
    ]
}

/// The one exploration, for all tests.
fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let depth = std::env::var("MODEL_DEPTH").map_or(DEPTH, |depth| depth.parse().expect("MODEL_DEPTH is a number"));
        let begun = Instant::now();
        let setups: Vec<_> = FLUSHES.iter().flat_map(|&flush| setups(flush)).collect();
        let outcome = explore_all(&setups, depth);
        #[allow(clippy::print_stderr, reason = "`make model` shows it")]
        {
            let Outcome {
                states,
                steps,
                setups,
                broken,
            } = &outcome;
            let (count, time) = (broken.len(), begun.elapsed());
            eprintln!("{states} states by {steps} actions in {time:.1?}, {count} rules broken");
            setups.iter().for_each(|setup| eprintln!("  {setup}"));
        }
        outcome
    })
}

fn assert_holds(rule: Rule) {
    let mut text = String::new();
    for example in outcome().broken.get(&rule).into_iter().flatten() {
        let Counterexample {
            depth,
            states,
            time,
            text: what,
        } = example;
        let _ = write!(
            text,
            "\nafter {depth} actions, {states} states of this setup, {time:.1?}: {what}"
        );
    }
    assert!(text.is_empty(), "{text}");
}

#[test]
fn d1_no_synced_record_is_lost_when_a_child_merely_closes() {
    assert_holds(Rule::SyncedSurvivesAChild);
}

#[test]
fn d1_only_the_process_that_opened_a_writer_changes_its_file() {
    assert_holds(Rule::OnlyTheOpenerWrites);
}

#[test]
fn d3_opening_for_append_keeps_what_was_synced_a_flipped_bit_included() {
    assert_holds(Rule::OpeningKeepsSyncedRecords);
}

#[test]
fn d4_durable_offset_covers_nothing_of_a_sync_that_failed() {
    assert_holds(Rule::DurableAfterFailedSync);
}

#[test]
fn p0_1_what_append_returned_is_found_by_readers() {
    assert_holds(Rule::AppendedIsFound);
}

#[test]
fn p0_1_opening_for_append_keeps_a_file_of_another_dialect() {
    assert_holds(Rule::OpeningKeepsForeignFiles);
}

#[test]
fn what_was_synced_survives_a_loss_of_power() {
    assert_holds(Rule::SyncedSurvivesPowerLoss);
}

#[test]
fn what_was_written_survives_a_kill() {
    assert_holds(Rule::WrittenSurvivesKill);
}

#[test]
fn nothing_comes_up_that_was_not_appended_and_nothing_twice() {
    assert_holds(Rule::NothingInvented);
}

#[test]
fn logs_without_damage_open() {
    assert_holds(Rule::UndamagedLogsOpen);
}

#[test]
fn the_crate_reads_what_the_model_reads() {
    assert_holds(Rule::ReaderAgrees);
}

#[test]
fn a_write_that_failed_leaves_nothing_else() {
    assert_holds(Rule::FailedWritesAreUndone);
}

#[test]
fn a_follower_returns_what_is_in_the_file() {
    assert_holds(Rule::FollowerAgrees);
}
