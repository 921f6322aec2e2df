//! Writes the buffer to the file and syncs the file to the disk.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::Instant;

use super::state::{Failure, State};
use super::{LogFile, MutexGuard};
use crate::error::Error;
use crate::writer::BUFFER_LEN;
use crate::writer::append::{cut, unsynced};
use crate::writer::storage::{Storage, copy_of, write_all};

impl LogFile {
    /// Writes all records to the file, in one write unless the system accepts only some of the
    /// bytes. If the write fails, the records stay in the buffer.
    pub(super) fn write_out(&self, state: &mut State) -> Result<(), Error> {
        state.end_container();
        self.write_buffer(state)
    }

    /// Writes the buffer to the file. The buffer contains all records that are not in the file yet,
    /// except those in an open container.
    pub(super) fn write_buffer(&self, state: &mut State) -> Result<(), Error> {
        let Some(storage) = &state.storage else {
            return Err(self.refusal(state));
        };
        if let Err(source) = write_all(&**storage, &state.buffer, state.written) {
            return Err(self.undo_write(state, source));
        }
        state.written = state.encoder.closed_offset();
        state.buffer.clear();
        Ok(())
    }

    /// Appends a record of [`BUFFER_LEN`] bytes or more, and returns its offset. The buffer and the
    /// record are written in pieces, so only one piece is copied at a time. If a write fails, the
    /// caller must [take back](State::take_back) the record.
    pub(super) fn write_long(&self, state: &mut State, record: &[u8]) -> Result<u64, Error> {
        state.end_container();
        let start = state.encoder.closed_offset();
        let Some(storage) = &state.storage else {
            return Err(self.refusal(state));
        };
        let mut end = state.written;
        let mut write = |piece: &mut Vec<u8>| {
            write_all(&**storage, piece, end)?;
            end += piece.len() as u64;
            piece.clear();
            // The first piece contains everything before the record. The record itself is not in
            // the file until its last piece has been written.
            state.written = start;
            io::Result::Ok(())
        };
        let (encoder, buffer) = (&mut state.encoder, &mut state.buffer);
        let encoded = encoder.encode_in_pieces(record, buffer, |piece| match piece.len() {
            BUFFER_LEN.. => write(piece),
            _ => Ok(()),
        });
        match encoded.and_then(|offset| write(buffer).map(|()| offset)) {
            Ok(offset) => {
                state.written = end;
                Ok(offset)
            }
            Err(source) => {
                if state.written == start {
                    // The buffer contains bytes from the middle of the record.
                    state.buffer.clear();
                }
                Err(self.undo_write(state, source))
            }
        }
    }

    /// Truncates the file to the end of the last completely written record and syncs the new
    /// length. Keeps the buffer. A torn record is cut off in the same way when a log is opened.
    #[cold]
    fn undo_write(&self, state: &mut State, source: io::Error) -> Error {
        // If the undo failed, it is unknown where the file ends, so a later write could end up
        // after a partial record.
        if let Some(storage) = &state.storage
            && let Err(undo_error) = cut(&**storage, state.written, state.durable)
        {
            state.failure = Some(Failure {
                what: "write",
                source: copy_of(&source),
                undo_error: Some(undo_error),
            });
        }
        self.failed(state, source)
    }

    /// Waits until all bytes before `end`, which have already been written, are on disk. One of the
    /// waiting threads syncs for all of them, without holding the lock.
    pub(in crate::writer) fn wait_until_durable<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        end: u64,
    ) -> Result<(), Error> {
        let Some(storage) = state.storage.clone() else {
            return Err(self.refusal(&state));
        };
        state.waiting += 1;
        let durable = loop {
            if state.durable >= end && state.is_name_durable {
                break Ok(());
            }
            if let Some(failure) = &state.failure {
                break Err(self.failed(&state, copy_of(&failure.source)));
            }
            state = if state.is_syncing {
                self.sync_ended.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.lead_sync(state, &*storage)
            };
        };
        // Drop the handle while holding the lock, so that no thread still has a handle when `close`
        // sees that no thread is waiting.
        drop(storage);
        state.waiting -= 1;
        if state.waiting == 0 {
            self.sync_ended.notify_all();
        }
        durable
    }

    fn lead_sync<'a>(&'a self, mut state: MutexGuard<'a, State>, storage: &dyn Storage) -> MutexGuard<'a, State> {
        state.is_syncing = true;
        let end = state.written;
        state.sync_end = end;
        state.sync_started = Instant::now();
        let syncs_name = !state.is_name_durable;
        drop(state);

        let sync = || {
            storage.sync_data()?;
            if syncs_name { storage.sync_directory() } else { Ok(()) }
        };
        // If a panic escaped from here, the other threads would wait forever.
        let result = catch_unwind(AssertUnwindSafe(sync)).unwrap_or_else(|_| Err(io::Error::other("it panicked")));

        let mut state = self.lock();
        state.is_syncing = false;
        match result {
            // The system reports a failed write only once. The report may have gone to another
            // thread, which was truncating the file to undo a write.
            Ok(()) if state.failure.is_some() => {}
            Ok(()) => {
                state.durable = end;
                state.is_name_durable = true;
                // If an earlier sync failed, any bytes that did not reach the disk were written
                // again when the log was opened.
                unsynced::forget(storage.identity());
            }
            Err(source) => {
                unsynced::remember(storage.identity(), state.durable);
                // If another thread's write has failed in the meantime and couldn't be undone, keep
                // and report that failure.
                state.fail("sync", source);
            }
        }
        self.sync_ended.notify_all();
        state
    }
}
