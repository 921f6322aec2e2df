//! A new log written by an operation. It gets its final name once it is complete.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use super::output::Output;
use crate::dialect::LogFormat;
use crate::error::{Error, Hint};
use crate::reader::{Reader, Source};
use crate::segments::{name_of, offset_of};

/// A log being written under a temporary name. The file is removed unless it is
/// [published](Self::publish).
pub(super) struct NewLog<'a> {
    destination: &'a Path,
    /// Whether the source is a segmented log. If so, its copy is also a directory, and contains one
    /// segment.
    has_segments: bool,
    // This field comes before `temporary`, so that the file is closed before its name is removed.
    pub(super) output: Output<'a, File>,
    temporary: Temporary,
}

impl<'a> NewLog<'a> {
    /// Checks that `destination` can be the name of a new log: it must be neither the name of a
    /// segment nor that of an existing file. This check comes before the source is read.
    /// [`publish`](Self::publish) checks again that no file has this name.
    pub(super) fn check(destination: &Path) -> Result<(), Error> {
        if destination.file_name().and_then(offset_of).is_some() {
            let text = "a log with this name would be read as a segment, but offsets change in a copy";
            let source = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(Error::io(source, Some(destination)).with_hint(Some(Hint::OtherName)));
        }
        refuse_existing(destination).map_err(|source| Error::io(source, Some(destination)))
    }

    /// Starts a log for the records of `reader`, with the permissions of the file that `reader`
    /// reads. The format must already have been checked.
    pub(super) fn create<S: Source>(
        destination: &'a Path,
        format: LogFormat,
        reader: &mut Reader<S>,
    ) -> Result<Self, Error> {
        let has_segments = reader.place().is_some();
        let checked = match reader.path().filter(|_| has_segments) {
            Some(directory) => refuse_inside(destination, directory),
            None => Ok(()),
        };
        let (temporary, file) = checked
            .and_then(|()| Temporary::beside(destination, reader.path()))
            .map_err(|error| Error::io(error, Some(destination)))?;
        Ok(NewLog {
            destination,
            has_segments,
            output: Output::new(file, Some(destination), format),
            temporary,
        })
    }

    /// Writes all remaining bytes, and returns the temporary name of the complete log.
    pub(super) fn finish(&mut self) -> Result<&Path, Error> {
        self.output.finish()?;
        Ok(&self.temporary.path)
    }

    /// Writes all remaining bytes, syncs the file, and gives it its final name, which must not
    /// exist yet. The last sync makes the name durable; if only that sync fails, the new log is
    /// kept.
    pub(super) fn publish(mut self) -> Result<(), Error> {
        self.finish()?;
        let (temporary, destination) = (self.temporary, self.destination);
        let published = self.output.to.sync_all().and_then(|()| match self.has_segments {
            true => temporary.publish_segment(destination),
            false => temporary.publish(destination),
        });
        published.map_err(|source| Error::io(source, Some(destination)))
    }
}

fn refuse_existing(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "File exists")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses to create a new log inside the directory being copied, because a directory of segments
/// must not contain other files.
fn refuse_inside(path: &Path, directory: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new(".")).canonicalize()?;
    if above.starts_with(directory.canonicalize()?) {
        let text = "the new log would be in the directory of the old one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// A temporary file. It is removed unless it is given its final name.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Creates a file in the directory of `destination`, with the permissions of `source` and a
    /// random name. The name is not derived from the process id, which may be the same on every run
    /// inside a system container. It doesn't contain the destination's name either, since that may
    /// already have the maximum length.
    fn beside(destination: &Path, source: Option<&Path>) -> io::Result<(Self, File)> {
        if destination.file_name().is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut options = File::options();
        options.write(true).create_new(true);
        permit_as(&mut options, source);
        loop {
            let number = RandomState::new().build_hasher().finish();
            let path = destination.with_file_name(format!(".cordwood-{number:016x}.partial"));
            match options.open(&path) {
                // Only a file that this function created is removed.
                Ok(file) => return Ok((Temporary { path }, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file its final name, which must not exist yet.
    fn publish(self, destination: &Path) -> io::Result<()> {
        // If the name is taken, creating a link fails, but a rename would replace the existing
        // file. Not every file system supports links. Without them, a file created between the
        // check and the rename is replaced.
        match fs::hard_link(&self.path, destination) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {
                refuse_existing(destination)?;
                fs::rename(&self.path, destination)?;
            }
        }
        drop(self);
        sync_directory(destination)
    }

    /// Makes the file the only segment of a log in a new directory.
    fn publish_segment(self, directory: &Path) -> io::Result<()> {
        fs::create_dir(directory)?;
        let published = self.publish(&directory.join(name_of(0)));
        if published.is_err() {
            // If only the last sync failed, the directory isn't empty and is kept.
            let _ = fs::remove_dir(directory);
        }
        published.and_then(|()| sync_directory(directory))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // An error can't be reported here. After a rename, the removal fails because the file no
        // longer has this name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the new file readable by everyone who can read `source`, as `cp` does. A copy of a private
/// log is private from the start. The system applies the umask. The setuid, setgid and sticky bits
/// are not copied, because the new file may have another owner and must not run with that owner's
/// rights.
#[cfg(unix)]
fn permit_as(options: &mut fs::OpenOptions, source: Option<&Path>) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    if let Some(Ok(source)) = source.map(fs::metadata) {
        // A new segment is a file, so it does not get the execute bits of the source directory.
        let mask = if source.is_dir() { 0o666 } else { 0o777 };
        options.mode(source.mode() & mask);
    }
}

#[cfg(not(unix))]
fn permit_as(_options: &mut fs::OpenOptions, _source: Option<&Path>) {}

/// Syncs the directory that contains `path`.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// On systems other than Unix, `File::open` cannot open a directory.
#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
