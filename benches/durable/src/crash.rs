//! The crash table. Each log works in a child process, which may be killed, hang or panic without harm to the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::contenders::{Contender, Use};
use crate::failing_sync::{self, FAIL_SYNC};
use crate::record::{Key, key_of, write_record};

const THREADS: u32 = 8;
const KILLS: u64 = 10;
/// The syncs that fail, counted from the first of the process.
const FAILING_SYNCS: [u64; 2] = [5, 20];
/// How many records each thread appends while a sync fails.
const EACH: u64 = 200;
/// Each n-th length at which the file is cut.
const CUT_STEP: usize = 17;
const FLIPS: u64 = 150;
/// A child that has not ended by then hangs.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The records of the log that is cut and damaged, by their lengths.
const SMALL_LENS: [usize; 6] = [16, 100, 37, 1000, 64, 300];
const SMALL_COUNT: u64 = 40;
/// The record that is appended after a cut.
const AFTER: Key = Key { thread: 99, number: 0 };

pub fn print_table(contenders: &[&'static Contender]) {
    println!("| log | kill -9, {KILLS} times | one failed sync | the last file cut | one flipped bit |");
    println!("|---|---|---|---|---|");
    for contender in contenders {
        print!("| {} ", contender.name);
        for column in [killed, sync_fails, cut, flipped] {
            print!("| {} ", column(contender));
            std::io::stdout().flush().expect("standard output");
        }
        println!("|");
    }
}

// The columns -----------------------------------------------------------------------------------

/// Threads append and sync until the process is killed, again and again on one log. Each acknowledged record must be
/// read afterwards.
fn killed(contender: &Contender) -> String {
    if contender.read.is_none() {
        return "no reader".to_owned();
    }
    let directory = new_directory();
    let mut acknowledged = BTreeSet::new();
    let mut read = ChildRead::default();
    for kill in 0..KILLS {
        // A number for each record of the log, and a time that differs each time.
        let first = kill << 32;
        let mut child = start("append", contender, directory.path(), &[first, u64::MAX], None);
        let output = collect(&mut child);
        std::thread::sleep(Duration::from_millis(400 + 97 * kill % 800));
        child.kill().expect("a child that runs");
        child.wait().expect("a child");
        let output = output.join().expect("no panic");
        acknowledged.extend(output.lines().filter_map(acknowledged_key));
        read = read_in_child(contender, directory.path(), "read");
        if let Some(fault) = &read.fault {
            eprintln!("{} after kill {}: {fault}", contender.name, kill + 1);
            return format!("**cannot be read after kill {}**", kill + 1);
        }
    }
    let lost = acknowledged.difference(&read.set()).count();
    let twice = read.keys.len() - read.set().len();
    let mut text = format!("{lost} of {} lost", acknowledged.len());
    if twice > 0 {
        text += &format!(", {twice} twice");
    }
    text
}

/// One call of `fdatasync`, `fsync` or `msync` fails while threads append and sync. After that, no
/// append that starts may be acknowledged: the system may have dropped the bytes before it.
fn sync_fails(contender: &Contender) -> String {
    let mut answers = Vec::new();
    for at in FAILING_SYNCS {
        let directory = new_directory();
        let mut child = start("append", contender, directory.path(), &[0, EACH], Some(at));
        let output = collect(&mut child);
        let has_ended = wait(&mut child, TIME_MAX);
        let output = output.join().expect("no panic");
        let count = |word: &str| output.lines().filter(|line| line.starts_with(word)).count();
        let ended = count("thread ends") as u32;
        answers.push(if count("has failed") == 0 && ended == THREADS {
            "never syncs".to_owned()
        } else if !has_ended {
            format!("**{} of {THREADS} threads hang**", THREADS - ended)
        } else {
            match count("ok after") {
                0 => "stops".to_owned(),
                after => format!("**{after} acknowledged after it**"),
            }
        });
    }
    answers.dedup();
    answers.join("; ")
}

/// The file is cut at many lengths, as a crash of the machine may leave it. Opening must find the records before the
/// cut, and a record appended then must be read.
fn cut(contender: &Contender) -> String {
    let cut = |file: &[u8]| {
        (0..file.len())
            .step_by(CUT_STEP)
            .map(|len| file[..len].to_vec())
            .collect()
    };
    let is_prefix = |keys: &[Key]| keys.iter().copied().eq((0..keys.len() as u64).map(small_key));
    check_each(contender, cut, "append after", |ChildRead { keys, fault }| {
        match (keys.split_last(), fault) {
            (Some((&AFTER, before)), None) if is_prefix(before) => "continued",
            (_, Some(fault)) if fault.starts_with("open") => "**refused to open**",
            _ if keys.contains(&AFTER) => "**continued, wrong records**",
            _ => "**continued, new record lost**",
        }
    })
}

/// One bit in the first two thirds of the file flips, so that at least a third of the records is after it.
fn flipped(contender: &Contender) -> String {
    let flip = |file: &[u8]| {
        let bits = (file.len() * 2 / 3 * 8) as u64;
        // The same places in each run.
        let bit_of = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % bits;
        let flipped = |bit: u64| {
            let mut file = file.to_vec();
            file[(bit / 8) as usize] ^= 1 << (bit % 8);
            file
        };
        (0..FLIPS).map(bit_of).map(flipped).collect()
    };
    check_each(contender, flip, "read", |ChildRead { keys, fault }| {
        match (fault, SMALL_COUNT - keys.len() as u64) {
            (Some(_), _) => "reported",
            (None, 0) => "unnoticed",
            (None, _) => "**silently lost records**",
        }
    })
}

/// Makes a small log, changes its longest file in many ways, and counts the answers to each.
fn check_each(
    contender: &Contender,
    change: impl Fn(&[u8]) -> Vec<Vec<u8>>,
    task: &str,
    judge: impl Fn(&ChildRead) -> &'static str,
) -> String {
    if contender.read.is_none() {
        return "no reader".to_owned();
    }
    let original = new_directory();
    let written = read_in_child(contender, original.path(), "append some");
    if written.fault.is_some() || written.keys.len() as u64 != SMALL_COUNT {
        return format!(
            "**{} of {SMALL_COUNT} records read: {:?}**",
            written.keys.len(),
            written.fault
        );
    }
    let (name, mut file) = longest_file(original.path());
    // The space that is ready for more records is not part of the log.
    file.truncate(data_len(&file));
    // For each answer, how often it was given, and how many records were missing.
    let mut answers: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for changed in change(&file) {
        let directory = new_directory();
        copy_directory(original.path(), directory.path());
        std::fs::write(directory.path().join(&name), changed).expect("a copy");
        let read = read_in_child(contender, directory.path(), task);
        let (count, missing) = answers.entry(judge(&read)).or_default();
        *count += 1;
        *missing += SMALL_COUNT.saturating_sub(read.keys.len() as u64);
    }
    let cell = |(answer, (count, missing)): (&&str, &(u64, u64))| match answer.contains("silently") {
        true => format!("{count} {answer}, on average {} of {SMALL_COUNT}", missing / count),
        false => format!("{count} {answer}"),
    };
    answers.iter().map(cell).collect::<Vec<_>>().join("; ")
}

fn small_key(number: u64) -> Key {
    Key { thread: 1, number }
}

// Files -----------------------------------------------------------------------------------------

fn new_directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The length of a file without the zeros at its end.
fn data_len(file: &[u8]) -> usize {
    file.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

/// The file of a log that has the most data, and its path within the directory.
fn longest_file(directory: &Path) -> (PathBuf, Vec<u8>) {
    let files = files_of(directory).into_iter().map(|name| {
        let file = std::fs::read(directory.join(&name)).expect("a file");
        (name, file)
    });
    files
        .max_by_key(|(_, file)| data_len(file))
        .expect("the log has a file")
}

/// The paths of all files within a directory.
fn files_of(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(inner) = directories.pop() {
        for entry in std::fs::read_dir(directory.join(&inner))
            .expect("a directory")
            .flatten()
        {
            let name = inner.join(entry.file_name());
            let list = if entry.path().is_dir() {
                &mut directories
            } else {
                &mut files
            };
            list.push(name);
        }
    }
    files
}

fn copy_directory(from: &Path, to: &Path) {
    for name in files_of(from) {
        let copy = to.join(&name);
        std::fs::create_dir_all(copy.parent().expect("a directory")).expect("a directory");
        std::fs::copy(from.join(&name), copy).expect("a copy");
    }
}

// Children --------------------------------------------------------------------------------------

/// The records that a child has read, and the error, panic or signal that ended it.
#[derive(Debug, Default)]
struct ChildRead {
    keys: Vec<Key>,
    fault: Option<String>,
}

impl ChildRead {
    fn set(&self) -> BTreeSet<Key> {
        self.keys.iter().copied().collect()
    }
}

fn start(task: &str, contender: &Contender, directory: &Path, numbers: &[u64], fail_sync: Option<u64>) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command
        .args(["child", task, contender.name])
        .arg(directory)
        .args(numbers.iter().map(u64::to_string));
    if let Some(at) = fail_sync {
        command.env(FAIL_SYNC, at.to_string());
    }
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

/// Reads the output of a child in a thread, so that it never waits for us.
fn collect(child: &mut Child) -> std::thread::JoinHandle<String> {
    let mut output = child.stdout.take().expect("a pipe");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        // A killed child may leave a part of a line.
        let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    })
}

