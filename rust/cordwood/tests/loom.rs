//! Runs threads in every order in which they can take turns. Some threads share one log and wait
//! for a sync, and one of them syncs for all. Other threads close the log, or read parts of a file
//! for another thread. `make loom` runs this test. The other tests are compiled without
//! `cfg(loom)`, and this one is then empty.
#![cfg(loom)]

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use cordwood_log::parallel::{Next, Queue};
use cordwood_log::segments::Segment;
use cordwood_log::write::{self, Storage};
use cordwood_log::{Dialect, Error, FlushPolicy, LogFile, LogFileOptions, SegmentedLog};

/// A file that knows its length, and how many of its bytes are on the disk.
#[derive(Debug, Default)]
struct File {
    len: AtomicU64,
    synced_len: AtomicU64,
    /// This is a loom atomic, so that another thread may also take its turn at the end of a sync.
    sync_count: loom::sync::atomic::AtomicU64,
    /// Whether the disk accepts no write. Only the first sync that ends reports this.
    first_sync_fails: bool,
    write_count: AtomicU64,
    second_write_fails: bool,
}

#[derive(Debug, Clone, Default)]
struct Port(Arc<File>);

impl Storage for Port {
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.0.len.load(SeqCst))
    }

    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.0.write_count.fetch_add(1, SeqCst) == 1 && self.0.second_write_fails {
            return Err(io::Error::from_raw_os_error(28));
        }
        let end = offset + bytes.len() as u64;
        assert_eq!(self.0.len.swap(end, SeqCst), offset, "a write that is not at the end");
        Ok(bytes.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.len.store(len, SeqCst);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let len = self.0.len.load(SeqCst);
        // Other threads may append during a sync. Their records are not on the disk yet.
        loom::thread::yield_now();
        if !self.0.first_sync_fails {
            self.0.synced_len.store(len, SeqCst);
        } else if self.0.sync_count.fetch_add(1, SeqCst) == 0 {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

const RECORD: &[u8] = b"record";
const STORED_LEN: u64 = 7 + RECORD.len() as u64;

/// Two threads append and sync. The main thread may close the log at the same time.
fn check(first_sync_fails: bool, flush: FlushPolicy, closes: bool) {
    let file = move || File {
        first_sync_fails,
        ..File::default()
    };
    check_file(file, LogFileOptions::default().with_flush(flush), closes);
}

/// Like [`check`], but with a file that defines which calls fail.
fn check_file(file: impl Fn() -> File + Send + Sync + 'static, options: LogFileOptions, closes: bool) {
    loom::model(move || {
        let file = Arc::new(file());
        let fails = file.first_sync_fails || file.second_write_fails;
        let log = LogFile::create_in(Box::new(Port(Arc::clone(&file))), options.clone()).expect("an empty file");
        let log = loom::sync::Arc::new(log);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (log, file) = (log.clone(), Arc::clone(&file));
                loom::thread::spawn(move || {
                    let appended = log.append_sync(RECORD);
                    let synced_len = file.synced_len.load(SeqCst);
                    if let Ok(offset) = appended {
                        assert!(synced_len >= offset + STORED_LEN, "acknowledged, and not on the disk");
                    }
                    assert!(log.durable_offset() <= synced_len.max(file.synced_len.load(SeqCst)));
                    appended.map(drop)
                })
            })
            .collect();
        // Another thread also closes the log. If it is the second thread to close, its call returns
        // when the file has been released.
        let closer = closes.then(|| {
            let log = log.clone();
            loom::thread::spawn(move || {
                let _ = log.close();
                log.status().is_closed
            })
        });
        let results: Vec<Result<(), Error>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        if !fails && !closes {
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        }
        assert!(closer.is_none_or(|closer| closer.join().expect("no panic")));
        let appended = results.iter().filter(|result| result.is_ok()).count() as u64;
        assert!(file.len.load(SeqCst) >= appended * STORED_LEN);
    });
}

#[test]
fn two_threads_share_one_sync() {
    check(false, FlushPolicy::EveryAppend, false);
    check(false, FlushPolicy::OnClose, false);
}

