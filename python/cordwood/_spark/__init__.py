"""Implements the part of the Spark data source that does not depend on Spark, for `pyspark_cordwood`.

* `options` checks the options of a job, which Spark passes as text.
* `reading` plans a table's partitions and reads them.
* `writing` writes a job's logs and makes them all visible at once.
* `following` finds the new records in growing logs.
"""
