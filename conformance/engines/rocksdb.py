"""Prints the records of a log as RocksDB's reader returns them, with rocksdb.cc and the library of a Python package.

python rocksdb.py LIBRARY CALLS RECOVERY_MODE PATH
"""

import ctypes
import sys

library, calls, mode, path = sys.argv[1:]
# Its symbols are those that the calls need.
ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
sys.exit(ctypes.CDLL(calls).read_log(path.encode(), int(mode)))