/// Waits for the end of a child; kills it if that takes too long, and returns whether it ended by itself.
fn wait(child: &mut Child, time_max: Duration) -> bool {
    let started = Instant::now();
    loop {
        if child.try_wait().expect("a child").is_some() {
            return true;
        }
        if started.elapsed() > time_max {
            child.kill().expect("a child that runs");
            child.wait().expect("a child");
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn read_in_child(contender: &Contender, directory: &Path, task: &str) -> ChildRead {
    let mut child = start(task, contender, directory, &[], None);
    let output = collect(&mut child);
    let has_ended = wait(&mut child, TIME_MAX);
    let output = output.join().expect("no panic");
    let mut read = ChildRead {
        keys: Vec::new(),
        fault: Some("panics".to_owned()),
    };
    for line in output.lines() {
        match line.split_once(' ') {
            Some(("record", key)) => match parse_key(key) {
                Some(key) => read.keys.push(key),
                None => read.fault = Some("returns wrong data".to_owned()),
            },
            Some(("error", text)) => read.fault = Some(text.to_owned()),
            _ if line == "end" => read.fault = None,
            _ => {}
        }
    }
    if !has_ended {
        read.fault = Some("hangs".to_owned());
    }
    read
}

fn parse_key(text: &str) -> Option<Key> {
    let (thread, number) = text.split_once(' ')?;
    Some(Key {
        thread: thread.parse().ok()?,
        number: number.parse().ok()?,
    })
}

fn acknowledged_key(line: &str) -> Option<Key> {
    parse_key(
        line.strip_prefix("ok before ")
            .or_else(|| line.strip_prefix("ok after "))?,
    )
}

/// The work of a child process, whose lines the parent reads.
pub fn run_child(task: &str, contender: &'static Contender, directory: &Path, numbers: &[u64]) {
    let opened = |usage| (contender.open)(directory, usage).map_err(|error| format!("open: {error}"));
    let worked = match (task, numbers) {
        ("append", &[first, count]) => opened(Use::Durable).map(|log| append_in_threads(log.into(), first, count)),
        ("append some", []) => opened(Use::Small).and_then(|log| {
            let mut record = Vec::new();
            for number in 0..SMALL_COUNT {
                write_record(
                    small_key(number),
                    SMALL_LENS[number as usize % SMALL_LENS.len()],
                    &mut record,
                );
                log.append_sync(&record)?;
            }
            Ok(())
        }),
        ("append after", []) => opened(Use::Small).and_then(|log| {
            let mut record = Vec::new();
            write_record(AFTER, 200, &mut record);
            log.append_sync(&record)
        }),
        ("read", []) => Ok(()),
        _ => panic!("no such task: {task} {numbers:?}"),
    };
    if task == "append" {
        return;
    }
    let read = worked.and_then(|()| {
        let mut print = |record: &[u8]| match key_of(record) {
            Some(Key { thread, number }) => println!("record {thread} {number}"),
            None => println!("error wrong data"),
        };
        contender.read.map_or(Ok(()), |read| read(directory, &mut print))
    });
    match read {
        Ok(()) => println!("end"),
        Err(error) => println!("error {}", error.replace('\n', " ")),
    }
}

fn append_in_threads(log: Arc<dyn crate::contenders::Log>, first: u64, count: u64) {
    let ended = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, ended) = (&log, &ended);
            scope.spawn(move || {
                let mut record = Vec::new();
                for number in (first..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
                    write_record(Key { thread, number }, 16 + (number * 37 % 5000) as usize, &mut record);
                    let is_after = failing_sync::has_failed();
                    let append = std::panic::AssertUnwindSafe(|| log.append_sync(&record));
                    // In a program, the other threads may continue when one panics.
                    if let Ok(Ok(())) = std::panic::catch_unwind(append) {
                        println!("ok {} {thread} {number}", if is_after { "after" } else { "before" });
                    }
                }
                println!("thread ends");
                if ended.fetch_add(1, SeqCst) + 1 == u64::from(THREADS) && failing_sync::has_failed() {
                    println!("has failed");
                }
            });
        }
    });
}
