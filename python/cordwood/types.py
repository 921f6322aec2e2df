"""The types of values that cordwood returns, such as formats, reports and skipped regions.

The string values of the enums are stable. All other types are named tuples, whose values you can construct, compare,
hash, copy, pickle and match.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Self

from cordwood._native import SEVERITIES, reason_in_words
from cordwood._text import damaged_text, quantity
from cordwood.typing import CompressionName, DialectName

BLOCK_LEN: Final = 32_768
"""The size of a block, in bytes. Ranges that are read in parallel start at multiples of this size."""


class DetectedDialect(str):
    """The name of a detected dialect whose logs may also contain RocksDB's metadata.

    A `DetectedDialect` compares equal to the plain name. For `"leveldb"` and `"recyclable"`, readers, reports and
    `cordwood.detect` return a `DetectedDialect` as the `dialect`. If you pass a `DetectedDialect` as an option, even
    after pickling, RocksDB's metadata is still recognised. If you pass the plain name, this metadata is reported as
    damage, as in LevelDB.

    >>> cordwood.detect(bytes.fromhex("dd5fb37a030001666f6f")).dialect
    'leveldb'
    """

    __slots__ = ()

    def __new__(cls, name: DialectName) -> Self:
        """Marks a dialect's name as detected."""
        return super().__new__(cls, name)


class LogFormat(NamedTuple):
    """The format of a log, as returned by `cordwood.detect`. Readers and writers accept the fields as options.

    Attributes:
        dialect: How the bytes are laid out.
        log_number: The number of the log. `None` if the dialect has no log numbers or the number is unknown. Default:
            `None`.
        compression: The compression of each record: `"zstd"`, or `None` for no compression. Default: `None`.

    >>> with cordwood.open("example.log", "w", dialect="rocksdb", log_number=7) as writer:
    ...     _ = writer.append(b"one")
    >>> format = cordwood.detect("example.log")
    >>> format
    LogFormat(dialect='recyclable', log_number=7, compression=None)
    >>> list(cordwood.open("example.log", **format._asdict()))
    [b'one']
    """

    dialect: DialectName
    log_number: int | None = None
    compression: CompressionName | None = None


class Reason(StrEnum):
    """Why a region of a file was not returned.

    Attributes:
        BAD_LENGTH: According to its header, a fragment extends past the end of the block. This reason also applies if
            it extends past the end of the file and its length is provably wrong.
        CHECKSUM_MISMATCH: The checksum does not match the data. The rest of the block is not trusted.
        UNKNOWN_KIND: A fragment with a valid checksum and an unknown type.
        MISSING_START: A fragment of a record whose first fragment is missing.
        MISSING_END: A record whose last fragment is missing.
        INTERRUPTED_RECORD: A record that is incomplete because bytes in the middle were skipped.
        ZERO_HEADER: A header of zeros, followed by non-zero bytes. After such a header, the rest of the block should be
            zeros.
        RECORD_TOO_LARGE: A record longer than `record_len_max`.
        TOO_LARGE_REST: The rest of a record that is too large.
        ZERO_FILL: Zeros up to the end of the block or the file. They may be unwritten space, padding, or lost data.
        NONZERO_TRAILER: Non-zero bytes at the end of a block, where there is no room for a header. No engine reads
            them.
        EMPTY_FIRST: An empty first fragment without the remaining fragments of its record, as written by old versions
            of LevelDB. No data is missing.
        TORN_TAIL: An incomplete record at the end, such as one left by a crash.
        FILE_HEADER: The file header, in dialects that have one.
        UNKNOWN_VERSION: The file header has an unknown version. The records after the header are still read.
        BAD_FILE_HEADER: The file does not start with a valid file header, or the first record proves that the version
            in the header is wrong.
        METADATA: A record that the engine wrote for its own use.
        BAD_METADATA: Metadata with content that no engine writes, or at a position where no engine writes it.
        IGNORED_KIND: A fragment of an unknown type that is marked as safe to ignore.
        END_TRAILER: The header that marks the end of a closed log.
        STALE: The remainder of an older log in a recycled file, after the end of this log.
        LOST_WRITE: A part of an older log in the middle of this log. The data written here never reached the disk.
        UNSUPPORTED_COMPRESSION: A record whose compression this build cannot read.
        BAD_COMPRESSION: A record, or a container of records, that cannot be decompressed.
        BAD_CONTAINER: A container of records in a packed log has a form that no writer produces. None of its records
            are returned.
        MISSING_SEGMENT: Bytes of a segmented log that are missing from all of its files, because a file was removed or
            truncated.
        GROWN_SEGMENT: The part of a file in a segmented log that extends past the start of the next file.
        NOT_READ: The unread bytes after damage. Reading stops at damage if the policy is `"stop"`.
    """

    BAD_LENGTH = "bad_length"
    CHECKSUM_MISMATCH = "checksum_mismatch"
    UNKNOWN_KIND = "unknown_kind"
    MISSING_START = "missing_start"
    MISSING_END = "missing_end"
    INTERRUPTED_RECORD = "interrupted_record"
    ZERO_HEADER = "zero_header"
    RECORD_TOO_LARGE = "record_too_large"
    TOO_LARGE_REST = "too_large_rest"
    ZERO_FILL = "zero_fill"
    NONZERO_TRAILER = "nonzero_trailer"
    EMPTY_FIRST = "empty_first"
    TORN_TAIL = "torn_tail"
    FILE_HEADER = "file_header"
    UNKNOWN_VERSION = "unknown_version"
    BAD_FILE_HEADER = "bad_file_header"
    METADATA = "metadata"
    BAD_METADATA = "bad_metadata"
    IGNORED_KIND = "ignored_kind"
    END_TRAILER = "end_trailer"
    STALE = "stale"
    LOST_WRITE = "lost_write"
    UNSUPPORTED_COMPRESSION = "unsupported_compression"
    BAD_COMPRESSION = "bad_compression"
    BAD_CONTAINER = "bad_container"
    MISSING_SEGMENT = "missing_segment"
    GROWN_SEGMENT = "grown_segment"
    NOT_READ = "not_read"

    @property
    def severity(self) -> "Severity":
        """The severity of a region skipped for this reason."""
        return Severity(SEVERITIES[self])


