"""`tools/lines.py` counts only lines of code, and refuses more of them than pyproject.toml allows."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

RUST = """\
//! A module.
use std::io;

#[inline]
fn before() {}

/// A function.
fn f() { // code, with a comment
    // A comment.
    let _ = "
        text

    ";
}

#[cfg(test)]
mod tests {
    #[test]
    fn t() {}
}

fn after() {}
"""

PYTHON = '''\
"""A module."""

# A comment.
def f() -> str:
    """A function.

    More about it.
    """
    return """
text

"""  # code, with a comment
'''


def lines(directory, *revisions):
    command = [sys.executable, ROOT / "tools" / "lines.py", *revisions]
    printed = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout
    return {name: counts for name, *counts in map(str.split, printed.splitlines()[1:])}


def test_counts_lines_of_code_in_the_working_tree_or_a_revision(tmp_path):
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*git, "init", "--quiet"], cwd=tmp_path, check=True)
    files = {
        "rust/cordwood/src/lib.rs": RUST,
        "rust/cordwood/src/decode/tests.rs": RUST,
        "rust/cordwood/tests/reading.rs": RUST,
        "rust/cordwood-python/src/lib.rs": RUST,
        "python/cordwood/cli/cat.py": PYTHON,
        "python/cordwood/_native.pyi": "def f() -> str:\n    '''Text.'''\n",
    }
    for name, text in files.items():
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        tmp_path.joinpath(name).write_text(text)
    subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "before"], cwd=tmp_path, check=True)
    tmp_path.joinpath("rust/payload/src").mkdir(parents=True)
    tmp_path.joinpath("rust/payload/src/new.rs").write_text("fn f() {}\n")

    before = {"core": "9", "payload": "0", "binding": "9", "python": "4", "product": "22", "stub": "1"}
    assert lines(tmp_path, "HEAD") == {name: [count] for name, count in before.items()}
    after = before | {"payload": "1", "product": "23"}
    assert lines(tmp_path) == {name: [count] for name, count in after.items()}
    assert lines(tmp_path, "HEAD", "HEAD")["core"] == ["9", "9"]


@pytest.mark.parametrize(
    ("line_count_max", "status", "words"),
    [(10, 0, ""), (11, 0, "lower product-lines-max, 11, to that"), (9, 1, "10 lines of code, of at most 9")],
)
def test_rejects_code_over_the_line_limit(tmp_path, line_count_max, status, words):
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    tmp_path.joinpath("pyproject.toml").write_text(f"[tool.cordwood]\nproduct-lines-max = {line_count_max}\n")
    tmp_path.joinpath("rust/payload/src").mkdir(parents=True)
    tmp_path.joinpath("rust/payload/src/new.rs").write_text("fn f() {}\n" * 10)
    command = [sys.executable, ROOT / "tools" / "lines.py", "--check"]
    checked = subprocess.run(command, cwd=tmp_path, check=False, stdout=subprocess.PIPE, text=True)
    assert checked.returncode == status
    assert words in checked.stdout
    assert bool(words) == bool(checked.stdout)
