"""Limits for the lists and values in evidence."""

DETAILED_MAX = 50
"""Regions, keys and pictures are kept for at most this many logs."""
LISTED_MAX = 1000
"""The maximum length of each log's lists of regions, deleted keys and overwritten keys."""
FIRST_LEN = 16
KEY_LEN_MAX = 256
"""The maximum number of bytes kept for each key."""
FOLLOWED_MAX = 1_000_000
"""Values are tracked for at most this many keys per log."""
FOLLOWED_LEN_MAX = 128 << 20
"""The maximum total length, in bytes, of the tracked keys."""
