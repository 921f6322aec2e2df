"""The dataset of `docs/guides/training.md` resumes exactly, wherever it was interrupted. No torch is needed."""

import json

import pytest
import torch_substitute

import cordwood

LOGS = {
    "leveldb": {},
    "wandb": {"dialect": "wandb"},
    "packed": {"dialect": "packed", "compression": "zstd"},
    "numbered": {"dialect": "rocksdb", "log_number": 7},
    "compressed": {"dialect": "rocksdb", "compression": "zstd"},
}


@pytest.fixture
def torch_data(monkeypatch):
    return torch_substitute.installed(monkeypatch)


@pytest.fixture
def dataset(torch_data):
    return torch_substitute.dataset_of_the_page()


def written(directory, options):
    """Three logs: short records, some that extend over several splits, none."""
    for name, records in {
        "1.log": [b"%d " % number * (number * 7919 % 3000) for number in range(25)],
        "2.log": [b"%d" % number * (90_000 if number % 5 == 0 else 40) for number in range(9)],
        "3.log": [],
    }.items():
        with cordwood.open(directory / name, "w", **options) as writer:
            writer.extend(records)
    return sorted(directory.glob("*.log"))


def first(iterator, count):
    return [next(iterator) for _ in range(count)]


def check_each_cut(make):
    """Interrupts after each record; the rest must be the rest. Returns the number of cuts."""
    whole = list(make())
    for count in range(len(whole) + 1):
        started = make()
        assert first(iter(started), count) == whole[:count]
        resumed = make()
        resumed.load_state_dict(json.loads(json.dumps(started.state_dict())))
        assert list(resumed) == whole[count:], count
    return len(whole) + 1


@pytest.mark.parametrize("split_len", [32_768, 100_000])
@pytest.mark.parametrize("name", LOGS)
def test_iteration_can_resume_after_each_record(dataset, tmp_path, name, split_len):
    paths = written(tmp_path, LOGS[name])
    whole = [record for path in paths for record in cordwood.open(path)]
    assert list(dataset(paths, split_len)) == whole
    assert check_each_cut(lambda: dataset(paths, split_len)) == len(whole) + 1 == 35


@pytest.mark.parametrize("policy", ["skip", "salvage"])
@pytest.mark.parametrize("name", LOGS)
def test_a_resumed_dataset_skips_the_same_damage(dataset, tmp_path, name, policy):
    paths = written(tmp_path, LOGS[name])
    for path in paths[:2]:
        content = bytearray(path.read_bytes())
        for place in range(4_000, len(content), 30_000):
            content[place] ^= 1
        path.write_bytes(content)
    whole = [record for path in paths for record in cordwood.open(path, on_corruption=policy)]
    make = lambda: dataset(paths, 32_768, on_corruption=policy)  # noqa: E731
    assert list(make()) == whole
    assert check_each_cut(make) > 1


def test_workers_and_ranks_divide_the_records_and_can_resume_reading(dataset, torch_data, tmp_path):
    paths = written(tmp_path, {})
    shares = []
    for rank in range(2):
        for worker in range(3):
            torch_data.be(worker, 3)
            make = lambda rank=rank: dataset(paths, 32_768, rank=rank, world_size=2)  # noqa: E731
            check_each_cut(make)
            shares.extend(make())
    assert sorted(shares) == sorted(record for path in paths for record in cordwood.open(path))


def test_a_second_epoch_starts_from_the_beginning(dataset, tmp_path):
    data = dataset(written(tmp_path, {}), 32_768)
    once = list(data)
    assert list(data) == once
    data.load_state_dict({"position": [1, None]})
    rest = list(data)
    assert 0 < len(rest) < len(once)
    assert list(data) == once
