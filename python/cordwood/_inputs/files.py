"""Lists the files that names, patterns, directories and URLs refer to, without duplicates."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeGuard

from cordwood._inputs.exports import compared, named_metadata
from cordwood._inputs.input import EMPTY, LIST_SUFFIX, METADATA, NO_FILE, RUN_SUFFIXES, Identity, Input, is_of_export
from cordwood._native import segment_offset
from cordwood._remote import is_listed, listed, source_of
from cordwood._text import base_name, is_url, own_path


def is_one_file(names: Sequence[str]) -> bool:
    """Checks whether the names refer to a single file rather than to several files, a pattern or a directory."""
    [name, *more] = names
    return not (more or _is_pattern(name) or ("://" in name and is_listed(name)) or is_directory_of_logs(name))


def is_directory_of_logs(name: str) -> bool:
    """Checks whether a name refers to a directory. A segmented log counts as a log, not as a directory."""
    return os.path.isdir(name) and not _listed_segments(name)


def segments_in(directory: str) -> list[tuple[int, int]]:
    """Returns the offset and length of each file in a segmented log.

    Returns an empty list if the directory is not a segmented log.
    """
    return [(offset, _segment_len(path)) for offset, path in _listed_segments(directory)]


def _listed_segments(directory: str) -> list[tuple[int, str]]:
    """Returns each segment's log offset and path, in order.

    Returns an empty list if the directory is not a segmented log.
    """
    try:
        names = os.listdir(directory)
    except (OSError, ValueError):
        return []
    offsets = ((segment_offset(name), name) for name in names)
    return sorted((offset, os.path.join(directory, name)) for offset, name in offsets if offset is not None)


def _segment_len(path: str) -> int:
    """Returns a file's length, or 0 if it was pruned or is a dangling link. Readers report dangling links."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def len_on_disk(path: str) -> int:
    """Returns the length of a log in bytes: for a segmented log, the total length of its files."""
    segments = segments_in(path)
    return sum(length for _, length in segments) if segments else os.path.getsize(path)


def files_of(log: str) -> list[tuple[int, str]]:
    """Returns a log's files, and the log offset where each one starts. A single file starts at 0."""
    return _listed_segments(log) or [(0, log)]


def sha256_of(log: str, end: int | None, progress: Callable[[int], object] | None = None) -> str | None:
    """Returns the SHA-256 of a log up to an offset. For a segmented log, the hash covers all files in order.

    Returns `None` if the log is not on disk, or has been shortened or pruned in the meantime. `progress` is called with
    0 after each read.
    """
    if end is None or log == "-":
        return None
    # A writer may have started new segments in the meantime.
    files = [(start, path) for start, path in files_of(log) if start <= end]
    if not (files and os.path.isfile(files[0][1])):
        return None
    import hashlib

    digest = hashlib.sha256()
    with suppress(FileNotFoundError):
        for start, path in files:
            with open(path, "rb", buffering=0) as file:
                # Only the last file may have grown.
                left = end - start if start == files[-1][0] else os.fstat(file.fileno()).st_size
                while left > 0:
                    piece = file.read(min(left, 1 << 20))
                    if not piece:
                        return None
                    if progress:
                        progress(0)
                    digest.update(piece)
                    left -= len(piece)
        return digest.hexdigest()
    return None


