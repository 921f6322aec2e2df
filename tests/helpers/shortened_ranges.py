"""Ranges of a log that are cut off while they are read, as a runner of Apache Beam does, and random logs for them."""

import io
import random

import cordwood
from cordwood import BLOCK_LEN

DIALECTS = ["leveldb", "wandb", "wandb_old", "swanlab", "packed"]


def random_log(rng, dialect, **options):
    """A log of up to 20 blocks, in most cases damaged, in which some records are longer than a block."""
    file = io.BytesIO()
    with cordwood.Writer(file, dialect=dialect, **options) as writer:
        block_count = rng.choice([1, 5, 20])
        lens = rng.choice([[0, 40, 300], [100, 5_000], [1_000, 40_000], [BLOCK_LEN - 7, BLOCK_LEN - 14], [90_000]])
        while writer.tell() < block_count * BLOCK_LEN:
            writer.append(rng.randbytes(rng.randrange(rng.choice(lens) + 1)))
    data = bytearray(file.getvalue())
    for _ in range(rng.choice([0, 1, 2, 4, 8])):
        damage(rng, data)
    return bytes(data)


def damage(rng, data):
    start = rng.randrange(len(data))
    block = start - start % BLOCK_LEN
    length = rng.choice([1, 7, 100, BLOCK_LEN])
    match rng.randrange(7):
        case 0:
            data[start] ^= 1 << rng.randrange(8)
        case 1:
            # A header at the start of a block, or the last bytes of the block before it.
            data[min(max(block + rng.randrange(-7, 7), 0), len(data) - 1)] ^= 1 << rng.randrange(8)
        case 2:
            data[start : start + length] = bytes(len(data[start : start + length]))
        case 3:
            data[start : start + length] = rng.randbytes(len(data[start : start + length]))
        case 4:
            data[block:block] = data[block : block + BLOCK_LEN]
        case 5 if len(data) > BLOCK_LEN:
            del data[block : block + BLOCK_LEN]
        case _:
            del data[start + 1 :]


def merged(regions):
    """The regions, of which those that lie next to each other and are otherwise equal are one."""
    whole = []
    for region in sorted(regions):
        if whole and whole[-1].end_offset == region.offset and whole[-1][2:] == region[2:]:
            whole[-1] = whole[-1]._replace(end_offset=region.end_offset)
        else:
            whole.append(region)
    return whole


class Tracker:
    """The range that a worker has: `OffsetRestrictionTracker` in a few lines."""

    def __init__(self, start, stop):
        self.start = start
        self.stop = stop
        self._last = start - 1

    def try_claim(self, place):
        assert place > self._last
        self._last = place
        return place < self.stop

    def try_split(self, fraction):
        """Cuts off the end of what has not been claimed, and returns it."""
        cut = self._last + max(1, int((self.stop - self._last) * fraction))
        if cut >= self.stop:
            return None
        rest = (cut, self.stop)
        self.stop = cut
        return rest

    def check_done(self):
        assert self._last >= self.stop - 1


class Splitting:
    """A tracker that is also split, by another thread, at any moment: before and after each claim.

    Attributes:
        rests: Gets the ranges that are cut off.
    """

    def __init__(self, rng, tracker, rests):
        self._rng = rng
        self._tracker = tracker
        self._odds = rng.choice([0.1, 0.5, 0.9])
        self.rests = rests

    def try_claim(self, place):
        self._split()
        claimed = self._tracker.try_claim(place)
        self._split()
        return claimed

    def _split(self):
        if self._rng.random() < self._odds:
            rest = self._tracker.try_split(self._rng.choice([0, 0.01, 0.3, 0.5, 0.9]))
            if rest:
                self.rests.append(rest)


def seeded(*parts):
    return random.Random(repr(parts))
