//! A follower that runs alongside the writer. It needs a real file, so the bytes of the page cache
//! are written to a file after each action.

use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cordwood_log::follow::Poll;
use cordwood_log::{FollowOptions, Follower, OnCorruption};
use tempfile::TempDir;

use crate::reader::Found;

#[derive(Debug)]
pub(crate) struct Beside {
    path: PathBuf,
    file: fs::File,
    follower: Follower,
    /// All records that the follower has returned.
    returned: Vec<Vec<u8>>,
}

thread_local! {
    /// The directory is empty whenever no world has a follower. It is removed when the thread ends.
    static DIRECTORY: TempDir = tempfile::tempdir().expect("a directory for the file that is followed");
}

impl Beside {
    pub(crate) fn new() -> Self {
        Self::open().expect("a file to follow")
    }

    fn open() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = DIRECTORY.with(|directory| directory.path().join(number.to_string()));
        let file = fs::File::create(&path)?;
        // Apparent damage may still be truncated and overwritten, so it is only reported if a whole
        // block follows it.
        let options = FollowOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_retry(u32::MAX, Duration::MAX);
        let follower = Follower::open_with(&path, options).map_err(io::Error::other)?;
        Ok(Beside {
            path,
            file,
            follower,
            returned: Vec::new(),
        })
    }

    /// Returns the offset that the follower has reached.
    pub(crate) fn offset(&self) -> u64 {
        self.follower.offset()
    }

    /// Polls after the contents of the file have become `cache`. Every record in the file must be
    /// returned, and none twice.
    pub(crate) fn look(&mut self, cache: &[u8], found: &[Found]) -> Result<(), String> {
        let copied = self
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(cache))
            .and_then(|()| self.file.set_len(cache.len() as u64));
        copied.map_err(|error| error.to_string())?;
        loop {
            match self.follower.poll().map_err(|error| error.to_string())? {
                Poll::Record(record) => self.returned.push(record.data.to_vec()),
                Poll::Skipped(_) => {}
                Poll::NotYet(_) | Poll::End { .. } => break,
                other => return Err(format!("{other:?}")),
            }
        }
        if !self.returned.iter().eq(found.iter().map(|found| &found.payload)) {
            let (returned, found) = (self.returned.len(), found.len());
            return Err(format!("{returned} records were returned, of {found} in the file"));
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