def expand(names: Iterable[str | Input], *, same: Callable[[str, str], object] | None = None) -> list[Input]:
    """Returns the files that the names refer to, in the same order and without duplicates.

    A pattern is replaced by its matches in sorted order, as in many shells. A directory is replaced by all files in it
    and its subdirectories, ordered by path. A file found in a directory counts as named if it is also named directly or
    matched by a pattern. An `Input` among the names is returned unchanged.

    A file that belongs to a segmented log is left out if the log's directory is also named or found.

    Calls `same` for each named file that is left out. The arguments are the name of that file, and the name of the file
    or segmented log that is returned instead.
    """
    names = list(names)
    own_names = {name for name in names if isinstance(name, str)}
    files: list[Input] = []
    places: dict[Identity, int] = {}
    for file in _expanded(names):
        place = places.setdefault(file.identity, len(files)) if file.identity else len(files)
        if place == len(files):
            files.append(file)
        elif not file.is_in_directory:
            if same and file.name in own_names and file.name != files[place].name:
                same(file.name, files[place].name)
            files[place] = files[place]._replace(is_in_directory=False, format=None)
    kept: list[Input] = []
    for file in files:
        log = os.path.realpath(os.path.dirname(file.name)) if is_segment(file.name) else None
        if log not in places:
            kept.append(file)
        elif same and file.name in own_names:
            same(file.name, files[places[log]].name)
    return kept


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Checks whether a source is a path or a URL."""
    # A `UPath` is a path on its own file system, not a local path.
    return not hasattr(source, "fs") and isinstance(source, str | os.PathLike)


def is_plain_file(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Checks whether a source is the path of a regular file. Such sources are common and don't have to be expanded."""
    return is_path(source) and "://" not in os.fsdecode(source) and os.path.isfile(source)


def list_of_export(source: object) -> list[Input] | None:
    """Returns the file if it is an export's list. A list is checked along with the files it names."""
    if not (is_plain_file(source) and os.fsdecode(source).endswith(LIST_SUFFIX)):
        return None
    files = expand([os.fsdecode(source)])
    return files if files[0].format == METADATA else None


def named_files(sources: Any) -> list[Input]:
    """Returns the files the sources refer to.

    `sources` is a path, a URL, a directory or a pattern, or an iterable of these. The iterable may also contain tuples
    of a path and a length.

    Raises:
        TypeError: A source has an unsupported type.
        ValueError: A length is negative.
    """
    names: list[str | Input] = []
    for source in [sources] if is_path(sources) or isinstance(sources, bytes) else sources:
        match source:
            case (path, int(file_len)) if is_path(path):
                name = os.fsdecode(path)
                if file_len < 0:
                    raise ValueError(f"the length of {name} is negative: {file_len}")
                names.append(Input(name, os.path.basename(name), file_len=file_len, identity=identity_of(name)))
            case path if is_path(path):
                names.append(os.fsdecode(path))
            case _ if (ranges := source_of(source)) is not None:
                name = getattr(ranges, "name", "")
                names.append(Input(name, base_name(name), source=ranges))
            case _:
                raise TypeError(f"path must be str or os.PathLike, not {type(source).__name__}")
    return expand(names)


def identity_of(name: str) -> Identity | None:
    """Returns the identity of the file at a path or a URL.

    Returns `None` if the file is missing, or if `file_identity` returns `None`.
    """
    path = own_path(name) if "://" in name else name
    if path is None:
        return name
    try:
        return file_identity(os.stat(path))
    except (OSError, ValueError):
        return None


def file_identity(status: os.stat_result) -> Identity | None:
    """Returns a file's identity, or `None` if it has no inode or isn't a regular file.

    Other files, such as pipes, may be named more than once.
    """
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) and status.st_ino else None


def is_stream(name: str) -> bool:
    """Checks whether a name is a pipe or a device, which may be endless and can only be read once."""
    return not is_url(name) and os.path.exists(name) and not (os.path.isfile(name) or os.path.isdir(name))


def _is_pattern(name: str) -> bool:
    # A name is not a pattern if a file with exactly this name exists.
    return has_magic(name) and not os.path.lexists(name) and not is_url(name)


