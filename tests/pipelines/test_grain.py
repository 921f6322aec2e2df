"""The recipe of `docs/guides/training.md` for Grain: a shuffle by seed and epoch, equal shares, and exact resuming."""

import json
import pickle
import re
from collections import Counter
from pathlib import Path

import pytest

import cordwood

pytest.importorskip("grain", reason="make test-engines installs it")

PAGE = Path(__file__).parents[2] / "docs/guides/training.md"
COUNT = 1_001
RECORDS = [b"sample %d" % number for number in range(COUNT)]
SIZE = 16


@pytest.fixture
def batches(tmp_path):
    """The function of the page, for an index of two logs."""
    for name, records in ("1.log", RECORDS[:400]), ("2.log", RECORDS[400:]):
        with cordwood.open(tmp_path / name, "w") as writer:
            writer.extend(records)
    code = re.search(r"```python\n(import grain\n.*?)\n\n\n", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    names = {"cordwood": cordwood}
    exec(code, names)  # noqa: S102 - the page's own code
    # As in the process of a worker.
    index = pickle.loads(pickle.dumps(cordwood.index(tmp_path)))  # noqa: S301 - our own bytes
    return lambda rank, ranks, **options: names["batches"](index, rank, ranks, batch_size=SIZE, **options)


def flat(batches):
    return [record for batch in batches for record in batch.tolist()]


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_ranks_receive_equal_shares_of_each_epoch(batches, ranks):
    shares = [flat(batches(rank, ranks, epochs=2)) for rank in range(ranks)]
    assert {len(share) for share in shares} == {2 * COUNT // ranks // SIZE * SIZE}
    # In turns, as the shuffled records were given to the ranks.
    both = [record for turn in zip(*shares, strict=True) for record in turn]
    assert sorted(both[:COUNT]) == sorted(RECORDS)
    left_out = Counter(RECORDS) - Counter(both[COUNT:])
    assert left_out.total() == 2 * COUNT - len(both) < ranks * (SIZE + 1)


def test_the_order_depends_only_on_the_seed_and_the_epoch(batches):
    one = flat(batches(0, 1, epochs=2))
    assert one == flat(batches(0, 1, epochs=2))
    assert one != flat(batches(0, 1, epochs=2, seed=1))
    first, second = one[: COUNT - SIZE], one[COUNT : 2 * COUNT - SIZE]
    assert RECORDS[: COUNT - SIZE] != first != second


@pytest.mark.parametrize(("rank", "ranks"), [(0, 1), (2, 3)])
def test_a_pipeline_resumes_after_any_batch(batches, rank, ranks):
    whole = list(batches(rank, ranks, epochs=2))
    started = batches(rank, ranks, epochs=2)
    for count in range(len(whole) + 1):
        state = json.loads(json.dumps(started.get_state()))
        resumed = batches(rank, ranks, epochs=2)
        resumed.set_state(state)
        assert flat(resumed) == flat(whole[count:])
        next(started, None)
