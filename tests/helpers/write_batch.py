"""The records of LevelDB and RocksDB, batches of operations: as much as the tests need."""

import struct

DELETE, PUT = 0, 1


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def take_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def take_bytes(data, at):
    length, at = take_varint(data, at)
    return data[at : at + length], at + length


def write_batch(sequence, operations):
    """LevelDB's WriteBatch: sequence number, count, then each put or delete."""
    out = bytearray(struct.pack("<QI", sequence, len(operations)))
    for operation, *fields in operations:
        out.append(operation)
        for field in fields:
            out += varint(len(field)) + field
    return bytes(out)


def parse_write_batch(record):
    sequence, count = struct.unpack_from("<QI", record)
    at = 12
    operations = []
    for _ in range(count):
        operation, at = record[at], at + 1
        fields = []
        for _ in range(2 if operation == PUT else 1):
            field, at = take_bytes(record, at)
            fields.append(field)
        operations.append((operation, *fields))
    assert at == len(record)
    return sequence, operations
