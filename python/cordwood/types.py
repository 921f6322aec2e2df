"""The closed sets of words that `SkippedRegion`, `End`, `NotYet` and `PayloadError` use: strings, and stable."""

from enum import StrEnum

__all__ = ["EndKind", "FragmentPart", "PayloadReason", "Reason", "Severity", "WaitReason"]


class Reason(StrEnum):
    """Why a region of a file was not returned."""

    BAD_LENGTH = "bad_length"
    """A header's length passes the end of its block, or is proved wrong at the end of the file."""
    CHECKSUM_MISMATCH = "checksum_mismatch"
    """The checksum is not that of the data. The rest of the block is not trusted."""
    UNKNOWN_KIND = "unknown_kind"
    """A fragment with a right checksum and an unknown type."""
    MISSING_START = "missing_start"
    """A fragment of a record whose first fragment is missing."""
    MISSING_END = "missing_end"
    """A record whose last fragment is missing."""
    INTERRUPTED_RECORD = "interrupted_record"
    """A record in the middle of which something else was skipped."""
    ZERO_HEADER = "zero_header"
    """A header of zeros, which means zeros up to the end of the block, in front of something that is not zero."""
    RECORD_TOO_LARGE = "record_too_large"
    """A record longer than `record_len_max`."""
    TOO_LARGE_REST = "too_large_rest"
    """The rest of a record that was too large."""
    ZERO_FILL = "zero_fill"
    """Zeros up to the end of the block or of the file: preallocated or padded."""
    NONZERO_TRAILER = "nonzero_trailer"
    """The last bytes of a block, too few for a header, are not zero. No engine looks at them."""
    EMPTY_FIRST = "empty_first"
    """A first fragment without data that nothing continues, as an old LevelDB wrote them. No data is missing."""
    TORN_TAIL = "torn_tail"
    """The incomplete end that a crash leaves."""
    FILE_HEADER = "file_header"
    """What a file of this dialect begins with."""
    BAD_FILE_HEADER = "bad_file_header"
    """Something else where a file of this dialect has its header."""
    METADATA = "metadata"
    """A record that the engine has written for itself."""
    BAD_METADATA = "bad_metadata"
    """The same, with a content or in a place that the engine does not give it."""
    IGNORED_KIND = "ignored_kind"
    """A fragment of an unknown type that says of itself that it may be passed over."""
    END_TRAILER = "end_trailer"
    """The header that closes a log."""
    STALE = "stale"
    """Behind the end of the log: what an older log has left in a recycled file."""
    LOST_WRITE = "lost_write"
    """What an older log has left in the middle of this one: what was written here never reached the disk."""
    UNSUPPORTED_COMPRESSION = "unsupported_compression"
    """A record that is compressed in a way that this build does not read."""
    BAD_COMPRESSION = "bad_compression"
    """A record that cannot be decompressed."""
    NOT_READ = "not_read"
    """Behind the damage at which the policy `"stop"` ended the file."""


class Severity(StrEnum):
    """How bad a skipped region is."""

    INFO = "info"
    """No data is missing, or the reader was told not to look."""
    TORN_TAIL = "torn_tail"
    """The incomplete end of a file."""
    CORRUPTION = "corruption"
    """Bytes that a whole write cannot have left there, or a limit that was passed. `on_corruption` decides."""


class EndKind(StrEnum):
    """How the records of a file ended."""

    CLEAN = "clean"
    """Between two records: at the end of the file or of the range."""
    TORN_TAIL = "torn_tail"
    """In an incomplete record, as a crash leaves it."""
    STOPPED = "stopped"
    """At damage, under the policy `"stop"`."""


class WaitReason(StrEnum):
    """Why a follower has no record yet."""

    IDLE = "idle"
    """All there is has been returned."""
    INCOMPLETE = "incomplete"
    """A record has begun and is not complete: it is being written, or its writer was killed."""
    ZEROS = "zeros"
    """Zeros: the space that a writer has preallocated, or a hole that is still to be filled."""
    SUSPECT = "suspect"
    """What stands here looks damaged. It is read again before that is told."""
    DAMAGED = "damaged"
    """The rest of a block of which damage has been told. Reading goes on at the next block."""


class FragmentPart(StrEnum):
    """What part of a fragment a byte belongs to."""

    CHECKSUM = "checksum"
    """The masked checksum, bytes 0 to 3 of the header."""
    LENGTH = "length"
    """The length, bytes 4 and 5."""
    KIND = "kind"
    """The type, byte 6."""
    LOG_NUMBER = "log_number"
    """The number of the log, bytes 7 to 10, where fragments carry it."""
    SYNCED_OFFSET = "synced_offset"
    """How far the file had been synced, bytes 11 to 18, where fragments say so."""
    PAYLOAD = "payload"
    """What follows the header."""


class PayloadReason(StrEnum):
    """Why a record does not hold what it was taken for."""

    TRUNCATED = "truncated"
    """The record, or the field that holds it, ends inside a number or a string."""
    BAD_VARINT = "bad_varint"
    """A variable-length number that does not end."""
    NON_CANONICAL = "non_canonical"
    """An engine would read it, and none writes it so: a number with more bytes than it needs, for one."""
    UNKNOWN_TAG = "unknown_tag"
    """A tag that the engine does not know, or one that does not stand in such a record."""
    BAD_LENGTH = "bad_length"
    """A field that is not as long as its content needs."""
    BAD_KEY = "bad_key"
    """An internal key without room for its sequence number and its type."""
    WRONG_COUNT = "wrong_count"
    """The batch has another number of operations than its header states."""
    BAD_WIRE_TYPE = "bad_wire_type"
    """In a protocol buffer: a wire type that there is not, or another one than the field has."""
    MISSING_FIELD = "missing_field"
    """In a protocol buffer: a required field is not there."""
    NOT_UTF8 = "not_utf8"
    """A text that is not UTF-8."""
    TOO_DEEP = "too_deep"
    """More levels of nesting than any engine writes."""
    TOO_LARGE = "too_large"
    """More than the format has room for."""
