"""Reading changes no file, creates none, and removes none."""

import shutil
from pathlib import Path

import cordwood

VECTORS = Path(__file__).parents[1] / "vectors"


def state(folder):
    """What reading must not change of each file."""
    paths = sorted(folder.rglob("*"))
    return [
        (path, path.stat().st_mtime_ns, path.stat().st_mode, path.is_file() and path.read_bytes()) for path in paths
    ]


def test_reading_changes_no_file(tmp_path):
    folder = tmp_path / "logs"
    for name in ("leveldb", "rocksdb", "pebble", "wandb", "swanlab", "appengine"):
        shutil.copytree(VECTORS / name, folder / name)
    with cordwood.open(folder / "segments", "a", segment_len=100) as log:
        log.extend(b"record %d" % number for number in range(30))
    (folder / "torn.log").write_bytes(bytes.fromhex("dd5fb37a0300016f"))
    before = state(folder)
    assert len(before) > 30

    cordwood.info(folder)
    logs = [path for path, result in cordwood.verify(folder).items() if not isinstance(result, Exception)]
    assert len(logs) > 10
    for path in logs:
        cordwood.stat(path)
        if Path(path).is_file():
            list(cordwood.fragments(path))
        with cordwood.open(path, on_corruption="salvage") as reader:
            list(reader.records())
        with cordwood.follow(path) as follower:
            follower.poll()
    assert state(folder) == before
