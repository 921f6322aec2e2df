//! A model of the log writer, its file and the processes that use it. All states are explored
//! exhaustively, and the real `LogFile` must conform to the model. [`segments`] is the model of a
//! segmented log.
//!
//! # The state
//!
//! [`World`](world::World) consists of the file, two processes A and B, and the known facts about
//! each record.
//!
//! * The file ([`File`](disk::File)) has contents in the page cache and on the disk. A write goes
//!   to the cache, and a sync to the disk.
//! * A process may have a real `LogFile` whose [`Storage`](cordwood_log::write::Storage) is that
//!   file. Its whole memory, as `Debug` prints it, is part of the state.
//! * A record is buffered, written or durable, depending on the calls that were made for it. A
//!   [reader] that shares no code with the crate determines the contents of the file.
//!
//! # The actions
//!
//! [`Action`](world::Action) lists the actions:
//!
//! * a call: create, open for append with each policy, append, append and sync, flush, sync, close,
//!   and drop, which flushes (the Python classes close a log when they drop it; in the model, that
//!   is a close);
//! * a call with a fault ([`Fault`](disk::Fault)): a write fails in the middle, and the truncation
//!   that undoes the write may also fail; a sync fails; the process is killed in the middle of a
//!   write, or before a truncation or a sync;
//! * a fork or a kill;
//! * a power loss, after which one of several files is left ([`Loss`](disk::Loss));
//! * a flipped bit in a record that is on the disk.
//!
//! A log is created in LevelDB's, Pebble's or the packed dialect, with both codecs. A world starts
//! without a file, with a log in one of several dialects, or with a text file
//! ([`Content`](world::Content)).
//!
//! **A failed sync** has the same effect as on Linux. The cache keeps the bytes and marks them as
//! written, so the next sync succeeds without writing them ([`Byte::Lost`](disk::Byte)). The model
//! tracks bytes where Linux tracks pages, so the results hold for pages of any length.
//!
//! **A fork** gives B the memory of A. A `LogFile` cannot be copied, so the calls of A are repeated
//! with the results that A received. Then the copy gets A's descriptor.
//!
//! **A lock** is released when the process that took it closes or drops the log, even if a child
//! has the descriptor. If that process is killed, the lock is released with the last descriptor.
//! # The promises
//!
//! Each rule has a test below. Unless stated otherwise, the rule is from `docs/format/writing.md`.
//! These rules hold in each state:
//!
//! * Records that a sync or `durable_offset` covered are found after any power loss (promise 1).
//! * Written records are found, whichever process is killed (promise 1).
//! * No record appears if it was not appended, if its append failed, or if a power loss removed it.
//!   No record appears twice, and the order stays the same (promise 2).
//! * The crate's reader finds the same records as the model's (`reading.md`), and so does a
//!   follower that has been running from the start (`following.md`).
//!
//! These rules hold when a call returns:
//!
//! * A record whose `append` returned is found, once it is written (promise 3).
//! * A process changes a file only through a writer that it opened itself ("One writer").
//! * Opening neither truncates nor changes a complete record, a synced record with one flipped bit,
//!   or a file of another dialect ("Where appending resumes").
//! * `durable_offset` covers no byte of a sync that failed in the same process, even for a log that
//!   was opened later ("When a sync fails"). A process does not know about a sync that failed in
//!   another process, so `durable_offset` makes no promise after the bytes of that sync.
//! * A log without damage can be opened. A log with a torn tail can be opened to truncate or pad
//!   it.
//! * A failed write leaves no trace, or ends the writer ("When a write fails").
//!
//! # The exploration
//!
//! [`explore`] searches breadth first. For each broken rule, it prints the shortest way to break
//! the rule in each setup. Of several equal states, only one is explored further. The events in
//! each world are limited ([`Limits`]): three records, three openings, one fault, one fork, one
//! kill, one power loss and one flipped bit. `MODEL_DEPTH` is the number of actions. `make model`
//! explores longer sequences of actions than `cargo test`.

mod disk;
#[path = "../double/mod.rs"]
mod double;
mod explore;
mod follower;
mod reader;
mod segments;
mod world;

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Instant;

#[cfg(feature = "zstd")]
use cordwood_log::Compression;
use cordwood_log::{Dialect, LogFormat, SyncPolicy};

