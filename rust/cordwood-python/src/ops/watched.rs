//! Sources that one or more threads read while the interpreter lock is released. The sources report
//! progress, and reading can be interrupted with Ctrl-C.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use cordwood::read::StreamSource;
use pyo3::prelude::*;

use crate::interpreter::python_code::PythonCode;
use crate::io::source::{Input, InputSource};
use crate::values::error::{call_python, check_signals_anywhere};

/// A source that checks for Ctrl-C before each read and reports progress after it. The check is
/// necessary because the interpreter lock is released during the reads. Only Python's main thread
/// can detect Ctrl-C. When it does, the other threads stop too.
pub(crate) struct Watched {
    input: Box<dyn Input>,
    watch: Arc<Watch>,
}

/// The state shared by all threads that read one log.
pub(crate) struct Watch {
    /// A Python function to call after each read, with the number of bytes read.
    progress: Option<Py<PyAny>>,
    /// The length of the source, and the number of bytes read so far. The latter can exceed the
    /// length, because threads read past the ends of their parts and some logs are read twice.
    len: u64,
    read_len: AtomicU64,
    /// The first exception that `progress` or a signal handler raises. It stops all threads.
    raised: OnceLock<PyErr>,
}

impl Watch {
    /// Creates the state for a source of `len` bytes, or of unknown length if `len` is `None`.
    pub(crate) fn new(progress: Option<&Bound<'_, PyAny>>, len: Option<u64>) -> Arc<Self> {
        Arc::new(Watch {
            progress: progress.map(|progress| progress.clone().unbind()),
            len: len.unwrap_or(u64::MAX),
            read_len: AtomicU64::new(0),
            raised: OnceLock::new(),
        })
    }

    /// Fails if `result` is an exception, or if any thread has already raised one. In either case,
    /// all other threads fail at their next read.
    fn check(&self, result: io::Result<()>) -> io::Result<()> {
        if let Err(error) = result {
            let _ = self.raised.set(error.into());
        }
        match self.raised.get() {
            Some(_) => Err(io::Error::other("interrupted")),
            None => Ok(()),
        }
    }

    /// Releases the interpreter lock while running `work`, which reads [`Watched`] sources. If
    /// `work` uses several threads, this thread only waits and checks for Ctrl-C.
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
                        // The receiver outlives the sender, so sending cannot fail.
                        let _ = sender.send(());
                        done
                    });
                    let thread = thread.map_err(cordwood::Error::from)?;
                    while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(PAUSE) {
                        // The other threads see the exception at their next read.
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

/// How often to check for Ctrl-C while this thread waits for the other threads.
const PAUSE: Duration = Duration::from_millis(50);

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Watched { input, watch } = self;
        watch.check(check_signals_anywhere())?;
        let len = input.read(buffer)?;
        if let Some(progress) = &watch.progress {
            let read_len = watch.read_len.fetch_add(len as u64, Ordering::Relaxed);
            let new_len = watch.len.saturating_sub(read_len).min(len as u64);
            watch.check(call_python(|py| progress.bind(py).run((new_len,)).map(drop)))?;
        }
        Ok(len)
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.input.seek(to)
    }
}

/// Wraps a source so that reading it reports progress and checks for Ctrl-C.
pub(crate) fn watched(source: InputSource, watch: &Arc<Watch>) -> StreamSource<Watched> {
    let watch = Arc::clone(watch);
    source.map(move |input| Watched {
        input,
        watch: Arc::clone(&watch),
    })
}
