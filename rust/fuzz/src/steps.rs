//! Reads and writes in steps that the fuzzer chooses.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::file::Few;

/// The maximum number of small steps. At each step, damage in a block is examined again, so small
/// steps take long.
const SMALL_MAX: usize = 300;

/// Numbers that are repeated in a cycle.
#[derive(Debug, Clone)]
pub struct Steps<'a> {
    steps: &'a [u8],
    taken: usize,
}

impl<'a> Arbitrary<'a> for Steps<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let Few(steps) = u.arbitrary()?;
        Ok(Steps { steps, taken: 0 })
    }
}

impl Steps<'_> {
    /// Returns the next number.
    pub fn choice(&mut self) -> u8 {
        let step = self.steps.get(self.taken % self.steps.len().max(1));
        self.taken += 1;
        step.copied().unwrap_or(u8::MAX)
    }

    /// Returns the next length, which is 1 to 127 bytes, or up to one and a half blocks.
    pub fn step(&mut self) -> usize {
        match usize::from(self.choice()) {
            _ if self.taken > SMALL_MAX => usize::MAX,
            step @ 0..128 => step.max(1),
            step => (step - 127) * 384,
        }
    }

    /// Fails if the next call should fail. No two consecutive calls fail.
    fn error(&mut self, has_failed: &mut bool, kinds: &[ErrorKind]) -> io::Result<()> {
        let kind = kinds.get(usize::from(self.choice()) % 8).filter(|_| !*has_failed);
        *has_failed = kind.is_some();
        kind.map_or(Ok(()), |&kind| Err(kind.into()))
    }
}

/// A file that is read in steps. Sometimes a read is interrupted, or fails and can be repeated.
#[derive(Debug)]
pub struct Trickle<'a> {
    file: &'a [u8],
    at: usize,
    steps: Steps<'a>,
    has_failed: bool,
}

impl<'a> Trickle<'a> {
    /// Reads `file` from the offset `at`.
    pub fn new(file: &'a [u8], at: usize, steps: Steps<'a>) -> Self {
        Trickle {
            file,
            at,
            steps,
            has_failed: false,
        }
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.steps
            .error(&mut self.has_failed, &[ErrorKind::Interrupted, ErrorKind::WouldBlock])?;
        let rest = self.file.get(self.at..).unwrap_or_default();
        let len = self.steps.step().min(buffer.len()).min(rest.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

impl Seek for Trickle<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(offset) = to else {
            return Err(ErrorKind::Unsupported.into());
        };
        self.at = usize::try_from(offset).map_err(|_| ErrorKind::InvalidInput)?;
        Ok(offset)
    }
}

/// A file that is written in steps. Sometimes a write is interrupted.
#[derive(Debug)]
pub struct ShortSink<'a> {
    /// The bytes written so far.
    pub written: Vec<u8>,
    steps: Steps<'a>,
    has_failed: bool,
}

impl<'a> ShortSink<'a> {
    /// Creates an empty file.
    pub fn new(steps: Steps<'a>) -> Self {
        ShortSink {
            written: Vec::new(),
            steps,
            has_failed: false,
        }
    }
}

impl Write for ShortSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.steps.error(&mut self.has_failed, &[ErrorKind::Interrupted])?;
        let len = self.steps.step().min(bytes.len());
        self.written.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
