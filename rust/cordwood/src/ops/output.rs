//! Writes the log that an operation produces, to a file or any other destination.

use std::io::Write;
use std::path::Path;

use crate::decode::RecordSpan;
use crate::dialect::LogFormat;
use crate::encode::Encoder;
use crate::error::Error;
use crate::reader::{Reader, Source};

/// The number of bytes per write.
const WRITE_LEN: usize = 1 << 20;

/// A new log and its destination, `to`. If `to` is a file, `path` is its path.
pub(super) struct Output<'a, W> {
    pub(super) to: W,
    pub(super) path: Option<&'a Path>,
    pub(super) encoder: Encoder,
    /// The bytes that have not been written yet.
    pub(super) out: Vec<u8>,
}

impl<'a, W: Write> Output<'a, W> {
    /// Starts a log in `format`, which has already been checked.
    pub(super) fn new(to: W, path: Option<&'a Path>, format: LogFormat) -> Self {
        let encoder = Encoder::unchecked(0, format);
        let out = Vec::new();
        Output { to, path, encoder, out }
    }

    /// Appends the record most recently returned by `reader`.
    pub(super) fn append<S: Source>(&mut self, reader: &Reader<S>, span: RecordSpan) -> Result<(), Error> {
        let Output { to, path, encoder, out } = self;
        let data = reader.data(span);
        encoder
            .try_reserve_frame(data.len())
            .map_err(|_| reader.out_of_memory())?;
        encoder.encode_in_pieces(data, out, |out| write(to, out, WRITE_LEN, *path))?;
        // Adding a record to a container doesn't produce a piece, so `out` is checked here.
        self.write()
    }

    /// Writes `out` if it is long enough.
    pub(super) fn write(&mut self) -> Result<(), Error> {
        write(&mut self.to, &mut self.out, WRITE_LEN, self.path)
    }

    /// Writes all remaining bytes.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.encoder.start(&mut self.out);
        self.encoder.end_container(&mut self.out);
        write(&mut self.to, &mut self.out, 0, self.path)?;
        self.to.flush().map_err(|source| Error::io(source, self.path))
    }
}

/// Writes and clears `out` if it is longer than `len_min` bytes.
fn write(to: &mut impl Write, out: &mut Vec<u8>, len_min: usize, path: Option<&Path>) -> Result<(), Error> {
    if out.len() > len_min {
        to.write_all(out).map_err(|source| Error::io(source, path))?;
        out.clear();
    }
    Ok(())
}
