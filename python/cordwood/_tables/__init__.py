"""Tables of what records hold: what `cordwood convert` and `scan(decode=)` are made of.

* `rows` makes rows of records,
* `learner` learns the columns that rows have, where they are not known beforehand,
* `schema` has the types that a column can have,
* `arrow` makes batches of Arrow of rows, with pyarrow.
"""
