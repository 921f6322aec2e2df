"""Reads the metadata of a Datastore or Firestore export, which lists its files and counts its entities.

Each directory with entities has a `*.export_metadata` file: a single protocol buffer message that lists the files
`output-0`, `output-1` and so on. The directory of the whole export has an `*.overall_export_metadata` file, which is a
log with two records. The first is a version. The second is a message that names each directory's list and states the
number of entities. The field numbers were determined from exports created by the Firestore emulator.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cordwood._inputs.input import EMPTY, LIST_SUFFIX, METADATA, OVERALL_SUFFIX, Input, is_of_export
from cordwood._inputs.stores import is_in_archive
from cordwood._native import Reader, detect
from cordwood._remote import beside, ranges_of_url
from cordwood._text import is_url, quantity
from cordwood.errors import CordwoodError, DialectError
from cordwood.types import Export

_VERSION = b"3"
"""The first record of `*.overall_export_metadata`."""

_LEN_MAX = 1 << 20
"""The maximum length of a message to read, in bytes. A message this long lists about 50,000 files."""

_MISSING_MAX = 10
"""The maximum number of missing files to report individually per list. The rest share one error."""


def compared(found: list[Input]) -> list[Input]:
    """Checks the files in a directory against the metadata of its exports, and returns the files.

    A listed file must exist and be a log, just like a file named on the command line. Missing files are added to the
    result, each with an error. A list that can't be read is also returned with an error, because there is no way to
    tell which files are missing.
    """
    files: list[Input] = []
    # Maps each listed file's real path to the index of its list, and to the path shown in errors.
    listed: dict[str, tuple[int, str]] = {}
    for file in found:
        judged, names = _judged(file)
        for path in _beside(file.name, names):
            listed.setdefault(os.path.realpath(path), (len(files), path))
        files.append(judged)
    places = {os.path.realpath(file.name): place for place, file in enumerate(files)}
    missing: dict[int, list[tuple[str, str]]] = {}
    for real, (by, path) in listed.items():
        if _len(path) is None:
            missing.setdefault(by, []).append((path, real))
        elif (place := places.get(real)) is not None and files[place].format in (None, EMPTY):
            files[place] = files[place]._replace(is_in_directory=False, format=None)
    for by, paths in missing.items():
        name = os.path.basename(files[by].name)
        paths.sort()
        for path, real in paths[:_MISSING_MAX]:
            files.append(_missing(path, real, f"missing, and {name} lists it"))
        if more := paths[_MISSING_MAX + 1 :]:
            path, real = paths[_MISSING_MAX]
            file = _missing(path, real, f"missing, and {len(more):,} more files that {name} lists")
            files.append(file._replace(file_count=len(more) + 1))
    return files


def _missing(path: str, real: str, text: str) -> Input:
    # A missing file has no inode, so its real path identifies it.
    error = FileNotFoundError(errno.ENOENT, text, path)
    return Input(path, "", is_in_directory=True, error=error, identity=real)


def _judged(file: Input) -> tuple[Input, list[str]]:
    """Returns the file and the paths it lists. The file is marked if it is metadata."""
    if not is_of_export(file.name) or is_in_archive(file.name) or file.format not in (None, EMPTY):
        return file, []
    try:
        names = listed_files(file.name)
    except OSError as error:
        return file._replace(error=error), []
    except ValueError as error:
        text = f"not a list of the files of an export ({error}), so missing files cannot be detected"
        return file._replace(error=OSError(errno.EINVAL, text, file.name)), []
    if names is None:
        return file, []
    is_list = file.name.endswith(LIST_SUFFIX)
    return file._replace(format=METADATA if is_list else None, is_metadata=not is_list), names


def named_metadata(file: Input) -> Input:
    """Returns a named file. The metadata file of an export is marked as metadata. Any other file is read as a log."""
    judged, _ = _judged(file)
    return file if judged.error else judged


def listed_files(path: str) -> list[str] | None:
    """Returns the paths listed in an export's metadata, relative to the metadata's directory.

    Returns:
        The paths, or `None` if the file is an ordinary log rather than an export's metadata.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is empty, or it is neither a log nor the metadata of an export.
    """
    if _len(path) == 0:
        raise ValueError("it is empty")
    if not path.endswith(LIST_SUFFIX):
        overall = overall_message(path)
        return None if overall is None else _paths(overall, 1)
    if is_url(path):
        ranges = ranges_of_url(path)
        message = bytes(ranges.read_range(0, min(ranges.size(), _LEN_MAX + 1)))
    else:
        with open(path, "rb") as file:
            message = file.read(_LEN_MAX + 1)
    try:
        return _listed(message)
    except ValueError:
        with contextlib.suppress(DialectError):
            if detect(path) is not None:
                return None
        raise


def _listed(message: bytes) -> list[str]:
    """Returns the paths in a `*.export_metadata` message."""
    if len(message) > _LEN_MAX:
        raise ValueError("too long")
    # Every `*.export_metadata` message contains the export's name and times, but some don't list any files.
    if not _messages(message, 1):
        raise ValueError("the name of the export is missing")
    return _paths(message, 2)


def _paths(message: bytes, entries: int) -> list[str]:
    """Returns the paths in a list. Its entries are the values of field number `entries`."""
    return [_path(name) for entry in _messages(message, entries) for name in _messages(entry, 2)]


def _path(name: bytes) -> str:
    """Returns a path from the metadata as a string."""
    text = os.fsdecode(name)
    if not text or text.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", text) or "\0" in text:
        raise ValueError(f"{text!r} is not the name of a file")
    return text


def exports_of(
    files: Iterable[Input], counts: Mapping[str, int] | None = None
) -> tuple[list[Export], list[tuple[str, Exception]]]:
    """Returns the Datastore or Firestore exports whose metadata is among these files.

    If an empty file is named directly, the exports that list it are returned too. Their lists must be in the file's
    directory.

    Args:
        files: The files.
        counts: The number of records read from each log, by path.

    Returns:
        The exports, and the path and exception of each metadata file that can no longer be read.
    """
    metadata: dict[str, None] = {}
    for file in files:
        if is_in_archive(file.name):
            continue
        if file.is_metadata or (file.format == METADATA and not file.error):
            metadata[file.name] = None
        elif not (file.is_in_directory or file.file_len or file.source or "://" in file.name):
            # An empty file that is named directly may belong to an export.
            metadata.update(dict.fromkeys(_lists_of(file.name)))
    # Maps the real path of each list to the list's export.
    parts: dict[str, Export] = {}
    in_others: set[str] = set()
    exports: list[Export] = []
    failures: list[tuple[str, Exception]] = []
    # Read the lists first, because the metadata of a whole export refers to them.
    for path in sorted(metadata, key=lambda path: not path.endswith(LIST_SUFFIX)):
        try:
            if path.endswith(LIST_SUFFIX):
                parts.setdefault(os.path.realpath(path), _export(path, _paths_in(path)))
            else:
                message = overall_message(path) or b""
                lists = {name: os.path.realpath(name) for name in _beside(path, _paths(message, 1))}
                in_others.update(lists.values())
                for name, real in lists.items():
                    # If an export's metadata is a link to a file in another directory, the listed files are there too.
                    if real not in parts and _len(name):
                        with contextlib.suppress(OSError, ValueError):
                            parts[real] = _export(name, _paths_in(name))
                names = [name for real in lists.values() if real in parts for name in parts[real].files]
                unreadable = [name for name, real in lists.items() if real not in parts]
                exports.append(_export(path, names, stated(message), unreadable))
        except (OSError, ValueError) as error:
            failures.append((path, error))
    exports += (part for real, part in parts.items() if real not in in_others)
    if counts is not None and exports:
        counts = {os.path.realpath(path): count for path, count in counts.items()}
        exports = [export._replace(entity_count=_entity_count(export, counts)) for export in exports]
    return sorted(exports), failures


def _lists_of(path: str) -> Iterator[str]:
    """Searches a file's directory, and yields the lists that include the file."""
    directory, own = os.path.dirname(path), os.path.realpath(path)
    with contextlib.suppress(OSError):
        for name in os.listdir(directory or os.curdir) if os.path.isfile(path) else ():
            metadata = os.path.join(directory, name)
            with contextlib.suppress(OSError, ValueError):
                if name.endswith(LIST_SUFFIX) and own in map(os.path.realpath, _paths_in(metadata)):
                    yield metadata


