#!/usr/bin/env python3
"""Writes a short run with the wandb release that this Python has installed, without data about the machine.

    PYTHON tools/wandb_run.py FILE

`tests/vectors` has such runs of old releases, and `tests/cli/test_tables.py` knows the values logged here. The times
differ from run to run, so a new file is never the same.
"""

import os
import sys
import tempfile
from pathlib import Path

STEPS = range(8)
KEPT = ("run", "config", "history", "summary", "output", "exit")


def log_run(directory: Path) -> Path:
    os.environ |= {"WANDB_MODE": "offline", "WANDB_DIR": str(directory), "WANDB_SILENT": "true"}
    import wandb

    run = wandb.init(project="cordwood", id="vector02", config={"lr": 0.1, "layers": [64, 10]})
    for step in STEPS:
        run.log({"loss": 1 / (step + 1), "step_text": f"s{step}", "nested": {"a": step, "b": [step, 0.5]}})
    run.summary["best"] = 0.25
    run.finish()
    [path] = directory.glob("wandb/offline-run-*/*.wandb")
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = log_run(Path(name))
        from wandb.proto.wandb_internal_pb2 import Record
        from wandb.sdk.internal.datastore import DataStore

        source, target = DataStore(), DataStore()
        source.open_for_scan(str(path))
        target.open_for_write(sys.argv[1])
        while (data := source.scan_data()) is not None:
            record = Record.FromString(bytes(data))
            if record.WhichOneof("record_type") not in KEPT:
                continue
            record.ClearField("control")
            record.ClearField("uuid")
            for field, _ in record.run.ListFields() if record.HasField("run") else ():
                if field.name not in ("run_id", "project", "config", "summary", "start_time"):
                    record.run.ClearField(field.name)
            target.write(record)
        target.close()


if __name__ == "__main__":
    main()
