//! LevelDB. Source: `db/log_format.h` and `doc/log_format.md`.

use super::{Dialect, Kinds};
use crate::checksum::Checksum;

static KINDS: Kinds = Kinds::plain();

pub(super) const LEVELDB: Dialect = Dialect {
    name: "leveldb",
    kinds: &KINDS,
    checksum: Checksum::MaskedCrc32c,
    prefix: b"",
    grid_offset: 0,
    has_end_trailer: false,
};
