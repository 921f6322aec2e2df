"""Turns the contents of records into tables, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `schema` defines the types that a column can have, and converts the types of a given schema,
* `table` uses the native module to turn records into a table,
* `scan` implements the object that `scan(decode=)` returns.
"""
