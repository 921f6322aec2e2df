"""Limits for the lists and values in evidence."""

DETAILED_MAX = 50
"""Regions, keys and pictures are kept for at most this many logs."""
LISTED_MAX = 1000
"""At most this many regions, deleted keys and overwritten keys of a log are listed."""
FIRST_LEN = 16
KEY_LEN_MAX = 256
"""At most this many bytes of a key are kept."""
FOLLOWED_MAX = 1_000_000
"""The values of at most this many keys of a log are tracked."""
FOLLOWED_LEN_MAX = 128 << 20
"""The maximum total length of the tracked keys in bytes."""
