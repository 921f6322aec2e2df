"""Logs in jobs of Apache Spark: `make test-engines`. `test_spark_parts.py` tests all that needs no Spark."""

import json
import os
import random
import subprocess
import sys
from uuid import uuid4

import pytest
from support import HELPERS

pytest.importorskip("pyspark", reason="make test-engines installs it")

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession, functions

import cordwood

KIB = 1 << 10
DATA = random.Random(1).randbytes(1 << 20)
RECORDS = [DATA[at : at + [0, 9, 300, 5_000, 70_000][at % 5]] for at in range(1_000)]


@pytest.fixture(scope="module")
def spark():
    # The workers run this Python, in which cordwood is installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        # A task may fail once.
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        # Of workers that connect to a busy machine.
        .config("spark.python.authenticate.socketTimeout", "120s")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def write(path, records, **options):
    path.parent.mkdir(exist_ok=True)
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)


def damage(path):
    """Flips a bit in every fifth block."""
    data = bytearray(path.read_bytes())
    for at in range(40_000, len(data), 5 * cordwood.BLOCK_LEN):
        data[at] ^= 1
    path.write_bytes(data)


def read(spark, path, **options):
    return spark.read.format("cordwood").options(**options).load(str(path))


def records_of(frame):
    return sorted(bytes(row.record) for row in frame.select("record").collect())


def records_in(directory):
    """The records that a directory of logs shows, read without Spark."""
    return sorted(record for split in cordwood.plan_splits(directory, 1 << 40) for record in cordwood.open(split))


def hidden(directory):
    return [path.name for path in directory.parent.iterdir() if path.name.startswith(".")]


# Reading ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("logs")
    write(directory / "whole" / "a.log", RECORDS)
    write(directory / "numbered" / "000007.log", RECORDS[:300], dialect="rocksdb", log_number=7)
    write(directory / "damaged" / "b.log", RECORDS)
    damage(directory / "damaged" / "b.log")
    for number in range(300):
        write(directory / "small" / f"{number}.log", [b"%d" % number])
    return directory


def expected(directory, policy):
    return sorted(record for path in directory.iterdir() for record in cordwood.open(path, on_corruption=policy))


@pytest.mark.cell("one-file", "spark")
@pytest.mark.parametrize("partition_len", [256 * KIB, 1 << 20, 64 << 20])
@pytest.mark.parametrize(
    ("name", "policy"),
    [("whole", "raise"), ("damaged", "skip"), ("damaged", "salvage"), ("numbered", "raise"), ("small", "raise")],
)
def test_partition_length_does_not_affect_the_records(spark, logs, name, policy, partition_len):
    frame = read(spark, logs / name, on_corruption=policy, partition_len=partition_len)
    assert records_of(frame) == expected(logs / name, policy)


def test_skipped_regions_table_lists_the_same_bytes_as_a_report(spark, logs):
    frame = read(spark, logs / "damaged", table="skipped", partition_len=1 << 20)
    lengths = frame.groupBy("reason").agg(functions.expr("sum(end_offset - offset)")).collect()
    report = cordwood.verify(logs / "damaged" / "b.log")
    assert dict(map(tuple, lengths)) == {reason.value: length for reason, length in report.len_by_reason.items()}


def test_damage_fails_the_job_and_the_error_gives_the_offset(spark, logs):
    with pytest.raises(PySparkException, match=r"b\.log: .* bytes at offset"):
        read(spark, logs / "damaged").count()


def test_a_spark_schema_selects_columns_and_rejects_unknown_names(spark, logs):
    frame = (
        spark.read.format("cordwood").schema("length INT, offset BIGINT, salvaged BOOLEAN").load(str(logs / "whole"))
    )
    assert sorted(row.length for row in frame.collect()) == sorted(map(len, RECORDS))
    with pytest.raises(PySparkException, match="no column 'value'"):
        spark.read.format("cordwood").schema("value BINARY").load(str(logs / "whole")).count()


