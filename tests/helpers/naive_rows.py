"""The rows of the records of a log, as values of Python: the naive counterpart of the native module's decoders.

A payload is a function of `Record`s and of `left_out`, which gets each fault: what is missing, as in
`cordwood._tables.table.Fault`, and the record.
"""

import base64
import struct

from naive_json import NaiveError, document
from write_batch import take_bytes, take_varint

from cordwood.errors import PayloadError
from cordwood.payload import entity


def json_rows(records, left_out):
    """A row for each document: an object is a row itself."""
    for record in records:
        try:
            value = document(record.data)
        except NaiveError:
            left_out("record", record)
        else:
            yield value if isinstance(value, dict) else {"__value__": value}


def entity_rows(records, left_out):
    """A row for each entity: its key, in parts and as a whole, and its properties."""
    for record in records:
        try:
            found = entity.decode(record.data)
        except PayloadError:
            left_out("record", record)
            continue
        row = key_cells(found.key)
        if any(name in found.properties for name in ("__kind__", "__id__", "__name__", "__path__")):
            left_out("record", record)
            continue
        row |= {"__key__": found.key, **found.properties}
        others = list(other_fields(found))
        yield {**row, "__other_fields__": others} if others else row


def other_fields(value):
    """The fields that are not interpreted, of an entity and of all entities in it."""
    if isinstance(value, entity.Entity):
        for field in value.other_fields:
            yield {**field._asdict(), "data": {"base64": base64.b64encode(field.data).decode()}}
        for item in value.properties.values():
            yield from other_fields(item)
    elif isinstance(value, list):
        for item in value:
            yield from other_fields(item)


def key_cells(key):
    """The cells of the parts of a key."""
    if key is None or not key.path:
        return {}
    kind, last = key.path[-1]
    path = "/".join(str(part) for element in key.path for part in element if part is not None)
    return {"__kind__": kind, **id_or_name(last, "__"), "__path__": path}


def id_or_name(last, around=""):
    return {} if last is None else {f"{around}{'name' if isinstance(last, str) else 'id'}{around}": last}


def history_rows(records, left_out):
    """A row for each step, as wandb reads it."""
    import naive_wandb
    from google.protobuf.message import DecodeError
    from wandb.proto.wandb_internal_pb2 import Record

    for record in records:
        reasons = []
        try:
            rows = list(naive_wandb.history_rows([Record.FromString(record.data)], reasons))
        except DecodeError:
            left_out("record", record)
            continue
        for _ in reasons:
            left_out("value", record)
        yield from rows


OPERATIONS = {
    0: ("delete", "key"),
    1: ("put", "key", "value"),
    2: ("merge", "key", "value"),
    3: ("log_data", "value"),
    4: ("delete", "column_family", "key"),
    5: ("put", "column_family", "key", "value"),
    7: ("single_delete", "key"),
    15: ("delete_range", "key", "end_key"),
}
"""The kind of an operation with a tag, and its fields. `write_batch.h` of RocksDB has more."""


def batch_rows(records, left_out):
    """A row for each operation up to a fault, and one for a batch without operations."""
    for record in records:
        try:
            sequence, count = struct.unpack_from("<QI", record.data)
        except struct.error:
            left_out("record", record)
            continue
        rows, at, counted = [], 12, 0
        while at < len(record.data) and (operation := _operation(record.data, at)):
            row, at = operation
            is_counted = row["kind"] != "log_data"
            row = {"column_family": 0, **row} if is_counted else row
            place = {"offset": record.offset, "sequence": sequence + counted if is_counted else None}
            rows.append({**place, "kind": row["kind"], **row})
            counted += is_counted
        is_right = at == len(record.data) and counted == count
        if is_right and not rows:
            rows = [{"offset": record.offset, "sequence": sequence}]
        elif not is_right:
            left_out("rest" if rows else "record", record)
        yield from rows


def _operation(data, at):
    """The cells of the operation at an offset, and the offset after it; `None` if there is none."""
    kind, *names = OPERATIONS.get(data[at], [None])
    row, at = {"kind": kind}, at + 1
    try:
        for name in names:
            row[name], at = (take_varint if name == "column_family" else take_bytes)(data, at)
    except IndexError:
        return None
    return (row, at) if kind and at <= len(data) else None


ROWS = {"json": json_rows, "entity": entity_rows, "wandb-history": history_rows, "write-batch": batch_rows}
