//! The format of the log, detected once from bytes that have been read anyway.

use super::{Reader, Source, source};
use crate::decode::Decoder;
use crate::detect::{PartialDetection, check_start, identify, of_rest};
use crate::dialect::LogFormat;
use crate::error::{Error, ErrorKind, unsupported};

impl<S: Source> Reader<S> {
    /// The format of the log: its dialect, with the log number and the compression if they are
    /// known. The parts that were not given are detected from the contents; see
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
    /// * [`ErrorKind::Io`] if the source cannot be read; a further call tries again.
    /// * [`ErrorKind::Foreign`] if it is not a log.
    /// * [`ErrorKind::Unsupported`] if logs in its dialect cannot have a number, or the compression, that
    ///   the options give.
    pub fn format(&mut self) -> Result<LogFormat, Error> {
        while !self.is_detected()? {
            self.fill()?;
        }
        Ok(self.decoder.format())
    }

    /// The format that the bytes of the log show; `None` if they show none and the file is read as
    /// LevelDB's.
    ///
    /// # Errors
    ///
    /// As [`format`](Self::format).
    pub fn detect(&mut self) -> Result<Option<LogFormat>, Error> {
        let format = self.format()?;
        let is_known = self.detected.is_some() || !self.options.must_look();
        Ok(is_known.then_some(format))
    }

    /// Detects the format of the log, if it is not known. Returns `false` if more of the file is
    /// needed.
    pub(super) fn is_detected(&mut self) -> Result<bool, Error> {
        if !self.is_undetected {
            return Ok(true);
        }
        let (origin, place) = (self.options.origin, self.place());
        let window = self.source.window();
        let path = self.path.as_deref();
        let named = self.options.named();
        unsupported(named.check(), path)?;
        // That of a segment has the name of a log, whatever the directory is called.
        #[cfg(feature = "fs")]
        let file = place
            .and(path)
            .map(|directory| directory.join(crate::segments::name_of(origin)));
        #[cfg(not(feature = "fs"))]
        let file: Option<std::path::PathBuf> = None;
        let file = file.as_deref().or(path);
        let no_log = |foreign| Error::new(ErrorKind::Foreign { foreign }, file);
        // After a segment whose format is known, one that is no log is damage.
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
        // A file that does not show its format has that of the file before it.
        let detected = detected.or(self.detected);
        let format = detected.unwrap_or_else(LogFormat::unknown);
        unsupported(named.check_in(format.dialect), path)?;
        if window.offset == origin {
            unsupported(check_start(format, window.bytes), path)?;
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
