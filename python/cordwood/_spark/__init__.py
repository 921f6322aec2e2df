"""Implements the part of the Spark data source that does not depend on Spark. `pyspark_cordwood` uses this package.

* `options` checks the options of a job, which Spark passes as text.
* `reading` plans the partitions of a table and reads them.
* `writing` writes the logs of a job and makes them all visible at once.
* `following` finds the new records of logs that grow.
"""
