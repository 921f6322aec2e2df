//! Cordwood's own dialect, in which many records share a fragment. Source: `docs/format/packed.md`.

use super::leveldb::LEVELDB;
use super::{Dialect, Form, Kinds, Metadata, Role, Spec};

/// The type of the mark at the start of a packed log. See
/// [`container::Mark`](crate::container::Mark). The mark is metadata and doesn't contain a record.
///
/// No engine uses types 0x40 to 0x48. Bits 0, 5 and 7 are clear in cordwood's types, so RocksDB
/// never assumes that their fragments carry a log number or may be ignored.
pub(crate) const MARK: u8 = 0x48;

/// The length of a newly written mark (`cordwood`, the version and the codec), without its header.
pub(crate) const MARK_LEN: usize = 10;

/// The type of a container's FULL fragment. FIRST, MIDDLE and LAST are the next even numbers: 0x42,
/// 0x44 and 0x46.
pub(crate) const FULL: u8 = 0x40;

static KINDS: Kinds = Kinds::plain().with_containers();

impl Kinds {
    /// Adds the mark and the four types of container fragments.
    pub(super) const fn with_containers(self) -> Kinds {
        self.with_fragments(Form::Packed)
            .with(MARK, Role::Metadata(Metadata::Mark), Form::Plain)
    }
}

static PACKED: Spec = Spec {
    name: "packed",
    kinds: &KINDS,
    ..LEVELDB
};

impl Dialect {
    /// A packed log. It has fragments of types 1 to 4, and containers. A container holds many
    /// records and may be compressed. Only cordwood reads and writes this dialect.
    pub const PACKED: Dialect = Dialect(&PACKED);

    /// Checks whether this is [`PACKED`](Self::PACKED), which compresses containers instead of
    /// records.
    pub(crate) fn is_packed(self) -> bool {
        std::ptr::eq(self.0, &PACKED)
    }

    /// Checks whether logs in this dialect can have containers. [`PACKED`](Self::PACKED) logs can.
    /// A log detected as [`LEVELDB`](Self::LEVELDB) can too, because its mark may have been
    /// destroyed.
    #[inline]
    pub(crate) const fn has_containers(self) -> bool {
        matches!(self.meaning(FULL).role, Role::Fragment(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FragmentKind, Kind};

    #[test]
    fn container_types_are_the_even_values_from_0x40_to_0x48() {
        let packed = |kind: u8| Dialect::PACKED.kind_of(kind);
        let kinds = [Kind::Full, Kind::First, Kind::Middle, Kind::Last];
        for (byte, kind) in [0x40, 0x42, 0x44, 0x46].into_iter().zip(kinds) {
            assert_eq!(packed(byte), FragmentKind::Packed(kind));
            assert_eq!(Form::Packed.kind_byte(kind), byte);
            assert_eq!(packed(byte + 1), FragmentKind::Unknown);
        }
        assert_eq!(packed(0x48), FragmentKind::PackedMark);
        assert_eq!(packed(1), FragmentKind::Plain(Kind::Full));
    }

    #[test]
    fn only_the_packed_dialect_has_containers() {
        assert!(Dialect::PACKED.has_containers() && Dialect::PACKED.is_packed());
        for &dialect in Dialect::ALL {
            let is_packed = dialect == Dialect::PACKED;
            assert_eq!(
                (dialect.has_containers(), dialect.is_packed()),
                (is_packed, is_packed),
                "{dialect}"
            );
        }
    }
}
