"""Tables of what records hold: what `cordwood convert` and `scan(decode=)` are made of.

* `rows` makes rows of records,
* `schema` learns the columns that rows have, where they are not known beforehand,
* `arrow` makes batches of Arrow of rows, with pyarrow.
"""