class Hint(StrEnum):
    """Advice on how to proceed after an error.

    In a traceback, the hint is printed as text after the message.

    Attributes:
        ON_CORRUPTION: Continue after the damage, or salvage the log.
        CHECK_OFFSET: Check the offset you passed to `seek`. If no record starts there, the error doesn't mean that the
            log is damaged.
        RAISE_RECORD_LEN_MAX: If you trust the data, raise `record_len_max`. Both readers and writers need a higher
            limit for records longer than 1 GiB.
        LOWER_RECORD_LEN_MAX: Try again, or lower `record_len_max` to skip records that do not fit in memory.
        NAME_DIALECT: If you are sure that the file is a log, pass `dialect`.
        NAME_DETECTED_DIALECT: Pass the `dialect` that was detected, or omit `dialect`.
        NAME_LOG_NUMBER: Pass the `log_number` that the fragments contain.
        OMIT_LOG_NUMBER: Omit `log_number`, or pass a `dialect` that has log numbers.
        OMIT_COMPRESSION: Omit `compression`, or pass a `dialect` that supports it.
        ENABLE_ZSTD: Use a build with zstd.
        ON_TORN_TAIL: Pass `"truncate"` or `"pad"` as `on_torn_tail`.
        PAD: Pass `on_torn_tail="pad"`, or salvage the log.
        PAD_WITH_DIALECT: If you are sure that the file is a log, pass `dialect` and `on_torn_tail="pad"`.
        SALVAGE: Salvage the readable records.
        CREATE_LOG: Create a new log.
        REOPEN: Open the log again.
        START_AT_FIRST_OFFSET: Start at `first_offset`. All earlier records are gone.
        START_AGAIN: Read from the start. This is not the log that was read before.
        OWN_DIRECTORY: Give the segmented log a directory of its own.
        SEGMENT_LEN: To append to a segmented log, pass `segment_len`.
        READ_DIRECTORY: Call a function that reads all logs in a directory.
        OTHER_NAME: Give the new log another name.
    """

    ON_CORRUPTION = "on_corruption"
    CHECK_OFFSET = "check_offset"
    RAISE_RECORD_LEN_MAX = "raise_record_len_max"
    LOWER_RECORD_LEN_MAX = "lower_record_len_max"
    NAME_DIALECT = "name_dialect"
    NAME_DETECTED_DIALECT = "name_detected_dialect"
    NAME_LOG_NUMBER = "name_log_number"
    OMIT_LOG_NUMBER = "omit_log_number"
    OMIT_COMPRESSION = "omit_compression"
    ENABLE_ZSTD = "enable_zstd"
    ON_TORN_TAIL = "on_torn_tail"
    PAD = "pad"
    PAD_WITH_DIALECT = "pad_with_dialect"
    SALVAGE = "salvage"
    CREATE_LOG = "create_log"
    REOPEN = "reopen"
    START_AT_FIRST_OFFSET = "start_at_first_offset"
    START_AGAIN = "start_again"
    OWN_DIRECTORY = "own_directory"
    SEGMENT_LEN = "segment_len"
    READ_DIRECTORY = "read_directory"
    OTHER_NAME = "other_name"


class Severity(StrEnum):
    """The severity of a skipped region.

    Attributes:
        INFO: The region is not damaged: it is padding, an engine's metadata, or bytes that the options exclude. Zeros
            (`Reason.ZERO_FILL`) may be unwritten space or lost data; the file doesn't indicate which.
        TORN_TAIL: The incomplete end of a file.
        CORRUPTION: Bytes that no complete write could have produced, or a record that exceeds a limit. The
            `on_corruption` option determines how a reader treats these regions.
    """

    INFO = "info"
    TORN_TAIL = "torn_tail"
    CORRUPTION = "corruption"


class OutcomeKind(StrEnum):
    """How reading a log ended, or whether it is unfinished.

    Attributes:
        UNFINISHED: Reading isn't finished. There may be more records.
        CLEAN: Reading reached the end of the file or the range. There is no incomplete record at the end.
        TORN_TAIL: Reading ended with an incomplete record, such as one left by a crash.
        STOPPED: Reading stopped at damage because the policy is `"stop"`.
    """

    UNFINISHED = "unfinished"
    CLEAN = "clean"
    TORN_TAIL = "torn_tail"
    STOPPED = "stopped"


class WaitReason(StrEnum):
    """Why a follower has not returned another record yet.

    Attributes:
        IDLE: Everything in the file has been returned.
        INCOMPLETE: The next record is incomplete: it is still being written, or its writer was killed.
        ZEROS: The next bytes are zeros, either space preallocated by a writer or a hole that will be filled later.
        STALE: The next bytes may be left over from an older log that this log overwrites. This is assumed if they
            belong to another log. If this log has a number, it is also assumed if they look damaged. If no record is
            ever returned, the file may have been renamed: readers get the log's number from the file's name.
        SUSPECT: The next bytes look damaged. They are read again before damage is reported.
        DAMAGED: The next bytes are the remainder of a block in which damage has already been reported. Reading
            continues at the next block. After damage at the start of the file, it continues once later bytes identify
            the log.
    """

    IDLE = "idle"
    INCOMPLETE = "incomplete"
    ZEROS = "zeros"
    STALE = "stale"
    SUSPECT = "suspect"
    DAMAGED = "damaged"


class FragmentPart(StrEnum):
    """Where a given byte is: in a part of a fragment, or in the file header.

    Attributes:
        CHECKSUM: The masked checksum, in bytes 0 to 3 of the header.
        LENGTH: The length of the payload, in bytes 4 and 5 of the header.
        KIND: The type, in byte 6 of the header.
        LOG_NUMBER: The number of the log, in bytes 7 to 10 of the header, if the fragment contains it.
        SYNCED_OFFSET: The offset up to which the file was synced, in bytes 11 to 18 of the header. Not all fragments
            contain this offset.
        PAYLOAD: The bytes after the header.
        FILE_HEADER: The file header, before the first fragment.
    """

    CHECKSUM = "checksum"
    LENGTH = "length"
    KIND = "kind"
    LOG_NUMBER = "log_number"
    SYNCED_OFFSET = "synced_offset"
    PAYLOAD = "payload"
    FILE_HEADER = "file_header"