/// One thread appends and syncs. The other waits for a record that was appended before.
#[test]
fn a_thread_can_wait_for_a_record_from_another_thread() {
    loom::model(|| {
        let file = Arc::new(File::default());
        let log = LogFile::create_in(Box::new(Port(Arc::clone(&file))), LogFileOptions::default());
        let log = loom::sync::Arc::new(log.expect("an empty file"));
        log.append(RECORD).expect("nothing fails");
        let appends = {
            let log = log.clone();
            loom::thread::spawn(move || log.append_sync(RECORD).map(drop))
        };
        log.wait_durable(STORED_LEN).expect("nothing fails");
        assert!(
            file.synced_len.load(SeqCst) >= STORED_LEN,
            "it returned before the sync"
        );
        appends.join().expect("no panic").expect("nothing fails");
    });
}

/// If a thread appends records before it syncs, they share no container with records of another
/// thread.
#[test]
fn two_threads_share_one_sync_of_a_packed_log() {
    let packed = LogFileOptions::default().with_dialect(Dialect::PACKED);
    for flush in [FlushPolicy::EveryAppend, FlushPolicy::OnClose] {
        check_file(File::default, packed.clone().with_flush(flush), false);
    }
}

#[test]
fn every_waiting_thread_sees_a_failed_sync() {
    check(true, FlushPolicy::EveryAppend, false);
}

/// The truncation after a failed write also syncs, possibly at the same time as the other thread.
/// Only one of the two threads gets the error of the disk, and no record may be acknowledged.
#[test]
fn every_waiting_thread_sees_a_failed_sync_after_truncation() {
    let file = || File {
        first_sync_fails: true,
        second_write_fails: true,
        ..File::default()
    };
    check_file(file, LogFileOptions::default(), false);
}

#[test]
fn close_waits_for_threads_that_are_waiting_on_a_sync() {
    check(false, FlushPolicy::EveryAppend, true);
}

/// The second thread that closes the log must not return before the file has been released.
#[test]
fn two_threads_closing_a_log_both_wait_until_it_is_released() {
    loom::model(|| {
        let file = Arc::new(File::default());
        let options = LogFileOptions::default().with_sync(cordwood_log::SyncPolicy::OnClose);
        let log = LogFile::create_in(Box::new(Port(Arc::clone(&file))), options).expect("an empty file");
        log.append(RECORD).expect("nothing fails");
        let log = loom::sync::Arc::new(log);
        let close = |log: loom::sync::Arc<LogFile>, file: Arc<File>| {
            move || {
                log.close().expect("nothing fails");
                assert_eq!(file.synced_len.load(SeqCst), STORED_LEN, "it returned before the sync");
            }
        };
        let other = loom::thread::spawn(close(log.clone(), Arc::clone(&file)));
        close(log, file)();
        other.join().expect("no panic");
    });
}

/// A directory whose segments know how many of their bytes are on the disk.
#[derive(Debug, Default)]
struct Segments(std::sync::Mutex<BTreeMap<u64, Arc<File>>>);

#[derive(Debug, Clone, Default)]
struct Directory(Arc<Segments>);

impl Directory {
    fn files(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<File>>> {
        self.0.0.lock().expect("no panic with the lock")
    }

    /// Checks whether everything before this log offset is on the disk or was removed.
    fn has_synced(&self, end: u64) -> bool {
        let files = self.files();
        let mut last_first = files.range(..end).rev();
        let Some((base, last)) = last_first.next() else {
            return files.keys().next().is_some_and(|&first| first >= end);
        };
        let is_whole = |file: &File| file.len.load(SeqCst) == file.synced_len.load(SeqCst);
        base + last.synced_len.load(SeqCst) >= end && last_first.all(|(_, file)| is_whole(file))
    }
}

impl write::Directory for Directory {
    fn list(&self) -> Result<Vec<Segment>, Error> {
        Ok(Vec::new())
    }

    fn open(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        Ok(Box::new(Port(Arc::clone(&self.files()[&offset]))))
    }

    fn create(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        assert!(
            offset == 0 || self.has_synced(offset),
            "a segment that is not on the disk"
        );
        let file = Arc::new(File::default());
        assert!(self.files().insert(offset, Arc::clone(&file)).is_none());
        Ok(Box::new(Port(file)))
    }

