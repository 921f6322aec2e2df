//! Types for the skipped regions of a file, and for the reasons they were skipped. Both are plain
//! values: only their `Display` implementations produce text.

use std::fmt;
use std::ops::Range;

use crate::dialect::Dialect;
use crate::format::FragmentKind;
use crate::names::{named, shows_name};

named! {
    /// A skipped region's severity, ordered from [`Info`](Severity::Info) to
    /// [`Corruption`](Severity::Corruption).
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// Not damage, but padding, engine metadata, or bytes excluded by the options. Zeros
        /// ([`Reason::ZeroFill`]) may be space that was never written or data that was lost. The
        /// file alone doesn't show which.
        Info = "info",
        /// Incomplete data left at the end of a file by a killed writer. It contains no synced
        /// bytes.
        TornTail = "torn_tail",
        /// Bytes that can't have been left by a complete write, or that exceed a limit. The policy
        /// ([`OnCorruption`](crate::OnCorruption)) decides how the reader proceeds.
        Corruption = "corruption",
    }
}

shows_name!(Severity);

/// Defines each reason with its name, severity and message. If the reason has details, write each
/// one as `field: type = name` after the message.
macro_rules! reasons {
    ($(
        $(#[$about:meta])*
        $reason:ident = $name:literal, $severity:ident, $words:literal
        $(, { $($(#[$of:meta])* $field:ident: $type:ty = $detail:literal,)* })?;
    )*) => {
        /// Why a region of a file was not returned.
        ///
        /// The rule for each reason is in `docs/format/reading.md`. [`as_str`](Reason::as_str)
        /// returns a reason's stable name. Later releases may add reasons, but won't add fields to
        /// existing ones. A reason's fields contain every detail that its rule defines. A program
        /// can therefore construct a reason and compare it with another.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$about])* $reason $({ $($(#[$of])* $field: $type,)* })?,)*
        }

        impl Reason {
            /// All reasons, with their fields set to 0.
            pub const ALL: &'static [Reason] = &[$(Reason::$reason $({ $($field: 0),* })?),*];

            /// Returns the stable name, such as `"checksum_mismatch"`. It is part of the interface,
            /// and is the same in Python and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Reason::$reason { .. } => $name,)*
                }
            }

            /// Returns the severity. Each reason has exactly one.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Reason::$reason { .. } => Severity::$severity,)*
                }
            }

            /// Returns the detail with this name, which is also the name of the Python attribute.
            /// Returns `None` if the reason doesn't have that detail.
            ///
            /// ```
            /// use cordwood_log::damage::Reason;
            /// let reason = Reason::BadLength { len: 7 };
            /// assert_eq!((reason.detail("stated_len"), reason.detail("type_byte")), (Some(7), None));
            /// ```
            pub fn detail(self, name: &str) -> Option<u32> {
                match self {
                    $(Reason::$reason $({ $($field),* })? => {
                        $($(if name == $detail {
                            return Some($field.into());
                        })*)?
                        None
                    })*
                }
            }

            /// Returns this reason with new details. `get` maps a detail's name to its value. If a
            /// value doesn't fit into the detail's type, the detail becomes 0.
            ///
            /// # Errors
            ///
            /// Returns any error that `get` returns.
            ///
            /// ```
            /// use cordwood_log::damage::Reason;
            /// let reason = Reason::BadLength { len: 0 }.with_details(|_| Ok::<u32, ()>(7));
            /// assert_eq!(reason, Ok(Reason::BadLength { len: 7 }));
            /// ```
            pub fn with_details<E>(self, get: impl Fn(&str) -> Result<u32, E>) -> Result<Self, E> {
                Ok(match self {
                    $(Reason::$reason { .. } => Reason::$reason $({
                        $($field: get($detail)?.try_into().unwrap_or_default()),*
                    })?,)*
                })
            }
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Reason::$reason $({ $($field),* })? => write!(f, $words)?,)*
                }
                let Reason::UnknownKind { kind } = self else {
                    return Ok(());
                };
                match Dialect::PACKED.kind_of(*kind) {
                    FragmentKind::Packed(_) => write!(f, ": a container of the dialect packed"),
                    FragmentKind::PackedMark => write!(f, ": the mark of the dialect packed"),
                    _ => write!(f, ": a newer engine may have written it"),
                }
            }
        }
    };
}

