"""Makes tables from the contents of records, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `schema` defines the types that a column can have,
* `table` turns records into a table, with the native module,
* `given` makes a table with the columns of a given schema,
* `scan` contains the result of `scan(decode=)`.
"""
