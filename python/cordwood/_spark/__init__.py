"""The data source of Spark, as far as it needs no Spark: `pyspark_cordwood` calls it.

* `options` checks the options of a job, which Spark passes as text,
* `reading` plans the parts of a read, and reads them,
* `writing` writes the files of a job, and shows all of them at once,
* `following` finds the new records of logs that grow.
"""