def export_text(export: Export) -> str:
    """Describes how much an export contains and how much it should contain."""
    count, stated_count = export.entity_count, export.stated_entity_count
    is_as_stated = export.stated_len == export.file_len and (None in (count, stated_count) or count == stated_count)
    if is_as_stated or (export.stated_len is None and stated_count is None):
        entities = "" if count is None else f"{count:,} {'entity' if count == 1 else 'entities'} in "
        text = f"{entities}{quantity(export.file_len, 'byte')}{', as its metadata states' * is_as_stated}"
    else:
        entities = "" if count is None else f"{_of_stated(count, stated_count, 'entities')}, "
        text = f"{entities}{_of_stated(export.file_len, export.stated_len, 'bytes')}"
    have = "" if export.ok or is_as_stated else "the export's files have "
    missing, empty = _in_state(export.missing_files, "missing"), _in_state(export.empty_files, "empty")
    unknown = "; its metadata states no number of entities: missing entities would not be noticed"
    return f"{have}{text}{missing}{empty}{unknown * (stated_count is None)}"


def _of_stated(found: int, stated: int | None, noun: str) -> str:
    if stated is None:
        return f"{found:,} {noun}"
    if found > stated:
        return f"{found:,} {noun}, more than the {stated:,} stated"
    return f"{found:,} of {stated:,} stated {noun}"


