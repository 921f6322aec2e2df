//! Processes consecutive parts of a file in several threads, and returns the results in order.
//!
//! As soon as a thread is free, it takes the next part, so no thread waits for the slowest one. To
//! bound memory use, a thread waits while it is a few parts ahead of the consumer.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

// `tests/loom.rs` explores all interleavings of the threads.
#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

use crate::process::Process;

/// A queue of results for numbered parts, which are returned in the order of the parts.
///
/// Workers [`claim`](Self::claim) parts and [`put`](Self::put) their results. One consumer takes
/// the results.
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    /// Signals that the next result has arrived, or that the queue has been stopped.
    has_result: Condvar,
    /// Signals that a result has been taken, or that the queue has been stopped.
    has_room: Condvar,
    /// The maximum number of parts that have been claimed but not yet taken.
    window: usize,
}

#[derive(Debug)]
struct State<T> {
    /// One entry for each part that has been claimed but not yet taken. An entry is `None` while a
    /// worker is working on the part.
    results: VecDeque<Option<T>>,
    /// The number of the part that the first entry of `results` belongs to.
    first: u64,
    /// The number of parts.
    count: u64,
}

/// The result of [`Queue::next_within`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<T> {
    /// The result of the next part.
    Result(T),
    /// The result has not arrived yet.
    Waiting,
    /// There are no more parts.
    End,
}

