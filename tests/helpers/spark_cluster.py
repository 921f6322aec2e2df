"""A job of Spark on a cluster of two executors, each in a process and a working directory of its own.

`python spark_cluster.py` reads, writes and follows the logs in `in` of the working directory, by relative paths. In
each of the three, a task kills its executor. It prints what each has delivered.
"""

import json
import os
import signal
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import cordwood


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[1])


def killing_once(marker):
    """Passes batches on, and kills the executor of the first task that has one."""

    def passed(batches):
        for batch in batches:
            yield batch
            if not marker.exists():
                marker.touch()
                assert Path.cwd() != marker.parent
                # The worker is a child of a daemon, which is a child of the executor.
                os.kill(parent_of(parent_of(os.getpid())), signal.SIGKILL)

    return passed


def records_in(directory):
    return sorted(
        record.decode() for split in cordwood.plan_splits(directory, 1 << 40) for record in cordwood.open(split)
    )


def run(query):
    """On a busy machine, a worker may need more than the 10 seconds that Spark gives it."""
    for _ in range(10):
        try:
            query.start("copy").awaitTermination()
        except StreamingQueryException as error:
            if "connect back" not in str(error):
                raise
        else:
            return


def main():
    session = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.executor.memory": "700m",
        "spark.python.authenticate.socketTimeout": "120s",
        # As many tasks fail as run on an executor.
        "spark.task.maxFailures": "8",
    }.items():
        session = session.config(name, value)
    spark = session.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    logs = spark.read.format("cordwood").option("partition_len", 1 << 16).load("in").select("record")
    killed = {name: logs.mapInArrow(killing_once(Path(name).absolute()), "record binary") for name in ("read", "write")}
    found = {"read": sorted(bytes(row.record).decode() for row in killed["read"].collect())}
    killed["write"].write.format("cordwood").mode("append").save("out")
    found["write"] = records_in("out")
    stream = spark.readStream.format("cordwood").option("partition_len", 1 << 16).load("in").select("record")
    query = stream.mapInArrow(killing_once(Path("stream").absolute()), "record binary").writeStream.format("cordwood")
    query = query.option("checkpointLocation", str(Path("checkpoint").absolute())).trigger(availableNow=True)
    run(query)
    found["stream"] = records_in("copy")
    found["killed"] = sorted(name for name in ("read", "write", "stream") if Path(name).exists())
    found["hidden"] = sorted(path.name for path in Path.cwd().glob(".*"))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
