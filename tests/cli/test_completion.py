"""The completion scripts load in their shells, and complete verbs, options and files there."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest


@pytest.fixture
def shell(request, tmp_path):
    """A shell, which must be installed, and a folder with its script and a file to complete."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    command = [sys.executable, "-m", "cordwood", "completion", request.param]
    script = subprocess.run(command, capture_output=True, check=True).stdout
    # zsh requires this name.
    (tmp_path / "_cordwood").write_bytes(script)
    (tmp_path / "example.log").touch()
    return tmp_path


@pytest.mark.parametrize("shell", ["bash"], indirect=True)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ver", "verify"),
        ("cat --on-c", "--on-corruption"),
        ("cat --on-corruption st", "stop"),
        ("cat exa", "example.log"),
    ],
)
def test_bash(shell, words, expected):
    words = ["cordwood", *words.split()]
    script = f"""
        . ./_cordwood
        function=$(complete -p cordwood | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
        $function
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], cwd=shell, capture_output=True, check=True, text=True)
    assert (done.stdout.split(), done.stderr) == ([expected], "")


@pytest.mark.parametrize("shell", ["fish"], indirect=True)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ver", "verify"),
        ("cat --on-c", "--on-corruption"),
        ("cat --on-corruption st", "stop"),
        ("cat exa", "example.log"),
    ],
)
def test_fish(shell, words, expected):
    script = f"source ./_cordwood; complete -C 'cordwood {words}'"
    env = os.environ | {"HOME": str(shell)}
    done = subprocess.run(["fish", "-c", script], cwd=shell, env=env, capture_output=True, check=True, text=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [expected]


@pytest.mark.parametrize("shell", ["zsh"], indirect=True)
def test_zsh(shell):
    """zsh completes only on a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(shell)
        os.execvpe("zsh", ["zsh", "-f", "-i"], os.environ | {"TERM": "dumb", "PS1": "> ", "HOME": str(shell)})

    def typed(keys, expected):
        os.write(terminal, keys)
        shown = b""
        deadline = time.monotonic() + 20
        while expected not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536)

    try:
        typed(b"fpath=($PWD $fpath); autoload -U compinit; compinit -D -u; echo rea''dy\n", b"ready")
        typed(b"cordwood ver\t", b"cordwood verify ")
        typed(b"\x15cordwood cat --on-corr\t", b"--on-corruption ")
        typed(b"\x15cordwood cat --on-corruption st\t", b"--on-corruption stop ")
        typed(b"\x15cordwood cat exa\t", b"cordwood cat example.log ")
    finally:
        os.write(terminal, b"\x15exit\n")
        os.close(terminal)
        os.waitpid(child, 0)
