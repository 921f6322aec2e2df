//! SwanLab. Source: `swanlab/log/backup/datastore.py` (0.6.4), `swanlab/data/porter/datastore.py`
//! (0.7.10), `swanlab/sdk/internal/core_python/store/__init__.py` (0.10.3).

use super::wandb::WANDB;
use super::{Dialect, Role, Spec};
use crate::format::{HEADER_LEN, Kind};
use crate::text::is_text;

/// The versions with JSON records, written by SwanLab 0.6.3 to 0.6.6 and 0.6.8 to 0.7.20. The newer
/// version comes first.
const JSON: &[u8] = &[1, 0];
/// The version with protocol buffer records, written by SwanLab 0.8.0 and later.
const PROTOBUF: u8 = 2;

/// The first bytes of each record in the old versions.
const JSON_START: &[u8] = b"{\"model_type\"";

/// The file header of each version: `:SWL`, the number 0xe1d6 and the version. The blocks and
/// fragments after it are the same in all versions.
static HEADERS: [[u8; HEADER_LEN]; 256] = {
    let mut headers = [*b":SWL\xd6\xe1\x00"; 256];
    let mut version = 0;
    while version < headers.len() {
        headers[version][HEADER_LEN - 1] = version as u8;
        version += 1;
    }
    headers
};

/// The dialect for each version of the file header.
static VERSIONS: [Spec; 256] = {
    let newest = Spec {
        name: "swanlab",
        prefix: &HEADERS[PROTOBUF as usize],
        signature: b":SWL",
        has_version: true,
        ..WANDB
    };
    let mut versions = [newest; 256];
    let mut version = 0;
    while version < versions.len() {
        versions[version].prefix = &HEADERS[version];
        version += 1;
    }
    versions
};

impl Dialect {
    /// A SwanLab run file. The dialect is like [`WANDB`](Self::WANDB), but with a different file
    /// header, whose last byte is a version. All versions can be read. New files use the newest
    /// known version, 2.
    pub const SWANLAB: Dialect = Dialect(&VERSIONS[PROTOBUF as usize]);

    /// Returns the version in the file header, if the dialect has several versions. The known
    /// versions of [`SWANLAB`](Self::SWANLAB) are 0, 1 and 2, but a file header may contain another
    /// number. Until a decoder has read the file header, its
    /// [`format`](crate::codec::Decoder::format) contains the version that new files use. After
    /// that, it contains the log's actual version.
    ///
    /// ```
    /// use cordwood_log::Dialect;
    /// assert_eq!(Dialect::SWANLAB.version(), Some(2));
    /// assert_eq!(Dialect::WANDB.version(), None);
    /// ```
    pub const fn version(self) -> Option<u8> {
        match self.0.prefix {
            [.., version] if self.0.has_version => Some(*version),
            _ => None,
        }
    }

    /// Checks whether any known program writes this version.
    pub(crate) fn has_known_version(self) -> bool {
        self.version().is_none_or(is_known)
    }

    /// Returns this dialect in the version used by the log that starts with `first_block`. The
    /// version comes from the file header, unless the first record contradicts it.
    pub(crate) fn in_version_of(self, first_block: &[u8]) -> Self {
        let Some((file_header, block)) = first_block.split_at_checked(self.prefix().len()) else {
            return self;
        };
        let Some(&stated) = file_header.last().filter(|_| self.0.has_version) else {
            return self;
        };
        let first = self
            .valid(block, true)
            .filter(|valid| matches!(valid.role, Role::Fragment(Kind::Full | Kind::First)))
            .map_or(&[][..], |valid| valid.payload(block));
        let may_be_new = is_known(stated) || file_header.starts_with(self.magic());
        let version = if first.starts_with(JSON_START) && !JSON.contains(&stated) {
            nearest(stated, JSON)
        } else if !may_be_new || (JSON.contains(&stated) && !is_text(first, false)) {
            PROTOBUF
        } else {
            stated
        };
        Dialect(&VERSIONS[usize::from(version)])
    }
}

fn is_known(version: u8) -> bool {
    version == PROTOBUF || JSON.contains(&version)
}

/// Returns the version that differs from `stated` in the fewest bits. If there are several, returns
/// the first.
fn nearest(stated: u8, versions: &[u8]) -> u8 {
    let flipped_bits = |version: &&u8| (stated ^ **version).count_ones();
    versions.iter().min_by_key(flipped_bits).copied().unwrap_or(stated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Encoder;

    /// Returns the version of a log whose file header states `stated` and whose first record is
    /// `record`.
    fn version(stated: u8, record: &[u8]) -> Option<u8> {
        let mut file = Vec::new();
        Encoder::unchecked(0, Dialect::SWANLAB.into()).encode(record, &mut file);
        file[HEADER_LEN - 1] = stated;
        Dialect::SWANLAB.in_version_of(&file).version()
    }

    #[test]
    fn a_version_is_trusted_unless_the_first_record_contradicts_it() {
        let json = b"{\"model_type\": \"Header\"}".as_slice();
        let protobuf = b"\x0a\x02\x08\x01".as_slice();
        for (stated, record, right) in [
            (0, json, 0),
            (1, json, 1),
            (2, json, 0),
            (3, json, 1),
            (64, json, 0),
            (0, protobuf, 2),
            (1, protobuf, 2),
            (2, protobuf, 2),
            (3, protobuf, 3),
            (0, b"text", 0),
            (2, b"text", 2),
            (9, b"", 9),
        ] {
            assert_eq!(version(stated, record), Some(right), "{stated} {record:?}");
        }
    }

    #[test]
    fn only_the_swanlab_dialect_has_versions() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.version().is_some(), dialect.name() == "swanlab", "{dialect:?}");
            assert!(dialect.has_known_version());
        }
    }
}
