"""Values: the identity of a log, the findings in it, and the stable words that describe them.

The values are named tuples. They can be made by hand, compared, hashed, copied, pickled and matched.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Self

from cordwood._native import SEVERITIES, reason_in_words
from cordwood._text import damaged_text, quantity
from cordwood.typing import CompressionName, DialectName

BLOCK_LEN: Final = 32_768
"""Bytes in a block of a log. Ranges of a log that are read separately start at multiples of it."""


class DetectedDialect(str):
    """The name of a dialect that was detected, where a log in it may also contain RocksDB's metadata.

    It is equal to the name, and is the `dialect` of readers, of their reports and of `cordwood.detect` for
    `"leveldb"` and `"recyclable"`. Passed as an option, also after it was pickled, it stands for the detected dialect;
    the name alone stands for the dialect without that metadata, in which LevelDB sees damage.

    >>> cordwood.detect(bytes.fromhex("dd5fb37a030001666f6f")).dialect
    'leveldb'
    """

    __slots__ = ()

    def __new__(cls, name: DialectName) -> Self:
        """Marks the name of a dialect as that of a detected one."""
        return super().__new__(cls, name)


class LogFormat(NamedTuple):
    """The format of a log: the result of `cordwood.detect`. Its fields are options of all readers and writers.

    Attributes:
        dialect: How the bytes are laid out.
        log_number: The number of the log; `None` if the dialect has none or it is not known. Default: `None`.
        compression: How each record is compressed: `"zstd"`, or `None` if it is not. Default: `None`.

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
        BAD_LENGTH: The length in a header extends past the end of the block, or is proved wrong at the end of the file.
        CHECKSUM_MISMATCH: The checksum does not match the data. The rest of the block is not trusted.
        UNKNOWN_KIND: A fragment with a valid checksum and an unknown type.
        MISSING_START: A fragment of a record whose first fragment is missing.
        MISSING_END: A record whose last fragment is missing.
        INTERRUPTED_RECORD: A record in the middle of which other bytes were skipped.
        ZERO_HEADER: A header of zeros, which means zeros up to the end of the block, followed by bytes that are not
            zero.
        RECORD_TOO_LARGE: A record longer than `record_len_max`.
        TOO_LARGE_REST: The rest of a record that was too large.
        ZERO_FILL: Zeros up to the end of the block or of the file: space that was never written, padding, or data that
            was lost.
        NONZERO_TRAILER: The last bytes of a block, too few for a header, are not zero. No engine looks at them.
        EMPTY_FIRST: A first fragment without data that no fragment continues, as old versions of LevelDB wrote. No data
            is missing.
        TORN_TAIL: The incomplete end that a crash leaves.
        FILE_HEADER: The first bytes of a file of this dialect.
        UNKNOWN_VERSION: The file header, in a version that is not known. The records after it are read.
        BAD_FILE_HEADER: Other bytes where a file of this dialect has its header, or a version that the first record
            shows to be wrong.
        METADATA: A record that the engine wrote for its own use.
        BAD_METADATA: Metadata whose content or position no engine writes.
        IGNORED_KIND: A fragment of an unknown type that is marked as safe to ignore.
        END_TRAILER: The header that closes a log.
        STALE: After the end of the log: the rest of an older log in a recycled file.
        LOST_WRITE: A part of an older log in the middle of this one: the data written here never reached the disk.
        UNSUPPORTED_COMPRESSION: A record whose compression this build cannot read.
        BAD_COMPRESSION: A record, or a container of records, that cannot be decompressed.
        BAD_CONTAINER: A container of records, in a packed log, that is not as any writer writes it. None of its
            records is returned.
        MISSING_SEGMENT: The bytes of a segmented log that none of its files has: a file was removed or cut.
        GROWN_SEGMENT: The end of a file of a segmented log, after the offset at which the next file starts.
        NOT_READ: After the damage at which the policy `"stop"` ended the file.
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
        """How severe it is that a region is skipped for this reason."""
        return Severity(SEVERITIES[self])


