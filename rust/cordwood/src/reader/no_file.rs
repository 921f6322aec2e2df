//! Replacements for open files in builds without the feature `fs`.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use super::source::Place;
use crate::error::Error;

/// The source type for [`Reader::open`](super::Reader), which needs the feature `fs`. This type has
/// no values.
#[derive(Debug, Clone)]
pub enum FileReader {}

impl FileReader {
    pub(super) fn read_full_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        match *self {}
    }
}

/// The files of a segmented log, which need the feature `fs`. This type has no values.
#[derive(Debug)]
pub(super) enum Segments<R> {
    #[expect(dead_code, reason = "there is no `FileReader`")]
    Never(FileReader, PhantomData<R>),
}

impl<R> Segments<R> {
    fn never(&self) -> ! {
        match self {
            Segments::Never(file, _) => match *file {},
        }
    }

    pub(super) fn map<T>(self, _wrap: Arc<impl Fn(R) -> T>) -> Segments<T> {
        self.never()
    }

    pub(super) fn place(&self) -> Place {
        self.never()
    }

    pub(super) fn log_end(&self) -> u64 {
        self.never()
    }

    pub(super) fn open_at(&mut self, _offset: u64) -> Result<Option<(R, FileReader)>, Error> {
        self.never()
    }

    pub(super) fn go_back(&mut self) {
        self.never()
    }

    pub(super) fn open_next(&mut self) -> Result<Option<(R, FileReader)>, Error> {
        self.never()
    }
}
