"""Limits for the lists and values in evidence."""

DETAILED_MAX = 50
"""The maximum number of logs for which regions, keys and pictures are kept."""
LISTED_MAX = 1000
"""The maximum number of regions, of deleted keys and of overwritten keys to list for each log."""
FIRST_LEN = 16
KEY_LEN_MAX = 256
"""The maximum number of bytes kept for each key."""
FOLLOWED_MAX = 1_000_000
"""The maximum number of keys per log whose values are tracked."""
FOLLOWED_LEN_MAX = 128 << 20
"""The maximum total length, in bytes, of the tracked keys."""
