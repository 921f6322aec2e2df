"""Write everything that can be read from damaged logs to new logs.

The source is not changed. The new log is on the disk before it gets its name, so a file with that name is complete,
also with --overwrite. The report about the source goes to stdout, as `cordwood verify` prints it; exit status 3 if
damage was found in it.

The new log keeps the dialect of the source, its log number, and what the engine wrote for its own use. What cannot be
kept is reported. RocksDB and Pebble look for the number of a log in the name of its file, so give the new log the name
of the old one, in another folder: under the name of another log, they would find no record in it.

Two or more logs, a pattern, and all logs in a folder are salvaged to a folder, which is created if it does not exist;
so is a single log if DESTINATION is a folder or ends in a slash. They keep their
names, and their paths below the folder or pattern that was named. Only logs are written there: the other files of a
database, such as its tables and the file CURRENT, are not copied.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterable, Sequence

import cordwood
from cordwood._identity import identity_of
from cordwood._remote import local_path
from cordwood._text import quantity
from cordwood.cli._expansion import is_one_file, named_files
from cordwood.cli._messages import Status, complain, escaped
from cordwood.cli._named import Named, SourceFailure, display_name, is_stream, stdin_or_path
from cordwood.cli._options import (
    add_dialect_argument,
    add_record_len_max_argument,
    add_source_arguments,
    complete_file_names,
    reading_options,
)
from cordwood.cli._output import check_destination, unfinished
from cordwood.cli._payloads import LOST_EDITS, is_manifest, payload_by_content
from cordwood.cli._progress import Progress
from cordwood.cli._recognition import may_be_log
from cordwood.cli._reports import (
    Totals,
    for_each_source_with_totals,
    other_log_parts,
    region_fields,
    sha256_of,
)
from cordwood.cli._sources import report_same
from cordwood.cli._summary import format_of, summary_of_report
from cordwood.cli._terminal import print_folded
from cordwood.cli.verify import print_report

EXAMPLES = """\
  cordwood salvage damaged.log clean.log
  cordwood salvage db/000042.log saved/000042.log
  cordwood salvage --repair-bit-flips damaged.log repaired.log
  cordwood salvage database/ saved/
"""

NOT_KEPT = {
    "synced_offsets": "the new log does not say how far the old one had been synced: Pebble's types 9 to 12 are 5 to 8",
    "bad_metadata": "the new log is without engine metadata that no engine writes in this form or place",
    "ignored_kinds": "the new log is without the fragments of unknown types that readers may skip",
    "timestamp_sizes": (
        "a record of RocksDB's own with the lengths of timestamps is damaged, or follows damage in its block, and was "
        "left out: with the new log, RocksDB opens without an error and finds no key with a timestamp"
    ),
    "predecessor": (
        "a record of RocksDB's own that names the log before this one is damaged, or follows damage in its block, and "
        "was left out: with the new log, RocksDB cannot notice that the log before it is missing"
    ),
    "version_edit": (
        "no engine opens a database with the new MANIFEST: only the lost records stated the next file number, the log "
        "number or the last sequence number"
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `salvage`."""
    add_source_arguments(parser)
    complete_file_names(
        parser.add_argument(
            "destination", metavar="DESTINATION", help="the new log; for several or a pattern, the folder for them"
        )
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a log that is there, once the new one is complete; any other file is refused",
    )
    add_dialect_argument(parser, "how the log is laid out; detected from its content if not given")
    add_record_len_max_argument(parser)
    parser.add_argument(
        "--repair-bit-flips",
        action="store_true",
        help="also write records whose damage one flipped bit explains, with that bit flipped back; such a record is "
        "what the checksum says, if one bit was flipped",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="the report as one JSON object for each log, and one with the totals of several",
    )


def run(options: argparse.Namespace) -> Status:
    """Salvages each source."""
    if options.destination == "-":
        raise ValueError("a log is salvaged to a file, not to stdout; ./- is a file")
    files = named_files(options.sources, same=report_same)
    destinations = _destinations(files, options)
    if options.overwrite and len(files) > 1:
        _check_no_source(files, destinations.values())
    # The old log of each new one, by the real path of the new one.
    salvaged: dict[str, str] = {}
    totals = Totals()
    created: list[str] = []

    def salvage(name: str) -> Status:
        # No folder is created for what is not a log. What can be read only once is not checked in advance.
        if not (options.dialect or is_stream(name)):
            cordwood.detect(name)
        destination = destinations[name]
        # Two paths may lead to one file.
        place = os.path.realpath(destination)
        if place in salvaged:
            raise SourceFailure(
                f"{salvaged[place]} has been salvaged to {destination}, where this one would also go; "
                "salvage it on its own, to another folder"
            )
        if os.path.exists(destination) and not os.path.isfile(destination):  # noqa: PTH110, PTH113
            # A pipe or a device would be replaced by the new log.
            raise SourceFailure(f"{destination} is not a regular file, as the new log will be: choose another name")
        check_destination(name, destination, overwrite=options.overwrite)
        if options.overwrite:
            _check_replaced(destination)
        if destination != options.destination:
            created.extend(_make_folder(os.path.dirname(destination), name))  # noqa: PTH120 - pathlib is slow to import
        try:
            with unfinished(destination, overwrite=options.overwrite) as new, Progress(name) as progress:
                report = cordwood.salvage(
                    stdin_or_path(name),
                    new,
                    repair_bit_flips=options.repair_bit_flips,
                    progress=progress,
                    **reading_options(options),
                )
            _sync_folder(destination)
        except cordwood.OtherLogError as error:
            is_named = options.log_number is not None
            parts = other_log_parts(error.log_number, error.other_log_number, is_named=is_named)
            raise SourceFailure("; ".join(parts)) from error
        salvaged[place] = name
        lost_len = report.len_by_severity.get(cordwood.Severity.CORRUPTION, 0)
        totals.add(report, lost_len)
        sha256 = sha256_of(name, report.file_len) if options.json else None
        fields = (
            {**_repair_fields(report), **_new_log(destination), "not_kept": report.not_kept} if options.json else None
        )
        print_report(name, report, summary_of_report(report), options, sha256=sha256, fields=fields)
        if not options.json:
            _print_written(destination, report)
        is_opened = "version_edit" not in report.not_kept
        if is_opened and lost_len and is_manifest(name, _payload_of(destination, report)):
            complain(f"{display_name(name)}: {LOST_EDITS}")
        for what in report.not_kept:
            complain(f"{display_name(name)}: {NOT_KEPT[what]}")
        return Status.CLEAN if report.ok else Status.DAMAGE

    try:
        return for_each_source_with_totals(options, salvage, totals, files=files)
    finally:
        # No log may have been written to it.
        for folder in reversed(created):
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106


