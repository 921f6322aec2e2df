"""The manual page of the command says what its help says."""

# ruff: noqa: SLF001 - argparse has no public way to its arguments.

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from cordwood.cli import VERBS, make_parser

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "python/cordwood.data/data/share/man/man1/cordwood.1"


def test_man_page_is_up_to_date():
    script = ROOT / "tools/man.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_man_page_is_installed_with_the_package():
    (page,) = [path for path in metadata.files("cordwood") if path.name == PAGE.name]
    assert page.parts[-4:-1] == ("share", "man", "man1")
    assert "read, check, rescue and write logs" in page.read_text()


@pytest.mark.skipif(not shutil.which("man"), reason="there is no man")
def test_man_shows_all_commands_and_options():
    command = ["man", "--warnings", "-E", "UTF-8", "-l", PAGE]
    done = subprocess.run(command, capture_output=True, check=True, env={"MANWIDTH": "80"}, encoding="utf-8")
    assert done.stderr == ""
    assert "read, check, rescue and write logs" in done.stdout
    sections = re.split(r"^cordwood (\w+)$", done.stdout, flags=re.MULTILINE)
    assert sections[1::2] == list(VERBS)
    (verbs,) = make_parser()._subparsers._group_actions
    for verb, text in zip(VERBS, sections[2::2], strict=True):
        for action in verbs.choices[verb]._actions:
            for option in action.option_strings:
                assert option in text, verb
        assert f"cordwood {verb} " in text.partition("examples")[2]