class Hint(StrEnum):
    """Advice after an error.

    The traceback of an exception shows it in words, after the message.

    Attributes:
        ON_CORRUPTION: Continue after the damage, or salvage the log.
        CHECK_OFFSET: The offset of a `seek` may not be that of a record.
        RAISE_RECORD_LEN_MAX: If you trust the data, raise `record_len_max`. Above 1 GiB, readers and writers need it.
        LOWER_RECORD_LEN_MAX: Try again, or lower `record_len_max` to skip records for which there is no memory.
        NAME_DIALECT: If the file is a log nevertheless, pass `dialect`.
        NAME_DETECTED_DIALECT: Pass the `dialect` that was detected, or none.
        NAME_LOG_NUMBER: Pass the `log_number` that the fragments carry.
        OMIT_LOG_NUMBER: Pass no `log_number`, or a `dialect` that has one.
        OMIT_COMPRESSION: Pass no `compression`, or a `dialect` that has one.
        ENABLE_ZSTD: This build lacks zstd.
        ON_TORN_TAIL: Pass another `on_torn_tail`: both others apply.
        PAD: Pass `on_torn_tail="pad"`, or salvage the log.
        PAD_WITH_DIALECT: Pass `dialect` and `on_torn_tail="pad"`, if the file is a log.
        SALVAGE: Salvage the readable records.
        CREATE_LOG: Create a new log.
        REOPEN: Open the log again.
        START_AT_FIRST_OFFSET: Start at `first_offset`: the records before it are gone.
        START_AGAIN: Start at the start of the log, which is not the one that was read before.
        OWN_DIRECTORY: Give the segmented log a directory of its own.
        SEGMENT_LEN: Pass `segment_len`, to append to a segmented log.
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
    """How severe it is that a region was skipped.

    Attributes:
        INFO: Not damage: padding, an engine's metadata, or bytes that the options exclude. Zeros
            (`Reason.ZERO_FILL`) may be space that was never written, or data that was lost: the file does not show
            which.
        TORN_TAIL: The incomplete end of a file.
        CORRUPTION: Bytes that no complete write can have left there, or a limit that was exceeded. `on_corruption`
            decides.
    """

    INFO = "info"
    TORN_TAIL = "torn_tail"
    CORRUPTION = "corruption"


class OutcomeKind(StrEnum):
    """How reading a log ended, or that it has not.

    Attributes:
        UNFINISHED: Not yet: there may be more.
        CLEAN: Between two records: at the end of the file or of the range.
        TORN_TAIL: In an incomplete record, as a crash leaves it.
        STOPPED: At damage, under the policy `"stop"`.
    """

    UNFINISHED = "unfinished"
    CLEAN = "clean"
    TORN_TAIL = "torn_tail"
    STOPPED = "stopped"


class WaitReason(StrEnum):
    """Why a follower has no record yet.

    Attributes:
        IDLE: Everything in the file has been returned.
        INCOMPLETE: A record has started and is not complete: it is being written, or its writer was killed.
        ZEROS: Zeros: the space that a writer has preallocated, or a hole that is still to be filled.
        STALE: The next bytes belong to another log, or look damaged in a log that has a number, and so may have been
            left by an older log: this one is written over it. If no record at all is returned, the file may have been
            renamed: readers go by the number in its name.
        SUSPECT: The next bytes look damaged. They are read again before damage is reported.
        DAMAGED: The rest of a block whose damage has been reported. Reading continues at the next block or, after
            damage at the start of the file, once the bytes after it show which log it is.
    """

    IDLE = "idle"
    INCOMPLETE = "incomplete"
    ZEROS = "zeros"
    STALE = "stale"
    SUSPECT = "suspect"
    DAMAGED = "damaged"


class FragmentPart(StrEnum):
    """The part of a fragment that a byte belongs to, or the file header.

    Attributes:
        CHECKSUM: The masked checksum, bytes 0 to 3 of the header.
        LENGTH: The length, bytes 4 and 5.
        KIND: The type, byte 6.
        LOG_NUMBER: The number of the log, bytes 7 to 10, where fragments carry it.
        SYNCED_OFFSET: How far the file had been synced, bytes 11 to 18, where fragments carry it.
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
    """The kind of a fragment, by its type byte and the dialect; or a gap in a block that is not a fragment.

    Attributes:
        FULL: A complete record: type 1.
        FIRST: The first part of a record: type 2.
        MIDDLE: A middle part of a record: type 3.
        LAST: The last part of a record: type 4.
        RECYCLABLE_FULL: `FULL` with the number of the log: type 5 of RocksDB and Pebble.
        RECYCLABLE_FIRST: `FIRST` with that number: type 6.
        RECYCLABLE_MIDDLE: `MIDDLE` with that number: type 7.
        RECYCLABLE_LAST: `LAST` with that number: type 8.
        WAL_SYNC_FULL: `FULL` with the number of the log and the synced offset: type 9 of Pebble.
        WAL_SYNC_FIRST: `FIRST` with these: type 10.
        WAL_SYNC_MIDDLE: `MIDDLE` with these: type 11.
        WAL_SYNC_LAST: `LAST` with these: type 12.
        SET_COMPRESSION: How the records of a RocksDB log are compressed: type 9.
        TIMESTAMP_SIZES: The lengths of timestamps in a RocksDB log: types 10 and 11.
        PREDECESSOR: Which log a RocksDB log continues: types 130 and 131.
        PACKED_FULL: A container of records, in a packed log: type 0x40.
        PACKED_FIRST: The first part of a container: type 0x42.
        PACKED_MIDDLE: A middle part of a container: type 0x44.
        PACKED_LAST: The last part of a container: type 0x46.
        PACKED_MARK: The start of a packed log: type 0x48.
        ZERO: Type 0: space that was never written.
        UNKNOWN: A type that the dialect does not know.
        END_TRAILER: The end of a closed Pebble log.
        FILE_HEADER: Not a fragment: the first bytes of a file of this dialect.
        TRAILER: Not a fragment: the end of a block, too short for a header.
        ZEROS: Not a fragment: zeros.
        REST: Not a fragment: bytes without a plausible header.
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
        BAD_VARINT: A variable-length number that does not end.
        NON_CANONICAL: A form that an engine would read but none writes, such as a number with more bytes than it needs.
        UNKNOWN_TAG: A tag that the engine does not know, or one that is not allowed in such a record.
        BAD_LENGTH: A field whose length does not fit its content.
        BAD_KEY: An internal key without room for its sequence number and its type.
        WRONG_COUNT: The number of operations in the batch is not the one in its header.
        BAD_WIRE_TYPE: In a protocol buffer: an invalid wire type, or one that does not match the field.
        MISSING_FIELD: In a protocol buffer: a required field is missing.
        NOT_UTF8: Text that is not UTF-8.
        RESERVED_NAME: A property of an entity has a reserved name: `__key__` or `__other_fields__`.
        TOO_DEEP: More levels of nesting than any program writes.
        TOO_LARGE: More than the format has room for, or an integer in JSON with more digits than Python accepts.
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
    """The `repr`: without the attributes that have their defaults, and with checksums in hexadecimal."""
    fields = [
        f"{name}={_text(name, item)}"
        for name, item in value._asdict().items()
        if name not in value._field_defaults or item != value._field_defaults[name]
    ]
    return f"{type(value).__name__}({', '.join(fields)})"


def _text(name: str, item: object) -> str:
    if isinstance(item, str):
        return repr(str(item))  # Of an enum, only the word.
    return f"{item:#010x}" if name.endswith("_crc") else repr(item)


class BitFlip(NamedTuple):
    """The one bit that explains damage: flipped back, it makes the fragment's checksum valid.

    It is the value of `SkippedRegion.bit_flip`.

    Attributes:
        offset: File offset of the byte.
        bit: Which bit of the byte: 0 is the lowest, 7 the highest.
        part: The part of the fragment to which the byte belongs, or the file header.

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
    """A region of a file that was not returned as a record: the bytes `[offset, end_offset)`, and why.

    `Reader.skipped`, `Follower.skipped` and `Report.skipped` list them. `str(region)` describes it in a sentence.

    Attributes:
        offset: File offset of the first byte.
        end_offset: File offset after the last byte.
        reason: Why these bytes were not returned.
        stored_crc: The checksum that the file states, if the reason is `checksum_mismatch`; else `None`.
        computed_crc: The checksum of the data, if the reason is `checksum_mismatch`; else `None`.
        stated_len: The length in bytes that the header states, if the reason is `bad_length`; else `None`.
        type_byte: The type byte, if the reason is `unknown_kind`, `ignored_kind`, `metadata` or `bad_metadata`; else
            `None`.
        version: The version that the file header states, if the reason is `unknown_version`; else `None`.
        bit_flip: The one flipped bit that explains the region, if `verify` or `salvage` found one. `salvage` flips it
            back with `repair_bit_flips`.

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
        """Its length in bytes; `len(region)` is the number of its attributes."""
        return self.end_offset - self.offset

    @property
    def severity(self) -> Severity:
        """The severity of the reason: `"info"`, `"torn_tail"` or `"corruption"`."""
        return Reason(self.reason).severity

    @property
    def description(self) -> str:
        """Why these bytes were not returned, in words, without their place."""
        return reason_in_words(self.reason, self)

    def __str__(self) -> str:
        unit = "byte" if self.length == 1 else "bytes"
        return f"{self.length} {unit} at offset {self.offset}: {self.description}"

    def __repr__(self) -> str:
        return _short(self)


class Outcome(NamedTuple):
    """How reading a log ended, or that it has not yet: the `outcome` of a reader, follower or report.

    Attributes:
        kind: `"clean"`, `"torn_tail"`, `"stopped"` or `"unfinished"`.
        offset: The file offset, in bytes, that goes with `kind`. For each kind in turn: the end of the file (or of the
            range), the start of the torn tail, the start of the damage, or how far reading has got.
        zeros_offset: The file offset at which zeros start that extend to the end of the file. They are space that was
            never written, padding, or data that was lost. `None` if the file does not end in zeros, or was not read to
            its end; always `None` for a follower.

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
    """Where and why there is no record yet: the value of `Follower.waiting`.

    It distinguishes a writer that is idle from one that is stuck.

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
        """Bytes of the file after `offset`, including zeros that a writer has preallocated."""
        return max(0, self.file_len - self.offset)

    def __repr__(self) -> str:
        return _short(self)


class Fragment(NamedTuple):
    """A fragment of a log, or a gap between fragments. `cordwood.fragments` returns them.

    Attributes:
        offset: File offset of the first byte.
        end_offset: File offset after the last byte. After damage, the start of the next fragment found.
        kind: Its kind: `"full"`, `"first"`, `"trailer"`, ...
        block: The index of its block, from 0.
        type_byte: The type byte; `None` if there is no header.
        payload_len: Bytes of payload as stated by the header, right or wrong; `None` if there is no header.
        stored_crc: The checksum that the header states, without the mask; `None` if there is no header.
        computed_crc: The checksum computed from the bytes; `None` if that extends past the end of block or file.
        log_number: The number of the log, if headers of this type carry one; else `None`.
        synced_offset: How far the file had been synced, in bytes, if headers of this type state it; else `None`.
        reason: Why these bytes were not returned as part of a record. `None` if they were, and for trailers.
        record_offset: File offset of the record that contains it, if that record was returned; else `None`.
        salvaged: Whether the record that contains it starts after damage in the same block. Only the policy
            `"salvage"` returns such a record.

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
        """Its length in bytes; `len(fragment)` is the number of its attributes."""
        return self.end_offset - self.offset

    @property
    def severity(self) -> Severity | None:
        """The severity of the reason; `None` if there is none."""
        return None if self.reason is None else Reason(self.reason).severity

    def __repr__(self) -> str:
        return _short(self)


