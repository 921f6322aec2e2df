//! Which log it is: its dialect, number and compression, from the start of a file that is still
//! being written.

use super::Follower;
use super::follower::{Last, State};
use crate::detect::{
    DETECT_LEN, PartialDetection, check_start, ends_in_first_fragment, identify, log_number_of, shown_dialect,
    starts_undamaged,
};
use crate::dialect::{Dialect, LogFormat};
use crate::error::{Error, ErrorKind, unsupported};
use crate::trace::trace;

impl Follower {
    /// Checks whether the contents show the format of the log yet. The start of an undamaged
    /// log shows it; otherwise it is decided as for a reader of the whole file, once everything
    /// that decides it is written, or, if `is_last`, by the bytes there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Foreign`] if a signature shows that it is not a log. A file without one may be a
    /// log whose first record is not complete yet. [`ErrorKind::Unsupported`] if logs in its dialect do
    /// not have the number or compression given in the options.
    pub(super) fn identify(&mut self, is_last: bool) -> Result<(), Error> {
        // A nonzero byte shows that everything before it is written.
        let is_passed = self.is_head_written()?;
        let origin = self.file.origin();
        let mut head = vec![0; DETECT_LEN];
        let len = self.file.read_at(origin, &mut head).map_err(|source| self.io(source))?;
        let is_written = is_passed || head[DETECT_LEN - 1] != 0;
        let is_all = is_last || is_written;
        head.truncate(len.min(if is_all { DETECT_LEN } else { DETECT_LEN - 1 }));
        if !is_written && ends_in_first_fragment(&head) {
            return Ok(());
        }
        let named = self.options.named();
        let path = self.file.file_path();
        let detect = |is_last| identify(named, Some(&path), &head, 0, is_last);
        let is_undetected = named.dialect.is_none();
        // Only a complete fragment decides, and the block need not be complete for that.
        let mut detected = detect(is_last || is_undetected && starts_undamaged(&head));
        if detected == PartialDetection::NeedMore && is_undetected && self.position <= origin {
            detected = match detect(true) {
                foreign @ PartialDetection::Foreign(_) => foreign,
                _ => PartialDetection::NeedMore,
            };
        }
        trace!("follow: from {} bytes: {detected:?}", head.len());
        match detected {
            PartialDetection::Log(format) => {
                unsupported(check_start(format, &head), Some(&self.file.path))?;
                self.set_format(LogFormat {
                    dialect: without_grid(format.dialect, is_undetected),
                    ..format
                })?;
                self.state = State::Reading;
                self.is_known_log = true;
            }
            // After a segment whose format is known, one that is no log is damage.
            PartialDetection::Foreign(foreign) if foreign.has_signature() && !self.is_known_log => {
                return Err(Error::new(ErrorKind::Foreign { foreign }, Some(&self.file.path)));
            }
            _ if is_written && is_undetected => {
                // As for a reader.
                let before = self.is_known_log.then_some(self.format);
                self.set_format(before.unwrap_or(LogFormat::unknown()))?;
                self.state = State::Reading;
            }
            _ if is_undetected && self.position <= origin => {
                if let Some(dialect) = shown_dialect(&head) {
                    let number = named.log_number.or_else(|| log_number_of(&path));
                    self.set_format(named.format(dialect).numbered(number))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads in this format, from the offset after the last reported event on.
    fn set_format(&mut self, format: LogFormat) -> Result<(), Error> {
        unsupported(self.options.named().check_in(format.dialect), Some(&self.file.path))?;
        // Dialects are equal if their names are.
        if self.format != format || self.format.dialect.is_detected() != format.dialect.is_detected() {
            // Damage that has been reported may cost more in this format: it is read again from the
            // start.
            self.last = Last::Nothing;
            self.restart_in(format);
        }
        Ok(())
    }
}

/// The dialect in which to follow a log of the `detected` one. Where the blocks of a `wandb_old` log
/// start shows only in its second block, so it is followed as `wandb_old` only if that is named.
fn without_grid(detected: Dialect, is_undetected: bool) -> Dialect {
    if is_undetected && detected == Dialect::WANDB_OLD {
        Dialect::WANDB
    } else {
        detected
    }
}
