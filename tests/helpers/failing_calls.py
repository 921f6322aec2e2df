"""Makes a system call of the extension module fail, without a compiler and without privileges.

The module calls the C library's functions through a table of addresses, its global offset table. One entry is
replaced by another function of the library that takes the same argument and always fails.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cordwood import _native

CAN_FAIL = sys.platform == "linux" and platform.machine() == "x86_64"

GLOB_DAT, JUMP_SLOT = 6, 7
"""The x86-64 relocations that fill an entry with a function's address."""


def sections(file: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file, by name."""
    (table,) = struct.unpack_from("<Q", file, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", file, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", file, table + number * size) for number in range(count)]
    names = file[headers[names_index][4] :]
    return {
        names[name : names.index(b"\0", name)].decode(): file[offset : offset + length]
        for name, _, _, _, offset, length in headers
    }


def entry_of(function: str) -> ctypes.c_void_p:
    """The function's entry in the loaded module's table."""
    path = str(Path(_native.__file__).resolve())
    parts = sections(Path(path).read_bytes())
    start = next(
        int(line.split("-")[0], 16) for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(path)
    )
    for offset, info, _ in struct.iter_unpack("<QQq", parts[".rela.dyn"] + parts.get(".rela.plt", b"")):
        if info & 0xFFFFFFFF in (GLOB_DAT, JUMP_SLOT):
            (name,) = struct.unpack_from("<I", parts[".dynsym"], (info >> 32) * 24)
            if parts[".dynstr"][name:].split(b"\0", 1)[0].decode() == function:
                return ctypes.c_void_p.from_address(start + offset)
    raise LookupError(f"{path} does not call {function}")


@contextmanager
def replaced(function: str, address: int | None) -> Iterator[None]:
    """Within this context the module calls the function at this address instead."""
    library = ctypes.CDLL(None, use_errno=True)
    entry = entry_of(function)
    page = ctypes.addressof(entry) // mmap.PAGESIZE * mmap.PAGESIZE
    may = mmap.PROT_READ | mmap.PROT_WRITE
    if library.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), may) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    before = entry.value
    entry.value = address
    try:
        yield
    finally:
        entry.value = before


@contextmanager
def failing(function: str) -> Iterator[None]:
    """Within this context `fdatasync`, or another function that takes only a descriptor, fails on files with ENOTTY."""
    tcdrain = ctypes.CDLL(None).tcdrain
    with replaced(function, ctypes.cast(tcdrain, ctypes.c_void_p).value):
        yield


@contextmanager
def calling_first(function: str, first: Callable[[], object]) -> Iterator[None]:
    """Within this context, calls `first` before each call of a function that takes one pointer and returns an int."""
    real = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(entry_of(function).value)

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    def call(argument: int) -> int:
        first()
        return real(argument)

    with replaced(function, ctypes.cast(call, ctypes.c_void_p).value):
        yield
