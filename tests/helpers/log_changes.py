"""What can happen to a log while nobody reads it: the rows of a table in `docs/format/following.md`."""

import re
import shutil
from pathlib import Path

import pytest
import reference

import cordwood

PAGE = Path(__file__).parents[2] / "docs/format/following.md"
HALF = 20
SEGMENT_LEN = 9_000


def records(tag, number, same=1):
    """Records of the same lengths in every log, the first `same` of which are the same in every log."""
    return [(b"same %d" % at if at < same else b"%s %d" % (tag, at)).ljust(2_000, b".") for at in range(number)]


OLD, OTHER = records(b"old", 30), records(b"other", 45)


def write(path, written):
    path.write_bytes(reference.encode(written))


def write_segments(path, written, pruned=0):
    with cordwood.open(path, "a", segment_len=SEGMENT_LEN) as log:
        ends = [log.append(record) for record in written]
        log.prune_before(ends[pruned])


class Changes:
    """What happens to a log, by the words of the table. Each returns the path that is read then, and its records."""

    def grew(self, path):
        write(path, records(b"old", 40))
        return path, records(b"old", 40)

    def was_copied_and_the_copy_is_read(self, path):
        copy = path.parent.parent / "elsewhere" / path.name
        copy.parent.mkdir()
        shutil.copy(path, copy)
        path.unlink()
        return copy, OLD

    def is_read_through_another_path(self, path):
        link = path.parent.parent / "link"
        link.symlink_to(path.parent)
        return link / path.name, OLD

    def was_renamed(self, path):
        path.rename(path.with_name("renamed.log"))
        return path, None

    def was_renamed_and_another_one_has_its_path(self, path):
        path.rename(path.with_name("renamed.log"))
        write(path, OTHER)
        return path, None

    def was_overwritten_by_another_one_in_the_same_file(self, path):
        write(path, OTHER)
        return path, None

    def was_replaced_by_a_longer_one(self, path):
        new = path.with_name("new")
        write(new, OTHER)
        new.replace(path)
        return path, None

    def is_segmented_and_was_pruned_before_the_position(self, path):
        with cordwood.open(path, "a", segment_len=SEGMENT_LEN) as log:
            log.prune_before(2_000 * HALF)
        return path, OLD

    def is_segmented_and_its_directory_was_replaced(self, path):
        shutil.rmtree(path)
        write_segments(path, OTHER)
        return path, None


ERRORS = {
    "changed": cordwood.LogChangedError,
    "rotated": cordwood.LogRotatedError,
    "missing": FileNotFoundError,
}


def table(*, is_beam=False):
    """The cells: the change, the consumer, and the result."""
    rows = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in row] for row in rows]
    [head] = [at for at, row in enumerate(rows) if row[0] == "the log"]
    for row in rows[head + 1 :]:
        if not hasattr(Changes, name_of(row[0])):
            return
        for consumer, cell in zip(rows[head][1:], row[1:], strict=True):
            if cell and (consumer == "Beam") == is_beam:
                yield pytest.param(row[0], consumer, cell, id=f"{consumer}: {row[0]}")


def name_of(words):
    return re.sub(r"\W+", "_", words).lower()
