"""The exceptions.

    CordwoodError
    ├── CorruptionError        damage, where the policy is to raise
    ├── RecordTooLargeError    a record longer than `record_len_max`
    └── TornTailError          a log that ends in an incomplete record was to be appended to

Errors of the operating system stay `OSError`; a wrong argument is a `TypeError` or a `ValueError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cordwood.types import Reason


class CordwoodError(Exception):
    """What is wrong with a log, and where.

    Attributes:
        path: The file, or `None` if the source has no path.
        offset: File offset of the first byte concerned.
        length: Bytes concerned, from `offset` on.
        reason: Why, as in `SkippedRegion.reason`.
    """

    path: str | None
    offset: int
    length: int
    reason: Reason

    def __init__(self, message: str, *, path: str | None, offset: int, length: int, reason: Reason) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset
        self.length = length
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from `args` alone; one from a worker process must keep its attributes on the way home.
        return _rebuild, (type(self), self.args, self.__dict__)


class CorruptionError(CordwoodError):
    """Bytes that a whole write cannot have left there. The reader stays usable: the next step goes on behind them.

    Attributes:
        stored: The CRC-32C that the file states, if the reason is `checksum_mismatch`; else `None`.
        computed: The CRC-32C of the data, if the reason is `checksum_mismatch`; else `None`.
    """

    stored: int | None
    computed: int | None

    def __init__(
        self,
        message: str,
        *,
        path: str | None,
        offset: int,
        length: int,
        reason: Reason,
        stored: int | None = None,
        computed: int | None = None,
    ) -> None:
        super().__init__(message, path=path, offset=offset, length=length, reason=reason)
        self.stored = stored
        self.computed = computed


class RecordTooLargeError(CordwoodError):
    """A record longer than `record_len_max`. The reader stays usable: the next step goes on behind it."""


class TornTailError(CordwoodError):
    """A log that ends in an incomplete record, or in zeros, was opened to be appended to.

    Records written behind such an end would be lost to every reader up to the next block.
    """


def _rebuild(cls: type[CordwoodError], args: tuple[object, ...], attributes: dict[str, object]) -> CordwoodError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error
