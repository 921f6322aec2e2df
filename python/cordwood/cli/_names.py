"""What the name of a file says about it."""

from __future__ import annotations

import os
import re

_ENGINE_NAMES = {"write-batch": r"[0-9]+\.log", "version-edit": r"MANIFEST-[0-9]+"}
"""How databases name their logs, by what their records are."""


def is_engine_name(path: str, payload: str) -> bool:
    """Whether a file has the name that a database gives to its logs with this payload."""
    name = _ENGINE_NAMES.get(payload)
    return name is not None and re.fullmatch(name, os.path.basename(path)) is not None  # noqa: PTH119 - slow to import


LIST_SUFFIX = ".export_metadata"
"""The end of the name of the list of the files in one folder of a Datastore or Firestore export."""

OVERALL_SUFFIX = ".overall_export_metadata"
"""The end of the name of the log that describes a whole export."""


def is_of_export(path: str) -> bool:
    """Whether a file is named like one that describes an export."""
    return path.endswith((LIST_SUFFIX, OVERALL_SUFFIX))
