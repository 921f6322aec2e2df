#!/usr/bin/env python3
"""Writes logs of RocksDB that state the lengths of timestamps late, and opens RocksDB on the salvaged logs.

    .venv/bin/python tools/rocksdb_timestamps.py HEADERS

A column family with timestamps that is created while a log is in use makes RocksDB write a record of type 10 or 11 in
the middle of the log. No Python package of RocksDB creates one, so this program compiles a few calls against the
library inside a package. It needs

* a C++17 compiler, `c++`;
* the package pyrex-rocksdb 0.6.0 (RocksDB 10.7.5) in the Python that runs it, beside cordwood;
* HEADERS: the directory `rocksdb/include` of the crate rust-librocksdb-sys 0.40.0+10.7.5, which is downloaded by
  `cargo fetch` for any package that names it, to `registry/src` below the home of cargo.

It writes tests/vectors/rocksdb/late-timestamps-*. Record changes in tests/vectors/README.md; a test checks the table.
"""

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cordwood

VECTORS = Path(__file__).parents[1] / "tests" / "vectors" / "rocksdb"
FORMS = {"plain": (0, 0), "compressed": (0, 1), "recycled": (1, 0), "recycled-compressed": (1, 1)}

CALLS = r"""
#include <cstdio>
#include <memory>
#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

using namespace rocksdb;

static const int kPlain = 3, kTimestamped = 40;

static std::string Key(int i) { return "k" + std::to_string(i); }
static std::string Value(int i) { return std::string(20 + i * 7 % 30, 'a' + i % 26); }
static std::string Time(uint64_t time) { return std::string(reinterpret_cast<char*>(&time), 8); }

static DBOptions Configured(int recycled, int compressed) {
  DBOptions options;
  options.create_if_missing = true;
  options.recycle_log_file_num = recycled ? 2 : 0;
  options.wal_compression = compressed ? kZSTD : kNoCompression;
  return options;
}

static ColumnFamilyOptions Timestamped() {
  ColumnFamilyOptions options;
  options.comparator = BytewiseComparatorWithU64Ts();
  return options;
}

#define TRY(call)                                         \
  do {                                                    \
    Status s = (call);                                    \
    if (!s.ok()) {                                        \
      fprintf(stderr, "%s: %s\n", #call, s.ToString().c_str()); \
      return -1;                                          \
    }                                                     \
  } while (0)

static std::unique_ptr<DB> db;

// Writes a database whose newest log has a column family with timestamps from its fourth record on, and leaves it open.
extern "C" int make(const char* directory, int recycled, int compressed) {
  DB* opened = nullptr;
  // It is copied while it is open: no file may vanish.
  ColumnFamilyOptions quiet;
  quiet.disable_auto_compactions = true;
  TRY(DB::Open(Options(Configured(recycled, compressed), quiet), directory, &opened));
  db.reset(opened);
  // Each flush starts a new log; with recycling, in the file of an older one.
  for (int round = 0; recycled && round < 4; round++) {
    for (int i = 0; i < 400; i++) TRY(db->Put(WriteOptions(), "old" + std::to_string(i), std::string(90, 'o')));
    TRY(db->Flush(FlushOptions()));
  }
  for (int i = 0; i < kPlain; i++) TRY(db->Put(WriteOptions(), Key(i), Value(i)));
  ColumnFamilyHandle* family = nullptr;
  TRY(db->CreateColumnFamily(Timestamped(), "timestamped", &family));
  for (int i = 0; i < kTimestamped; i++) TRY(db->Put(WriteOptions(), family, Key(i), Time(1000 + i), Value(i)));
  TRY(db->DestroyColumnFamilyHandle(family));
  return 0;
}

extern "C" int close_made() {
  TRY(db->Close());
  db.reset();
  return 0;
}

// Opens the database and returns how many of its values are found.
extern "C" int found(const char* directory, int recycled, int compressed) {
  std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, ColumnFamilyOptions()}, {"timestamped", Timestamped()}};
  std::vector<ColumnFamilyHandle*> handles;
  DB* opened = nullptr;
  TRY(DB::Open(Configured(recycled, compressed), directory, families, &handles, &opened));
  db.reset(opened);
  int count = 0;
  std::string value;
  for (int i = 0; i < kPlain; i++) {
    count += db->Get(ReadOptions(), Key(i), &value).ok() && value == Value(i);
  }
  ReadOptions now;
  std::string time = Time(1 << 20);
  Slice time_slice(time);
  now.timestamp = &time_slice;
  for (int i = 0; i < kTimestamped; i++) {
    count += db->Get(now, handles[1], Key(i), &value).ok() && value == Value(i);
  }
  for (ColumnFamilyHandle* handle : handles) TRY(db->DestroyColumnFamilyHandle(handle));
  return close_made() == 0 ? count : -1;
}
"""

