"""Drop-ins for other readers and writers of the format: a script goes on with one import changed.

* `cordwood.compat.wandb`: `DataStore` of wandb 0.29, which wandb 0.30 removed.
* `cordwood.compat.swanlab`: `DataStoreReader`, `DataStoreWriter` and `WBDataStoreReader` of SwanLab.
* `cordwood.compat.appengine`: `RecordsReader` and `RecordsWriter` of App Engine and its MapReduce library.
* `cordwood.compat.leveldb_export`: `RecordsReader` of leveldb-export.
* `cordwood.compat.ccl`: `LogFile` of ccl_chromium_reader.
* `cordwood.compat.dfindexeddb`: `FileReader` of dfindexeddb, for logs.

None needs the package it stands in for. On an undamaged file each gives what the original gives. Where the originals hand out
damaged data, crash or stop without a word, these do not: each module lists what it does in another way. What is true of all is listed only here:

* A record longer than 1 GiB is not returned: `RecordTooLargeError`, or a word to the logger `cordwood` where damage is.
* All is typed, and what is private in the originals is missing, but for the few things that scripts are seen to use.
"""
