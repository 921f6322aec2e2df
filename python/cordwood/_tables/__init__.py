"""Tables of the contents of records, for `cordwood convert` and `scan(decode=)`.

* `rows` turns records into rows,
* `learner` learns the columns of rows, where they are not known beforehand,
* `schema` defines the types that a column can have,
* `arrow` turns rows into Arrow batches, with pyarrow.
"""
