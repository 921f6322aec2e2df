"""Finds the files that names, directories, patterns and URLs refer to.

* `input` describes one file,
* `files` lists the files, and checks whether names refer to one file or to several,
* `kind` decides which files are not logs, and names their formats,
* `stores` finds the directories that are given by URL and are not checked as a whole,
* `exports` compares a directory with the file lists of a Datastore or Firestore export,
* `each` reads several files at a time,
* `destinations` decides where the copies of many logs go.
"""