class FragmentKind(StrEnum):
    """The kind of a fragment, which depends on its type byte and the dialect.

    Some kinds represent gaps between fragments.

    Attributes:
        FULL: A complete record: type 1.
        FIRST: The first part of a record: type 2.
        MIDDLE: A middle part of a record: type 3.
        LAST: The last part of a record: type 4.
        RECYCLABLE_FULL: A `FULL` fragment with the number of the log: type 5 in RocksDB and Pebble.
        RECYCLABLE_FIRST: A `FIRST` fragment with the number of the log: type 6.
        RECYCLABLE_MIDDLE: A `MIDDLE` fragment with the number of the log: type 7.
        RECYCLABLE_LAST: A `LAST` fragment with the number of the log: type 8.
        WAL_SYNC_FULL: A `FULL` fragment with the number of the log and the synced offset: type 9 in Pebble.
        WAL_SYNC_FIRST: A `FIRST` fragment with the number and the synced offset: type 10.
        WAL_SYNC_MIDDLE: A `MIDDLE` fragment with the number and the synced offset: type 11.
        WAL_SYNC_LAST: A `LAST` fragment with the number and the synced offset: type 12.
        SET_COMPRESSION: How a RocksDB log's records are compressed: type 9.
        TIMESTAMP_SIZES: The lengths of the timestamps in a RocksDB log: types 10 and 11.
        PREDECESSOR: The log that a RocksDB log continues: types 130 and 131.
        PACKED_FULL: A container of records, in a packed log: type 0x40.
        PACKED_FIRST: The first part of a container: type 0x42.
        PACKED_MIDDLE: A middle part of a container: type 0x44.
        PACKED_LAST: The last part of a container: type 0x46.
        PACKED_MARK: The mark at the start of a packed log: type 0x48.
        ZERO: Space that was never written: type 0.
        UNKNOWN: A fragment whose type the dialect does not define.
        END_TRAILER: The end of a closed Pebble log.
        FILE_HEADER: The file header, in dialects that have one. It isn't a fragment.
        TRAILER: The last bytes of a block if there is no room for a header. They are not a fragment.
        ZEROS: Zeros that are not a fragment.
        REST: Bytes that are not a fragment because they have no plausible header.
    """

    FULL = "full"
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"
    RECYCLABLE_FULL = "recyclable_full"
    RECYCLABLE_FIRST = "recyclable_first"
    RECYCLABLE_MIDDLE = "recyclable_middle"
    RECYCLABLE_LAST = "recyclable_last"
    WAL_SYNC_FULL = "wal_sync_full"
    WAL_SYNC_FIRST = "wal_sync_first"
    WAL_SYNC_MIDDLE = "wal_sync_middle"
    WAL_SYNC_LAST = "wal_sync_last"
    SET_COMPRESSION = "set_compression"
    TIMESTAMP_SIZES = "timestamp_sizes"
    PREDECESSOR = "predecessor"
    PACKED_FULL = "packed_full"
    PACKED_FIRST = "packed_first"
    PACKED_MIDDLE = "packed_middle"
    PACKED_LAST = "packed_last"
    PACKED_MARK = "packed_mark"
    ZERO = "zero"
    UNKNOWN = "unknown"
    END_TRAILER = "end_trailer"
    FILE_HEADER = "file_header"
    TRAILER = "trailer"
    ZEROS = "zeros"
    REST = "rest"


class PayloadReason(StrEnum):
    """Why a record cannot be decoded.

    Attributes:
        TRUNCATED: The record, or a field in it, ends inside a number or a string.
        BAD_VARINT: A variable-length number is unterminated.
        NON_CANONICAL: A field has a form that engines read but never write, such as a number with unnecessary bytes.
        UNKNOWN_TAG: The engine does not recognise a tag, or does not allow the tag in this kind of record.
        BAD_LENGTH: The length of a field does not match its content.
        BAD_KEY: An internal key is too short to contain a sequence number and a type.
        WRONG_COUNT: The number of operations in the batch differs from the number in its header.
        BAD_WIRE_TYPE: A wire type in a protocol buffer is invalid, or does not match the field.
        MISSING_FIELD: A required field of a protocol buffer is missing.
        NOT_UTF8: A string is not valid UTF-8.
        RESERVED_NAME: A property of an entity has a reserved name: `__key__` or `__other_fields__`.
        TOO_DEEP: The nesting is too deep: no program writes such records.
        TOO_LARGE: A value is too large for the format, or an integer in JSON has more digits than Python accepts.
    """

    TRUNCATED = "truncated"
    BAD_VARINT = "bad_varint"
    NON_CANONICAL = "non_canonical"
    UNKNOWN_TAG = "unknown_tag"
    BAD_LENGTH = "bad_length"
    BAD_KEY = "bad_key"
    WRONG_COUNT = "wrong_count"
    BAD_WIRE_TYPE = "bad_wire_type"
    MISSING_FIELD = "missing_field"
    NOT_UTF8 = "not_utf8"
    RESERVED_NAME = "reserved_name"
    TOO_DEEP = "too_deep"
    TOO_LARGE = "too_large"


def _short(value: "BitFlip | SkippedRegion | Outcome | NotYet | Fragment") -> str:
    """Returns a `repr` that omits attributes with default values and displays checksums in hexadecimal."""
    fields = [
        f"{name}={_text(name, item)}"
        for name, item in value._asdict().items()
        if name not in value._field_defaults or item != value._field_defaults[name]
    ]
    return f"{type(value).__name__}({', '.join(fields)})"


def _text(name: str, item: object) -> str:
    if isinstance(item, str):
        return repr(str(item))  # Shows an enum member as its plain string.
    return f"{item:#010x}" if name.endswith("_crc") else repr(item)


class BitFlip(NamedTuple):
    """A single flipped bit that explains damage. Flipping it back makes the fragment's checksum valid.

    This is the type of `SkippedRegion.bit_flip`.

    Attributes:
        offset: The file offset of the byte.
        bit: The position of the bit in the byte: 0 is the lowest, 7 the highest.
        part: Where the byte is: in a part of the fragment, or in the file header.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with open("example.log", "r+b") as file:
    ...     _ = file.seek(7), file.write(b"O")
    >>> cordwood.verify("example.log").skipped[0].bit_flip
    BitFlip(offset=7, bit=5, part='payload')
    """

    offset: int
    bit: int
    part: FragmentPart

    def __repr__(self) -> str:
        return _short(self)


class SkippedRegion(NamedTuple):
    """The bytes `[offset, end_offset)` of a file that were not returned as a record, and the reason why.

    `Reader.skipped`, `Follower.skipped` and `Report.skipped` list these regions. `str(region)` describes a region in
    a sentence.

    Attributes:
        offset: The file offset of the first byte.
        end_offset: The file offset after the last byte.
        reason: Why these bytes were not returned.
        stored_crc: The checksum stored in the file, if the reason is `checksum_mismatch`. Otherwise `None`.
        computed_crc: The checksum of the data, if the reason is `checksum_mismatch`. Otherwise `None`.
        stated_len: The length in the header, in bytes, if the reason is `bad_length`. Otherwise `None`.
        type_byte: The type byte, if the reason is `unknown_kind`, `ignored_kind`, `metadata` or `bad_metadata`.
            Otherwise `None`.
        version: The version in the file header, if the reason is `unknown_version`. Otherwise `None`.
        bit_flip: The single flipped bit that explains the region, if `verify` or `salvage` found one. With
            `repair_bit_flips`, `salvage` flips the bit back.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> with open("example.log", "r+b") as file:
    ...     _ = file.seek(7), file.write(b"X")
    >>> region = cordwood.verify("example.log").skipped[0]
    >>> region.offset, region.length, region.reason.value, region.severity.value
    (0, 10, 'checksum_mismatch', 'corruption')
    >>> print(region)
    10 bytes at offset 0: checksum mismatch: the header states dfd2f0ec, the data has 3ac4121b
    """

    offset: int
    end_offset: int
    reason: Reason
    stored_crc: int | None = None
    computed_crc: int | None = None
    stated_len: int | None = None
    type_byte: int | None = None
    version: int | None = None
    bit_flip: BitFlip | None = None

    @property
    def length(self) -> int:
        """The length of the region in bytes. `len(region)` is the number of attributes, not of bytes."""
        return self.end_offset - self.offset

    @property
    def severity(self) -> Severity:
        """The severity of the reason: `"info"`, `"torn_tail"` or `"corruption"`."""
        return Reason(self.reason).severity

    @property
    def description(self) -> str:
        """A description of why these bytes were not returned. It does not include the offset."""
        return reason_in_words(self.reason, self)

    def __str__(self) -> str:
        unit = "byte" if self.length == 1 else "bytes"
        return f"{self.length} {unit} at offset {self.offset}: {self.description}"

    def __repr__(self) -> str:
        return _short(self)


