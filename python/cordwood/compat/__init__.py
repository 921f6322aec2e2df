"""Drop-in replacements for other readers and writers of the format. A script only has to change one import.

* `cordwood.compat.wandb`: `DataStore` from wandb 0.29, which was removed in wandb 0.30.
* `cordwood.compat.appengine`: `RecordsReader` and `RecordsWriter` from the App Engine SDK.
* `cordwood.compat.leveldb_export`: `RecordsReader` from leveldb-export.
* `cordwood.compat.ccl`: `LogFile` from ccl_chromium_reader.
* `cordwood.compat.dfindexeddb`: `FileReader` from dfindexeddb, for logs.

None of them requires the package it replaces. For an undamaged file, each returns the same results as the original. An
original may return damaged data, crash or end silently. Its drop-in never does. Each module lists everything that it
does differently. Differences that all of them share are listed only here:

* **limit**: A record longer than 1 GiB counts as damage.
* **private**: Most private names of the originals are missing.
"""
