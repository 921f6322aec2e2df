//! Names of fragment types.

use super::{Dialect, Form, Metadata, Role};
use crate::format::Kind;

/// The kind of a part of a log: the meaning of a type byte, or of bytes without one.
///
/// The names follow the engines: RocksDB `db/log_format.h`, Pebble `record/record.go`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentKind {
    /// Types 1 to 4.
    Plain(Kind),
    /// Types 5 to 8, with the number of the log.
    Recyclable(Kind),
    /// Types 9 to 12 of Pebble, which also state how far the file had been synced.
    WalSync(Kind),
    /// How the records of a RocksDB log are compressed: type 9.
    SetCompression,
    /// The lengths of timestamps in a RocksDB log: types 10 and 11.
    TimestampSizes,
    /// The predecessor of a RocksDB log: types 130 and 131.
    Predecessor,
    /// Type 0: space that was never written.
    Zero,
    /// A type that is unknown in the dialect.
    Unknown,
    /// The end-of-log trailer of Pebble.
    EndTrailer,
    /// The file header of the dialect.
    FileHeader,
    /// The end of a block, too short for a header.
    Trailer,
    /// Zeros.
    Zeros,
    /// Other bytes without a credible header.
    Rest,
}

impl FragmentKind {
    /// All kinds, in no particular order.
    #[cfg(test)]
    const ALL: [FragmentKind; 22] = [
        FragmentKind::Plain(Kind::Full),
        FragmentKind::Plain(Kind::First),
        FragmentKind::Plain(Kind::Middle),
        FragmentKind::Plain(Kind::Last),
        FragmentKind::Recyclable(Kind::Full),
        FragmentKind::Recyclable(Kind::First),
        FragmentKind::Recyclable(Kind::Middle),
        FragmentKind::Recyclable(Kind::Last),
        FragmentKind::WalSync(Kind::Full),
        FragmentKind::WalSync(Kind::First),
        FragmentKind::WalSync(Kind::Middle),
        FragmentKind::WalSync(Kind::Last),
        FragmentKind::SetCompression,
        FragmentKind::TimestampSizes,
        FragmentKind::Predecessor,
        FragmentKind::Zero,
        FragmentKind::Unknown,
        FragmentKind::EndTrailer,
        FragmentKind::FileHeader,
        FragmentKind::Trailer,
        FragmentKind::Zeros,
        FragmentKind::Rest,
    ];

    /// A stable name, such as `"full"` or `"recyclable_first"`: part of the interface, the same in
    /// Python and on the command line.
    ///
    /// ```
    /// use cordwood_log::format::{FragmentKind, Kind};
    /// assert_eq!(FragmentKind::WalSync(Kind::Last).as_str(), "wal_sync_last");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            FragmentKind::Plain(Kind::Full) => "full",
            FragmentKind::Plain(Kind::First) => "first",
            FragmentKind::Plain(Kind::Middle) => "middle",
            FragmentKind::Plain(Kind::Last) => "last",
            FragmentKind::Recyclable(Kind::Full) => "recyclable_full",
            FragmentKind::Recyclable(Kind::First) => "recyclable_first",
            FragmentKind::Recyclable(Kind::Middle) => "recyclable_middle",
            FragmentKind::Recyclable(Kind::Last) => "recyclable_last",
            FragmentKind::WalSync(Kind::Full) => "wal_sync_full",
            FragmentKind::WalSync(Kind::First) => "wal_sync_first",
            FragmentKind::WalSync(Kind::Middle) => "wal_sync_middle",
            FragmentKind::WalSync(Kind::Last) => "wal_sync_last",
            FragmentKind::SetCompression => "set_compression",
            FragmentKind::TimestampSizes => "timestamp_sizes",
            FragmentKind::Predecessor => "predecessor",
            FragmentKind::Zero => "zero",
            FragmentKind::Unknown => "unknown",
            FragmentKind::EndTrailer => "end_trailer",
            FragmentKind::FileHeader => "file_header",
            FragmentKind::Trailer => "trailer",
            FragmentKind::Zeros => "zeros",
            FragmentKind::Rest => "rest",
        }
    }
}

impl Dialect {
    /// The kind of a fragment with the type byte `byte`.
    pub(crate) const fn kind_of(&self, byte: u8) -> FragmentKind {
        let meaning = self.meaning(byte);
        match (meaning.role, meaning.form) {
            (Role::Fragment(kind), Form::Plain) => FragmentKind::Plain(kind),
            (Role::Fragment(kind), Form::Recyclable) => FragmentKind::Recyclable(kind),
            (Role::Fragment(kind), Form::Synced) => FragmentKind::WalSync(kind),
            (Role::Metadata(Metadata::SetCompression), _) => FragmentKind::SetCompression,
            (Role::Metadata(Metadata::TimestampSizes), _) => FragmentKind::TimestampSizes,
            (Role::Metadata(Metadata::Predecessor), _) => FragmentKind::Predecessor,
            (Role::Ignorable | Role::Unknown, _) if byte == 0 => FragmentKind::Zero,
            (Role::Ignorable | Role::Unknown, _) => FragmentKind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_its_own() {
        let names: BTreeSet<_> = FragmentKind::ALL.map(FragmentKind::as_str).into();
        assert_eq!(names.len(), FragmentKind::ALL.len());
    }

    #[test]
    fn the_same_byte_means_another_thing_to_another_engine() {
        let names =
            |byte| [Dialect::LEVELDB, Dialect::ROCKSDB, Dialect::PEBBLE].map(|dialect| dialect.kind_of(byte).as_str());
        assert_eq!(names(0), ["zero"; 3]);
        assert_eq!(names(2), ["first"; 3]);
        assert_eq!(names(8), ["unknown", "recyclable_last", "recyclable_last"]);
        assert_eq!(names(9), ["unknown", "set_compression", "wal_sync_full"]);
        assert_eq!(names(131), ["unknown", "predecessor", "unknown"]);
    }
}