def _expanded(names: Iterable[str | Input]) -> Iterator[Input]:
    for name in names:
        if isinstance(name, Input):
            yield name
        elif "://" in name and is_listed(name):
            yield from _on_filesystem(name)
        elif _is_pattern(name) and (matches := sorted(set(_matches(name)))):
            above = _without_magic(name)
            for match in _with_whole_logs(matches):
                # No pattern may produce a path outside the directory.
                parts = os.path.relpath(match, above).split(os.sep)
                relative = os.sep.join(part for part in parts if part not in (os.curdir, os.pardir))
                if is_stream(match):
                    yield Input(match, relative, is_in_directory=True, format=NO_FILE)
                # `**` also matches the directory's contents.
                elif "**" not in name or not is_directory_of_logs(match):
                    # In a command, a lone `-` means stdin.
                    path = "./-" if match == "-" and not os.path.isdir(match) else match
                    yield from _at(path, relative or os.path.basename(os.path.abspath(match)), relative)
        else:
            relative = base_name(name)
            if relative in ("", os.curdir, os.pardir):
                # The name refers to a directory.
                relative = os.path.basename(os.path.abspath(name))
            yield from _at(name, relative, "")


def _with_whole_logs(matches: list[str]) -> list[str]:
    """Returns the matches. The files of a segmented log are replaced by the log's directory."""
    directories = {os.path.dirname(match) for match in matches if is_segment(match)}
    whole = (os.path.dirname(match) if os.path.dirname(match) in directories else match for match in matches)
    return list(dict.fromkeys(name or os.curdir for name in whole))


def is_segment(path: str) -> bool:
    """Checks whether a file is named like a segment."""
    try:
        return segment_offset(base_name(path)) is not None
    except ValueError:  # No file has a name that cannot be encoded.
        return False


def segmented_elsewhere(path: str) -> OSError:
    """Returns the error for a segmented log, or for a file in one, if the caller can read only single files."""
    text = "a segmented log is read only from a local directory: copy it there, or name its files to read each as a log"
    return OSError(errno.EOPNOTSUPP, text, path)


def _at(name: str, relative: str, above: str) -> list[Input]:
    """Returns the files a path refers to. A URL that cannot be listed is returned as a single file.

    A single file or a segmented log gets the path `relative`. Each file in a directory gets a path that starts with
    `above`.
    """
    if segments := segments_in(name):
        return [_of_segments(name, relative, segments)]
    if os.path.isdir(name):
        return _in_directory(name, above)
    return [_named(name, relative)]


def _on_filesystem(url: str) -> Iterator[Input]:
    """Yields the files in a directory on an fsspec file system, or the files that match a pattern."""
    try:
        files = listed(url)
    except OSError as error:
        yield Input(url, "", error=error, identity=url)
    except (ValueError, ModuleNotFoundError):
        # Reading the URL later raises this error again.
        yield Input(url, "", identity=url)
    else:
        directories = dict.fromkeys(file[0].rpartition("/")[0] for file in files if is_segment(file[0]))
        for directory in directories:
            fault = segmented_elsewhere(directory)
            yield Input(directory, "", is_in_directory=True, error=fault, identity=directory)
        found = [
            Input(name, relative, is_below, file_len=file_len, version=version, identity=identity_of(name))
            for name, relative, is_below, file_len, version in files
            if name.rpartition("/")[0] not in directories
        ]
        yield from _with_exports(found)


def has_magic(name: str) -> bool:
    """Checks whether a name contains a wildcard character.

    Used instead of `glob.has_magic`, so that the `glob` module is only imported for patterns.
    """
    return not _MAGIC.isdisjoint(name)


_MAGIC = frozenset("*?[")


def _matches(pattern: str) -> Iterator[str]:
    """Yields the paths that match a pattern, possibly with duplicates."""
    import glob

    two_stars = re.fullmatch(rf"(?s)((?:.*?{_SEPARATOR})??)\*\*(?:{_SEPARATOR}+(.*))?", pattern)
    if not two_stars:
        yield from glob.glob(pattern)
        return
    # Unlike shells, `glob` follows the links that `**` matches, even if they form a cycle.
    above, below = two_stars.groups("*")
    for top in glob.glob(above) if above else [""]:
        for path, directories, _ in _walk(top or os.curdir):
            directories[:] = [name for name in directories if not name.startswith(".")]
            directory = os.path.join(path, "")
            yield from _matches(glob.escape(directory if top else directory[len("./") :]) + below)


