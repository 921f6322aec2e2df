"""Finds undecodable batches and missing sequence numbers for `verify --as write-batch`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import cordwood
from cordwood._jsonable import jsonable
from cordwood._native import RecordDecoder
from cordwood._summary import format_of, suspect_regions
from cordwood._tables.payloads import WRITE_BATCH, kind_by_content
from cordwood._text import escaped, quantity
from cordwood.cli._messages import REPORTED_MAX
from cordwood.cli._reports import LISTED_MAX
from cordwood.cli._terminal import print_folded
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from cordwood._inputs.each import Progress
    from cordwood.payload.write_batch import SequenceGap, SequenceNumbers
    from cordwood.typing import Source


class Batches(NamedTuple):
    """The faults and missing sequence numbers in a log's write batches."""

    numbers: SequenceNumbers
    fault_count: int
    """The number of records that are not valid write batches."""
    faults: list[str]
    """A message for each of the first few faults."""
    note: str | None
    """A note about which engine wrote the log, if that is uncertain."""
    suspect_before: int | None
    """If records may have been lost before the first batch, the offset of the earliest such loss."""
    suspect_after: int | None
    """If records may have been lost after the last batch, the offset of the earliest such loss."""

    def fields(self) -> dict[str, Any]:
        """Returns the faults and the gaps as JSON fields."""
        numbers = self.numbers
        return {
            "faulty_batch_count": self.fault_count,
            "first_sequence": numbers.start,
            "last_sequence": None if numbers.end is None else numbers.end - 1,
            "missing_sequence_count": numbers.missing_count,
            "sequence_gap_count": numbers.gap_count,
            "sequence_gaps": [{**gap._asdict(), "after": jsonable(gap.after)} for gap in numbers.gaps],
            "has_shared_sequences": numbers.has_shared,
            "suspect_before": self.suspect_before,
            "suspect_after": self.suspect_after,
        }

    def print(self) -> None:
        """Prints the faults and the gaps below a report."""
        numbers = self.numbers
        # If no record is a write batch, one message is enough.
        faults = self.faults if numbers.start else self.faults[:1]
        for text in faults:
            print_folded(f"  {text}", is_damage=True)
        if self.fault_count > len(faults):
            print_folded(f"  {self.fault_count:,} records in all cannot be decoded", is_damage=True)
        if self.note:
            print_folded(f"  {self.note}")
        if numbers.start is None or numbers.end is None:
            print("  no sequence numbers")
            return
        missing = f"{numbers.missing_count:,} missing" if numbers.missing_count else "no gap"
        print(f"  sequence numbers {numbers.start:,} to {numbers.end - 1:,}: {missing}")
        for gap in numbers.gaps[:LISTED_MAX]:
            print_folded(f"    {_gap_text(gap)}", indent=6)
        if numbers.gap_count > LISTED_MAX:
            more = quantity(numbers.gap_count - LISTED_MAX, "more place")
            print(f"    and in {more}; to list them: cordwood verify --as write-batch --json")
        for where, offset in (
            (f"before {numbers.start:,}", self.suspect_before),
            (f"after {numbers.end - 1:,}", self.suspect_after),
        ):
            if offset is not None:
                print_folded(f"  numbers {where} may be missing, too: operations may be lost at offset {offset:,}")
        if numbers.has_shared:
            print_folded("  several batches have the same sequence number, so more numbers may be missing")


def _gap_text(gap: SequenceGap) -> str:
    last = gap.end - 1
    numbers = f"{gap.start:,}" if gap.start == last else f"{gap.start:,} to {last:,}"
    if gap.after is None:
        return numbers
    key = gap.after[: 4 * _KEY_MAX].decode("utf-8", "backslashreplace")
    return f"{numbers}, after {escaped(key[:_KEY_MAX])}{'...' if len(key) > _KEY_MAX else ''}"


_KEY_MAX = 60
"""At most this many characters of a key are printed."""


def read_batches(
    name: str,
    source: Source,
    report: cordwood.Report,
    options: argparse.Namespace,
    progress: Progress,
) -> Batches | None:
    """Reads the write batches in a log after `verify` has checked it.

    Returns `None` if the first record shows that the log doesn't contain write batches.
    """
    from cordwood.payload.write_batch import WriteBatch, sequence_numbers

    faults: list[str] = []
    fault_count = 0
    offsets: list[int] = []
    places = {"start": options.start, "end": options.end, "record_len_max": options.record_len_max}
    with cordwood.Reader(source, on_corruption="salvage", **format_of(report)._asdict(), **places) as reader:
        first = next(reader.records(), None)
        if first and kind_by_content(name, first.data, reader.dialect) not in (None, WRITE_BATCH):
            return None
        decoder = RecordDecoder("write-batch", reader.dialect)

        def records() -> Iterator[tuple[int, bytes]]:
            if first:
                yield first.offset, first.data
            for batch in reader.record_batches():
                if progress:
                    progress(0)
                yield from zip(batch.record_offsets, batch, strict=True)

        def batches() -> Iterator[WriteBatch]:
            nonlocal fault_count
            for offset, record in records():
                try:
                    engine = decoder.engine(record)
                except PayloadError as error:
                    fault_count += 1
                    if fault_count <= REPORTED_MAX:
                        faults.append(f"the record at offset {offset:,}: {error}")
                    continue
                # Store only the first and last offsets.
                offsets[1:] = [offset]
                yield WriteBatch(record, engine=engine)

        numbers = sequence_numbers(batches())
        suspects = [region.offset for region in suspect_regions(report)] if offsets else []
        before = next((offset for offset in suspects if offset < offsets[0]), None)
        after = next((offset for offset in suspects if offset > offsets[-1]), None)
        return Batches(numbers, fault_count, faults, decoder.note, before, after)
