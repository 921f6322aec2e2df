"""Files that real engines write and read: the log of a database, the run of wandb."""

import os
import subprocess
import sys
from pathlib import Path

from wandb.sdk.internal.datastore import DataStore


def the_log_of(folder) -> Path:
    """The log that a database writes to: that with the highest number."""
    return max(Path(folder).glob("*.log"))


def offline_run(folder, script) -> Path:
    """The file of the run that a script makes with wandb."""
    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(folder), "WANDB_SILENT": "true", "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    [path] = Path(folder).glob("wandb/offline-run-*/*.wandb")
    return path


def scan_wandb(path) -> list[bytes]:
    """The records of a run, as wandb's own reader finds them."""
    store = DataStore()
    store.open_for_scan(str(path))
    records = []
    while (record := store.scan_data()) is not None:
        records.append(bytes(record))
    store.close()
    return records
