"""The files that names, folders, patterns and URLs stand for.

* `expand` lists the files,
* `kind` decides which files are no logs, and names what they are,
* `exports` compares a folder with the lists of files that a Datastore or Firestore export has.
"""
