//! The destination of a writer.

use std::io::{self, Write};

/// The destination of a [`Writer`](super::Writer). It is any [`Write`], or a type that keeps the
/// buffers it is given and supplies others in exchange.
pub trait Sink {
    /// Writes all of `buffer`, and leaves a vector in its place whose memory is reused. It may be
    /// the same vector or another one. Its contents do not matter.
    ///
    /// # Errors
    ///
    /// The error of the sink. It is then unknown how much was written.
    fn write_buffer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// Writes out the bytes that the sink itself has buffered.
    ///
    /// # Errors
    ///
    /// The error of the sink.
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
