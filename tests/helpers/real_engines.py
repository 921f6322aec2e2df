"""Files that real engines write and read: a database's log, a wandb run."""

import os
import subprocess
import sys
from pathlib import Path

from wandb.sdk.internal.datastore import DataStore


def the_log_of(directory) -> Path:
    """The log that a database writes to: the one with the highest number."""
    return max(Path(directory).glob("*.log"))


def offline_run(directory, script) -> Path:
    """The run file that a script writes with wandb."""
    return offline_program(directory, ["-c", script])


def offline_program(directory, arguments) -> Path:
    """The run file that a program, started in the directory with these arguments of Python, writes with wandb."""
    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(directory), "WANDB_SILENT": "true", "HOME": str(directory)}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=directory, env=os.environ | environment, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    [path] = Path(directory).glob("wandb/offline-run-*/*.wandb")
    return path


def scan_wandb(path) -> list[bytes]:
    """The records of a run, read by wandb's own reader."""
    store = DataStore()
    store.open_for_scan(str(path))
    records = []
    while (record := store.scan_data()) is not None:
        records.append(bytes(record))
    store.close()
    return records
