"""Limits for the lists and values in evidence."""

DETAILED_MAX = 50
"""The maximum number of logs whose regions, keys and pictures are included."""
LISTED_MAX = 1000
"""The maximum number of regions, of deleted keys and of overwritten keys to list for each log."""
FIRST_LEN = 16
KEY_LEN_MAX = 256
"""Longer keys are cut off after this many bytes."""
FOLLOWED_MAX = 1_000_000
"""Values are tracked for at most this many keys per log."""
FOLLOWED_LEN_MAX = 128 << 20
"""The maximum total length, in bytes, of the tracked keys."""
