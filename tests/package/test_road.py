"""`tools/road.py` counts the package's files whose functions a command calls."""

import subprocess
import sys
from pathlib import Path

import entities

import cordwood

ROOT = Path(__file__).parents[2]

FILE_COUNT_MAX = 15
"""Someone who follows a conversion through the code should have to open only a few files."""


def test_a_conversion_to_parquet_calls_functions_in_only_a_few_files(tmp_path):
    log = tmp_path / "output-0"
    with cordwood.open(log, "w") as writer:
        writer.append(entities.entity([("Task", 1)], {"n": 1}))
    table = tmp_path / "table.parquet"
    command = [sys.executable, ROOT / "tools/road.py", "convert", "--as", "entity", "--to", "parquet", log, table]
    *files, total = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert table.exists()
    assert total == f"{len(files)} files"
    assert "cli/convert/__init__.py" in {line.split()[0] for line in files}
    assert len(files) <= FILE_COUNT_MAX, files
