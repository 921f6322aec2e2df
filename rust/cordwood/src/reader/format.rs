//! Detects the format of the log once, from bytes that the reader has to read anyway.

use super::{Reader, Source, source};
use crate::decode::Decoder;
use crate::detect::{PartialDetection, check_start, identify, of_rest};
use crate::dialect::LogFormat;
use crate::error::{Error, ErrorKind, unsupported};
use crate::segments::name_of;

impl<S: Source> Reader<S> {
    /// Returns the format of the log: the dialect and, if known, the log number and the
    /// compression. Any part not given in the options is detected from the contents of the log. See
    /// [`detect`](crate::ops::detect).
    ///
    /// ```
    /// use cordwood_log::{Dialect, ReadOptions, Reader};
    /// let file = b":W&B\xe1\xbe\x00\x4a\x04\xca\xea\x03\x00\x01foo";
    /// let mut reader = Reader::from_slice(file, ReadOptions::default());
    /// assert_eq!(reader.format()?.dialect, Dialect::WANDB);
    /// assert_eq!(reader.next_record()?.unwrap().data, b"foo");
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the source cannot be read. A later call tries again.
    /// * [`ErrorKind::Foreign`] if the file is not a log.
    /// * [`ErrorKind::Unsupported`] if the options give a number or a compression method that logs
    ///   in this dialect don't support.
    pub fn format(&mut self) -> Result<LogFormat, Error> {
        while !self.is_detected()? {
            self.fill()?;
        }
        Ok(self.decoder.format())
    }

    /// Returns the format detected from the log's bytes or given in the options. Returns `None` if
    /// the format cannot be detected, in which case the file is read as a LevelDB log.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`format`](Self::format).
    pub fn detect(&mut self) -> Result<Option<LogFormat>, Error> {
        let format = self.format()?;
        let is_known = self.detected.is_some() || !self.options.must_look();
        Ok(is_known.then_some(format))
    }

    /// Detects the format of the log if it is not known yet. Returns `false` if detection needs
    /// more of the file.
    pub(super) fn is_detected(&mut self) -> Result<bool, Error> {
        if !self.is_undetected {
            return Ok(true);
        }
        let (origin, place) = (self.options.origin, self.place());
        let window = self.source.window();
        let path = self.path.as_deref();
        let named = self.options.named();
        unsupported(named.check(), path)?;
        // For a segmented log, use the segment's file name, because the directory can have any
        // name.
        let file = place.and(path).map(|directory| directory.join(name_of(origin)));
        let file = file.as_deref().or(path);
        let no_log = |foreign| Error::new(ErrorKind::Foreign { foreign }, file);
        // Once the format of one segment is known, any later segment that does not look like a log
        // is treated as damage.
        let is_known_log = place.is_some() && self.detected.is_some();
        let detected = match identify(named, file, window.bytes, window.offset - origin, window.is_last) {
            PartialDetection::NeedMore => return Ok(false),
            PartialDetection::Foreign(_) | PartialDetection::Longer(_) if is_known_log => None,
            PartialDetection::Foreign(foreign) => return Err(no_log(foreign)),
            PartialDetection::Longer(weak) => {
                let read_at = |offset, buffer: &mut [u8]| self.source.read_aside(origin + offset, buffer);
                let file_len = match place {
                    Some(place) => Some(place.end - origin),
                    None => self.source.file_len(),
                };
                let foreign = file_len.map(|file_len| of_rest(weak, file_len, read_at));
                let foreign = foreign.unwrap_or(Ok(None)).map_err(|source| self.io(source))?;
                if let Some(foreign) = foreign {
                    return Err(no_log(foreign));
                }
                None
            }
            PartialDetection::Log(format) => Some(format),
            PartialDetection::Unclear => None,
        };
        // A file whose format cannot be detected is read in the format of the previous file.
        let detected = detected.or(self.detected);
        let format = detected.unwrap_or_else(LogFormat::unknown);
        unsupported(named.format(format.dialect).check(), path)?;
        if window.offset == origin {
            unsupported(check_start(format, window.bytes, origin), path)?;
        }
        let mut decoder = Decoder::unchecked(&self.options.clone().with_format(format)).leaving_in_window();
        decoder.set_keeps_data(self.decoder.keeps_data());
        if window.offset > decoder.offset() {
            return Err(self.io(source::starts_after(window.offset, decoder.offset())));
        }
        self.decoder = decoder;
        self.detected = detected;
        self.is_undetected = false;
        Ok(true)
    }
}