class Outcome(NamedTuple):
    """How reading a log ended, or whether it is unfinished. Readers, followers and reports have an `outcome`.

    Attributes:
        kind: `"clean"`, `"torn_tail"`, `"stopped"` or `"unfinished"`.
        offset: A file offset in bytes. `kind` determines which one: the end of the file or the range for `"clean"`, the
            start of the torn tail for `"torn_tail"`, the start of the damage for `"stopped"`, and the offset reached so
            far for `"unfinished"`.
        zeros_offset: The file offset of the first zero, if zeros extend to the end of the file. They may be unwritten
            space, padding, or lost data. `None` if the file doesn't end with zeros, or wasn't read to its end. Always
            `None` for a follower.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.verify("example.log").outcome
    Outcome(kind='clean', offset=10)
    """

    kind: OutcomeKind
    offset: int
    zeros_offset: int | None = None

    def __repr__(self) -> str:
        return _short(self)


class NotYet(NamedTuple):
    """Where a follower is waiting, and why it has not returned another record yet. `Follower.waiting` returns it.

    Use it to distinguish an idle writer from a stuck one.

    Attributes:
        reason: The reason for waiting.
        offset: The file offset after the last record or skipped region.
        file_len: The length of the file, in bytes.

    >>> with cordwood.open("live.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with cordwood.follow("live.log", timeout=0) as follower:
    ...     list(follower), follower.waiting
    ([b'one'], NotYet(reason='idle', offset=10, file_len=10))
    """

    reason: WaitReason
    offset: int
    file_len: int

    @property
    def pending_len(self) -> int:
        """The number of bytes in the file after `offset`, including zeros preallocated by a writer."""
        return max(0, self.file_len - self.offset)

    def __repr__(self) -> str:
        return _short(self)


class Fragment(NamedTuple):
    """A fragment of a log, or a gap between fragments, as returned by `cordwood.fragments`.

    Attributes:
        offset: The file offset of the first byte.
        end_offset: The file offset after the last byte. After damage, this is the start of the next fragment found.
        kind: The kind of the fragment: `"full"`, `"first"`, `"trailer"`, ...
        block: The index of the fragment's block, counted from 0.
        type_byte: The type byte. `None` if there is no header.
        payload_len: The length of the payload in bytes, as stated in the header, even if it is wrong. `None` if there
            is no header.
        stored_crc: The unmasked checksum in the header. `None` if there is no header.
        computed_crc: The checksum computed from the bytes. `None` if the fragment extends past the end of the block
            or the file.
        log_number: The number of the log, if headers of this type contain it. Otherwise `None`.
        synced_offset: The offset up to which the file was synced. `None` if headers of this type don't contain it.
        reason: Why these bytes were not returned as part of a record. `None` for trailers, and for bytes that were
            returned.
        record_offset: The file offset of the record containing the fragment, if that record was returned. Otherwise
            `None`.
        salvaged: Whether the record containing the fragment starts after damage in the same block. Only the `"salvage"`
            policy returns these records.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> fragment = next(cordwood.fragments("example.log"))
    >>> fragment.kind.value, fragment.offset, fragment.end_offset, fragment.payload_len
    ('full', 0, 10, 3)
    """

    offset: int
    end_offset: int
    kind: FragmentKind
    block: int
    type_byte: int | None = None
    payload_len: int | None = None
    stored_crc: int | None = None
    computed_crc: int | None = None
    log_number: int | None = None
    synced_offset: int | None = None
    reason: Reason | None = None
    record_offset: int | None = None
    salvaged: bool = False

    @property
    def length(self) -> int:
        """The length of the fragment in bytes. `len(fragment)` is the number of attributes, not of bytes."""
        return self.end_offset - self.offset

    @property
    def severity(self) -> Severity | None:
        """The severity of the reason. `None` if there is no reason."""
        return None if self.reason is None else Reason(self.reason).severity

    def __repr__(self) -> str:
        return _short(self)


