"""What identifies a log, and the words that describe regions, fragments, outcomes and errors: stable strings."""

from enum import StrEnum
from typing import Final, NamedTuple, Self

from cordwood.typing import CompressionName, DialectName

__all__ = [
    "BLOCK_LEN",
    "DetectedDialect",
    "FragmentKind",
    "FragmentPart",
    "Hint",
    "LogFormat",
    "OutcomeKind",
    "PayloadReason",
    "Reason",
    "Severity",
    "WaitReason",
]

BLOCK_LEN: Final = 32_768
"""Bytes in a block of a log. Ranges of a log that are read separately begin at multiples of it."""


class DetectedDialect(str):
    """The name of a dialect that was detected, where a log in it may also contain RocksDB's metadata.

    It is equal to the name, and is the `dialect` of readers, of what they report and of `cordwood.detect` for
    `"leveldb"` and `"recyclable"`. Passed as an option, also after it was pickled, it stands for what was detected; the
    name alone stands for the dialect without that metadata, in which LevelDB sees damage.

    >>> cordwood.detect(bytes.fromhex("dd5fb37a030001666f6f")).dialect
    'leveldb'
    """

    __slots__ = ()

    def __new__(cls, name: DialectName) -> Self:
        """Marks the name of a dialect as that of a detected one."""
        return super().__new__(cls, name)


class LogFormat(NamedTuple):
    """The format of a log: what `cordwood.detect` returns. Its fields are options of all readers and writers.

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
        INTERRUPTED_RECORD: A record in the middle of which something else was skipped.
        ZERO_HEADER: A header of zeros, which means zeros up to the end of the block, followed by bytes that are not
            zero.
        RECORD_TOO_LARGE: A record longer than `record_len_max`.
        TOO_LARGE_REST: The rest of a record that was too large.
        ZERO_FILL: Zeros up to the end of the block or of the file: space that was never written, padding, or data that
            was lost.
        NONZERO_TRAILER: The last bytes of a block, too few for a header, are not zero. No engine looks at them.
        EMPTY_FIRST: A first fragment without data that nothing continues, as old versions of LevelDB wrote. No data is
            missing.
        TORN_TAIL: The incomplete end that a crash leaves.
        FILE_HEADER: What a file of this dialect begins with.
        UNKNOWN_VERSION: The file header, in a version that is not known. The records after it are read.
        BAD_FILE_HEADER: Something else where a file of this dialect has its header, or a version that the first record
            shows to be wrong.
        METADATA: A record that the engine wrote for its own use.
        BAD_METADATA: Metadata whose content or position no engine writes.
        IGNORED_KIND: A fragment of an unknown type that is marked as safe to ignore.
        END_TRAILER: The header that closes a log.
        STALE: After the end of the log: what an older log left in a recycled file.
        LOST_WRITE: What an older log left in the middle of this one: what was written here never reached the disk.
        UNSUPPORTED_COMPRESSION: A record whose compression this build cannot read.
        BAD_COMPRESSION: A record, or a container of records, that cannot be decompressed.
        BAD_CONTAINER: A container of records, in a packed log, that is not as any writer writes it. None of its
            records is returned.
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
    NOT_READ = "not_read"


class Hint(StrEnum):
    """What may help after an error.

    The traceback of an exception shows it in words, after the message.

    Attributes:
        ON_CORRUPTION: Continue after the damage, or salvage the log.
        CHECK_OFFSET: The offset of a `seek` may not be that of a record.
        RAISE_RECORD_LEN_MAX: If you trust the file, raise `record_len_max`.
        RAISE_RECORD_LEN_MAX_OF_READERS: Raise `record_len_max` of the writer and of all readers.
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
        CREATE_LOG: Create a new log.
        REOPEN: Open the log again.
    """

    ON_CORRUPTION = "on_corruption"
    CHECK_OFFSET = "check_offset"
    RAISE_RECORD_LEN_MAX = "raise_record_len_max"
    RAISE_RECORD_LEN_MAX_OF_READERS = "raise_record_len_max_of_readers"
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
    CREATE_LOG = "create_log"
    REOPEN = "reopen"


class Severity(StrEnum):
    """How severe it is that a region was skipped.

    Attributes:
        INFO: Not damage: padding, what an engine wrote for its own use, or what the options exclude. Zeros
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
        INCOMPLETE: A record has begun and is not complete: it is being written, or its writer was killed.
        ZEROS: Zeros: the space that a writer has preallocated, or a hole that is still to be filled.
        STALE: The next bytes belong to another log, or look damaged in a log that has a number, and so may have been
            left by an older log: this one is written over it. If nothing at all is returned, the file may have been
            renamed: readers go by the number in its name.
        SUSPECT: The next bytes look damaged. They are read again before damage is reported.
        DAMAGED: The rest of a block whose damage has been reported. Reading continues at the next block or, after
            damage at the beginning of the file, once what follows shows which log it is.
    """

    IDLE = "idle"
    INCOMPLETE = "incomplete"
    ZEROS = "zeros"
    STALE = "stale"
    SUSPECT = "suspect"
    DAMAGED = "damaged"


class FragmentPart(StrEnum):
    """What part of a fragment a byte belongs to, or that it belongs to the file header.

    Attributes:
        CHECKSUM: The masked checksum, bytes 0 to 3 of the header.
        LENGTH: The length, bytes 4 and 5.
        KIND: The type, byte 6.
        LOG_NUMBER: The number of the log, bytes 7 to 10, where fragments carry it.
        SYNCED_OFFSET: How far the file had been synced, bytes 11 to 18, where fragments carry it.
        PAYLOAD: What follows the header.
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
    """What a fragment is, by its type byte and the dialect; or a gap in a block that is not a fragment.

    Attributes:
        FULL: A complete record: type 1.
        FIRST: The first part of a record: type 2.
        MIDDLE: A middle part of a record: type 3.
        LAST: The last part of a record: type 4.
        RECYCLABLE_FULL, RECYCLABLE_FIRST, RECYCLABLE_MIDDLE, RECYCLABLE_LAST: The same with the number of the log,
            types 5 to 8 of RocksDB and Pebble.
        WAL_SYNC_FULL, WAL_SYNC_FIRST, WAL_SYNC_MIDDLE, WAL_SYNC_LAST: The same with the number of the log and the
            synced offset, types 9 to 12 of Pebble.
        SET_COMPRESSION: How the records of a RocksDB log are compressed: type 9.
        TIMESTAMP_SIZES: The lengths of timestamps in a RocksDB log: types 10 and 11.
        PREDECESSOR: Which log a RocksDB log continues: types 130 and 131.
        PACKED_FULL, PACKED_FIRST, PACKED_MIDDLE, PACKED_LAST: A container of records, or a part of one, in a packed
            log: types 0x40, 0x42, 0x44 and 0x46.
        PACKED_MARK: What a packed log begins with: type 0x48.
        ZERO: Type 0: space that was never written.
        UNKNOWN: A type that the dialect does not know.
        END_TRAILER: What closes a Pebble log.
        FILE_HEADER: Not a fragment: what a file of this dialect begins with.
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
    """Why a record does not contain what it should.

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
