//! Sources that one thread or several read with the interpreter released: Ctrl-C stops them, and
//! they report their progress.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use cordwood::read::StreamSource;
use pyo3::prelude::*;

use crate::interpreter::python_code::PythonCode;
use crate::io::source::{Input, InputSource};
use crate::values::error::{call_python, check_signals_anywhere};

/// A source that checks for Ctrl-C at each read, since the work is done with the interpreter
/// released, and reports its progress. A thread other than Python's main one cannot detect Ctrl-C:
/// it stops when the main one has detected it.
pub(crate) struct Watched {
    input: Box<dyn Input>,
    /// Where it is in the file, if other sources read the same file.
    position: Option<u64>,
    watch: Arc<Watch>,
}

/// The state shared by all threads that read one log.
pub(crate) struct Watch {
    /// Called with the number of bytes of each read.
    progress: Option<Py<PyAny>>,
    /// The parts of one file that several sources have read.
    covered: Mutex<Covered>,
    /// The first exception of `progress` or a signal handler: it stops all threads.
    raised: OnceLock<PyErr>,
}

impl Watch {
    pub(crate) fn new(progress: Option<&Bound<'_, PyAny>>) -> Arc<Self> {
        Arc::new(Watch {
            progress: progress.map(|progress| progress.clone().unbind()),
            covered: Mutex::default(),
            raised: OnceLock::new(),
        })
    }

    /// If `result` is an exception, fails, and makes all threads fail at their next read.
    fn check(&self, result: io::Result<()>) -> io::Result<()> {
        if let Err(error) = result {
            let _ = self.raised.set(error.into());
        }
        match self.raised.get() {
            Some(_) => Err(io::Error::other("interrupted")),
            None => Ok(()),
        }
    }

    /// Runs `work`, which reads [`Watched`] sources, with the interpreter released. With several
    /// threads, this one only waits and checks for Ctrl-C.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        threads: usize,
        work: impl FnOnce() -> Result<T, cordwood::Error> + Send,
    ) -> PyResult<Result<T, cordwood::Error>> {
        let done = if threads == 1 {
            py.detach(work)
        } else {
            py.detach(|| {
                thread::scope(|scope| {
                    let (sender, receiver) = mpsc::channel();
                    let thread = thread::Builder::new().spawn_scoped(scope, move || {
                        let done = work();
                        // The receiver outlives the sender, so this cannot fail.
                        let _ = sender.send(());
                        done
                    });
                    let thread = thread.map_err(cordwood::Error::from)?;
                    while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(PAUSE) {
                        // The threads notice the exception themselves.
                        let _ = self.check(check_signals_anywhere());
                    }
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
            })
        };
        match self.raised.get() {
            Some(error) => Err(error.clone_ref(py)),
            None => Ok(done),
        }
    }
}

/// How long the thread that waits for the others waits between checks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Watched { input, position, watch } = self;
        watch.check(check_signals_anywhere())?;
        let len = input.read(buffer)?;
        let mut new_len = len as u64;
        if let Some(position) = position {
            let begin = *position;
            *position += new_len;
            if watch.progress.is_some() {
                // Threads read past the ends of their parts: bytes that are read twice count once.
                let mut covered = watch.covered.lock().unwrap_or_else(PoisonError::into_inner);
                new_len = covered.add(begin, *position);
            }
        }
        if let Some(progress) = &watch.progress {
            watch.check(call_python(|py| progress.bind(py).run((new_len,)).map(drop)))?;
        }
        Ok(len)
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let offset = self.input.seek(to)?;
        self.position = self.position.map(|_| offset);
        Ok(offset)
    }
}

/// Watches a source. `position` is where it is in the file, if other sources read the same file.
pub(crate) fn watched(source: InputSource, watch: &Arc<Watch>, position: Option<u64>) -> StreamSource<Watched> {
    let watch = Arc::clone(watch);
    source.map(move |input| Watched {
        input,
        position,
        watch: Arc::clone(&watch),
    })
}

/// The parts of a file that have been read: the beginning of each, and its end. No two touch, so
/// there are few: threads read neighbouring parts.
#[derive(Default)]
struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds the bytes `[begin, end)`, and returns how many of them are new.
    fn add(&mut self, begin: u64, end: u64) -> u64 {
        let mut new_len = end - begin;
        let (mut first, mut last) = (begin, end);
        while let Some((&other, &other_end)) = self.0.range(..=last).next_back()
            && other_end >= first
        {
            new_len -= other_end.min(end).saturating_sub(other.max(begin));
            self.0.remove(&other);
            (first, last) = (first.min(other), last.max(other_end));
        }
        self.0.insert(first, last);
        new_len
    }
}