PLAIN_COUNT, RECORD_COUNT = 3, 43


def compiled(headers: str, directory: Path) -> ctypes.CDLL:
    """The calls above, linked to the RocksDB in the package."""
    spec = importlib.util.find_spec("pyrex")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("pyrex-rocksdb is not installed in this Python")
    [library] = Path(spec.submodule_search_locations[0]).glob("_pyrex*.so")
    source, target = directory / "calls.cc", directory / "calls.so"
    source.write_text(CALLS)
    subprocess.run(
        ["c++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{headers}", str(source), "-o", str(target)], check=True
    )
    # Its symbols are those that the calls need.
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(target))


def require(is_so: bool, what: str) -> None:
    """Ends the program if a check fails."""
    if not is_so:
        raise SystemExit(what)


def log_of(database: Path) -> Path:
    """The log with the late record: the newest one that is not empty."""
    logs = [log for log in sorted(database.glob("*.log")) if cordwood.stat(log).record_count]
    return logs[-1]


def check(calls: ctypes.CDLL, database: Path, form: tuple[int, int], directory: Path) -> None:
    """Salvages the log, undamaged and with a flipped bit, and opens RocksDB on the result."""
    log = log_of(database)
    with cordwood.Reader(log) as reader:
        *_, last = reader.records()
        *_, sizes = (region for region in reader.skipped if region.reason == "metadata")
    # The flipped bit, whether it is repaired, and then: how many values RocksDB finds, and which were not kept.
    checks = {
        "nothing": (None, False, RECORD_COUNT, ()),
        # No fragment follows it in its block.
        "the last record": (last.offset, False, RECORD_COUNT - 1, ()),
        "the lengths": (sizes.offset, False, PLAIN_COUNT, ("timestamp_sizes",)),
        "the lengths, flipped back": (sizes.offset, True, RECORD_COUNT, ()),
    }
    for name, (start, repair, expected, not_kept) in checks.items():
        copy = directory / name
        shutil.copytree(database, copy)
        new = copy / log.name
        content = bytearray(new.read_bytes())
        if start is not None:
            content[start + 12] ^= 1
        new.unlink()
        old = directory / log.name
        old.write_bytes(content)
        report = cordwood.salvage(old, new, repair_bit_flips=repair)
        count = calls.found(str(copy).encode(), *form)
        print(f"  flipped: {name}: {report.record_count} records, RocksDB finds {count} values, {report.not_kept}")
        require((count, report.not_kept) == (expected, not_kept), "not as expected")


def main() -> None:
    with tempfile.TemporaryDirectory() as built:
        calls = compiled(sys.argv[1], Path(built))
    for name, form in FORMS.items():
        with tempfile.TemporaryDirectory() as made:
            directory = Path(made)
            written, database = directory / "written", directory / "db"
            require(calls.make(str(written).encode(), *form) == 0, "RocksDB failed")
            # While it is open, as after a crash: a recycled log is followed by the rest of an older one.
            shutil.copytree(written, database)
            require(calls.close_made() == 0, "RocksDB failed")
            log = log_of(database)
            check(calls, database, form, directory)
            target = VECTORS / f"late-timestamps-{name}" / log.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, target)
            print(f"  wrote {target}, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
