"""Tables of the contents of records, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `decoders` turns records into rows,
* `schema` defines the types that a column can have,
* `columns` learns the columns of records or rows, and makes Arrow batches of them, in the native module,
* `given` makes batches of rows with the columns of a schema that was given,
* `entities` turns the values of entities into those that columns have,
* `json_text` writes values as JSON on one line,
* `scan` has what `scan(decode=)` returns.
"""