class Report(NamedTuple):
    """The contents of a log and its damage, as `verify` and `salvage` return them.

    Two reports are equal if everything except their paths is. A notebook shows a report as a table.

    Attributes:
        dialect: The dialect of the log, such as `"leveldb"`.
        record_count: Records that were returned.
        payload_len: Bytes of data in the records, without headers and trailers.
        file_len: The length of the whole file, including the bytes outside the range; of a segmented log, the offset
            of its end. `None` if it is not known: for an object with `read` that was not read to its end.
        outcome: How reading ended.
        len_by_reason: Bytes in the regions with each reason that occurs, listed or not.
        log_number: The number of the log; `None` if the dialect has none or if it is not known.
        compression: How each record is compressed: `"zstd"`, or `None` for not at all.
        salvaged_count: Returned records that start after damage in the same block. LevelDB and the policy `"skip"` drop
            these, and return the others.
        repaired_count: Records that `salvage` wrote with a bit flipped back; 0 without `repair_bit_flips`.
        skipped: The regions that were not returned, in order of offset: the first 100,000. A region that one flipped
            bit explains has a `bit_flip`. Adjacent regions are merged if their reasons are the same in all details and
            no flipped bit explains either region.
        repaired: The fragments that `salvage` wrote with a bit flipped back: the first 100,000. Each is listed as a
            reader would skip it, with the `bit_flip`. It is a fragment of a record, metadata of the engine, the file
            header, or the trailer of a closed log.
        other_log_number: The number of another log, if the whole file belongs to that log; else `None`. The file's name
            or `log_number` states a different number: the file was recycled and no record has been written to the log
            with that number yet, or the file was renamed or copied.
        not_kept: The properties that `salvage` could not keep in the new log; empty after `verify`. `"synced_offsets"`:
            how far the file had been synced, which some Pebble records state. `"bad_metadata"` and `"ignored_kinds"`:
            metadata in a form that no engine writes, or of an unknown type. `"timestamp_sizes"` and `"predecessor"`:
            records of RocksDB's own that are damaged, if one flipped bit shows their contents, or that follow damage in
            their block. Without the first, RocksDB takes keys with timestamps for keys without. `"version_edit"`: an
            edit of a MANIFEST without which no engine opens the database.
        dialect_known: Whether the dialect was named, or detected. If not, the dialect could not be detected, and the
            log was read as `"leveldb"`.
        path: The path, the URL, or the `name` of an object with `read_range`; else `None`.

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
        """Whether no damage was found: no region of severity `"corruption"`, and no repair.

        Torn tails do not count.
        """
        # A region may be empty, such as one of `Reason.GROWN_SEGMENT`.
        is_damaged = any(Reason(reason).severity is Severity.CORRUPTION for reason in self.len_by_reason)
        return not is_damaged and not self.repaired

    @property
    def skipped_len(self) -> int:
        """Bytes in all regions, listed or not."""
        return sum(self.len_by_reason.values())

    @property
    def len_by_severity(self) -> dict[Severity, int]:
        """Bytes in the regions of each severity that occurs."""
        lens = dict.fromkeys(Severity, 0)
        for reason, length in self.len_by_reason.items():
            lens[Reason(reason).severity] += length
        return {severity: length for severity, length in lens.items() if length}

    @property
    def damaged_len(self) -> int:
        """Damaged bytes: those in regions of `Severity.CORRUPTION`."""
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
    """The contents of a log in numbers, as `stat` returns them.

    `stored_len`, `header_len`, `trailer_len` and `skipped_len` add up to `file_len`. Two are equal if everything except
    their paths is. A notebook shows one as a table.

    Attributes:
        dialect: The dialect of the log, such as `"leveldb"`.
        record_count: Records that were returned.
        payload_len: Bytes of data in the records.
        file_len: The length of the file in bytes; of a segmented log, the offset of its end. `None` if it is not
            known.
        outcome: How reading ended.
        log_number: The number of the log; `None` if the dialect has none or if it is not known.
        compression: How each record is compressed: `"zstd"`, or `None` for not at all.
        salvaged_count: Returned records that start after damage in the same block: as `Report.salvaged_count`.
        stored_len: Bytes of payload in the records' fragments. Only in a compressed or a packed log, these are not
            `payload_len`.
        header_len: Bytes of the headers of the records' fragments.
        record_len_min: Length of the shortest record in bytes; `None` if there are no records.
        record_len_max: Length of the longest record in bytes; `None` if there are no records.
        full_count: FULL fragments of the records: records in one piece.
        first_count: FIRST fragments of the records.
        middle_count: MIDDLE fragments of the records.
        last_count: LAST fragments of the records.
        container_count: Containers of a packed log; each is one or more of these fragments.
        container_len: Bytes of the containers as they are stored, without headers.
        packed_count: Records that are in containers.
        packed_len: Bytes of data in these records.
        trailer_len: Bytes of trailers: the ends of blocks, too short for a header.
        skipped_len: Bytes that were not returned, for any reason; `verify` reports the reasons.
        damaged_len: Skipped bytes in regions of `Severity.CORRUPTION`.
        zeros_inside_len: Bytes of zeros that a record follows: space that was never written, padding, or lost data.
        other_log_number: The number of another log, if the whole file belongs to that log; else `None`: as
            `Report.other_log_number`.
        ok: Whether no damage was found: no region of severity `"corruption"`. Torn tails do not count.
        path: The path, the URL, or the `name` of an object with `read_range`; else `None`.

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
        """Mean length of a record in bytes; `None` if there are no records."""
        return self.payload_len / self.record_count if self.record_count else None

    @property
    def block_count(self) -> int | None:
        """Blocks of 32 KiB in the file, including a partial last one; `None` if `file_len` is `None`.

        Of a segmented log, as if its offsets were those of one file.
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
"""The attributes that a notebook shows."""


class Engine(StrEnum):
    """The engine that a database belongs to.

    Attributes:
        LEVELDB: LevelDB, or an engine that writes the same files, such as goleveldb.
        ROCKSDB: RocksDB.
        PEBBLE: Pebble.
    """

    LEVELDB = "LevelDB"
    ROCKSDB = "RocksDB"
    PEBBLE = "Pebble"


class ProblemKind(StrEnum):
    """A fault of a database, or a peculiarity worth knowing.

    Attributes:
        CURRENT_MISSING: There is no `CURRENT`. LevelDB would make a new database.
        CURRENT_EMPTY: `CURRENT` has no byte.
        CURRENT_ZEROS: `CURRENT` consists of zeros.
        CURRENT_NO_NEWLINE: `CURRENT` does not end with a newline.
        CURRENT_MORE_LINES: `CURRENT` has more than one line.
        CURRENT_INVALID: `CURRENT` does not contain the name of a MANIFEST.
        CURRENT_CRLF: `CURRENT` ends with CR LF, as Git may write it on Windows.
        CURRENT_OTHER: `CURRENT` has a fault, but goleveldb opens the database by this file. LevelDB does not.
        MANIFEST_MISSING: The MANIFEST that `CURRENT` or Pebble's marker names is missing.
        MANIFEST_DAMAGED: That MANIFEST is damaged, or is not a log.
        MANIFEST_EMPTY: That MANIFEST is empty, or contains no edit that states a number.
        MANIFEST_INCOMPLETE: That MANIFEST lacks an edit without which no engine opens it.
        MANIFEST_UNKNOWN: That MANIFEST has an edit that cordwood does not decode, so its tables are not known.
        TABLE_MISSING: A table that the MANIFEST lists is missing.
        TABLE_SHORT: A table is shorter than the MANIFEST states.
        TABLE_ELSEWHERE: A table is not in this directory, and the engine may keep it in another.
        LOG_MISSING: A log that the MANIFEST needs is missing.
        LOG_SHORT: A log is shorter than its synced part, whose length the MANIFEST states.
        LOG_CUT: A log of LevelDB lacks its last writes, or all: a newer log has later ones. LevelDB does not report it.
            Or a log of RocksDB ends in an incomplete record, and a newer log does not start with the next write: by
            default, RocksDB refuses the database, or opens it without the newer log. With absolute consistency, it
            refuses each such log, and so does Pebble.
        LOG_TORN: A log ends in an incomplete record, and a newer log follows. Writes may have been lost.
        LOG_ABSENT: The oldest log that RocksDB or Pebble would read is missing. It may never have been written.
        LOG_DAMAGED: A log that the engine reads is damaged, or is not a log. LevelDB drops the rest of each damaged
            block. RocksDB refuses the database, or drops the writes that follow, or only damaged ones, by its
            `wal_recovery_mode`. Pebble refuses the database, or drops the writes that follow.
        LOG_BEHIND: The newest log ends before the last sequence number that the MANIFEST states. The writes with the
            numbers between, `missing_sequences`, were lost, as after a loss of power, or RocksDB wrote them without a
            log.
        LOG_EMPTY: A log has no record: it has no byte, or contains only zeros; or the newest one is an older log that
            RocksDB or Pebble is about to write over. No write may have reached it, or its writes were lost.
        DATABASE_EMPTY: The MANIFEST lists no table, and there is no log: no key was written, or all were lost.
        TABLE_NEWER: LevelDB made this table after the last edit of the MANIFEST, and the log that it made before the
            table may be missing.
        TABLE_UNLISTED: This table is newer than the last edit of the MANIFEST, and the log from before the table is
            gone: so are the last edits, or the log was lost. The engine removes the table when it opens the database.
        GIT_LFS_POINTER: Git LFS has not fetched this file, and left a pointer in its place. There is no other problem.
        GIT_ANNEX_POINTER: The same of git-annex.
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
    """A fault of a database, or a peculiarity worth knowing.

    Attributes:
        kind: Which fault or peculiarity.
        path: The path of the file, which may be missing.
        missing_sequences: For `LOG_BEHIND`, the first and the last sequence number that is in no log; else `None`.
    """

    kind: ProblemKind
    path: str
    missing_sequences: tuple[int, int] | None = None

    @property
    def severity(self) -> Severity:
        """`CORRUPTION` if the engine refuses the database, or loses data when it opens it; else `INFO`."""
        return Severity.INFO if self.kind in _NOTES else Severity.CORRUPTION


