"""Checks the messages of the commits since the one that added this file: `make lint` runs it.

A title says "area: verb object" in at most 72 characters, and a body says why. Merges are left out. A shallow clone has
only the newest commits, so only those are checked.
"""

import re
import subprocess
import sys

TITLE_LEN_MAX = 72
# The verb is an imperative, and no sentence starts with it: "table: make one batch at a time".
TITLE = re.compile(r"[a-z0-9][\w ,./-]*: (?!(?:a|an|the)\b)[a-z].*[^.]")


def faults(message: str) -> list[str]:
    """The faults of a commit's message."""
    title, _, body = message.partition("\n")
    found = []
    if len(title) > TITLE_LEN_MAX:
        found.append(f"the title has {len(title)} characters, of at most {TITLE_LEN_MAX}")
    if not TITLE.fullmatch(title):
        found.append('the title is not "area: verb object"')
    if not body.strip():
        found.append("no body says why")
    return found


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    # A shallow clone starts with a commit that has this file, and seems to add it.
    added = git("log", "--diff-filter=A", "--format=%H", "--", "tools/commits.py").split()
    if not added:
        print("no commit has this check yet: none is checked")
        return 0
    listed = git("log", "--no-merges", "--format=%h%n%B%x00", "HEAD", "--not", f"{added[-1]}^@")
    commits = [commit.strip("\n").partition("\n") for commit in listed.split("\0")[:-1]]
    count = 0
    for name, _, message in commits:
        for fault in faults(message):
            count += 1
            print(f"{name} {message.splitlines()[0]}: {fault}")
    is_shallow = git("rev-parse", "--is-shallow-repository").strip() == "true"
    checked = f"{len(commits)} commits" + (" of a shallow clone, which lacks older ones" if is_shallow else "")
    print(f"{count} faults in {checked}" if count else f"no fault in {checked}")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