def test_a_temporary_view_works_in_sql_but_a_catalog_table_is_rejected(spark, tmp_path):
    write(tmp_path / "logs" / "a.log", [b"one", b"two"])
    options = f"using cordwood options (path '{tmp_path / 'logs'}')"
    spark.sql(f"create temporary view some_logs {options}")
    assert records_of(spark.table("some_logs")) == [b"one", b"two"]
    spark.sql(f"create global temporary view all_logs {options}")
    assert records_of(spark.newSession().table("global_temp.all_logs")) == [b"one", b"two"]
    try:
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
            spark.sql(f"create table more_logs {options}")
        spark.sql(f"create table more_logs (record binary) {options}")
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
            spark.table("more_logs").collect()
    finally:
        spark.sql("drop table if exists more_logs")


def test_a_saved_spark_table_can_be_read_by_its_path(spark, tmp_path):
    frame = spark.createDataFrame([(b"one",), (b"two",)], "record binary")
    saved = frame.write.format("cordwood").mode("append").option("path", str(tmp_path / "saved"))
    try:
        saved.saveAsTable("saved")
        assert records_of(read(spark, tmp_path / "saved")) == [b"one", b"two"]
        assert records_of(spark.read.option("path", str(tmp_path / "saved")).table("saved")) == [b"one", b"two"]
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
            spark.table("saved").collect()
    finally:
        spark.sql("drop table if exists saved")


def test_a_table_lists_the_records_that_could_not_be_decoded(spark, tmp_path):
    write(tmp_path / "logs" / "a.log", [b'{"n": 1}', b"no json"])
    [row] = read(spark, tmp_path / "logs", decode="json", table="left_out").collect()
    assert (row.path, row.offset) == (str(tmp_path / "logs" / "a.log"), 15)
    assert "JSON" in row.error


def test_type_mismatch_error_names_the_column(spark, tmp_path):
    write(tmp_path / "logs" / "a.log", [b'{"n": 1}', b'{"n": "x"}', b'{"n": null}'])
    frames = spark.read.format("cordwood").options(decode="json", on_corruption="skip")
    with pytest.raises(PySparkException, match="record at offset 15: the column 'n' is int32"):
        frames.schema("n INT").load(str(tmp_path / "logs")).count()
    rows = frames.schema("n STRING").load(str(tmp_path / "logs")).selectExpr("n", "try_cast(n AS INT)").collect()
    assert sorted(map(tuple, rows), key=str) == [("1", 1), ("x", None), (None, None)]


def test_an_invalid_option_raises_an_error_before_a_task_starts(spark, logs):
    for given in ({"onCorruption": "skip"}, {"on_corruption": "ignore"}, {"table": "damage"}):
        with pytest.raises(PySparkException, match=r"(?i)on_?corruption|table"):
            read(spark, logs / "whole", **given).count()


def test_decoded_json_is_stored_in_spark_columns(spark, tmp_path):
    write(tmp_path / "in" / "a.log", [b'{"n": %d, "in": {"text": "%d"}}' % (n, n) for n in range(1_000)])
    frame = read(spark, tmp_path / "in", decode="json", partition_len=32 * KIB)
    assert frame.selectExpr("sum(n)", "max(in.text)").collect() == [(499_500, "999")]


def test_spark_reads_a_directory_without_logs_as_empty_but_rejects_a_missing_path(spark, tmp_path):
    assert read(spark, tmp_path).count() == 0
    with pytest.raises(PySparkException, match="missing"):
        read(spark, tmp_path / "missing.log").count()


