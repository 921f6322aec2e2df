//! The state of a `Follower`, and how it is polled.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cordwood::damage::Severity;
use cordwood::follow::Poll;
use cordwood::{End, Error, ErrorKind, FollowOptions, Follower, OnCorruption};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::interpreter::released;
use crate::memory::buffer::try_bytes;
use crate::reader::log::{Logged, Message, Messages};
use crate::reader::skipped::Skipped;
use crate::values::error::{not_followed, to_python};
use crate::values::record::Record;
use crate::values::{NotYet, Outcome};

pub(crate) enum State {
    Open(Box<Open>),
    Closed(Seen),
}

/// A follower's findings and position, readable even after `close`.
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
    pub(crate) follower: Follower,
    pub(crate) skipped: Skipped,
    /// The result of the last poll if it found no event. Otherwise `None`.
    pub(crate) waiting: Option<NotYet>,
    pub(crate) end: Option<End>,
    /// The options for the next file at the path.
    pub(crate) options: FollowOptions,
    pub(crate) on_rotation: OnRotation,
    pub(crate) path: PathBuf,
    /// The file that is now at the path. The old file is still polled, because it may have grown
    /// before the new one was created.
    pub(crate) next: Option<Follower>,
    pub(crate) logged: Logged,
}

/// The result of a poll, created while no other thread can use the follower.
pub(crate) enum Taken<T> {
    Record(T),
    /// There is no record yet, but the next poll may find one immediately. The caller first checks
    /// for signals, without holding the lock, because a handler may close the follower.
    Again(Messages),
    /// There is no record. The value is the time to wait before the next poll.
    Wait(Duration),
    End(Messages),
}

/// How to react to a rotation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRotation {
    Raise,
    Reopen,
    Stop,
}

impl Open {
    /// Returns the result of the next poll. `make` converts a record, and must not run Python code.
    /// If the conversion fails, the next poll returns the same record. Errors report `path` as the
    /// file's path.
    pub(crate) fn take<T>(
        &mut self,
        py: Python<'_>,
        path: &Path,
        make: &impl Fn(Record) -> PyResult<T>,
    ) -> PyResult<Taken<T>> {
        self.waiting = None;
        if self.end.is_some() {
            return Ok(Taken::End([self.logged.summary(), None]));
        }
        let Open { follower, .. } = self;
        let was_found = follower.has_found();
        // Releasing the interpreter lock for each record would cost more than reading the record.
        let polled = released((!was_found).then_some(py), || follower.peek());
        match polled {
            // Let the caller check for signals first. Records may keep arriving, and C code that
            // consumes them doesn't check for signals.
            Ok(Poll::Record(_)) if !was_found => Ok(Taken::Again(Messages::default())),
            Ok(Poll::Record(record)) => {
                let made = make(Record {
                    offset: record.offset,
                    end_offset: record.end_offset,
                    data: try_bytes(py, record.data)?.unbind(),
                    salvaged: record.is_salvaged,
                })?;
                follower.advance();
                Ok(Taken::Record(made))
            }
            Ok(Poll::Skipped(region)) => {
                self.skipped.add(region);
                // Under the policy `"raise"`, the damage itself has already been raised. This
                // region holds data written after the damage, in the same block.
                let raises = self.options.on_corruption == OnCorruption::Fail;
                let is_logged = region.reason.severity() == Severity::Corruption && !raises;
                Ok(Taken::Again(match is_logged {
                    true => self.logged.add(region),
                    false => Messages::default(),
                }))
            }
            Ok(Poll::NotYet(not_yet)) => {
                if self.follower.is_probing() {
                    // The file that was replaced has not been fully searched yet.
                    return Ok(Taken::Again(Messages::default()));
                }
                // If the path refers to this file again, the file was not rotated.
                self.next = None;
                Ok(self.wait(not_yet.reason.as_str(), not_yet.offset, not_yet.file_len))
            }
            Ok(Poll::Truncated { offset, file_len, .. }) => Err(not_followed(py, false, path, offset, file_len)),
            Ok(Poll::Rotated { offset, file_len, .. }) => self.rotated(py, path, make, offset, file_len),
            Ok(Poll::End(end)) => {
                self.end = Some(end);
                Ok(Taken::End([self.logged.summary(), None]))
            }
            Ok(other) => {
                let message = format!("the follower gave an answer that this class does not know: {other:?}");
                Err(PyRuntimeError::new_err(message))
            }
            Err(error) => {
                if let ErrorKind::Corruption { region, .. } = error.kind {
                    self.skipped.add(region);
                }
                Err(to_python(py, error, Some(path)))
            }
        }
    }

    fn wait<T>(&mut self, reason: &'static str, offset: u64, file_len: u64) -> Taken<T> {
        self.waiting = Some(NotYet {
            reason,
            offset,
            file_len,
        });
        Taken::Wait(self.follower.delay())
    }

    /// Returns the result of a poll that found no event in a rotated file. The path now refers to
    /// another file, or to nothing.
    fn rotated<T>(
        &mut self,
        py: Python<'_>,
        path: &Path,
        make: &impl Fn(Record) -> PyResult<T>,
        offset: u64,
        file_len: u64,
    ) -> PyResult<Taken<T>> {
        let rest_len = file_len.saturating_sub(offset);
        match self.on_rotation {
            OnRotation::Raise => return Err(not_followed(py, true, path, offset, file_len)),
            OnRotation::Stop if rest_len > 0 => self.end = Some(End::TornTail { offset }),
            OnRotation::Stop => self.end = Some(End::Clean { offset }),
            OnRotation::Reopen => match self.next.take() {
                Some(next) => {
                    self.follower = next;
                    self.skipped.clear();
                }
                // A writer finishes the old file before it creates the next one. So after opening
                // the next file, this function polls the old file again.
                None => match py.detach(|| Follower::open_with(&self.path, self.options.clone())) {
                    Ok(next) => {
                        self.next = Some(next);
                        return self.take(py, path, make);
                    }
                    Err(Error {
                        kind: ErrorKind::Io { source, .. },
                        ..
                    }) if source.kind() == io::ErrorKind::NotFound => return Ok(self.wait("idle", offset, file_len)),
                    Err(error) => return Err(to_python(py, error, Some(path))),
                },
            },
        }
        let left = (rest_len > 0).then_some(Message::Left { offset, len: rest_len });
        Ok(Taken::Again([self.logged.summary(), left]))
    }
}
