//! LevelDB. Source: `db/log_format.h` and `doc/log_format.md`.

use super::{Dialect, Kinds, Spec};
use crate::checksum::Checksum;

static KINDS: Kinds = Kinds::plain();

pub(super) static LEVELDB: Spec = Spec {
    name: "leveldb",
    kinds: &KINDS,
    checksum: Checksum::MaskedCrc32c,
    prefix: b"",
    signature: b"",
    has_version: false,
    grid_offset: 0,
    has_end_trailer: false,
    rank: Some(0),
};

impl Dialect {
    /// LevelDB's log: types 1 to 4, with CRC-32C. LevelDB writes it, and so does every program that
    /// claims to write its format. It is also the dialect of RocksDB's logs unless they are
    /// recycled or compressed, of the MANIFEST of all three engines, and of the exports of
    /// Datastore and Firestore.
    pub const LEVELDB: Dialect = Dialect(&LEVELDB);
}
