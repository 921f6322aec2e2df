"""Drop-ins for other readers and writers of the format: a script changes only one import.

* `cordwood.compat.wandb`: `DataStore` of wandb 0.29, which wandb 0.30 removed.
* `cordwood.compat.appengine`: `RecordsReader` and `RecordsWriter` of the App Engine SDK.
* `cordwood.compat.leveldb_export`: `RecordsReader` of leveldb-export.
* `cordwood.compat.ccl`: `LogFile` of ccl_chromium_reader.
* `cordwood.compat.dfindexeddb`: `FileReader` of dfindexeddb, for logs.

None of them needs the package it replaces. On an undamaged file, each returns the same as the original. Where an
original returns damaged data, crashes, or stops silently, its drop-in does not. Each module lists everything it does
differently; points common to all of them are listed only here:

* **limit**: A record longer than 1 GiB counts as damage.
* **private**: Most private names of the originals are missing.
"""
