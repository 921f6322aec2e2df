//! The times. In each round every contender does the same, in an order that changes; a ratio compares two contenders of
//! one round. So other work of the machine and of its disk affects all of them alike.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::contenders::{Contender, Log, Use};
use crate::record::{Key, key_of, write_record};

const LENS: [usize; 4] = [16, 100, 1024, 10 * 1024];
const BATCH_LEN: usize = 100;

/// The appends that are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Appends {
    /// One record, which is written to the operating system.
    Unsynced,
    /// One record, which is on the disk afterwards.
    Durable,
    /// A hundred records, which are on the disk afterwards.
    DurableBatches,
}

/// A table.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    title: &'static str,
    appends: Appends,
    threads: u32,
    /// How many records each thread appends in a round. Few: the disk changes its speed from one second to the next.
    count: u64,
    rounds: u64,
}

const SCENARIOS: [Scenario; 6] = {
    const fn of(title: &'static str, appends: Appends, threads: u32, count: u64, rounds: u64) -> Scenario {
        Scenario {
            title,
            appends,
            threads,
            count,
            rounds,
        }
    }
    [
        of("Durable, 1 thread", Appends::Durable, 1, 1, 201),
        of("Durable, 4 threads", Appends::Durable, 4, 4, 51),
        of("Durable, 16 threads", Appends::Durable, 16, 4, 25),
        of("Durable, batches of 100", Appends::DurableBatches, 1, 100, 101),
        of("Not synced, 1 thread", Appends::Unsynced, 1, 500, 101),
        of("Not synced, 4 threads", Appends::Unsynced, 4, 250, 51),
    ]
};

/// How often a log is read or opened, after once to warm up.
const REPLAY_ROUNDS: u64 = 11;
/// The length of a log that is read, or less: no more than 200,000 records.
const REPLAY_LEN: usize = 32 << 20;
/// The lengths of the logs that are opened, and of their records.
const OPENED_LENS: [usize; 3] = [16 << 20, 64 << 20, 256 << 20];
const OPENED_RECORD_LEN: usize = 1024;

/// The tables about appending.
pub fn print_appends(contenders: &[&'static Contender]) {
    print_load();
    let lens = LENS.map(|len| format!("{len} B"));
    for scenario in SCENARIOS {
        let takes_part = |contender: &&'static Contender| match scenario.appends {
            Appends::Unsynced => contender.has_append,
            Appends::Durable | Appends::DurableBatches => contender.syncs,
        };
        let contenders: Vec<_> = contenders.iter().copied().filter(takes_part).collect();
        let columns = LENS.map(|len| appending(&contenders, scenario, len));
        print_table(scenario.title, "microseconds a record", &lens, &contenders, &columns);
    }
}

/// The tables about reading a log and opening it again.
pub fn print_reads(contenders: &[&'static Contender]) {
    print_load();
    let lens = LENS.map(|len| format!("{len} B"));
    let contenders: Vec<_> = contenders
        .iter()
        .copied()
        .filter(|contender| contender.read.is_some())
        .collect();
    let columns = LENS.map(|len| reading(&contenders, len));
    print_table("Opened and read", "nanoseconds a record", &lens, &contenders, &columns);
    let lens = OPENED_LENS.map(|len| format!("{} MiB", len >> 20));
    let columns = OPENED_LENS.map(|len| opening(&contenders, len));
    let title = "Opened for appending, a log of records of 1 KiB";
    print_table(title, "microseconds", &lens, &contenders, &columns);
}

fn print_load() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average: {}", load.trim());
}