    fn has(&self, offset: u64) -> bool {
        self.files().contains_key(&offset)
    }

    fn remove(&self, offset: u64) -> Result<(), Error> {
        let (first, _) = self.files().pop_first().expect("a segment");
        assert_eq!(first, offset, "not the oldest");
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Two threads append to a log with these options and sync. Each segment holds one record. `beside`
/// runs at the same time.
fn check_segments(options: LogFileOptions, beside: impl Fn(&SegmentedLog) + Send + Sync + Copy + 'static) {
    loom::model(move || {
        let directory = Directory::default();
        let options = options.clone().with_segment_len(STORED_LEN);
        let log = SegmentedLog::open_in(Arc::new(directory.clone()), options).expect("an empty directory");
        let log = loom::sync::Arc::new(log);
        let other = {
            let (log, directory) = (log.clone(), directory.clone());
            loom::thread::spawn(move || {
                let offset = log.append_sync(RECORD).expect("nothing fails");
                assert!(
                    directory.has_synced(offset + STORED_LEN),
                    "acknowledged, and not on the disk"
                );
            })
        };
        let offset = log.append_sync(RECORD).expect("nothing fails");
        assert!(
            directory.has_synced(offset + STORED_LEN),
            "acknowledged, and not on the disk"
        );
        beside(&log);
        other.join().expect("no panic");
        let lens: Vec<_> = directory
            .files()
            .iter()
            .map(|(&base, file)| (base, file.len.load(SeqCst)))
            .collect();
        assert_eq!(log.offset(), 2 * STORED_LEN);
        assert!(
            lens.iter()
                .all(|&(base, len)| base % STORED_LEN == 0 && (len == STORED_LEN || base == log.offset())),
            "{lens:?}"
        );
    });
}

/// One thread starts the next segment, while the other may wait for a record in the last one.
#[test]
fn two_threads_can_start_new_segments_while_a_third_thread_waits() {
    check_segments(LogFileOptions::default(), |_| {});
}

#[test]
fn segments_rotate_and_expire_during_appends() {
    check_segments(LogFileOptions::default(), |log| {
        let end = log.rotate().expect("nothing fails");
        assert!(log.prune_before(end).expect("nothing fails") >= end);
    });
}

#[test]
fn segments_started_by_two_threads_expire_during_pruning() {
    check_segments(LogFileOptions::default().with_retention_bytes(0), |log| {
        log.prune_before(u64::MAX).expect("nothing fails");
    });
}

/// With two workers and a consumer, each result must arrive once and in order, and none may be
/// lost.
#[test]
fn a_queue_returns_results_in_order() {
    loom::model(|| {
        let queue = loom::sync::Arc::new(Queue::new(3, 2));
        let workers: Vec<_> = (0..2).map(|_| loom::thread::spawn(work(&queue))).collect();
        let mut results = Vec::new();
        loop {
            match queue.next_within(Duration::MAX) {
                Next::Result(result) => results.push(result),
                Next::Waiting => {}
                Next::End => break,
            }
        }
        assert_eq!(results, [0, 10, 20]);
        for worker in workers {
            worker.join().expect("no panic");
        }
    });
}

/// After a queue is stopped, no worker may keep waiting, and the queue returns no more results.
#[test]
fn stopping_a_queue_ends_its_workers() {
    loom::model(|| {
        let queue = loom::sync::Arc::new(Queue::new(u64::MAX, 2));
        let workers: Vec<_> = (0..2).map(|_| loom::thread::spawn(work(&queue))).collect();
        let first = queue.next_within(Duration::MAX);
        assert!(matches!(first, Next::Result(0) | Next::Waiting));
        queue.stop();
        assert_eq!(queue.next_within(Duration::MAX), Next::End);
        for worker in workers {
            worker.join().expect("no panic");
        }
    });
}

fn work(queue: &loom::sync::Arc<Queue<u64>>) -> impl FnOnce() + use<> {
    let queue = queue.clone();
    move || {
        while let Some(part) = queue.claim() {
            queue.put(part, part * 10);
        }
    }
}