class Report(NamedTuple):
    """A summary of a log's contents and damage, as returned by `verify` and `salvage`.

    Comparisons of reports ignore their paths. Notebooks display a report as a table.

    Attributes:
        dialect: The dialect of the log, such as `"leveldb"`.
        record_count: The number of records returned.
        payload_len: The number of bytes of data in the records, without headers and trailers.
        file_len: The length of the whole file, including bytes outside the range. For a segmented log, the offset where
            the log ends. `None` if the source is an object with `read` and was not read to its end.
        outcome: How reading ended.
        len_by_reason: For each reason found, the number of bytes in its regions. Regions that are not listed in
            `skipped` also count.
        log_number: The number of the log. `None` if the dialect has no log numbers or the number is unknown.
        compression: The compression of each record: `"zstd"`, or `None` for no compression.
        salvaged_count: The number of returned records that start after damage in the same block. LevelDB and the
            `"skip"` policy drop these records and return all others.
        repaired_count: The number of records that `salvage` repaired by flipping a bit back. 0 without
            `repair_bit_flips`.
        skipped: The first 100,000 regions that were not returned, ordered by offset. A region explained by one flipped
            bit has a `bit_flip`. Adjacent regions are merged if they have the same reason and details, and neither of
            them is explained by a flipped bit.
        repaired: The first 100,000 fragments that `salvage` repaired by flipping a bit back. Each entry is the region
            that a reader would skip, with its `bit_flip`. A fragment may be part of a record, the engine's metadata,
            the file header, or the trailer of a closed log.
        other_log_number: The number of another log, if the whole file belongs to that log. Otherwise `None`. This
            number differs from the one in the file's name or in `log_number`. Either the file was recycled and no
            record has been written to the new log yet, or the file was renamed or copied.
        not_kept: The properties that `salvage` could not keep in the new log. Empty after `verify`. `"synced_offsets"`
            are offsets in some Pebble records that show how far the file was synced. `"bad_metadata"` is metadata in a
            form that no engine writes, and `"ignored_kinds"` is metadata of an unknown type. `"timestamp_sizes"` and
            `"predecessor"` are RocksDB metadata records. They are not kept if they follow damage in the same block, or
            if their own damage is explained by one flipped bit. Without `"timestamp_sizes"`, RocksDB treats keys with
            timestamps as if they had none. `"version_edit"` is a MANIFEST edit without which no engine can open the
            database.
        dialect_known: Whether the dialect was detected or passed as an option. If the dialect could not be detected,
            the log was read as `"leveldb"`.
        path: The path, the URL, or the `name` of an object with `read_range`. Otherwise `None`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> cordwood.verify("example.log")
    <cordwood.Report: ok=True, record_count=2, skipped=0, outcome=Outcome(kind='clean', offset=20)>
    """

    dialect: DialectName
    record_count: int
    payload_len: int
    file_len: int | None
    outcome: Outcome
    len_by_reason: dict[Reason, int]
    log_number: int | None = None
    compression: CompressionName | None = None
    salvaged_count: int = 0
    repaired_count: int = 0
    skipped: tuple[SkippedRegion, ...] = ()
    repaired: tuple[SkippedRegion, ...] = ()
    other_log_number: int | None = None
    not_kept: tuple[str, ...] = ()
    dialect_known: bool = True
    path: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the log is undamaged: no region has severity `"corruption"`, and no fragment was repaired.

        A torn tail does not count as damage.
        """
        # The lengths don't reveal all damage, because a region can be empty, as with `Reason.GROWN_SEGMENT`.
        is_damaged = any(Reason(reason).severity is Severity.CORRUPTION for reason in self.len_by_reason)
        return not is_damaged and not self.repaired

    @property
    def skipped_len(self) -> int:
        """The number of bytes in all skipped regions, including those not listed in `skipped`."""
        return sum(self.len_by_reason.values())

    @property
    def len_by_severity(self) -> dict[Severity, int]:
        """For each severity found, the number of bytes in its regions."""
        lens = dict.fromkeys(Severity, 0)
        for reason, length in self.len_by_reason.items():
            lens[Reason(reason).severity] += length
        return {severity: length for severity, length in lens.items() if length}

    @property
    def damaged_len(self) -> int:
        """The number of damaged bytes: those in regions of `Severity.CORRUPTION`."""
        return self.len_by_severity.get(Severity.CORRUPTION, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self[:-1] == other[:-1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.record_count, self.payload_len, self.file_len, self.outcome, self.skipped))

    def __repr__(self) -> str:
        return (
            f"<cordwood.Report: ok={self.ok}, record_count={self.record_count}, skipped={len(self.skipped)}, "
            f"outcome={self.outcome}>"
        )

    def _repr_html_(self) -> str:
        from cordwood._html import page_of

        names = ("dialect", "ok", "outcome", "record_count", "payload_len", "file_len", "skipped_len")
        return page_of(self, (*names, "not_kept") if self.not_kept else names, self.skipped)


class Stat(NamedTuple):
    """Statistics about the contents of a log, as returned by `stat`.

    `stored_len`, `header_len`, `trailer_len` and `skipped_len` add up to `file_len`. Comparisons of `Stat`s ignore
    their paths. Notebooks display a `Stat` as a table.

    Attributes:
        dialect: The dialect of the log, such as `"leveldb"`.
        record_count: The number of records returned.
        payload_len: The number of bytes of data in the records.
        file_len: The length of the file in bytes. For a segmented log, the offset where the log ends. `None` if it
            isn't known.
        outcome: How reading ended.
        log_number: The number of the log. `None` if the dialect has no log numbers or the number is unknown.
        compression: The compression of each record: `"zstd"`, or `None` for no compression.
        salvaged_count: The number of returned records that start after damage in the same block, as in
            `Report.salvaged_count`.
        stored_len: The total payload size of the records' fragments, in bytes. It differs from `payload_len` only in a
            compressed or packed log.
        header_len: The total size of the records' fragment headers, in bytes.
        record_len_min: The length of the shortest record in bytes. `None` if there are no records.
        record_len_max: The length of the longest record in bytes. `None` if there are no records.
        full_count: The number of FULL fragments in the records. Each is a complete record.
        first_count: The number of FIRST fragments in the records.
        middle_count: The number of MIDDLE fragments in the records.
        last_count: The number of LAST fragments in the records.
        container_count: The number of containers in a packed log. Each is stored in one or more of the fragments
            counted above.
        container_len: The stored length of the containers in bytes, without headers.
        packed_count: The number of records in containers.
        packed_len: The number of bytes of data in the containers' records.
        trailer_len: The number of bytes in trailers, which are block ends that are too short for a header.
        skipped_len: The number of bytes that were not returned, whatever the reason. `verify` reports the reasons.
        damaged_len: The number of skipped bytes in regions of `Severity.CORRUPTION`.
        zeros_inside_len: The number of skipped zero bytes that come before a record. They may be unwritten space,
            padding, or lost data.
        other_log_number: The number of another log, if the whole file belongs to that log, as in
            `Report.other_log_number`. Otherwise `None`.
        ok: Whether the log is undamaged: no region has severity `"corruption"`. A torn tail does not count as damage.
        path: The path, the URL, or the `name` of an object with `read_range`. Otherwise `None`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> stat = cordwood.stat("example.log")
    >>> stat
    <cordwood.Stat: record_count=2, payload_len=6, outcome=Outcome(kind='clean', offset=20)>
    >>> stat.stored_len, stat.header_len, stat.file_len
    (6, 14, 20)
    """

    dialect: DialectName
    record_count: int
    payload_len: int
    file_len: int | None
    outcome: Outcome
    log_number: int | None = None
    compression: CompressionName | None = None
    salvaged_count: int = 0
    stored_len: int = 0
    header_len: int = 0
    record_len_min: int | None = None
    record_len_max: int | None = None
    full_count: int = 0
    first_count: int = 0
    middle_count: int = 0
    last_count: int = 0
    container_count: int = 0
    container_len: int = 0
    packed_count: int = 0
    packed_len: int = 0
    trailer_len: int = 0
    skipped_len: int = 0
    damaged_len: int = 0
    zeros_inside_len: int = 0
    other_log_number: int | None = None
    ok: bool = True
    path: str | None = None

    @property
    def record_len_mean(self) -> float | None:
        """The mean length of a record in bytes. `None` if there are no records."""
        return self.payload_len / self.record_count if self.record_count else None

    @property
    def block_count(self) -> int | None:
        """The number of 32 KiB blocks in the file, including a partial last block. `None` if `file_len` is `None`.

        A segmented log counts as one file.
        """
        return None if self.file_len is None else -(-self.file_len // BLOCK_LEN)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stat) and self[:-1] == other[:-1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-1])

    def __repr__(self) -> str:
        return (
            f"<cordwood.Stat: record_count={self.record_count}, payload_len={self.payload_len}, outcome={self.outcome}>"
        )

    def _repr_html_(self) -> str:
        from cordwood._html import page_of

        return page_of(self, _STAT_NAMES)


_STAT_NAMES = (
    *("dialect", "outcome", "record_count", "payload_len", "record_len_min", "record_len_mean", "record_len_max"),
    *("full_count", "first_count", "middle_count", "last_count", "block_count"),
    *("container_count", "container_len", "packed_count", "packed_len"),
    *("stored_len", "header_len", "trailer_len", "skipped_len", "damaged_len", "zeros_inside_len", "file_len"),
)
"""The attributes that a notebook displays."""


class Engine(StrEnum):
    """The engine that wrote a database.

    Attributes:
        LEVELDB: LevelDB, or an engine that writes the same files, such as goleveldb.
        ROCKSDB: RocksDB.
        PEBBLE: Pebble.
    """

    LEVELDB = "LevelDB"
    ROCKSDB = "RocksDB"
    PEBBLE = "Pebble"


class ProblemKind(StrEnum):
    """A fault in a database, or an oddity worth knowing about.

    Attributes:
        CURRENT_MISSING: `CURRENT` is missing. LevelDB would create a new database.
        CURRENT_EMPTY: `CURRENT` is empty.
        CURRENT_ZEROS: `CURRENT` contains only zeros.
        CURRENT_NO_NEWLINE: `CURRENT` does not end with a newline.
        CURRENT_MORE_LINES: `CURRENT` has more than one line.
        CURRENT_INVALID: `CURRENT` does not contain the name of a MANIFEST.
        CURRENT_CRLF: `CURRENT` ends with CR LF. Git on Windows may have changed the line ending.
        CURRENT_OTHER: `CURRENT` has a fault. goleveldb uses the file at `path` instead, but LevelDB does not.
        MANIFEST_MISSING: The MANIFEST named in `CURRENT` or Pebble's marker is missing.
        MANIFEST_DAMAGED: The named MANIFEST is damaged, or is not a log.
        MANIFEST_EMPTY: The named MANIFEST is empty, or none of its edits contains a number.
        MANIFEST_INCOMPLETE: The named MANIFEST lacks an edit without which no engine can open the database.
        MANIFEST_UNKNOWN: The named MANIFEST has an edit that cordwood does not decode, so it is impossible to determine
            which tables exist.
        TABLE_MISSING: A table listed in the MANIFEST is missing.
        TABLE_SHORT: A table is shorter than stated in the MANIFEST.
        TABLE_ELSEWHERE: A table is not in this directory, but the engine may keep it in another directory.
        LOG_MISSING: A log is missing, although it is needed according to the MANIFEST.
        LOG_SHORT: A log is shorter than the synced length stated in the MANIFEST.
        LOG_CUT: In LevelDB, a log has lost its last writes or all of its writes, but a newer log has later writes.
            LevelDB doesn't report this loss. In RocksDB, a log ends with an incomplete record, and a newer log
            doesn't start with the next write. By default, RocksDB refuses to open the database, or opens it without the
            newer log. Pebble, and RocksDB with absolute consistency, refuse any log that ends with an incomplete record
            and is followed by a newer log.
        LOG_TORN: A log ends with an incomplete record, and a newer log follows. Writes may have been lost.
        LOG_ABSENT: The oldest log that RocksDB or Pebble would read is missing. The log may never have been written.
        LOG_DAMAGED: A file that the engine reads as a log is damaged, or is not a log. LevelDB drops the remainder of
            each damaged block. Depending on its `wal_recovery_mode`, RocksDB refuses to open the database, drops the
            writes that follow, or drops only the damaged writes. Pebble refuses to open the database, or drops the
            writes that follow.
        LOG_BEHIND: The newest log ends before the last sequence number in the MANIFEST. `missing_sequences` is the
            range of numbers in between. The writes with these numbers were lost, for example in a power failure, or
            RocksDB made them without using the log.
        LOG_EMPTY: A log contains no records. It may be empty or contain only zeros. If it is the newest log, its file
            may still contain an older log that RocksDB or Pebble is about to overwrite. Either no write has reached the
            log, or the writes were lost.
        DATABASE_EMPTY: The MANIFEST doesn't list any tables, and there is no log. Either no keys were ever written, or
            all of them were lost.
        TABLE_NEWER: LevelDB created this table after the last edit in the MANIFEST. The log that LevelDB created before
            the table may be missing.
        TABLE_UNLISTED: This table is newer than the last edit in the MANIFEST, and the log that preceded the table is
            gone. The last edits may be gone as well. The engine removes the table when it opens the database.
        GIT_LFS_POINTER: Git LFS hasn't fetched this file, but left a pointer in its place. No other problems are
            listed.
        GIT_ANNEX_POINTER: git-annex hasn't fetched this file, but left a pointer in its place.
    """

    CURRENT_MISSING = "current_missing"
    CURRENT_EMPTY = "current_empty"
    CURRENT_ZEROS = "current_zeros"
    CURRENT_NO_NEWLINE = "current_no_newline"
    CURRENT_MORE_LINES = "current_more_lines"
    CURRENT_INVALID = "current_invalid"
    CURRENT_CRLF = "current_crlf"
    CURRENT_OTHER = "current_other"
    MANIFEST_MISSING = "manifest_missing"
    MANIFEST_DAMAGED = "manifest_damaged"
    MANIFEST_EMPTY = "manifest_empty"
    MANIFEST_INCOMPLETE = "manifest_incomplete"
    MANIFEST_UNKNOWN = "manifest_unknown"
    TABLE_MISSING = "table_missing"
    TABLE_SHORT = "table_short"
    TABLE_ELSEWHERE = "table_elsewhere"
    LOG_MISSING = "log_missing"
    LOG_SHORT = "log_short"
    LOG_CUT = "log_cut"
    LOG_TORN = "log_torn"
    LOG_ABSENT = "log_absent"
    LOG_DAMAGED = "log_damaged"
    LOG_BEHIND = "log_behind"
    LOG_EMPTY = "log_empty"
    DATABASE_EMPTY = "database_empty"
    TABLE_NEWER = "table_newer"
    TABLE_UNLISTED = "table_unlisted"
    GIT_LFS_POINTER = "git_lfs_pointer"
    GIT_ANNEX_POINTER = "git_annex_pointer"


class Problem(NamedTuple):
    """A fault in a database, or an oddity worth knowing about.

    Attributes:
        kind: The kind of fault or oddity.
        path: The path of the file. The file itself may be missing.
        missing_sequences: For `LOG_BEHIND`, the first and last of the sequence numbers that no log contains. Otherwise
            `None`.
    """

    kind: ProblemKind
    path: str
    missing_sequences: tuple[int, int] | None = None

    @property
    def severity(self) -> Severity:
        """`CORRUPTION` if the engine refuses to open the database, or loses data by opening it. Otherwise `INFO`."""
        return Severity.INFO if self.kind in _NOTES else Severity.CORRUPTION


_NOTES = frozenset(
    {
        *(ProblemKind.MANIFEST_UNKNOWN, ProblemKind.TABLE_ELSEWHERE, ProblemKind.TABLE_NEWER),
        *(ProblemKind.LOG_ABSENT, ProblemKind.LOG_BEHIND, ProblemKind.LOG_EMPTY, ProblemKind.LOG_TORN),
        *(ProblemKind.DATABASE_EMPTY, ProblemKind.CURRENT_OTHER),
    }
)
"""The kinds that are not faults."""


class Database(NamedTuple):
    r"""A database in a directory, checked from its engine's point of view. The contents of tables are not read.

    Attributes:
        path: The directory.
        engine: The engine, as determined from the files in the directory.
        manifest: The name of the MANIFEST, as given in `CURRENT` or Pebble's marker. `None` if they don't name one.
        newest_manifest: The name of the newest MANIFEST that an engine can open. `None` if there is no such MANIFEST.
            Also `None` if `manifest` has no fault, because no other MANIFEST is read in that case.
        table_count: The number of tables listed in `manifest`, or in `newest_manifest` if `manifest` can't be used.
            `None` if the number is unknown.
        problems: The faults, and the oddities worth knowing about.
        log_number_min: The engine doesn't read logs with numbers below this one, because their writes are already in
            tables. `None` if the number is unknown.

    >>> from cordwood.types import Database, Engine, Problem, ProblemKind
    >>> problem = Problem(ProblemKind.CURRENT_EMPTY, "db/CURRENT")
    >>> database = Database("db", Engine.LEVELDB, None, "MANIFEST-000002", 7, (problem,))
    >>> database.ok, database.right_current
    (False, 'MANIFEST-000002\n')
    """

    path: str
    engine: Engine
    manifest: str | None
    newest_manifest: str | None
    table_count: int | None
    problems: tuple[Problem, ...]
    log_number_min: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the engine opens the database without losing data.

        An incomplete last write in the newest log does not count as lost data. Only `info`, `evidence`, and `verify` of
        a directory read the logs. Tables are not read.
        """
        return all(problem.severity == Severity.INFO for problem in self.problems)

    @property
    def right_current(self) -> str | None:
        """The text that repairs `CURRENT`: the name of a MANIFEST and a newline.

        `None` if `CURRENT` doesn't need to be repaired, or if the correct text is not known.
        """
        is_wrong = any(problem.kind in OF_CURRENT for problem in self.problems)
        return f"{self.newest_manifest}\n" if is_wrong and self.newest_manifest else None


