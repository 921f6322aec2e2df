"""Turns the contents of records into tables, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `schema` defines the types that a column can have, and converts those of a given schema,
* `table` turns records into a table, with the native module,
* `scan` contains the result of `scan(decode=)`.
"""
