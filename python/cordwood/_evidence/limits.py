"""The limits of the values that evidence consists of."""

DETAILED_MAX = 50
"""Regions, keys and pictures are kept for at most this many logs."""
LISTED_MAX = 1000
"""At most this many regions, deleted keys and overwritten keys of a log are listed."""
FIRST_LEN = 16
KEY_LEN_MAX = 256
"""Bytes of a key that are kept."""
FOLLOWED_MAX = 1_000_000
"""The value of at most this many keys of a log is looked for, ..."""
FOLLOWED_LEN_MAX = 128 << 20
"""... whose lengths add up to at most this many bytes."""
