//! What a type byte is called.

use super::{Dialect, Form, Metadata, Role};
use crate::format::Kind;

/// What stands at a place of a log: the meaning of a type byte, or of bytes without one.
///
/// The names follow the engines: RocksDB `db/log_format.h`, Pebble `record/record.go`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentName {
    /// Types 1 to 4.
    Plain(Kind),
    /// Types 5 to 8, with the number of the log.
    Recyclable(Kind),
    /// Types 9 to 12 of Pebble, which say how far the file had been synced, too.
    WalSync(Kind),
    /// How the records of a RocksDB log are compressed: type 9.
    SetCompression,
    /// The lengths of timestamps in a RocksDB log: types 10 and 11.
    TimestampSizes,
    /// Which log a RocksDB log goes on with: types 130 and 131.
    Predecessor,
    /// Type 0: room that was never written.
    Zero,
    /// A type that the dialect does not know.
    Unknown,
    /// What closes a Pebble log.
    EndTrailer,
    /// What a file of this dialect begins with.
    FileHeader,
    /// The end of a block, too short for a header.
    Trailer,
    /// Zeros.
    Zeros,
    /// Other bytes without a header that could be believed.
    Rest,
}

impl FragmentName {
    /// All of them, in no order that means anything.
    #[cfg(test)]
    const ALL: [FragmentName; 22] = [
        FragmentName::Plain(Kind::Full),
        FragmentName::Plain(Kind::First),
        FragmentName::Plain(Kind::Middle),
        FragmentName::Plain(Kind::Last),
        FragmentName::Recyclable(Kind::Full),
        FragmentName::Recyclable(Kind::First),
        FragmentName::Recyclable(Kind::Middle),
        FragmentName::Recyclable(Kind::Last),
        FragmentName::WalSync(Kind::Full),
        FragmentName::WalSync(Kind::First),
        FragmentName::WalSync(Kind::Middle),
        FragmentName::WalSync(Kind::Last),
        FragmentName::SetCompression,
        FragmentName::TimestampSizes,
        FragmentName::Predecessor,
        FragmentName::Zero,
        FragmentName::Unknown,
        FragmentName::EndTrailer,
        FragmentName::FileHeader,
        FragmentName::Trailer,
        FragmentName::Zeros,
        FragmentName::Rest,
    ];

    /// A stable name, such as `"full"` or `"recyclable_first"`: part of the interface, the same in Python and on the command line.
    ///
    /// ```
    /// use cordwood_log::{FragmentName, Kind};
    /// assert_eq!(FragmentName::WalSync(Kind::Last).as_str(), "wal_sync_last");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            FragmentName::Plain(Kind::Full) => "full",
            FragmentName::Plain(Kind::First) => "first",
            FragmentName::Plain(Kind::Middle) => "middle",
            FragmentName::Plain(Kind::Last) => "last",
            FragmentName::Recyclable(Kind::Full) => "recyclable_full",
            FragmentName::Recyclable(Kind::First) => "recyclable_first",
            FragmentName::Recyclable(Kind::Middle) => "recyclable_middle",
            FragmentName::Recyclable(Kind::Last) => "recyclable_last",
            FragmentName::WalSync(Kind::Full) => "wal_sync_full",
            FragmentName::WalSync(Kind::First) => "wal_sync_first",
            FragmentName::WalSync(Kind::Middle) => "wal_sync_middle",
            FragmentName::WalSync(Kind::Last) => "wal_sync_last",
            FragmentName::SetCompression => "set_compression",
            FragmentName::TimestampSizes => "timestamp_sizes",
            FragmentName::Predecessor => "predecessor",
            FragmentName::Zero => "zero",
            FragmentName::Unknown => "unknown",
            FragmentName::EndTrailer => "end_trailer",
            FragmentName::FileHeader => "file_header",
            FragmentName::Trailer => "trailer",
            FragmentName::Zeros => "zeros",
            FragmentName::Rest => "rest",
        }
    }
}

impl Dialect {
    /// What a fragment with the type byte `byte` is.
    pub(crate) const fn name_of(&self, byte: u8) -> FragmentName {
        let meaning = self.meaning(byte);
        match (meaning.role, meaning.form) {
            (Role::Fragment(kind), Form::Plain) => FragmentName::Plain(kind),
            (Role::Fragment(kind), Form::Recyclable) => FragmentName::Recyclable(kind),
            (Role::Fragment(kind), Form::Synced) => FragmentName::WalSync(kind),
            (Role::Metadata(Metadata::SetCompression), _) => FragmentName::SetCompression,
            (Role::Metadata(Metadata::TimestampSizes), _) => FragmentName::TimestampSizes,
            (Role::Metadata(Metadata::Predecessor), _) => FragmentName::Predecessor,
            (Role::Ignorable | Role::Unknown, _) if byte == 0 => FragmentName::Zero,
            (Role::Ignorable | Role::Unknown, _) => FragmentName::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_its_own() {
        let names: BTreeSet<_> = FragmentName::ALL.map(FragmentName::as_str).into();
        assert_eq!(names.len(), FragmentName::ALL.len());
    }

    #[test]
    fn the_same_byte_means_another_thing_to_another_engine() {
        let names =
            |byte| [Dialect::LEVELDB, Dialect::ROCKSDB, Dialect::PEBBLE].map(|dialect| dialect.name_of(byte).as_str());
        assert_eq!(names(0), ["zero"; 3]);
        assert_eq!(names(2), ["first"; 3]);
        assert_eq!(names(8), ["unknown", "recyclable_last", "recyclable_last"]);
        assert_eq!(names(9), ["unknown", "set_compression", "wal_sync_full"]);
        assert_eq!(names(131), ["unknown", "predecessor", "unknown"]);
    }
}
