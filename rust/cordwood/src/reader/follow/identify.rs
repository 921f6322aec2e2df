//! Detects the dialect, number and compression of a log from the start of a file that is still
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
    /// Checks whether the contents already show the format of the log. The start of an undamaged
    /// log shows its format. Otherwise, the follower waits until all the bytes that decide the
    /// format are written, and then decides as a reader of the whole file does. If `is_last` is
    /// true, it decides from the bytes that are there now.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Foreign`] if a signature shows that the file is not a log. A file
    /// without such a signature may be a log whose first record is not complete yet. Returns
    /// [`ErrorKind::Unsupported`] if logs in this dialect cannot have the number or compression
    /// given in the options.
    pub(super) fn identify(&mut self, is_last: bool) -> Result<(), Error> {
        // A nonzero byte proves that everything before it is written.
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
        // Detection needs one complete fragment. The rest of its block need not be complete.
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
            // Once the format of a segment is known, a later segment that is not a log is damage.
            PartialDetection::Foreign(foreign) if foreign.has_signature() && !self.is_known_log => {
                return Err(Error::new(ErrorKind::Foreign { foreign }, Some(&self.file.path)));
            }
            _ if is_written && is_undetected => {
                // Decide as a reader of the whole file does.
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

    /// Switches to `format`, and reads again from the offset after the last reported event.
    fn set_format(&mut self, format: LogFormat) -> Result<(), Error> {
        unsupported(self.options.named().check_in(format.dialect), Some(&self.file.path))?;
        // Dialects compare as equal if their names are equal.
        if self.format != format || self.format.dialect.is_detected() != format.dialect.is_detected() {
            // Damage that has been reported may extend further in this format, so it is read again
            // from the start.
            self.last = Last::Nothing;
            self.restart_in(format);
        }
        Ok(())
    }
}

/// Returns the dialect in which to follow a log whose dialect was detected as `detected`. Only the
/// second block of a `wandb_old` log shows where its blocks start. So the log is followed as
/// `wandb_old` only if the options name that dialect.
fn without_grid(detected: Dialect, is_undetected: bool) -> Dialect {
    if is_undetected && detected == Dialect::WANDB_OLD {
        Dialect::WANDB
    } else {
        detected
    }
}
