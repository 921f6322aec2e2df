"""Finds the files to which names, directories, patterns and URLs refer.

* `input` describes one file,
* `files` lists them, and decides which names are those of one file,
* `kind` decides which files are not logs, and names their formats,
* `stores` names the directories by URL that are not judged as a whole,
* `exports` compares a directory with the lists of files that a Datastore or Firestore export has,
* `each` reads several files at a time,
* `destinations` decides where the copies of many logs go.
"""
