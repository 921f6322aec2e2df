//! The state of a `Follower`, and how it is polled.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cordwood::damage::Severity;
use cordwood::follow::Poll;
use cordwood::{ErrorKind, FollowOptions, OnCorruption};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::memory::buffer::try_bytes;
use crate::reader::log::{Logged, Messages};
use crate::reader::skipped::Skipped;
use crate::values::options::chosen;
use crate::values::record::Record;
use crate::values::{NotYet, Outcome};

pub(crate) enum State {
    Open(Box<Open>),
    Closed(Seen),
}

/// The findings and the position of a follower, which stay readable after `close`.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) skipped: Skipped,
    pub(crate) outcome: Outcome,
    pub(crate) format: cordwood::LogFormat,
}

impl State {
    pub(crate) fn seen(&self) -> Seen {
        match self {
            State::Open(open) => Seen {
                skipped: open.skipped.clone(),
                outcome: Outcome::at(open.follower.offset(), open.end, None),
                format: open.follower.format(),
            },
            State::Closed(seen) => seen.clone(),
        }
    }
}

pub(crate) struct Open {
    pub(crate) follower: cordwood::Follower,
    pub(crate) skipped: Skipped,
    /// The result of the last poll, if it found no event.
    pub(crate) waiting: Option<NotYet>,
    pub(crate) end: Option<cordwood::End>,
    /// For the next file under the path.
    pub(crate) options: FollowOptions,
    pub(crate) on_rotation: OnRotation,
    pub(crate) path: PathBuf,
    /// The file that the path names now. The old one may have grown before this one was created.
    pub(crate) next: Option<cordwood::Follower>,
    pub(crate) logged: Logged,
    /// The offset at the last check for Ctrl-C.
    pub(crate) checked_offset: u64,
}

/// After this many bytes, Ctrl-C is checked for: about as many as a reader reads at once.
const CHECK_LEN: u64 = 1 << 18;

/// The result of a poll, made while no other thread may use the follower.
pub(crate) enum Taken<T> {
    Record(T),
    /// No record yet, but there may be one at once: first check for Ctrl-C, without the lock.
    Again(Messages),
    /// No record, and how long to wait.
    Wait(Duration),
    End(Messages),
    Failed(cordwood::Error),
    Raised(PyErr),
    /// The file was truncated, or the path names another one.
    Changed {
        is_rotated: bool,
        offset: u64,
        file_len: u64,
    },
}

/// The reaction once the path names another file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRotation {
    Raise,
    Reopen,
    Stop,
}

pub(crate) fn on_rotation_of(name: &str) -> PyResult<OnRotation> {
    let reactions = [
        ("raise", OnRotation::Raise),
        ("reopen", OnRotation::Reopen),
        ("stop", OnRotation::Stop),
    ];
    chosen("on_rotation", reactions, name)
}