reasons! {
    /// According to its header, the fragment extends past the end of the block. This reason also
    /// applies if the fragment extends past the end of the file and its length is provably wrong.
    BadLength = "bad_length", Corruption, "the header states a length of {len} bytes, which is impossible here", {
        /// The length in the header, in bytes.
        len: u16 = "stated_len",
    };
    /// The fragment's checksum does not match its type and payload. The length may be damaged, so
    /// the rest of the block is not trusted.
    ChecksumMismatch = "checksum_mismatch", Corruption,
        "checksum mismatch: the header states {stored:08x}, the data has {computed:08x}", {
        /// The checksum in the header, unmasked.
        stored: u32 = "stored_crc",
        /// The checksum computed from the fragment's bytes, starting at the type byte.
        computed: u32 = "computed_crc",
    };
    /// The fragment has a valid checksum, but its type is unknown in this dialect.
    UnknownKind = "unknown_kind", Corruption, "unknown fragment type {kind}, with a valid checksum", {
        /// The type byte.
        kind: u8 = "type_byte",
    };
    /// MIDDLE or LAST fragments without the FIRST fragment of their record.
    MissingStart = "missing_start", Corruption, "a fragment of a record whose first fragment is missing";
    /// A record whose LAST fragment is missing: a FULL or FIRST fragment follows instead.
    MissingEnd = "missing_end", Corruption, "a record whose last fragment is missing";
    /// A record interrupted by another skipped region.
    InterruptedRecord = "interrupted_record", Corruption, "a record interrupted by the damage after it";
    /// A header of type 0 and length 0 indicates zeros up to the end of the block, but a byte after
    /// the header is not zero.
    ZeroHeader = "zero_header", Corruption, "a header of zeros before data that is not zero";
    /// The part of a record that had been read when the record exceeded
    /// [`record_len_max`](crate::ReadOptions::record_len_max).
    RecordTooLarge = "record_too_large", Corruption, "a record longer than the limit";
    /// The remainder of a record that was skipped as [`RecordTooLarge`](Reason::RecordTooLarge).
    TooLargeRest = "too_large_rest", Info, "the rest of a record longer than the limit";
    /// Zeros up to the end of the block or of the file: padding, space that was never written, or
    /// lost data.
    ZeroFill = "zero_fill", Info, "zeros up to the end of the block";
    /// A block trailer that is not all zeros. No engine checks a trailer's bytes.
    NonzeroTrailer = "nonzero_trailer", Info, "a block trailer that is not zero";
    /// A FIRST fragment that has no payload and isn't continued by another fragment. Old versions
    /// of LevelDB wrote such fragments at the end of a block. No data is missing.
    EmptyFirst = "empty_first", Info, "an empty first fragment without a continuation";
    /// Incomplete data left at the end of a file by a crash.
    TornTail = "torn_tail", TornTail, "an incomplete record at the end of the file";
    /// This dialect's file header, which precedes the first fragment.
    FileHeader = "file_header", Info, "the file header";
    /// This dialect's file header with an unknown version. The records after it are still read.
    UnknownVersion = "unknown_version", Info, "the file header states version {version}, which is not known", {
        /// The version.
        version: u8 = "version",
    };
    /// The file doesn't start with this dialect's [`FileHeader`](Reason::FileHeader), or the first
    /// record proves that the header's version is wrong.
    BadFileHeader = "bad_file_header", Corruption, "not the file header of this dialect";
    /// Metadata that the engine wrote for its own use, as opposed to user data.
    Metadata = "metadata", Info, "engine metadata of type {kind}", {
        /// The type byte.
        kind: u8 = "type_byte",
    };
    /// Metadata that no engine writes with these contents or at this position. The reader applies
    /// the parts that it can interpret.
    BadMetadata = "bad_metadata", Corruption,
        "engine metadata of type {kind}, in a form or place that no engine uses", {
        /// The type byte.
        kind: u8 = "type_byte",
    };
    /// A fragment with a valid checksum and an unknown type that is marked as safe to ignore.
    IgnoredKind = "ignored_kind", Info, "an unknown fragment of type {kind}, which readers may skip", {
        /// The type byte.
        kind: u8 = "type_byte",
    };
    /// The end-of-log trailer. The log ends here, even if more bytes follow.
    EndTrailer = "end_trailer", Info, "the trailer of a closed log";
    /// Remnants of an older log, after the end of this log in a recycled file.
    Stale = "stale", Info, "left over from an older log, after the end of this one";
    /// Like [`Stale`](Reason::Stale), but fragments of this log follow. The data written here never
    /// reached the disk.
    LostWrite = "lost_write", Corruption, "left over from an older log, in the middle of this one";
    /// A record whose compression this build can't read, because it is not zstd or the `zstd`
    /// feature is off.
    UnsupportedCompression = "unsupported_compression", Corruption,
        "a compressed record; only zstd is read, by builds with the feature `zstd`";
    /// A record or container that can't be decompressed even though its checksums are valid.
    BadCompression = "bad_compression", Corruption, "a record that cannot be decompressed";
    /// A container whose checksums are valid but whose structure no writer would produce. None of
    /// its records are returned.
    BadContainer = "bad_container", Corruption, "a container of records that no writer writes";
    /// A part of a segmented log that is missing from all of the log's files. A file was removed or
    /// truncated, or its end was never written.
    MissingSegment = "missing_segment", Corruption, "no segment has these bytes: a file was removed or cut";
    /// The bytes at the end of a file in a segmented log, past the offset where the next file
    /// starts. The reader reports an empty region at the start of the next file, because the
    /// offsets of these bytes belong to that file.
    GrownSegment = "grown_segment", Corruption,
        "the segment before has bytes after this offset, where the next one starts";
    /// The bytes that were not read because the policy
    /// [`OnCorruption::Stop`](crate::OnCorruption::Stop) ended reading at earlier damage.
    NotRead = "not_read", Info, "after the damage at which reading stopped";
}

