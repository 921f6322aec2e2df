//! The times. In each round every contender appends the same records, in an order that changes; a ratio compares two
//! contenders of one round. So other work of the machine and of its disk affects all of them alike.

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

pub fn print_tables(contenders: &[&'static Contender]) {
    println!(
        "load average: {}",
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
    for scenario in SCENARIOS {
        let takes_part = |contender: &&&'static Contender| match scenario.appends {
            Appends::Unsynced => contender.has_append,
            Appends::Durable | Appends::DurableBatches => contender.syncs,
        };
        let contenders: Vec<&'static Contender> = contenders.iter().filter(takes_part).copied().collect();
        println!(
            "\n{}: microseconds a record; then the ratio to it [middle half of the rounds]\n",
            scenario.title
        );
        println!("| | {} |", LENS.map(|len| format!("{len} B")).join(" | "));
        println!("|---|{}", "--:|".repeat(LENS.len()));
        let columns: Vec<Vec<String>> = LENS.iter().map(|&len| column(&contenders, scenario, len)).collect();
        for (row, contender) in contenders.iter().enumerate() {
            let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
            println!("| {} | {} |", contender.name, cells.join(" | "));
        }
    }
}

/// A cell for each contender.
fn column(contenders: &[&'static Contender], scenario: Scenario, len: usize) -> Vec<String> {
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
    let folders: Vec<tempfile::TempDir> = contenders
        .iter()
        .map(|_| tempfile::tempdir().expect("a folder"))
        .collect();
    let open = |(contender, folder): (&&Contender, &tempfile::TempDir)| (contender.open)(folder.path(), usage);
    let logs: Vec<Arc<dyn Log>> = contenders
        .iter()
        .zip(&folders)
        .map(|log| open(log).expect("a new log").into())
        .collect();
    let mut times = vec![Vec::new(); contenders.len()];
    // One more round, before the others, warms up.
    for round in 0..=rounds {
        for index in shuffled(logs.len(), round) {
            let time = time_of(&logs[index], scenario, round * count, len);
            if round > 0 {
                times[index].push(time.as_secs_f64() * 1e6 / (u64::from(threads) * count) as f64);
            }
        }
    }
    drop(logs);
    for (contender, folder) in contenders.iter().zip(&folders) {
        check(contender, folder, u64::from(threads) * count * (rounds + 1));
    }
    let cell = |own: &Vec<f64>| {
        let ratios = own.iter().zip(&times[0]).map(|(time, first)| time / first);
        let [low, middle, high] = quartiles(ratios.collect());
        format!("{middle:.2} [{low:.2}-{high:.2}]")
    };
    let [_, microseconds, _] = quartiles(times[0].clone());
    let others = times[1..].iter().map(cell);
    std::iter::once(format!("{microseconds:.1}")).chain(others).collect()
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
    let make = |thread, number| {
        let mut record = Vec::new();
        write_record(Key { thread, number }, len, &mut record);
        record
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let start = &start;
                let records: Vec<Vec<u8>> = (first..first + count).map(|number| make(thread, number)).collect();
                scope.spawn(move || {
                    start.wait();
                    let begun = Instant::now();
                    let appended = match appends {
                        Appends::Unsynced => records.iter().try_for_each(|record| log.append(record)),
                        Appends::Durable => records.iter().try_for_each(|record| log.append_sync(record)),
                        Appends::DurableBatches => {
                            records.chunks(BATCH_LEN).try_for_each(|batch| log.extend_sync(batch))
                        }
                    };
                    appended.expect("an append");
                    (begun, Instant::now())
                })
            })
            .collect();
        let times: Vec<(Instant, Instant)> = handles
            .into_iter()
            .map(|handle| handle.join().expect("no panic"))
            .collect();
        let begun = times.iter().map(|(begun, _)| *begun).min().expect("a thread");
        times
            .iter()
            .map(|(_, ended)| ended.duration_since(begun))
            .max()
            .expect("a thread")
    })
}

/// Every record must be read, and those of each thread in their order.
fn check(contender: &Contender, folder: &tempfile::TempDir, count: u64) {
    let Some(read) = contender.read else { return };
    let mut records = Vec::new();
    let read = read(folder.path(), &mut records);
    let mut next = std::collections::BTreeMap::new();
    let is_in_order = records.iter().all(|record| {
        let Some(Key { thread, number }) = key_of(record) else {
            return false;
        };
        let next = next.entry(thread).or_insert(0);
        *next += 1;
        number + 1 == *next
    });
    if read.is_err() || !is_in_order || records.len() as u64 != count {
        eprintln!(
            "{}: {} of {count} records read, in order: {is_in_order}, {read:?}",
            contender.name,
            records.len()
        );
    }
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
