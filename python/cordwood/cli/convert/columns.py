"""The columns of a table: which are wanted, and which the logs have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cordwood._tables.payloads import PAYLOADS, origin_of
from cordwood._tables.schema import ColumnType
from cordwood._text import escaped
from cordwood.cli._messages import complain
from cordwood.cli._selection import Selection
from cordwood.cli.convert.writers import BINARY_FORMATS

if TYPE_CHECKING:
    from cordwood._tables.columns import Columns


def selection_of(options: argparse.Namespace, first: Sequence[str] = ()) -> Selection:
    """The selection of rows, which begin with the columns `first`. Each pass needs its own."""
    payload = PAYLOADS[options.payload]
    known = payload.known_columns(options.on_corruption)
    if known is not None:
        if not first and payload.origin in (options.columns or ()) and payload.origin not in known:
            raise ValueError(f"a table of one log has no column {payload.origin}: name several logs, or their folder")
        return Selection(options, [*first, *known])
    return Selection(
        options,
        always=[*first, *payload.first()],
        fields_of=payload.fields_of(),
    )


def columns_found(payload: str, found: Columns, form: str) -> dict[str, ColumnType]:
    """All columns of a table, after the first pass.

    Columns that are JSON because their values are of several types, or have too many fields, are reported.
    """
    # In CSV, everything within a value is JSON.
    is_nested = form in BINARY_FORMATS
    columns = found.types()
    for name, types in found.conflicts().items():
        if is_nested or name in columns:
            complain(
                f"the column {escaped(name)} has values of several types, and is stored as JSON: {', '.join(types)}"
            )
    for name in found.overfull if is_nested else ():
        complain(f"the column {escaped(name)} has too many fields, and is stored as JSON")
    return PAYLOADS[payload].all_columns(columns)


def origin_value(name: str, origin: str, form: str) -> str:
    """The value of the column `origin`, which says where a row is from, for the log of this name.

    JSON can state a name that is not valid text, as the other verbs do. In other forms, it is escaped.
    """
    return "<stdin>" if name == "-" else origin_of(name, origin, is_escaped=form != "ndjson")