/// The bytes `[start, end)` of a file that were not returned as a record, and the reason why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SkippedRegion {
    /// The file offset of the first byte.
    pub start: u64,
    /// The file offset just past the last byte.
    pub end: u64,
    /// Why these bytes were not returned.
    pub reason: Reason,
    /// The number of bytes that LevelDB's own reader reports for this region, or `None` if it does
    /// not report the region. If the reason concerns a record, LevelDB's reader doesn't count the
    /// headers. It also has no limit on the length of a record.
    pub leveldb_len: Option<u64>,
}

impl SkippedRegion {
    /// Creates a region that LevelDB does not report.
    pub(crate) const fn new(Range { start, end }: Range<u64>, reason: Reason) -> Self {
        SkippedRegion {
            start,
            end,
            reason,
            leveldb_len: None,
        }
    }

    /// Sets the number of bytes that LevelDB reports for this region.
    pub(crate) const fn with_leveldb_len(self, leveldb_len: Option<u64>) -> Self {
        SkippedRegion { leveldb_len, ..self }
    }

    /// Returns the length of the region in bytes.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Checks whether the region is empty. Readers return an empty region only for
    /// [`Reason::GrownSegment`].
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Merges this region with `next` if they are adjacent and have the same reason.
    #[must_use]
    pub fn joined(self, next: SkippedRegion) -> Option<SkippedRegion> {
        let leveldb_len = match (self.leveldb_len, next.leveldb_len) {
            (Some(here), Some(there)) => Some(here + there),
            (here, there) => here.or(there),
        };
        let touches = self.end == next.start && self.reason == next.reason;
        touches.then_some(SkippedRegion {
            end: next.end,
            leveldb_len,
            ..self
        })
    }
}

impl fmt::Display for SkippedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len();
        let bytes = if len == 1 { "byte" } else { "bytes" };
        write!(f, "{len} {bytes} at offset {}: {}", self.start, self.reason)
    }
}