/// Prints a row for each contender: the time of the first, and how the others compare with it.
fn print_table(title: &str, unit: &str, head: &[String], contenders: &[&'static Contender], columns: &[Times]) {
    println!("\n**{title}, {unit}:**\n");
    println!("| | {} |", head.join(" | "));
    println!("|---|{}", "--:|".repeat(head.len()));
    for (row, contender) in contenders.iter().enumerate() {
        let cell = |times: &Times| {
            if row == 0 {
                let [_, middle, _] = quartiles(times[0].clone());
                return format!("{middle:.1}");
            }
            let ratios = times[row].iter().zip(&times[0]).map(|(time, first)| time / first);
            let [low, middle, high] = quartiles(ratios.collect());
            format!("{middle:.2} [{low:.2}-{high:.2}]")
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        println!("| {} | {} |", contender.name, cells.join(" | "));
    }
}

/// For each contender, its time in each round.
type Times = Vec<Vec<f64>>;

/// All contenders take turns, in an order that changes. One more round, before the others, warms up.
fn in_turns(count: usize, rounds: u64, mut time_of: impl FnMut(usize, u64) -> Duration) -> Vec<Vec<Duration>> {
    let mut times = vec![Vec::new(); count];
    for round in 0..=rounds {
        for index in shuffled(count, round) {
            let time = time_of(index, round);
            if round > 0 {
                times[index].push(time);
            }
        }
    }
    times
}

/// The times in a unit, divided by the number of records in a round.
fn in_units(times: Vec<Vec<Duration>>, unit: Duration, count: u64) -> Times {
    let convert = |time: Duration| time.as_secs_f64() / unit.as_secs_f64() / count as f64;
    times
        .into_iter()
        .map(|own| own.into_iter().map(convert).collect())
        .collect()
}

fn new_directories(count: usize) -> Vec<tempfile::TempDir> {
    (0..count).map(|_| tempfile::tempdir().expect("a directory")).collect()
}

/// Microseconds a record.
fn appending(contenders: &[&'static Contender], scenario: Scenario, len: usize) -> Times {
    let Scenario {
        appends,
        threads,
        count,
        rounds,
        ..
    } = scenario;
    let usage = if appends == Appends::Unsynced {
        Use::Unsynced
    } else {
        Use::Durable
    };
    let directories = new_directories(contenders.len());
    let open = |(contender, directory): (&&Contender, &tempfile::TempDir)| (contender.open)(directory.path(), usage);
    let logs: Vec<Arc<dyn Log>> = contenders
        .iter()
        .zip(&directories)
        .map(|log| open(log).expect("a new log").into())
        .collect();
    let times = in_turns(logs.len(), rounds, |index, round| {
        time_of(&logs[index], scenario, round * count, len)
    });
    drop(logs);
    for (contender, directory) in contenders.iter().zip(&directories) {
        check(contender, directory.path(), u64::from(threads) * count * (rounds + 1));
    }
    in_units(times, Duration::from_micros(1), u64::from(threads) * count)
}

/// Nanoseconds a record, for opening a log and reading all of it.
fn reading(contenders: &[&'static Contender], len: usize) -> Times {
    let count = (REPLAY_LEN / len).min(200_000) as u64;
    let directories = filled_directories(contenders, count, len);
    let times = in_turns(contenders.len(), REPLAY_ROUNDS, |index, _| {
        let mut found = 0;
        let read = contenders[index].read.expect("a reader");
        let started = Instant::now();
        read(directories[index].path(), &mut |_| found += 1).expect("a log that is read");
        let time = started.elapsed();
        assert_eq!(found, count, "{}", contenders[index].name);
        time
    });
    in_units(times, Duration::from_nanos(1), count)
}

/// Microseconds for opening a log, so that the next record can be appended.
fn opening(contenders: &[&'static Contender], log_len: usize) -> Times {
    let directories = filled_directories(contenders, (log_len / OPENED_RECORD_LEN) as u64, OPENED_RECORD_LEN);
    let times = in_turns(contenders.len(), REPLAY_ROUNDS, |index, _| {
        let started = Instant::now();
        let log = (contenders[index].open)(directories[index].path(), Use::Durable).expect("a log");
        let time = started.elapsed();
        drop(log);
        time
    });
    in_units(times, Duration::from_micros(1), 1)
}

/// A log of each contender, with so many records.
fn filled_directories(contenders: &[&'static Contender], count: u64, len: usize) -> Vec<tempfile::TempDir> {
    let directories = new_directories(contenders.len());
    for (contender, directory) in contenders.iter().zip(&directories) {
        let log = (contender.open)(directory.path(), Use::Unsynced).expect("a new log");
        let numbers: Vec<u64> = (0..count).collect();
        for batch in numbers.chunks(1000) {
            let records: Vec<Vec<u8>> = batch.iter().map(|&number| new_record(0, number, len)).collect();
            log.extend_sync(&records).expect("a batch");
        }
        drop(log);
        check(contender, directory.path(), count);
    }
    directories
}

/// The numbers below `count`, in an order of this round.
fn shuffled(count: usize, round: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&index| {
        (round << 8 | index as u64)
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    order
}

/// The time from the first append of a thread to the last. The records are made before.
fn time_of(log: &Arc<dyn Log>, scenario: Scenario, first: u64, len: usize) -> Duration {
    let Scenario {
        appends,
        threads,
        count,
        ..
    } = scenario;
    let start = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let start = &start;
                let records: Vec<Vec<u8>> = (first..first + count)
                    .map(|number| new_record(thread, number, len))
                    .collect();
                scope.spawn(move || {
                    start.wait();
                    let started = Instant::now();
                    let appended = match appends {
                        Appends::Unsynced => records.iter().try_for_each(|record| log.append(record)),
                        Appends::Durable => records.iter().try_for_each(|record| log.append_sync(record)),
                        Appends::DurableBatches => {
                            records.chunks(BATCH_LEN).try_for_each(|batch| log.extend_sync(batch))
                        }
                    };
                    appended.expect("an append");
                    (started, Instant::now())
                })
            })
            .collect();
        let times: Vec<(Instant, Instant)> = handles
            .into_iter()
            .map(|handle| handle.join().expect("no panic"))
            .collect();
        let started = times.iter().map(|(started, _)| *started).min().expect("a thread");
        times
            .iter()
            .map(|(_, ended)| ended.duration_since(started))
            .max()
            .expect("a thread")
    })
}

fn new_record(thread: u32, number: u64, len: usize) -> Vec<u8> {
    let mut record = Vec::new();
    write_record(Key { thread, number }, len, &mut record);
    record
}

/// Every record must be read, and those of each thread in their order.
fn check(contender: &Contender, directory: &Path, count: u64) {
    let Some(read) = contender.read else { return };
    let mut found = 0;
    let mut is_in_order = true;
    let mut next = BTreeMap::new();
    let read = read(directory, &mut |record| {
        found += 1;
        let next = key_of(record).map(|key| (key.number, next.entry(key.thread).or_insert(0)));
        is_in_order &= next.is_some_and(|(number, next)| {
            *next += 1;
            number + 1 == *next
        });
    });
    if read.is_err() || !is_in_order || found != count {
        let name = contender.name;
        eprintln!("{name}: {found} of {count} records read, in order: {is_in_order}, {read:?}");
    }
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