def test_reading_works_with_filter_pushdown_enabled(spark, logs):
    """A reader that could push filters down would fail without this setting; ours has none."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert read(spark, logs / "whole").where("offset < 10").count() == 2
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


# Writing ---------------------------------------------------------------------------------------


def failing_once(marker):
    """Passes batches on, but the first attempt of a task fails after it has written some."""

    def pass_on(batches):
        for batch in batches:
            yield batch
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            raise RuntimeError("the first attempt fails")

    return pass_on


def test_spark_jobs_append_to_or_overwrite_their_target(spark, logs, tmp_path):
    frame = read(spark, logs / "whole", partition_len=8 << 20).select("record")
    target = tmp_path / "out"
    frame.write.format("cordwood").mode("append").save(str(target))
    assert records_in(target) == sorted(RECORDS)
    frame.limit(3).write.format("cordwood").mode("append").save(f"file://{target}")
    assert len(records_in(target)) == len(RECORDS) + 3
    frame.limit(3).write.format("cordwood").option("dialect", "packed").mode("overwrite").save(str(target))
    assert len(records_in(target)) == 3
    assert hidden(target) == []


def test_a_retried_attempt_adds_each_record_once(spark, logs, tmp_path):
    target, marker = tmp_path / "out", tmp_path / "failed"
    frame = read(spark, logs / "whole", partition_len=16 << 20).select("record")
    again = frame.mapInArrow(failing_once(str(marker)), frame.schema)
    again.write.format("cordwood").mode("append").save(str(target))
    assert marker.exists()
    assert records_in(target) == sorted(RECORDS)
    assert hidden(target) == []


def test_a_failed_job_leaves_the_target_unchanged(spark, logs, tmp_path):
    target = tmp_path / "out"
    frame = read(spark, logs / "whole", partition_len=16 << 20).select("record")
    frame.limit(3).write.format("cordwood").mode("append").save(str(target))
    nulls = frame.selectExpr("if(length(record) = 9, null, record) as record")
    for mode in ("append", "overwrite"):
        with pytest.raises(PySparkException, match="of the column is null"):
            nulls.write.format("cordwood").mode(mode).save(str(target))
        assert len(records_in(target)) == 3
        assert hidden(target) == []


def test_rejects_tables_with_columns_other_than_the_record_column(spark, logs, tmp_path):
    for frame in (read(spark, logs / "small"), spark.range(3)):
        with pytest.raises(PySparkException, match="a log has one column"):
            frame.write.format("cordwood").mode("append").save(str(tmp_path / "out"))


# Streams ---------------------------------------------------------------------------------------


def start(spark, source, target, checkpoint):
    stream = spark.readStream.format("cordwood").load(str(source)).select("record")
    return (
        stream.writeStream.format("cordwood")
        .option("checkpointLocation", str(checkpoint))
        # Another one for each query: Spark may still know the last one's.
        .queryName(str(uuid4()))
        .trigger(processingTime="0 seconds")
        .start(str(target))
    )


def started_and_read(spark, *places):
    """A query that has read all records. On a busy machine, a worker may need more than the 10 seconds of Spark."""
    for _ in range(10):
        query = start(spark, *places)
        try:
            query.processAllAvailable()
        except StreamingQueryException as error:
            if "connect back" not in str(error):
                raise
        else:
            return query
    raise TimeoutError("no worker of Spark has started in time")


def run_to_end(spark, *places):
    started_and_read(spark, *places).stop()


@pytest.mark.parametrize("run", range(10))
def test_a_restarted_stream_delivers_each_record_once(spark, tmp_path, run):
    source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    choice = random.Random(run)
    expected = [b"%d " % number + DATA[: choice.choice([0, 100, 40_000])] for number in range(300)]
    write(tmp_path / "all" / "a.log", expected[:200])
    data, cut = (tmp_path / "all" / "a.log").read_bytes(), choice.randrange(1_000, 1_000_000)
    source.mkdir()
    # A record is torn; it is completed, and a file is new, while the query does not run, or while it does.
    (source / "a.log").write_bytes(data[:cut])
    query = started_and_read(spark, source, target, checkpoint)
    if run % 2:
        query.stop()
    with (source / "a.log").open("ab") as file:
        file.write(data[cut:])
    write(source / "b.log", expected[200:])
    # While it is reading them, or has not started to.
    query.stop()
    run_to_end(spark, source, target, checkpoint)
    assert records_in(target) == sorted(expected)
    assert hidden(target) == []


def test_a_repeated_batch_is_written_only_once(spark, tmp_path):
    """The query ends after the sink has committed a batch and before Spark has noted that."""
    places = source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    write(source / "a.log", [b"one", b"two"])
    run_to_end(spark, *places)
    for note in (checkpoint / "commits").glob("*0*"):
        note.unlink()
    run_to_end(spark, *places)
    assert records_in(target) == [b"one", b"two"]
    write(source / "b.log", [b"three"])
    run_to_end(spark, *places)
    assert records_in(target) == [b"one", b"three", b"two"]


@pytest.mark.parametrize("limit", [None, 7])
def test_available_now_trigger_delivers_all_records_after_an_uncommitted_batch(spark, tmp_path, limit):
    source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"

    def run():
        options = {"maxFilesPerTrigger": limit} if limit else {}
        stream = spark.readStream.format("cordwood").options(**options).load(str(source)).select("record")
        query = stream.writeStream.format("cordwood").option("checkpointLocation", str(checkpoint))
        query.queryName(str(uuid4())).trigger(availableNow=True).start(str(target)).awaitTermination()

    expected = [b"%d" % number for number in range(60)]
    for number, record in enumerate(expected[:20]):
        write(source / f"{number}.log", [record])
    run()
    assert records_in(target) == sorted(expected[:20])
    batches = sorted((checkpoint / "commits").glob("[0-9]*"))
    assert len(batches) == (3 if limit else 1)
    # As if the driver had been killed before it noted the last one.
    for note in (batches[-1], batches[-1].with_name(f".{batches[-1].name}.crc")):
        note.unlink(missing_ok=True)
    for number, record in enumerate(expected[20:]):
        write(source / f"late {number}.log", [record])
    run()
    assert records_in(target) == sorted(expected)
    assert all(len(list(directory.iterdir())) <= (limit or 60) for directory in target.iterdir())


def test_a_second_query_appends_to_the_same_directory(spark, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    write(source / "a.log", [b"one"])
    for name in ("first", "second"):
        run_to_end(spark, source, target, tmp_path / name)
    assert records_in(target) == [b"one", b"one"]


def test_killing_an_executor_does_not_lose_or_duplicate_records(tmp_path):
    expected = [f"{number} {'x' * (number % 5_000)}" for number in range(300)]
    for number in range(3):
        write(tmp_path / "in" / f"{number}.log", [record.encode() for record in expected[number::3]])
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, HELPERS / "spark_cluster.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("hidden") == []
    assert found.pop("killed") == ["read", "stream", "write"]
    assert found == dict.fromkeys(("read", "write", "stream"), sorted(expected))


def test_a_stream_of_many_logs_uses_small_batches_and_short_offsets(spark, tmp_path):
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for number in range(5_000):
        write(source / f"{number:05}.log", [b"%d" % number])

    def run():
        stream = spark.readStream.format("cordwood").option("maxFilesPerTrigger", 500).load(str(source))
        query = stream.select("record").writeStream.format("cordwood").queryName(str(uuid4()))
        query = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.start(str(tmp_path / "out")).awaitTermination()

    run()
    assert records_in(tmp_path / "out") == sorted(b"%d" % number for number in range(5_000))
    jobs = [len(records_in(directory)) for directory in (tmp_path / "out").iterdir()]
    assert (len(jobs), max(jobs)) == (10, 500)
    for path in list(source.iterdir())[:4_990]:
        path.unlink()
    for number in range(2):
        write(source / f"late {number}.log", [b"late %d" % number])
        run()
    assert len(records_in(tmp_path / "out")) == 5_002
    newest = max((path for path in (checkpoint / "offsets").glob("[0-9]*")), key=lambda path: int(path.name))
    offset = json.loads(newest.read_text().splitlines()[-1])
    assert len(offset) == 12
    assert all(len(path) + 200 >= len(json.dumps({path: text})) for path, text in offset.items())


def test_a_stream_fails_if_a_log_is_damaged(spark, tmp_path):
    write(tmp_path / "in" / "a.log", RECORDS[:100])
    damage(tmp_path / "in" / "a.log")
    with pytest.raises(PySparkException, match=r"a\.log"):
        run_to_end(spark, tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint")
