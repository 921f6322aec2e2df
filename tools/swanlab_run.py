#!/usr/bin/env python3
"""Writes a run file as a release of SwanLab before 0.8 does, with records as SwanLab makes them.

    python tools/swanlab_run.py WHEEL FILE

WHEEL is a wheel of SwanLab, of which only the class that writes is used; the same wheel writes the same bytes each
time. `tests/vectors` has such a run of each version of the format.
"""

import json
import sys
import types
import zipfile


def data_store(wheel: str) -> type:
    """The class `DataStore` of a wheel, without the package around it."""
    with zipfile.ZipFile(wheel) as files:
        [name] = [name for name in files.namelist() if name.endswith("/datastore.py") and "wb" not in name]
        source = files.read(name)
    error = types.ModuleType("swanlab.error")
    error.ValidationError = ValueError
    sys.modules |= {"swanlab": types.ModuleType("swanlab"), "swanlab.error": error}
    names: dict[str, type] = {}
    exec(compile(source, name, "exec"), names)  # noqa: S102 - a module of the wheel
    return names["DataStore"]


def records() -> list[tuple[str, dict[str, object]]]:
    """The models of a short run, one of which is cut at the end of a block."""
    time = "2025-06-05T16:32:00.000000+00:00"
    scalars = [
        ("Scalar", {"metric": {"index": step, "data": 1 / (step + 1)}, "key": "loss", "step": step, "epoch": step + 1})
        for step in range(4)
    ]
    return [
        ("Header", {"backup_type": "DEFAULT", "create_time": time}),
        ("Project", {"name": "cordwood", "workspace": None, "public": None}),
        ("Log", {"create_time": time, "message": "über " * 6_600, "epoch": 1, "level": "INFO"}),
        *scalars,
        ("Footer", {"create_time": time, "success": True}),
    ]


def main() -> None:
    wheel, file = sys.argv[1:]
    store = data_store(wheel)()
    store.open_for_write(file)
    for model_type, data in records():
        store.write(json.dumps({"model_type": model_type, "data": data}, ensure_ascii=False) + "\n")
    store.close()


if __name__ == "__main__":
    main()