_NOTES = frozenset(
    (
        *(ProblemKind.MANIFEST_UNKNOWN, ProblemKind.TABLE_ELSEWHERE, ProblemKind.TABLE_NEWER),
        *(ProblemKind.LOG_ABSENT, ProblemKind.LOG_BEHIND, ProblemKind.LOG_EMPTY, ProblemKind.LOG_TORN),
        *(ProblemKind.DATABASE_EMPTY, ProblemKind.CURRENT_OTHER),
    )
)
"""The kinds that are not faults."""


class Database(NamedTuple):
    r"""The directory of a database, as its engine would find it. The contents of tables are not read.

    Attributes:
        path: The directory.
        engine: The engine, by the files in the directory.
        manifest: The name of the MANIFEST that `CURRENT` or Pebble's marker names; `None` if they name none.
        newest_manifest: The name of the newest MANIFEST that an engine can open. `None` if there is none, or if
            `manifest` has no fault: the others are then not read.
        table_count: How many tables the MANIFEST lists: `manifest` or, if it is unusable, `newest_manifest`. `None` if
            it is not known.
        problems: The faults, and the peculiarities worth knowing.
        log_number_min: The engine does not read a log with a smaller number, whose writes are in tables. `None` if the
            number is not known.

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
        """Whether the engine opens it and loses no more than an incomplete last write in the newest log.

        Only `info`, `verify` of a directory and `evidence` read the logs. Tables are not read.
        """
        return all(problem.severity == Severity.INFO for problem in self.problems)

    @property
    def right_current(self) -> str | None:
        """The text that repairs `CURRENT`: the name of a MANIFEST and a newline; `None` if it is right or not known."""
        is_wrong = any(problem.kind in OF_CURRENT for problem in self.problems)
        return f"{self.newest_manifest}\n" if is_wrong and self.newest_manifest else None


OF_CURRENT = frozenset(
    (
        *(kind for kind in ProblemKind if kind.startswith("current_") and kind != ProblemKind.CURRENT_OTHER),
        *(ProblemKind.MANIFEST_MISSING, ProblemKind.MANIFEST_EMPTY, ProblemKind.MANIFEST_INCOMPLETE),
    )
)
"""The faults that another name in `CURRENT` repairs."""


class Export(NamedTuple):
    """An export of Datastore or Firestore, and whether its files are complete. Their contents are not read.

    Attributes:
        path: The metadata that lists the files: `*.overall_export_metadata`, or `*.export_metadata` if no such file
            lists that.
        files: The paths of the listed files, which contain the entities.
        file_len: Bytes in these files.
        missing_files: The paths of those that are missing, and of lists of files that are missing or cannot be read.
        empty_files: The paths of those without a byte, and of such lists.
        stated_entity_count: Entities in the files, as the metadata states it; `None` if it does not.
        stated_len: Bytes in the files, as the metadata states it; `None` if it does not.
        entity_count: Entities that were found in the files; `None` if they were not all read.

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
        """Whether no listed file is missing or empty, and there are as many entities as stated, and no fewer bytes."""
        counts = self.entity_count, self.stated_entity_count
        is_other = None not in counts and counts[0] != counts[1]
        return not (self.missing_files or self.empty_files or is_other or self.file_len < (self.stated_len or 0))


