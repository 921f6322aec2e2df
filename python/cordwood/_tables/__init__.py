"""Turns the contents of records into tables, for `cordwood convert` and `scan(decode=)`.

* `payloads` lists the kinds of records,
* `schema` defines the column types and the errors,
* `table` uses the native module to turn records into a table, and finds the column types of a given schema,
* `scan` implements the object that `scan(decode=)` returns, and casts arrays to the types of a given schema.
"""
