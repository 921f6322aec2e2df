"""The completion scripts load in their shells, and complete verbs, options and files there."""

import os
import pty
import select
import shutil
import subprocess
import time

import pytest
import transcript
from interrupts import HANG

from cordwood.cli import main

COMPLETED = [
    ("ver", "verify "),
    ("exa", "example.log "),
    ("help ver", "help verify "),
    ("cat --on-c", "cat --on-corruption "),
    ("cat --on-corruption st", "cat --on-corruption stop "),
    ("cat exa", "cat example.log "),
    ("map --svg exa", "map --svg example.log "),
    ("completion fi", "completion fish "),
]
"""The words typed after `cordwood`, and their completion."""


@pytest.fixture
def shell(request, tmp_path, capsys, monkeypatch):
    """A shell, which must be installed, and a directory with its script and a file to complete."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    assert main(["completion", request.param]) == 0
    # zsh requires this name.
    (tmp_path / "_cordwood").write_text(capsys.readouterr().out)
    (tmp_path / "example.log").touch()
    # The command, as the shells find it.
    transcript.environment(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("shell", ["fish"], indirect=True)
@pytest.mark.parametrize(("typed", "expected"), COMPLETED)
def test_fish_completes_the_typed_word(shell, typed, expected):
    script = f"source ./_cordwood; complete -C 'cordwood {typed}'"
    env = os.environ | {"HOME": str(shell)}
    done = subprocess.run(["fish", "-c", script], cwd=shell, env=env, capture_output=True, check=True, text=True)
    *_, last = expected.split()
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [last]


@pytest.mark.parametrize("shell", ["fish"], indirect=True)
def test_fish_offers_option_values_for_an_empty_word(shell):
    script = "source ./_cordwood; complete -C 'cordwood cat --on-corruption '"
    env = os.environ | {"HOME": str(shell)}
    done = subprocess.run(["fish", "-c", script], cwd=shell, env=env, capture_output=True, check=True, text=True)
    assert {"salvage", "skip", "stop"} < set(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("shell", "command", "load"),
    [
        ("bash", ["bash", "--norc", "--noprofile", "-i"], "bind 'set bell-style none'; . ./_cordwood"),
        ("zsh", ["zsh", "-f", "-i"], "fpath=($PWD $fpath); autoload -U compinit; compinit -D -u"),
    ],
    indirect=["shell"],
)
def test_bash_and_zsh_complete_the_typed_word_on_a_terminal(shell, command, load):
    """They complete only on a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(shell)
        os.execvpe(command[0], command, os.environ | {"TERM": "dumb", "PS1": "> ", "HOME": str(shell)})

    def typed(keys, expected):
        os.write(terminal, keys.encode())
        shown = b""
        deadline = time.monotonic() + HANG
        while expected.encode() not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536)

    try:
        typed(f"{load}; echo rea''dy\n", "ready")
        for words, expected in COMPLETED:
            typed(f"\x15cordwood {words}\t", f"cordwood {expected}")
    finally:
        os.write(terminal, b"\x15exit\n")
        os.close(terminal)
        os.waitpid(child, 0)
