"""Implements the parts of `pyspark_cordwood`'s data source that do not depend on Spark.

* `options` checks the options of a job, which Spark passes as text.
* `reading` plans a table's partitions and reads them.
* `writing` writes a job's logs and makes them all visible at once.
* `following` finds the new records in growing logs.
"""
