//! The destination of a writer.

use std::io::{self, Write};

/// The destination of a [`Writer`](super::Writer). A sink is any [`Write`], or a type that keeps
/// the buffers it is given and supplies others in return.
pub trait Sink {
    /// Writes all of `buffer`, and replaces it with a vector whose memory the writer can reuse.
    /// This may be the same vector or a different one, with any contents.
    ///
    /// # Errors
    ///
    /// Returns the sink's error. After an error, the number of bytes written is unknown.
    fn write_buffer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// Writes out any bytes that the sink itself has buffered.
    ///
    /// # Errors
    ///
    /// Returns the sink's error.
    fn flush(&mut self) -> io::Result<()>;
}

impl<W: Write> Sink for W {
    fn write_buffer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        self.write_all(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(self)
    }
}