def _print_written(destination: str, report: cordwood.Report) -> None:
    """Prints what the new log contains, on stdout."""
    if report.repaired_count:
        repaired = quantity(report.repaired_count, "record")
        print_folded(f"  {repaired} repaired: what the checksum says, if one bit was flipped")
    print(f"  wrote {escaped(destination)}: {quantity(report.record_count, 'record')}")


def _repair_fields(report: cordwood.Report) -> dict[str, object]:
    """What JSON says about what was repaired."""
    return {
        "repaired_count": report.repaired_count,
        "repaired": [region_fields(region) for region in report.repaired],
    }


def _check_replaced(destination: str) -> None:
    """Checks that what `--overwrite` would replace is a log, maybe a damaged one, or empty.

    Raises:
        SourceFailure: It is something else, which nobody can have meant.
    """
    what = ""
    try:
        if may_be_log(destination):
            return
    except FileNotFoundError:
        return
    except cordwood.DialectError as error:
        what = f" ({error.format})"
    raise SourceFailure(
        f"{destination} is not a log{what}, and --overwrite replaces only logs: choose another name, or remove it first"
    )


def _make_folder(path: str, source: str) -> list[str]:
    """Creates a folder and those above it. Returns those that did not exist, the topmost first.

    They are as open to others as the folder of `source`, the log that is salvaged to it: a private folder protects the
    logs in it, whatever their own modes.
    """
    mode = 0o777
    if (log := local_path(source)) is not None:
        mode &= os.stat(os.path.dirname(log) or os.curdir).st_mode  # noqa: PTH116, PTH120
    missing: list[str] = []
    above = path
    while above and not os.path.lexists(above):
        missing.insert(0, above)
        above = os.path.dirname(above)  # noqa: PTH120 - pathlib is slow to import
    for folder in missing:
        with contextlib.suppress(FileExistsError):
            # Without the bits for the owner, nothing could be written there.
            os.mkdir(folder, mode | 0o700)  # noqa: PTH102
    return missing


def _sync_folder(path: str) -> None:
    """Syncs the name of a file, whose content is already on the disk."""
    # On Windows, a folder cannot be opened.
    if os.name == "posix":
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)  # noqa: PTH120
        try:
            os.fsync(folder)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(folder)


def _payload_of(path: str, report: cordwood.Report) -> str | None:
    with cordwood.Reader(path, **format_of(report)._asdict()) as reader:
        first = next(reader.records(), None)
    return payload_by_content(path, first.data if first else None, report.dialect)


def _new_log(path: str) -> dict[str, object]:
    """What JSON says about the new log."""
    length = os.path.getsize(path)  # noqa: PTH202 - pathlib is slow to import
    return {"destination": path, "destination_len": length, "destination_sha256": sha256_of(path, length)}


def _destinations(files: Sequence[Named], options: argparse.Namespace) -> dict[str, str]:
    """The new log for each source. Its folder is not created here.

    Whether the destination is a folder depends on what is named, not on how many logs that turns out to be.

    Raises:
        ValueError: Several logs would go to one file, or into the folder that they are from.
    """
    destination: str = options.destination
    folders = [name for name in options.sources if os.path.isdir(name)]  # noqa: PTH112 - pathlib is slow to import
    is_several = not is_one_file(options.sources)
    # A trailing slash is that of a folder, and hides a file that has the name without it.
    bare = destination.rstrip(os.sep + (os.altsep or ""))
    is_folder = is_several or bare != destination or os.path.isdir(destination)  # noqa: PTH112
    if not destination or not is_folder:
        return dict.fromkeys((file.name for file in files), destination)
    if bare and os.path.lexists(bare) and not os.path.isdir(destination):  # noqa: PTH112
        why = ", and several logs, or a pattern, need one" if is_several else ""
        raise ValueError(f"{destination} is not a folder{why}")
    new = os.path.realpath(destination)
    for folder in folders:
        old = os.path.realpath(folder)
        if os.path.commonpath([new, old]) == old:
            raise ValueError(f"{destination} is in {folder}: the new logs would be among the old ones")
    if any(file.name == "-" for file in files):
        raise ValueError("a log from stdin has no name to be kept: salvage it to a file")
    return {file.name: os.path.join(destination, file.relative) for file in files}  # noqa: PTH118


def _check_no_source(files: Sequence[Named], destinations: Iterable[str]) -> None:
    """Checks that no new log would replace a source, which might not have been read by then.

    Raises:
        ValueError: One would.
    """
    read = {identity_of(file.name) for file in files} - {None}
    for destination in destinations:
        if identity_of(destination) in read:
            raise ValueError(f"{destination} is one of the logs that are read, and would be overwritten")