OF_CURRENT = frozenset(
    {
        *(kind for kind in ProblemKind if kind.startswith("current_") and kind != ProblemKind.CURRENT_OTHER),
        *(ProblemKind.MANIFEST_MISSING, ProblemKind.MANIFEST_EMPTY, ProblemKind.MANIFEST_INCOMPLETE),
    }
)
"""The faults that you can repair by writing a different name to `CURRENT`."""


class Export(NamedTuple):
    """A Datastore or Firestore export, checked for missing or incomplete files. File contents are not read.

    Attributes:
        path: The path of the metadata file that lists the files: a `*.overall_export_metadata`, or a
            `*.export_metadata` that isn't listed in such a file.
        files: The paths of the listed files, which contain the entities.
        file_len: The number of bytes in the listed files.
        missing_files: The paths of missing files, and of missing or unreadable file lists.
        empty_files: The paths of empty files and empty file lists.
        stated_entity_count: The number of entities in the files, according to the metadata. `None` if it isn't stated.
        stated_len: The number of bytes in the files, according to the metadata. `None` if it isn't stated.
        entity_count: The number of entities found in the files. `None` unless every file was read.

    >>> from cordwood.types import Export
    >>> Export("x.overall_export_metadata", ("output-0",), 107, stated_len=214).ok
    False
    """

    path: str
    files: tuple[str, ...]
    file_len: int
    missing_files: tuple[str, ...] = ()
    empty_files: tuple[str, ...] = ()
    stated_entity_count: int | None = None
    stated_len: int | None = None
    entity_count: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the export is complete.

        An export is complete if no file is missing or empty, the number of entities matches the metadata, and the files
        have at least as many bytes as the metadata states.
        """
        counts = self.entity_count, self.stated_entity_count
        is_other = None not in counts and counts[0] != counts[1]
        return not (self.missing_files or self.empty_files or is_other or self.file_len < (self.stated_len or 0))


class Run(NamedTuple):
    """A Weights & Biases run, or a SwanLab run with an empty log.

    Attributes:
        path: The path of the run's log.
        record_count: The number of records that can be read.
        first_time: When the first step was logged, as a Unix time in seconds. `None` if no step has a time.
        last_time: When the last step was logged. `None` if no step has a time.
        state: `"ok"`, `"torn"` if the log ends with an incomplete record, `"damaged"`, or `"empty"`.
    """

    path: str
    record_count: int
    first_time: float | None
    last_time: float | None
    state: str


class Info(NamedTuple):
    """A summary of a file or a directory, as returned by `cordwood.info`.

    Attributes:
        path: The file, directory, pattern or URL. Several sources are joined with spaces.
        what: The kind of source, in words: `"a log"`, `"a database of LevelDB"`, `"a directory"` and so on.
        log_count: The number of logs read.
        log_count_by_dialect: The number of logs in each dialect.
        log_count_by_compression: The number of logs with each compression: `"zstd"`, or `"none"`.
        log_count_by_payload: The number of logs, by the kind of their first record. A kind is `"export-metadata"`,
            `"other"`, or one of the values of `decode` in `cordwood.scan`.
        record_count: The number of records that can be read.
        salvaged_count: The number of readable records that start after damage in the same block.
        payload_len: The number of bytes of data in the records.
        file_len: The number of bytes in the logs.
        damaged_len: The total size of the damaged regions (severity `CORRUPTION`), in bytes.
        torn_count: The number of logs that end with an incomplete record.
        zeros_count: The number of logs that end with zeros other than padding.
        zeros_len: The total number of zero bytes at the ends of the logs counted in `zeros_count`.
        zeros_inside_len: The number of skipped zero bytes that come before a record.
        runs: All Weights & Biases runs, and those SwanLab runs whose logs are empty.
        databases: The databases in a directory.
        exports: The Datastore or Firestore exports in a directory.
        unlisted_logs: The paths of a directory's entity logs that aren't listed in any export's metadata. Entities
            missing from these logs would go unnoticed.
        damaged_logs: The paths of damaged logs.
        damaged_manifests: The paths of the damaged logs that list the live files of a database.
        misnamed_logs: The logs in which every record's log number differs from the one in the file's name. Each entry
            consists of the path, the number in the file's name, and the number in the log.
        other_file_count_by_format: The number of non-log files in a directory, by format.
        failures: For each file that could not be read, its path and the exception.
        report: The result of `cordwood.verify`, if the source is a single log.
    """

    path: str
    what: str
    log_count: int
    log_count_by_dialect: dict[str, int]
    log_count_by_compression: dict[str, int]
    log_count_by_payload: dict[str, int]
    record_count: int
    salvaged_count: int
    payload_len: int
    file_len: int
    damaged_len: int
    torn_count: int
    zeros_count: int
    zeros_len: int
    zeros_inside_len: int
    runs: tuple[Run, ...]
    databases: tuple[Database, ...]
    exports: tuple[Export, ...]
    unlisted_logs: tuple[str, ...]
    damaged_logs: tuple[str, ...]
    damaged_manifests: tuple[str, ...]
    misnamed_logs: tuple[tuple[str, int | None, int], ...]
    other_file_count_by_format: dict[str, int]
    failures: tuple[tuple[str, Exception], ...]
    report: Report | None

    @property
    def ok(self) -> bool:
        """Whether at least one log, database or export was found, all files could be read, and there are no faults.

        Faults are damaged logs, files that belong entirely to another log, and any database or export that isn't `ok`.
        """
        is_whole = all(directory.ok for directory in self.databases + self.exports)
        is_whole &= not (self.damaged_logs or self.misnamed_logs or self.failures)
        return is_whole and bool(self.log_count or self.databases or self.exports)

    def __repr__(self) -> str:
        logs, records = quantity(self.log_count, "log"), quantity(self.record_count, "record")
        texts = [logs, *damaged_text(self.damaged_logs), records]
        return f"<cordwood.types.Info: {self.what}, {', '.join(texts)}; ok={self.ok}>"

    def _repr_html_(self) -> str:
        from cordwood._html import page_of

        names = ("what", "log_count", "record_count", "payload_len", "damaged_len", "torn_count", "damaged_logs", "ok")
        return page_of(self, names)

    @property
    def first_time(self) -> float | None:
        """When the first step of the runs was logged, as a Unix time in seconds. `None` if no step has a time."""
        return min((run.first_time for run in self.runs if run.first_time is not None), default=None)

    @property
    def last_time(self) -> float | None:
        """When the last step of the runs was logged."""
        return max((run.last_time for run in self.runs if run.last_time is not None), default=None)


class KeyChange(NamedTuple):
    """A deletion or an overwrite of a key in a write-ahead log.

    Attributes:
        key: The key, truncated to 256 bytes. For a deleted range, this is the first key.
        key_len: The length of the whole key in bytes.
        end_key: For a deleted range, its exclusive end key, truncated to 256 bytes. Otherwise `None`.
        column_family: The number of the column family. 0 is the default.
        sequence: The sequence number of the operation. `None` if the operation has no number.
        offset: The file offset of the operation's record.
        old_sequence: The sequence number of the operation that wrote the old value. `None` if the operation is not in
            this log.
        old_offset: The file offset of the record containing the old value. `None` if that record is not in this log.
        is_certain: Whether the old value is known for certain. If an old value was found, `True` means that this
            operation replaces exactly this value. If no old value was found, `True` means that this log doesn't contain
            one. An interruption before this operation's record makes the old value uncertain. If an old value was
            found, interruptions before its record are ignored. Any of the following is an interruption: damage, zeros,
            a gap in the sequence numbers, a salvaged record, a record that is not a write batch, and an operation that
            neither puts nor deletes a single key.
    """

    key: bytes
    key_len: int
    end_key: bytes | None
    column_family: int
    sequence: int | None
    offset: int
    old_sequence: int | None = None
    old_offset: int | None = None
    is_certain: bool = False


class KeyChanges(NamedTuple):
    """The keys deleted and overwritten by the write batches in a log.

    Attributes:
        deleted_count: The number of deletions.
        deleted: The first 1,000 deletions.
        overwritten_count: The number of values overwritten in this log.
        overwritten: The first 1,000 overwritten values.
        faulty_batch_count: The number of records that are not intact write batches.
        are_all_followed: Whether the log was searched for the older value of each key. If the log has more than a
            million different keys, or more than 128 MiB of keys, the search covers only the keys that appear first.
    """

    deleted_count: int
    deleted: tuple[KeyChange, ...]
    overwritten_count: int
    overwritten: tuple[KeyChange, ...]
    faulty_batch_count: int
    are_all_followed: bool


class RegionEvidence(NamedTuple):
    """A region of a log from which no record was read.

    Attributes:
        region: The region, its reason, and any flipped bit that explains it.
        first_bytes: The first 16 bytes of the region. `None` for a URL, or if the file has since been pruned.
    """

    region: SkippedRegion
    first_bytes: bytes | None


class LogEvidence(NamedTuple):
    """The results of examining a log.

    Attributes:
        path: The path or URL.
        report: The report from `verify`.
        modified: When the file was last modified, in UTC, as `2026-11-22T23:09:06.123456Z`. For a segmented log, the
            time of its most recently modified file. `None` for a URL.
        sha256: The SHA-256 of the file, in hexadecimal. For a segmented log, the hash covers all files in order.
            `None` for a URL.
        is_changed: Whether the file changed while it was being read. If so, the report and the SHA-256 may describe
            different states of the file.
        regions: The first 1,000 skipped regions. Damaged and torn regions come first.
        keys: The deleted and overwritten keys in a log of write batches. `None` for any other log.
        svg: The picture that `map` draws of the log.
    """

    path: str
    report: Report
    modified: str | None = None
    sha256: str | None = None
    is_changed: bool = False
    regions: tuple[RegionEvidence, ...] = ()
    keys: KeyChanges | None = None
    svg: str = ""

    def __repr__(self) -> str:
        # Leave out the picture because it takes up kilobytes, and the regions because there may be many of them.
        return f"<cordwood.types.LogEvidence: {self.path}, {self.report!r}>"
