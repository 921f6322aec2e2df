"""Tables of the contents of records, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `decoders` turns records into rows,
* `schema` defines the types that a column can have,
* `learner` learns the columns of rows, where they are not known beforehand,
* `arrow` turns rows into Arrow batches, with pyarrow, and `arrays` makes the array of each column,
* `entities` turns the values of entities into those that columns have,
* `native` turns records into Arrow batches without rows, in the native module,
* `json_text` writes values as JSON on one line,
* `scan` has what `scan(decode=)` returns.
"""