class Run(NamedTuple):
    """A run of Weights & Biases, or one of SwanLab whose log has no byte.

    Attributes:
        path: The path of its log.
        record_count: Records that can be read.
        first_time: When its first step was logged: seconds of Unix time; `None` if no step has a time.
        last_time: When its last step was logged; `None` if no step has a time.
        state: `"ok"`, `"torn"` if it ends in an incomplete record, `"damaged"`, or `"empty"` if its log has no byte.
    """

    path: str
    record_count: int
    first_time: float | None
    last_time: float | None
    state: str


class Info(NamedTuple):
    """A file or a directory in a few numbers: the result of `cordwood.info`.

    Attributes:
        path: The file, directory, pattern or URL; several are separated by spaces.
        what: The kind of source, in words: `"a log"`, `"a database of LevelDB"`, `"a directory"` and so on.
        log_count: Logs that were read.
        log_count_by_dialect: How many logs there are of each dialect.
        log_count_by_compression: How many logs there are with each compression: `"zstd"`, or `"none"`.
        log_count_by_payload: How many logs there are with each kind of records, going by the first record: a value of
            `decode` of `cordwood.scan`, `"export-metadata"`, or `"other"`.
        record_count: Records that can be read.
        salvaged_count: How many of these start after damage in their block.
        payload_len: Bytes of data in the records.
        file_len: Bytes in the logs.
        damaged_len: Damaged bytes: those of severity `CORRUPTION`.
        torn_count: Logs that end in an incomplete record.
        zeros_count: Logs that end in zeros which are not padding.
        zeros_len: Bytes of these zeros.
        zeros_inside_len: Bytes of zeros that a record follows.
        runs: The runs of Weights & Biases, and those of SwanLab whose logs have no byte.
        databases: The databases in a directory.
        exports: The exports of Datastore or Firestore in a directory.
        unlisted_logs: The paths of logs of entities in a directory that the metadata of no export lists: missing
            entities would not be noticed.
        damaged_logs: The paths of damaged logs.
        damaged_manifests: The paths of those that list the live files of a database.
        misnamed_logs: The logs whose records all belong to another log than their name says: the path, the number in
            the name, and the number in the log.
        other_file_count_by_format: How many files in a directory are not logs, by their format.
        failures: The files that could not be read: the path, and the exception.
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
        """Whether there is a log, a database or an export, all could be read, and none has a fault.

        Damage is a fault, and so is a log of which all belongs to another log, or a database or an export that is not
        `ok`.
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
        """When the first step of the runs was logged: seconds of Unix time; `None` if no step has a time."""
        return min((run.first_time for run in self.runs if run.first_time is not None), default=None)

    @property
    def last_time(self) -> float | None:
        """When the last step of the runs was logged."""
        return max((run.last_time for run in self.runs if run.last_time is not None), default=None)


