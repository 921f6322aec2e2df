"""Reading changes no file, creates none, and removes none."""

import shutil
from pathlib import Path

import cordwood

VECTORS = Path(__file__).parents[1] / "vectors"


def state(directory):
    """What reading must not change of each file."""
    paths = sorted(directory.rglob("*"))
    return [
        (path, path.stat().st_mtime_ns, path.stat().st_mode, path.is_file() and path.read_bytes()) for path in paths
    ]


def test_reading_leaves_every_file_untouched(tmp_path):
    directory = tmp_path / "logs"
    for name in ("leveldb", "rocksdb", "pebble", "wandb", "swanlab", "appengine"):
        shutil.copytree(VECTORS / name, directory / name)
    with cordwood.open(directory / "segments", "a", segment_len=100) as log:
        log.extend(b"record %d" % number for number in range(30))
    (directory / "torn.log").write_bytes(bytes.fromhex("dd5fb37a0300016f"))
    before = state(directory)
    assert len(before) > 30

    cordwood.info(directory)
    logs = [path for path, result in cordwood.verify(directory).items() if not isinstance(result, Exception)]
    assert len(logs) > 10
    for path in logs:
        cordwood.stat(path)
        if Path(path).is_file():
            list(cordwood.fragments(path))
        with cordwood.open(path, on_corruption="salvage") as reader:
            list(reader.records())
        with cordwood.follow(path) as follower:
            follower.poll()
    assert state(directory) == before
