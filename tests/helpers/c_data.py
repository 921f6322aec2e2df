"""The structures of the Arrow C Data Interface, for ctypes."""

import ctypes


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE = {struct: ctypes.CFUNCTYPE(None, ctypes.POINTER(struct)) for struct in (Schema, Array, Stream)}
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE[Schema]),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE[Array]),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))),
    ("release", RELEASE[Stream]),
    ("private_data", ctypes.c_void_p),
]


def pointed(capsule, struct, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return struct.from_address(get(capsule, name))


def copied(callback):
    """A copy of a callback: ctypes returns a view of the structure's field, not the pointer in it."""
    return type(callback)(ctypes.cast(callback, ctypes.c_void_p).value)


def counted(struct, calls):
    """Counts the calls to a structure's `release` callback."""
    release = copied(struct.release)

    def count(pointer):
        calls.append(type(struct).__name__)
        pointer.contents.release = release
        release(pointer)
        assert not pointer.contents.release

    callback = RELEASE[type(struct)](count)
    struct.release = callback
    return callback
