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
use crate::format::without_zeros;
use crate::trace::trace;

impl Follower {
    /// Determines the format of the log, if the bytes written so far reveal it. An undamaged start
    /// is enough. If the start is damaged, the follower waits until all bytes that determine the
    /// format have been written. It then determines the format just as a reader of the whole file
    /// would. If `is_last` is true, the follower does not wait for more bytes, but uses those
    /// already in the file. Returns whether the log must be reread in another format.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Foreign`] if a signature shows that the file is not a log. A file
    /// without a signature may be a log whose first record is still incomplete. Returns
    /// [`ErrorKind::Unsupported`] if the options specify a log number or a compression method for a
    /// dialect that doesn't support it.
    pub(super) fn identify(&mut self, is_last: bool) -> Result<bool, Error> {
        // A nonzero byte proves that everything before it has been written.
        let is_passed = self.is_head_written()?;
        let origin = self.file.origin;
        let mut head = vec![0; DETECT_LEN];
        let len = self.file.read_at(origin, &mut head)?;
        if !starts_undamaged(&head[..len]) {
            // If a write was in progress during the read, the read may have returned the end of
            // that write but not its start.
            let written_len = without_zeros(&head).len();
            self.file.read_at(origin, &mut head[..written_len])?;
        }
        let is_written = is_passed || head[DETECT_LEN - 1] != 0;
        let is_all = is_last || is_written;
        head.truncate(len.min(if is_all { DETECT_LEN } else { DETECT_LEN - 1 }));
        if !is_written && ends_in_first_fragment(&head) {
            return Ok(false);
        }
        let named = self.options.named();
        let path = self.file.file_path();
        let detect = |is_last| identify(named, Some(&path), &head, 0, is_last);
        let is_undetected = named.dialect.is_none();
        // Detection needs one complete fragment, but not a complete block.
        let mut detected = detect(is_last || is_undetected && starts_undamaged(&head));
        if detected == PartialDetection::NeedMore && is_undetected && self.position <= origin {
            detected = match detect(true) {
                foreign @ PartialDetection::Foreign(_) => foreign,
                _ => PartialDetection::NeedMore,
            };
        }
        trace!("follow: from {} bytes: {detected:?}", head.len());
        Ok(match detected {
            PartialDetection::Log(format) => {
                unsupported(check_start(format, &head, origin), Some(&self.file.path))?;
                // Only the second block reveals where the blocks of a `wandb_old` log start, so a
                // log is followed as `wandb_old` only if the options name that dialect.
                let is_old = is_undetected && format.dialect == Dialect::WANDB_OLD;
                let dialect = if is_old { Dialect::WANDB } else { format.dialect };
                let is_new = self.set_format(LogFormat { dialect, ..format })?;
                self.state = State::Reading;
                self.is_known_log = true;
                is_new
            }
            // Once the format of one segment is known, any later segment that doesn't look like a
            // log is treated as damage.
            PartialDetection::Foreign(foreign) if foreign.has_signature() && !self.is_known_log => {
                return Err(Error::new(ErrorKind::Foreign { foreign }, Some(&self.file.path)));
            }
            _ if is_written && is_undetected => {
                // Determine the format just as a reader of the whole file would.
                let before = self.is_known_log.then_some(self.format);
                let is_new = self.set_format(before.unwrap_or(LogFormat::unknown()))?;
                self.state = State::Reading;
                is_new
            }
            _ if is_undetected
                && self.position <= origin
                && let Some(dialect) = shown_dialect(&head) =>
            {
                let number = named.log_number.or_else(|| log_number_of(&path));
                self.set_format(named.format(dialect).numbered(number))?
            }
            _ => false,
        })
    }

    /// Switches to `format`. Returns whether it differs from the previous format. If so, the
    /// decoder rereads the log from the start.
    fn set_format(&mut self, format: LogFormat) -> Result<bool, Error> {
        let named = self.options.named().format(format.dialect);
        unsupported(named.check(), Some(&self.file.path))?;
        // Dialects with equal names are equal, so `is_detected` is compared separately.
        let is_new = self.format != format || self.format.dialect.is_detected() != format.dialect.is_detected();
        if is_new {
            // In the new format, damage already reported may extend further, so the log is reread
            // from the start.
            self.last = Last::Nothing;
            self.restart_in(format);
        }
        Ok(is_new)
    }
}