class KeyChange(NamedTuple):
    """A key of a write-ahead log that an operation deletes or overwrites.

    Attributes:
        key: The key, at most its first 256 bytes; of a deleted range, the first key.
        key_len: The length of the whole key in bytes.
        end_key: Of a deleted range, the exclusive end, at most its first 256 bytes; else `None`.
        column_family: The number of the column family; 0 is the default one.
        sequence: The sequence number of the operation; `None` if it has none.
        offset: The file offset of its record.
        old_sequence: The sequence number with which the old value was put; `None` if this log does not contain it.
        old_offset: The file offset of the record that contains the old value; `None` if this log does not contain it.
        is_certain: Whether the old value is certainly the last one before, or, if none was found, certainly not in this
            log. It is not after an interruption between the two records, or before this one: damage, zeros, a gap in
            the sequence numbers, a salvaged record, one that is not a write batch, or an operation that is neither a
            put nor the deletion of one key.
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
    """The keys that the write batches of a log delete and overwrite.

    Attributes:
        deleted_count: How many deletions there are.
        deleted: The first 1,000 of them.
        overwritten_count: How many values are overwritten in this log.
        overwritten: The first 1,000 of them.
        faulty_batch_count: How many records are not write batches, or damaged ones.
        are_all_followed: Whether the older value of each key was looked for. If there are more than a million different
            keys, or keys of more than 128 MiB, it was looked for only for the first ones.
    """

    deleted_count: int
    deleted: tuple[KeyChange, ...]
    overwritten_count: int
    overwritten: tuple[KeyChange, ...]
    faulty_batch_count: int
    are_all_followed: bool


class RegionEvidence(NamedTuple):
    """A region of a log that no record was read from.

    Attributes:
        region: The region, with its reason, and the flipped bit that explains it, if one does.
        first_bytes: Its first 16 bytes; `None` for a URL, or if its file was pruned meanwhile.
    """

    region: SkippedRegion
    first_bytes: bytes | None


class LogEvidence(NamedTuple):
    """The findings in a log.

    Attributes:
        path: The path or URL.
        report: The report of `verify`.
        modified: When the file was last modified, in UTC, as `2026-11-22T23:09:06.123456Z`; of a segmented log, the
            last time at which any of its files was. `None` for a URL.
        sha256: The SHA-256 of the file, in hexadecimal; of a segmented log, of its files, one after another. `None`
            for a URL.
        is_changed: Whether the file changed while it was read. Then report and SHA-256 may be of different states.
        regions: The first 1,000 skipped regions: those that are damaged or torn come first.
        keys: For a log of write batches, the deleted and overwritten keys; `None` for any other log.
        svg: The picture of the log, as `map` draws it.
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
        # The picture has kilobytes, and the regions may be many.
        return f"<cordwood.types.LogEvidence: {self.path}, {self.report!r}>"