impl Open {
    /// The result of the next poll, with a record as converted by `make`. If that fails, the next
    /// poll finds the same record. `make` must not run Python code.
    pub(crate) fn take<T>(&mut self, py: Python<'_>, make: &impl Fn(Record) -> PyResult<T>) -> Taken<T> {
        self.waiting = None;
        if self.end.is_some() {
            return Taken::End(self.logged.summary());
        }
        let offset = self.follower.offset();
        // The next file begins at 0 again.
        if offset.abs_diff(self.checked_offset) >= CHECK_LEN {
            // Records may keep coming, and code in C may consume them.
            self.checked_offset = offset;
            return Taken::Again(Messages::default());
        }
        let Open { follower, .. } = self;
        // Not released for each record: that would cost more than the record.
        let polled = match follower.has_found() {
            true => follower.peek(),
            false => py.detach(|| follower.peek()),
        };
        match polled {
            Ok(Poll::Record(record)) => {
                let made = try_bytes(py, record.data).and_then(|data| {
                    make(Record {
                        offset: record.offset,
                        end_offset: record.end_offset,
                        data: data.unbind(),
                        salvaged: record.is_salvaged,
                    })
                });
                match made {
                    Ok(made) => {
                        follower.advance();
                        Taken::Record(made)
                    }
                    Err(error) => Taken::Raised(error),
                }
            }
            Ok(Poll::Skipped(region)) => {
                self.skipped.add(region);
                // Under the policy `"raise"`, the damage itself has been raised: this region is the
                // data that a writer put after it in the same block.
                let raises = self.options.on_corruption == OnCorruption::Fail;
                let is_logged = region.reason.severity() == Severity::Corruption && !raises;
                Taken::Again(match is_logged {
                    true => self.logged.add(region),
                    false => Messages::default(),
                })
            }
            Ok(Poll::NotYet(not_yet)) => {
                if self.follower.is_probing() {
                    // The rest of a file that has been replaced is being searched.
                    return Taken::Again(Messages::default());
                }
                self.waiting = Some(NotYet {
                    reason: not_yet.reason.as_str(),
                    offset: not_yet.offset,
                    file_len: not_yet.file_len,
                });
                // If the file has got its name back, that was not a rotation.
                self.next = None;
                Taken::Wait(self.follower.delay())
            }
            Ok(Poll::Truncated { offset, file_len, .. }) => Taken::Changed {
                is_rotated: false,
                offset,
                file_len,
            },
            Ok(Poll::Rotated { offset, file_len, .. }) => self.rotated(py, offset, file_len, make),
            Ok(Poll::End(end)) => {
                self.end = Some(end);
                Taken::End(self.logged.summary())
            }
            Ok(other) => {
                let message = format!("the follower gave an answer that this class does not know: {other:?}");
                Taken::Raised(PyRuntimeError::new_err(message))
            }
            Err(error) => {
                if let ErrorKind::Corruption { region, .. } = error.kind {
                    self.skipped.add(region);
                }
                Taken::Failed(error)
            }
        }
    }

    /// The result of a poll that finds no event when the path names another file, or none.
    fn rotated<T>(
        &mut self,
        py: Python<'_>,
        offset: u64,
        file_len: u64,
        make: &impl Fn(Record) -> PyResult<T>,
    ) -> Taken<T> {
        let rest_len = file_len.saturating_sub(offset);
        match self.on_rotation {
            OnRotation::Raise => {
                return Taken::Changed {
                    is_rotated: true,
                    offset,
                    file_len,
                };
            }
            OnRotation::Stop => {
                self.end = Some(if rest_len > 0 {
                    cordwood::End::TornTail { offset }
                } else {
                    cordwood::End::Clean { offset }
                });
            }
            OnRotation::Reopen => {
                let Some(next) = self.next.take() else {
                    return self.open_next(py, offset, file_len, make);
                };
                self.follower = next;
                self.skipped.clear();
            }
        }
        let mut messages = self.logged.summary();
        messages.left = (rest_len > 0).then_some((offset, rest_len));
        Taken::Again(messages)
    }

    /// Opens the file that the path names now, and then polls the old one again: a writer finishes
    /// with it before it creates the next.
    fn open_next<T>(
        &mut self,
        py: Python<'_>,
        offset: u64,
        file_len: u64,
        make: &impl Fn(Record) -> PyResult<T>,
    ) -> Taken<T> {
        let Open { path, options, .. } = self;
        match py.detach(|| cordwood::Follower::open_with(&*path, options.clone())) {
            Ok(next) => {
                self.next = Some(next);
                self.take(py, make)
            }
            Err(cordwood::Error {
                kind: ErrorKind::Io { source, .. },
                ..
            }) if source.kind() == io::ErrorKind::NotFound => {
                self.waiting = Some(NotYet {
                    reason: "idle",
                    offset,
                    file_len,
                });
                Taken::Wait(self.follower.delay())
            }
            Err(error) => Taken::Failed(error),
        }
    }
}
