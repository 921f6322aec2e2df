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
};

impl Dialect {
    /// LevelDB's log: types 1 to 4, with CRC-32C. LevelDB writes this dialect, and so does every
    /// program that claims to write LevelDB's format. RocksDB's logs use it unless they are
    /// recycled or compressed. The MANIFESTs of all three engines and the exports of Datastore and
    /// Firestore also use it.
    pub const LEVELDB: Dialect = Dialect(&LEVELDB);
}
