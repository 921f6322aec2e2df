"""Tables of the contents of records, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `schema` defines the types that a column can have,
* `table` has the native module turn records into a table,
* `given` makes a table with the columns of a schema that was given,
* `scan` has what `scan(decode=)` returns.
"""
