"""`tools/commits.py` checks the messages of the commits since the one that added it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Repository:
    """A repository with a copy of the tool."""

    def __init__(self, directory):
        self.directory = directory
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments):
        names = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
        subprocess.run(["git", *names, *arguments], cwd=self.directory, check=True)

    def commit(self, message):
        self.git("commit", "--quiet", "--allow-empty", "-m", message)

    def add_the_check(self):
        self.directory.joinpath("tools").mkdir()
        shutil.copy(ROOT / "tools" / "commits.py", self.directory / "tools")
        self.git("add", ".")
        self.commit("tools: check the messages of commits\n\nThey are read for years.")


def check(directory):
    command = [sys.executable, "tools/commits.py"]
    done = subprocess.run(command, cwd=directory, check=False, stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout


@pytest.fixture
def repository(tmp_path):
    repository = Repository(tmp_path)
    repository.commit("Anything may be said before the check.")
    repository.add_the_check()
    return repository


def test_the_commit_check_ignores_commits_older_than_itself(repository):
    assert check(repository.directory) == (0, "no fault in 1 commits\n")


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("tests: " + "x" * 66 + "\n\nWhy.", "the title has 73 characters, of at most 72"),
        ("Repair the reader\n\nWhy.", 'the title is not "area: verb object"'),
        ("reader: the end is the end\n\nWhy.", 'the title is not "area: verb object"'),
        ("reader: keep the end.\n\nWhy.", 'the title is not "area: verb object"'),
        ("reader: keep the end", "no body says why"),
    ],
)
def test_the_commit_check_reports_a_fault_in_a_commit_message(repository, message, fault):
    repository.commit(message)
    repository.commit("scan, evidence: keep " + "x" * 51 + "\n\nWhy.")
    status, printed = check(repository.directory)
    assert status == 1
    line, total = printed.splitlines()
    assert line.endswith(f" {message.splitlines()[0]}: {fault}")
    assert total == "1 faults in 3 commits"


def test_the_commit_check_ignores_merge_commits(repository):
    repository.git("checkout", "--quiet", "-b", "other")
    repository.commit("reader: keep the end\n\nWhy.")
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "-m", "Merge other", "other")
    assert check(repository.directory) == (0, "no fault in 2 commits\n")


def test_the_commit_check_covers_the_available_commits_of_a_shallow_clone(repository, tmp_path_factory):
    repository.commit("Out of reach.")
    repository.commit("Within reach.")
    clone = tmp_path_factory.mktemp("clone")
    repository.git("clone", "--quiet", "--depth=1", repository.directory.as_uri(), str(clone))
    status, printed = check(clone)
    assert status == 1
    assert "Within reach." in printed
    assert "Out of reach." not in printed
    assert printed.endswith("faults in 1 commits of a shallow clone, which lacks older ones\n")
