"""JSON in one line. A module of its own, since `json` is loaded only where it is asked for."""

from __future__ import annotations

import json

json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as JSON, in one line. One encoder for all: making one takes as long as a line."""
