"""Decodes the data that programs store in their log records.

>>> from cordwood.payload import WriteBatch
>>> record = bytes.fromhex("0700000000000000 02000000 01036b65790576616c7565 00036f6c64")
>>> for operation in WriteBatch(record):
...     print(operation.sequence, operation.kind, operation.key, operation.value)
7 put b'key' b'value'
8 delete b'old' None

`WriteBatch` is a record in a LevelDB, RocksDB or Pebble write-ahead log, and `VersionEdit` is a record in a MANIFEST.
Each kind of payload has its own module, with a `to_dict` function. Two of the modules must be imported separately:
`entity`, for Datastore and Firestore exports, and `wandb`, for Weights & Biases runs.
"""

from cordwood.errors import PayloadError
from cordwood.payload.version_edit import VersionEdit
from cordwood.payload.write_batch import Operation, OperationKind, WriteBatch
from cordwood.types import PayloadReason

__all__ = ["Operation", "OperationKind", "PayloadError", "PayloadReason", "VersionEdit", "WriteBatch"]