impl<T> Queue<T> {
    /// Creates a queue for the parts `0..count`. At any time, at most `window` parts are claimed
    /// but not yet taken.
    pub fn new(count: u64, window: usize) -> Self {
        Queue {
            state: Mutex::new(State {
                results: VecDeque::with_capacity(window),
                first: 0,
                count,
            }),
            has_result: Condvar::new(),
            has_room: Condvar::new(),
            window,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the next part as soon as there is room for its result. Returns its number, or `None`
    /// if there are no more parts or the queue has been stopped.
    pub fn claim(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            let part = state.first + state.results.len() as u64;
            if part >= state.count {
                return None;
            }
            if state.results.len() < self.window {
                state.results.push_back(None);
                return Some(part);
            }
            state = self.has_room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Delivers the result of a claimed part.
    pub fn put(&self, part: u64, result: T) {
        let mut state = self.lock();
        let at = part.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
        // If the result has no entry, the queue was stopped, and the result is dropped.
        if let Some(place) = at.and_then(|at| state.results.get_mut(at)) {
            *place = Some(result);
            if at == Some(0) {
                self.has_result.notify_one();
            }
        }
    }

    /// Returns the result of the next part, waiting at most `timeout` for it.
    pub fn next_within(&self, timeout: Duration) -> Next<T> {
        let mut state = self.lock();
        if matches!(state.results.front(), None | Some(None)) && state.first < state.count {
            let waited = self.has_result.wait_timeout(state, timeout);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.first >= state.count {
            return Next::End;
        }
        match state.results.pop_front() {
            Some(Some(result)) => {
                state.first += 1;
                drop(state);
                self.has_room.notify_one();
                Next::Result(result)
            }
            Some(None) => {
                state.results.push_front(None);
                Next::Waiting
            }
            None => Next::Waiting,
        }
    }

    /// Stops the queue, so that no more parts can be claimed and no more results can be taken.
    /// Results that haven't been taken are dropped.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.count = 0;
        let results = std::mem::take(&mut state.results);
        drop(state);
        self.has_room.notify_all();
        self.has_result.notify_all();
        drop(results);
    }
}

/// Works on parts until there are none left. If the work panics, the panic becomes the part's
/// result and resumes in the consumer.
fn work_on<T>(queue: &Queue<thread::Result<T>>, mut work: impl FnMut(u64) -> T) {
    while let Some(part) = queue.claim() {
        let result = catch_unwind(AssertUnwindSafe(|| work(part)));
        let is_over = result.is_err();
        queue.put(part, result);
        if is_over {
            return;
        }
    }
}

/// Returns the maximum number of parts in progress or waiting to be taken.
const fn window(worker_count: usize) -> usize {
    worker_count + 1
}

/// Threads that work on the parts of a file and return the results in order.
///
/// Dropping the pipeline tells the threads to stop, then waits until each has finished the part it
/// is working on. The threads do not exist in a forked child, where
/// [`is_of_this_process`](Self::is_of_this_process) returns false. The child must not do anything
/// with the pipeline except drop it.
#[derive(Debug)]
pub struct Pipeline<T> {
    queue: Arc<Queue<thread::Result<T>>>,
    threads: Vec<JoinHandle<()>>,
    process: u64,
}

impl<T: Send + 'static> Pipeline<T> {
    /// Starts a thread for each of `workers`, to work on the parts `0..count`.
    ///
    /// # Errors
    ///
    /// Returns an error and leaves no threads running if the operating system cannot start a
    /// thread.
    pub fn start<W>(count: u64, workers: Vec<W>) -> io::Result<Self>
    where
        W: FnMut(u64) -> T + Send + 'static,
    {
        let mut pipeline = Pipeline {
            queue: Arc::new(Queue::new(count, window(workers.len()))),
            threads: Vec::with_capacity(workers.len()),
            process: Process::current().number(),
        };
        for worker in workers {
            let queue = Arc::clone(&pipeline.queue);
            let thread = thread::Builder::new().name("cordwood".to_owned());
            let thread = thread.spawn(move || work_on(&queue, worker))?;
            pipeline.threads.push(thread);
        }
        Ok(pipeline)
    }

    /// Returns the result of the next part, waiting at most `timeout` for it.
    ///
    /// # Panics
    ///
    /// Panics if the work on that part panicked.
    pub fn next_within(&self, timeout: Duration) -> Next<T> {
        match self.queue.next_within(timeout) {
            Next::Result(Ok(result)) => Next::Result(result),
            Next::Result(Err(panic)) => {
                // Stop the queue, because the result of this part is lost. A caller that catches
                // the panic must not receive the results of later parts.
                self.queue.stop();
                resume_unwind(panic)
            }
            Next::Waiting => Next::Waiting,
            Next::End => Next::End,
        }
    }
}

impl<T> Pipeline<T> {
    /// Drops the pipeline without waiting for the threads, which stop after the part they are
    /// working on. Use this for threads that wait for an event that may never happen.
    pub fn abandon(mut self) {
        self.threads.clear();
    }

    /// Returns whether this process started the pipeline. Returns `false` in a forked child.
    pub fn is_of_this_process(&self) -> bool {
        self.process == Process::current().number()
    }
}

impl<T> Drop for Pipeline<T> {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // The threads do not exist in a forked child, and one of them may have held the lock at
            // the time of the fork.
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        self.queue.stop();
        for thread in self.threads.drain(..) {
            // Panics are caught, so this cannot fail.
            let _ = thread.join();
        }
    }
}

/// Runs each of `workers` in its own thread to work on the parts `0..count`. Passes the results to
/// `take` in order, and stops if `take` fails.
///
/// # Errors
///
/// Returns the error that `take` returned. If a thread cannot be started, passes the error to
/// `failed` and returns the result of `failed`.
pub(crate) fn in_order<T: Send, E>(
    count: u64,
    workers: Vec<impl FnMut(u64) -> T + Send>,
    failed: impl FnOnce(io::Error) -> E,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let queue = Queue::new(count, window(workers.len()));
    thread::scope(|scope| {
        // If the queue were not stopped, the threads would wait forever for a consumer that no
        // longer exists.
        let _stop = StopOnDrop(&queue);
        for worker in workers {
            let queue = &queue;
            let thread = thread::Builder::new().name("cordwood".to_owned());
            if let Err(error) = thread.spawn_scoped(scope, move || work_on(queue, worker)) {
                return Err(failed(error));
            }
        }
        loop {
            match queue.next_within(Duration::MAX) {
                Next::Result(Ok(result)) => take(result)?,
                Next::Result(Err(panic)) => resume_unwind(panic),
                Next::Waiting => {}
                Next::End => return Ok(()),
            }
        }
    })
}

struct StopOnDrop<'a, T>(&'a Queue<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// The results arrive in order, no matter how fast each thread is. No thread gets ahead of the
    /// consumer by more than the window.
    #[test]
    fn results_arrive_in_order_and_no_thread_runs_ahead_of_the_window() {
        for worker_count in [1, 2, 3, 8] {
            let (started, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |part: u64| {
                let ahead = started.fetch_add(1, SeqCst) + 1 - taken.load(SeqCst);
                // The consumer counts a result only after taking it.
                assert!(ahead <= worker_count + 2, "{ahead} parts with {worker_count} threads");
                thread::sleep(Duration::from_micros(part * 7919 % 200));
                part * 2
            };
            let mut results = Vec::new();
            let done: Result<(), io::Error> = in_order(
                50,
                vec![&work; worker_count],
                |error| error,
                |result| {
                    taken.fetch_add(1, SeqCst);
                    results.push(result);
                    Ok(())
                },
            );
            done.expect("threads can be started");
            assert_eq!(results, (0..50).map(|part| part * 2).collect::<Vec<_>>());
        }
    }

    /// An error stops the work. Parts that haven't been started by that point are never started.
    #[test]
    fn an_error_from_the_consumer_stops_the_pipeline() {
        let started = AtomicUsize::new(0);
        let work = |part: u64| {
            started.fetch_add(1, SeqCst);
            part
        };
        let done = in_order(
            1 << 40,
            vec![&work; 3],
            |_| 0,
            |part| if part == 20 { Err(part) } else { Ok(()) },
        );
        assert_eq!(done, Err(20));
        assert!(started.load(SeqCst) <= 21 + 4);
    }

    #[test]
    fn a_worker_panic_is_passed_on_to_the_consumer() {
        let work = |part: u64| {
            assert!(part != 3, "part 3");
            part
        };
        let pipeline = Pipeline::start(10, vec![work; 2]).expect("threads can be started");
        for part in 0..3 {
            let next = loop {
                match pipeline.next_within(Duration::from_secs(1)) {
                    Next::Waiting => {}
                    next => break next,
                }
            };
            assert_eq!(next, Next::Result(part));
        }
        let panic = catch_unwind(AssertUnwindSafe(|| {
            loop {
                pipeline.next_within(Duration::from_secs(1));
            }
        }));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"part 3"));
        assert_eq!(pipeline.next_within(Duration::ZERO), Next::End);
    }

    /// A dropped pipeline leaves no threads running, even if some results were not taken.
    #[test]
    fn dropping_a_pipeline_stops_its_threads() {
        let running = Arc::new(());
        let worker = || {
            let running = Arc::clone(&running);
            move |part: u64| {
                let _running = &running;
                part
            }
        };
        let pipeline = Pipeline::start(u64::MAX, vec![worker(), worker(), worker()]).expect("threads can be started");
        assert_eq!(pipeline.next_within(Duration::from_secs(60)), Next::Result(0));
        assert_eq!(Arc::strong_count(&running), 4);
        drop(pipeline);
        assert_eq!(Arc::strong_count(&running), 1);
    }
}
