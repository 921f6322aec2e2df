"""The sources of a verb: their names, and what is done for each."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import cordwood
from cordwood.cli._messages import Status, complain, escaped
from cordwood.cli._output import print_json

if TYPE_CHECKING:
    from cordwood.typing import Source


def stdin_or_path(name: str) -> Source:
    """What a reader takes for a source that the user named."""
    return sys.stdin.buffer if name == "-" else name


def source_name(name: str) -> str:
    """The name of a source in JSON: that of the file, character by character."""
    return "<stdin>" if name == "-" else name


def display_name(name: str) -> str:
    """The name of a source in lines for people: what is not printable is escaped."""
    return escaped(source_name(name))


def one_source(name: str, command: str) -> str:
    """The one file that a pattern matches.

    Args:
        name: A name or a pattern.
        command: What to do for each file, as it would be typed.

    Raises:
        ValueError: It matches several.
    """
    names = list(_expanded([name]))
    if len(names) > 1:
        raise ValueError(
            f"{name} is {len(names)} files, and only one can be taken; for each of them: "
            f"for f in {name}; do cordwood {command}; done"
        )
    return names[0]


def for_each_source(names: Iterable[str], work: Callable[[str], Status], *, as_json: bool = False) -> Status:
    """Does the work for each source. One that fails does not stop the others; the status is the worst of all.

    With `as_json`, one that fails has an object, too: its `source`, and the `error`.
    """
    statuses = [_attempt(name, work, as_json=as_json) for name in _expanded(names)]
    return Status.FAILURE if Status.FAILURE in statuses else max(statuses)


def _expanded(names: Iterable[str]) -> Iterable[str]:
    """The names with patterns replaced by what they match: not every shell does it. A file of that name comes first."""
    for name in names:
        is_pattern = name != "-" and glob.has_magic(name) and not os.path.lexists(name)
        if is_pattern and (matches := sorted(glob.glob(name, recursive=True))):  # noqa: PTH207 - keeps names as given
            # A file of the name `-` is not stdin.
            yield from ("./-" if match == "-" else match for match in matches)
        else:
            yield name


def _attempt(name: str, work: Callable[[str], Status], *, as_json: bool) -> Status:
    try:
        return work(name)
    except BrokenPipeError:
        raise
    except OSError as error:
        # stdout: the others would fail in the same way.
        if error.filename is None and name != "-":
            raise
        complain(error)
        text = error.strerror or str(error)
    except cordwood.CordwoodError as error:
        complain(error if error.path else f"{source_name(name)}: {error}")
        text = str(error).removeprefix(f"{error.path}: ")
    if as_json:
        print_json({"source": source_name(name), "error": text})
    return Status.FAILURE