_SEPARATOR = f"[{re.escape(os.sep + (os.altsep or ''))}]"


def _without_magic(pattern: str) -> str:
    """Returns the directory that contains everything a pattern can match."""
    directory = os.path.dirname(pattern)
    while has_magic(directory):
        directory = os.path.dirname(directory)
    return directory or os.curdir


def _named(name: str, relative: str) -> Input:
    try:
        status = os.stat(name)
    except (OSError, ValueError):
        # A missing file raises an error later, when a reader tries to open it.
        return Input(name, relative, identity=identity_of(name))
    file_len = status.st_size if stat.S_ISREG(status.st_mode) else 0
    file = Input(name, relative, file_len=file_len, identity=file_identity(status))
    return named_metadata(file) if file_len and is_of_export(name) else file


def _of_segments(
    directory: str, relative: str, segments: list[tuple[int, int]], *, is_in_directory: bool = False
) -> Input:
    """Returns a segmented log as a single input, without separate inputs for its files."""
    file_len = sum(length for _, length in segments)
    identity = os.path.realpath(directory)
    return Input(directory, relative, is_in_directory, file_len=file_len, segments=tuple(segments), identity=identity)


def _walk(
    top: str, unreadable: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walks a tree like `os.walk`, but without recursive calls. In Python 3.11, `os.walk` fails at 1,000 levels."""
    below = [top]
    while below:
        for path, directories, names in islice(os.walk(below.pop(), onerror=unreadable), 1):
            yield path, directories, names
            paths = (os.path.join(path, name) for name in directories)
            below += (path for path in paths if not os.path.islink(path))


def _in_directory(directory: str, above: str) -> list[Input]:
    """Returns all files in a directory, along with those listed in the metadata of its exports.

    Links to directories are not followed. A link is left out if its target is also in the directory.
    """
    found: list[Input] = []
    links: list[Input] = []

    def unreadable(error: OSError) -> None:
        found.append(Input(error.filename, "", is_in_directory=True, error=error))

    for path, directories, names in _walk(directory, unreadable):
        relative = os.path.normpath(os.path.join(above, os.path.relpath(path, directory)))
        if path != directory and any(segment_offset(name) is not None for name in names):
            found.append(_of_segments(path, relative, segments_in(path), is_in_directory=True))
            continue
        # Join the path only once for all files in the directory.
        before = os.path.join(path, "")
        relative_before = "" if relative == os.curdir else os.path.join(relative, "")
        found += (
            Input(before + name, relative_before + name, is_in_directory=True, format="link to a directory")
            for name in directories
            if os.path.islink(before + name)
        )
        for name in names:
            full, below = before + name, relative_before + name
            try:
                status = os.lstat(full)
                is_link = stat.S_ISLNK(status.st_mode)
                if is_link:
                    status = os.stat(full)
            except OSError as error:
                format_ = "dangling link" if isinstance(error, FileNotFoundError) else None
                found.append(Input(full, below, is_in_directory=True, format=format_))
                continue
            may_be_log = status.st_size or name.endswith(RUN_SUFFIXES)
            format_ = NO_FILE if not stat.S_ISREG(status.st_mode) else None if may_be_log else EMPTY
            file_len = 0 if format_ else status.st_size
            file = Input(
                full, below, is_in_directory=True, format=format_, file_len=file_len, identity=file_identity(status)
            )
            (links if is_link else found).append(file)
    identities = {file.identity for file in found}
    found += (link for link in links if link.identity is None or link.identity not in identities)
    return sorted(_with_exports(found), key=lambda file: file.name)


def _with_exports(found: list[Input]) -> list[Input]:
    """Compares the files in a directory with the lists of its exports, and returns the files."""
    return compared(found) if any(is_of_export(file.name) for file in found) else found


def listed_beside(file: Input) -> list[Input]:
    """Returns the files now in this file's directory or its subdirectories."""
    return _in_directory(os.path.dirname(file.name), os.path.dirname(file.relative))
