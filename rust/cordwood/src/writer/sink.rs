//! What a writer writes to.

use std::io::{self, Write};

/// What a [`Writer`](super::Writer) writes to: any [`Write`]; or what keeps the memory that it is
/// given, and has other memory to give for it.
pub trait Sink {
    /// Writes all of `buffer`, and leaves memory to be used again in it: the same, or other. What
    /// that holds does not matter.
    ///
    /// # Errors
    ///
    /// That of the sink. How much has been written is then not known.
    fn write_buffer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// Passes on what the sink has buffered itself.
    ///
    /// # Errors
    ///
    /// That of the sink.
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
