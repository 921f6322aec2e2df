"""Implements `async for` and `async with` for a `Follower`.

This is a separate module so that `asyncio` is only imported if needed.
"""

from __future__ import annotations

import asyncio
from typing import Self

from cordwood._native import Follower, Record

_PAUSE_MAX = 0.1
"""The maximum number of seconds before checking again whether the follower was closed."""


class FollowerRecords:
    """A follower's records, as `bytes` or with their offsets.

    The iterator sleeps and reads in the event loop, at most 1 MiB at a time. Cancelling a waiting task doesn't leave a
    thread running or lose a record.
    """

    def __init__(self, follower: Follower, has_offsets: bool) -> None:  # noqa: FBT001 - called in Rust
        self._follower = follower
        self._has_offsets = has_offsets

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record | bytes:
        """Waits for a record, like `Follower.__next__`. The iteration ends if none arrives before the timeout."""
        follower = self._follower
        # Other tasks must get a turn even if a record is always available. No record is held across an await, because a
        # task cancelled there would lose it.
        await asyncio.sleep(0)
        clock = asyncio.get_running_loop().time
        deadline = None if follower.timeout is None else clock() + follower.timeout
        while (record := follower.poll()) is None and follower.outcome.kind == "unfinished":
            until = clock() + follower.delay
            if deadline is not None:
                if clock() >= deadline:
                    break
                until = min(until, deadline)
            while True:
                # Sleep at least once so that other tasks get a turn even if the delay is 0.
                await asyncio.sleep(min(until - clock(), _PAUSE_MAX))
                if clock() >= until or follower.closed:
                    break
        if record is None:
            raise StopAsyncIteration
        return record if self._has_offsets else record.data


async def entered(follower: Follower) -> Follower:
    """Implements `Follower.__aenter__`."""
    return follower.__enter__()


async def left(follower: Follower) -> None:
    """Implements `Follower.__aexit__`."""
    follower.close()