use explore::{Counterexample, Outcome, explore_all};
use world::{Content, Flush, Limits, Rule, Setup};

/// This depth is enough to find every known defect.
const DEPTH: usize = 5;

/// The times at which the writers in the setups write.
const FLUSHES: &[Flush] = &[Flush::EveryAppend, Flush::OnClose];

fn setups(flush: Flush) -> Vec<Setup> {
    let new = Setup {
        content: Content::None,
        format: LogFormat::new(Dialect::LEVELDB),
        flush,
        sync: SyncPolicy::Never,
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
    let synced = Setup {
        sync: SyncPolicy::OnClose,
        levels_less: 1,
        has_follower: true,
        ..new
    };
    let pebble = Setup {
        format: LogFormat::new(Dialect::PEBBLE).with_log_number(3),
        levels_less: 1,
        ..new
    };
    let packed = Setup {
        format: LogFormat::new(Dialect::PACKED),
        ..new
    };
    #[cfg(feature = "zstd")]
    let zstd = Setup {
        format: packed.format.with_compression(Compression::Zstd),
        ..packed
    };
    // A padded log is long, so it takes long to open it again and again.
    let old = |content| Setup {
        content,
        levels_less: 2,
        has_follower: true,
        ..new
    };
    // A log with a long damaged record also takes long to open.
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
        synced,
        pebble,
        packed,
        #[cfg(feature = "zstd")]
        zstd,
        old(Content::LevelDb),
        nearly_full,
        foreign(Content::Wandb),
        foreign(Content::Recycled),
        foreign(Content::PebbleClosed),
        foreign(Content::Text),
    ]
}

/// Returns the number of actions in a sequence.
fn depth() -> usize {
    std::env::var("MODEL_DEPTH").map_or(DEPTH, |depth| depth.parse().expect("MODEL_DEPTH is a number"))
}

/// Returns the result of exploring one file. All tests share this single exploration.
fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let started = Instant::now();
        let setups: Vec<_> = FLUSHES.iter().flat_map(|&flush| setups(flush)).collect();
        let outcome = explore_all(&setups, depth());
        #[allow(clippy::print_stderr, reason = "`make model` shows it")]
        {
            let Outcome {
                states,
                steps,
                setups,
                broken,
            } = &outcome;
            let (count, time) = (broken.len(), started.elapsed());
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
fn d1_a_child_that_closes_the_log_does_not_lose_synced_records() {
    assert_holds(Rule::SyncedSurvivesAChild);
}

#[test]
fn d1_only_the_process_that_opened_the_writer_changes_the_file() {
    assert_holds(Rule::OnlyTheOpenerWrites);
}

#[test]
fn d3_opening_for_append_does_not_truncate_synced_bytes_that_contain_a_flipped_bit() {
    assert_holds(Rule::OpeningKeepsSyncedRecords);
}

#[test]
fn d4_the_durable_offset_excludes_bytes_from_a_failed_sync() {
    assert_holds(Rule::DurableAfterFailedSync);
}

#[test]
fn p0_1_readers_return_all_acknowledged_records() {
    assert_holds(Rule::AppendedIsFound);
}

#[test]
fn p0_1_opening_for_append_leaves_a_file_in_another_dialect_unchanged() {
    assert_holds(Rule::OpeningKeepsForeignFiles);
}

#[test]
fn synced_records_survive_a_power_loss() {
    assert_holds(Rule::SyncedSurvivesPowerLoss);
}

#[test]
fn written_records_survive_killing_any_process() {
    assert_holds(Rule::WrittenSurvivesKill);
}

#[test]
fn readers_return_only_appended_records_and_never_repeat_a_record() {
    assert_holds(Rule::NothingInvented);
}

#[test]
fn a_writer_can_open_every_undamaged_log() {
    assert_holds(Rule::UndamagedLogsOpen);
}

#[test]
fn the_crate_and_the_model_read_the_same_records() {
    assert_holds(Rule::ReaderAgrees);
}

#[test]
fn a_failed_write_leaves_the_log_unchanged_or_makes_the_writer_unusable() {
    assert_holds(Rule::FailedWritesAreUndone);
}

#[test]
fn a_follower_returns_the_records_in_the_file() {
    assert_holds(Rule::FollowerAgrees);
}
