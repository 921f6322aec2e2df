"""What the name of a file says about it."""

from __future__ import annotations

import os
import re

_ENGINE_NAMES = {"write-batch": r"[0-9]+\.log", "version-edit": r"MANIFEST-[0-9]+"}
"""How databases name their logs, by what their records are."""

_LOG_NAME = (
    r"(?is)(?:.*[^a-z])?(?:log|wal|manifest|wandb|swanlab|export_metadata)(?:[^a-z].*)?|output-[0-9]+(?:[^a-z0-9].*)?"
)
"""The names of logs, and of their copies: `000003.log`, `app.log.1`, `MANIFEST-000002`, `run-1.wandb`, `output-0`."""


def is_log_name(path: str) -> bool:
    """Whether a file has the name of a log, or of a copy of one."""
    return re.fullmatch(_LOG_NAME, os.path.basename(path)) is not None  # noqa: PTH119 - pathlib is slow to import


def is_engine_name(path: str, payload: str | None = None) -> bool:
    """Whether a file has the name that a database gives to its logs, or to those with this payload."""
    base = os.path.basename(path)  # noqa: PTH119
    return any(re.fullmatch(name, base) for kind, name in _ENGINE_NAMES.items() if payload in (None, kind))


LIST_SUFFIX = ".export_metadata"
"""The end of the name of the list of the files in one folder of a Datastore or Firestore export."""

OVERALL_SUFFIX = ".overall_export_metadata"
"""The end of the name of the log that describes a whole export."""


def is_of_export(path: str) -> bool:
    """Whether a file is named like one that describes an export."""
    return path.endswith((LIST_SUFFIX, OVERALL_SUFFIX))
