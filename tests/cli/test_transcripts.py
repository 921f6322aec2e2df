"""The command's output and exit statuses: the console sessions in this directory and in the documentation."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import transcript

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SESSIONS = [*sorted(HERE.glob("*.md")), *transcript.PAGES]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the sessions are those of a POSIX shell")


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_recorded_session_still_produces_the_same_output(path, tmp_path):
    assert transcript.replayed(path, tmp_path) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shown", "is_right"),
    [
        ("ok: true, end.at: 7", True),
        ("ok: false, end.at: 7", False),
        ("ok: true, end.at: 8", False),
        ("ok: true", False),
    ],
)
def test_only_the_fields_shown_in_a_recorded_session_are_compared(shown, is_right, tmp_path):
    session = tmp_path / "session.md"
    command = """printf '{"ok":true,"end":{"at":7},"other":%s}\\n' $RANDOM | fields ok end.at"""
    session.write_text(f"```console\n$ {command}\n{shown}\n```\n")
    (tmp_path / "directory").mkdir()
    assert (transcript.replayed(session, tmp_path / "directory") == session.read_text()) is is_right


def test_each_command_has_a_recorded_session_and_examples():
    from cordwood.cli import VERBS

    for verb in VERBS:
        page = ROOT / f"docs/cli/{verb}.md"
        assert page in SESSIONS, verb
        text = page.read_text(encoding="utf-8")
        assert re.search(rf"^\$ (.*\| )?cordwood {verb} .*\n[^$`]", text, re.MULTILINE), verb
        shown = subprocess.run(
            [sys.executable, "-m", "cordwood", verb, "--help"], capture_output=True, check=True, text=True
        )
        assert re.search(rf"^examples:\n  .*cordwood {verb} ", shown.stdout, re.MULTILINE), verb


def test_the_command_line_script_is_installed():
    scripts = [script for script in entry_points(group="console_scripts") if script.name == "cordwood"]
    assert [script.value for script in scripts] == ["cordwood.cli:main"]
