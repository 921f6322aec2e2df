//! Writes what can be read of a damaged log to a new one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::verify::{Report, report};
use crate::decode::{OnCorruption, ReadOptions};
use crate::error::Error;
use crate::reader::{Reader, Source};
use crate::writer::Writer;

/// Reads the log `source` with the policy [`OnCorruption::Salvage`], and writes all its records to a new log, `destination`. The report is about
/// `source`.
///
/// The new log is in the same dialect, with the same log number.
///
/// `source` is not changed, and `destination` must not exist. The new log is written beside it under another name, put on the disk, and gets
/// its name last: what has the name is complete. If anything fails, what was written is removed.
///
/// ```
/// use cordwood::{ReadOptions, Reader, verbs};
/// # let folder = tempfile::tempdir()?;
/// # let (damaged, clean) = (folder.path().join("damaged.log"), folder.path().join("clean.log"));
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
/// file[17] ^= 1;
/// std::fs::write(&damaged, file)?;
///
/// let report = verbs::salvage(&damaged, &clean, &ReadOptions::default())?;
/// assert_eq!((report.record_count, report.salvaged_count), (2, 1));
/// assert_eq!(std::fs::read(&clean)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`], with the path that it concerns: `source` cannot be read, `destination` exists ([`io::ErrorKind::AlreadyExists`]; it is then
/// left as it is) or cannot be written.
pub fn salvage(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Report, Error> {
    let options = options.clone().with_on_corruption(OnCorruption::Salvage);
    write_records(&mut Reader::open(source, options)?, destination.as_ref())
}

/// [`salvage`] for any source of a log.
///
/// ```
/// use cordwood::{ReadOptions, SliceSource, verbs};
/// # let folder = tempfile::tempdir()?;
/// # let clean = folder.path().join("clean.log");
/// let source = SliceSource::new(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo torn");
/// let report = verbs::salvage_source(source, &clean, &ReadOptions::default())?;
/// assert_eq!(report.record_count, 1);
/// assert_eq!(std::fs::read(&clean)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`salvage`]; without a path, if it is `source` that cannot be read.
pub fn salvage_source<S: Source>(
    source: S,
    destination: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Report, Error> {
    let options = options.clone().with_on_corruption(OnCorruption::Salvage);
    write_records(&mut Reader::with_source(source, options), destination.as_ref())
}

fn write_records<S: Source>(reader: &mut Reader<S>, destination: &Path) -> Result<Report, Error> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io {
            path: Some(path),
            source,
        }
    };
    // Looked at first, so that nothing is read in vain; what decides is that `publish` replaces nothing.
    refuse_existing(destination).map_err(at(destination))?;
    let mut dialect = reader.dialect()?;
    // Without the feature no compressed record is read, and none can be written.
    dialect.is_zstd &= cfg!(feature = "zstd");
    let temporary = Temporary::beside(destination).map_err(at(destination))?;
    let file = File::create_new(&temporary.path).map_err(at(destination))?;
    let mut writer = Writer::with_dialect(file, 0, dialect);
    let written = report(reader, |record| {
        writer.append(record).map(drop).map_err(at(&temporary.path))
    })?;
    if let (Some(other_log_number), Some(log_number)) = (written.other_log_number, written.dialect.log_number()) {
        return Err(Error::OtherLog {
            path: reader.path().map(Path::to_owned),
            log_number,
            other_log_number,
        });
    }
    writer.finish().map_err(at(&temporary.path))?;
    writer.sync_with(|file| file.sync_all()).map_err(at(&temporary.path))?;
    temporary.publish(destination).map_err(at(destination))?;
    Ok(written)
}

fn refuse_existing(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A file that is removed again unless it gets its name.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// A name in the same folder that no other process uses.
    fn beside(destination: &Path) -> io::Result<Self> {
        let Some(name) = destination.file_name() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.partial", std::process::id()));
        Ok(Temporary {
            path: destination.with_file_name(temporary),
        })
    }

    /// Gives the file its name, which must not be taken.
    fn publish(self, destination: &Path) -> io::Result<()> {
        // A link fails if the name is taken; a rename would replace what has it. Not every file system has links.
        match fs::hard_link(&self.path, destination) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {
                refuse_existing(destination)?;
                fs::rename(&self.path, destination)?;
            }
        }
        drop(self);
        sync_folder(destination)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // There is nobody to tell, and nothing there after a rename.
        let _ = fs::remove_file(&self.path);
    }
}

/// Puts the name on the disk, too.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Elsewhere a folder cannot be opened.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