def _in_state(paths: Sequence[str], state: str) -> str:
    """Returns text that names only the first file, such as `; output-0 and 2 more listed files are missing`."""
    if not paths:
        return ""
    more = f" and {quantity(len(paths) - 1, 'more listed file')} are" if len(paths) > 1 else " is"
    return f"; {os.path.basename(paths[0])}{more} {state}"


def _beside(path: str, names: Iterable[str]) -> list[str]:
    """Returns the paths of the files named in an export's metadata.

    If the metadata is a link, the files are in the directory of its target. On Windows, the Firestore emulator uses
    backslashes in paths. On other systems, a file name may contain backslashes.
    """
    if is_url(path):
        return [beside(path, f"{path.rpartition('/')[0]}/{name.replace(chr(92), '/')}") for name in names]
    directory = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)

    def path_of(name: str) -> str:
        path = os.path.join(directory, name)
        is_of_windows = "\\" in name and not os.path.lexists(path)
        return os.path.join(directory, name.replace("\\", "/")) if is_of_windows else path

    return [path_of(name) for name in names]


def _paths_in(path: str) -> list[str]:
    """Returns the paths of the files listed in an export's metadata."""
    return _beside(path, listed_files(path) or ())


def _export(
    path: str, files: Iterable[str], stated: tuple[int, int] = (0, 0), unreadable: Iterable[str] = ()
) -> Export:
    """Returns an export. An unreadable list counts as empty if its length is 0, and otherwise as missing."""
    lens = {name: _len(name) for name in files}
    found = [*((name, 0 if _len(name) == 0 else None) for name in unreadable), *lens.items()]
    missing = tuple(name for name, length in found if length is None)
    empty = tuple(name for name, length in found if length == 0)
    # Some programs that write exports don't state the number of entities. An export without files doesn't contain any
    # entities.
    count, stated_len = (number or (0 if path.endswith(OVERALL_SUFFIX) and not lens else None) for number in stated)
    return Export(path, tuple(lens), sum(filter(None, lens.values())), missing, empty, count, stated_len)


def _entity_count(export: Export, counts: Mapping[str, int]) -> int | None:
    """Returns the number of entities in the files, or `None` if any non-empty file was not read."""
    without = {*export.missing_files, *export.empty_files}
    found = [counts.get(os.path.realpath(name)) for name in export.files if name not in without]
    return None if None in found else sum(filter(None, found))


def _len(path: str) -> int | None:
    """Returns the length of a file in bytes, or `None` if the file doesn't exist."""
    with contextlib.suppress(OSError):
        if is_url(path):
            return ranges_of_url(path).size()
        status = os.stat(path)
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    return None


def overall_message(path: str) -> bytes | None:
    """Returns the message in `*.overall_export_metadata`, or `None` for any other log.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a log, or one of its records is missing, damaged or too long.
    """
    try:
        with Reader(path, on_corruption="skip", record_len_max=_LEN_MAX) as reader:
            first, message = next(reader, None), next(reader, None)
    except CordwoodError as error:
        raise ValueError("it is not a log") from error
    if first not in (None, _VERSION):
        if first.isdigit() and len(first) < 10:
            raise ValueError(f"its version, {first.decode()}, is not known")
        return None
    if first is None or message is None:
        raise ValueError("it was cut off, is damaged, or is too long")
    stated(message)
    return message


def stated(message: bytes) -> tuple[int, int]:
    """Returns the number of entities and bytes from an `*.overall_export_metadata` message.

    Raises:
        ValueError: The message is not valid export metadata.
    """
    directories = [dict(_fields(directory)) for directory in _messages(message, 1)]
    entity_count, stated_len = (sum(_number(fields.get(number)) for fields in directories) for number in (3, 4))
    return entity_count, stated_len


def _number(value: int | bytes | None) -> int:
    """Returns the value of a numeric field, or 0 if the field is absent."""
    if isinstance(value, bytes):
        raise ValueError("not a number field")  # noqa: TRY004 - the message is wrong, not an argument
    return value or 0


def _messages(message: bytes, wanted: int) -> list[bytes]:
    """Returns the values of a field that contains strings or messages."""
    return [value for number, value in _fields(message) if number == wanted and isinstance(value, bytes)]


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and the value of each field of a message."""
    at = 0
    value: int | bytes
    while at < len(message):
        tag, at = _varint(message, at)
        wire_type = tag & 7
        if wire_type == 0:
            value, at = _varint(message, at)
        else:
            value_len, at = _varint(message, at) if wire_type == 2 else (_FIXED_LENS.get(wire_type), at)
            if value_len is None:
                raise ValueError(f"wire type {wire_type}")
            value, at = message[at : at + value_len], at + value_len
        if at > len(message):
            raise ValueError("a field is cut off")
        yield tag >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns a variable-length number, and the offset where it ends."""
    value = 0
    for index, byte in enumerate(message[at : at + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number is cut off")


_FIXED_LENS = {1: 8, 5: 4}
"""The lengths of the fixed-length wire types, in bytes."""
