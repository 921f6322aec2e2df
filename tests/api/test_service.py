"""The application of `docs/guides/service.md`, under servers with several workers."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

import cordwood

PAGE = Path(__file__).parents[2] / "docs/guides/service.md"
SERVERS = {
    "uvicorn": ("app:app", "--workers", "2", "--uds", "socket"),
    "gunicorn": ("app:app", "--workers", "2", "--worker-class", "asgi", "--bind", "unix:socket", "--no-control-socket"),
}

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="gunicorn needs fork, and the servers listen at a Unix socket"),
    pytest.mark.skipif(not find_spec("starlette"), reason="starlette is not installed"),
]


@contextmanager
def serving(server, directory):
    """Starts the application in a directory, and yields once both workers have their logs."""
    if not find_spec(server):
        pytest.skip(f"{server} is not installed")
    (app,) = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (directory / "app.py").write_text(app, encoding="utf-8")
    command = [sys.executable, "-m", server, *SERVERS[server]]
    output = directory / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=directory, stdout=file, stderr=file)
    try:
        # Not by a look at the logs: a worker would take the next one while a test has the lock.
        while len(re.findall("startup complete|ASGI server listening", output.read_text())) < 2:
            assert process.poll() is None, output.read_text()
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() in {0, -signal.SIGTERM}, output.read_text()


class Connection(http.client.HTTPConnection):
    """A connection to the socket of a server."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def post(path, record):
    connection = Connection(path)
    connection.request("POST", "/events", record)
    response = connection.getresponse()
    assert response.read() == b"accepted"
    connection.close()


def send(directory, numbers):
    with ThreadPoolExecutor(8) as pool:
        path = os.path.relpath(directory / "socket")  # The name of a socket may have about 100 bytes.
        list(pool.map(lambda number: post(path, json.dumps(number).encode()), numbers))


def recorded(directory):
    logs = [directory / "events-0", directory / "events-1"]
    return sorted(json.loads(record) for log in logs for record in cordwood.open(log))


@pytest.mark.parametrize("server", SERVERS)
def test_each_request_is_logged_by_one_of_the_workers(server, tmp_path):
    with serving(server, tmp_path):
        send(tmp_path, range(200))
        assert recorded(tmp_path) == list(range(200))
    for name in ("events-0", "events-1"):
        cordwood.open(tmp_path / name, "a", segment_len=1).close()
    with serving(server, tmp_path):
        send(tmp_path, range(200, 300))
    assert recorded(tmp_path) == list(range(300))
    assert not (tmp_path / "events-2").exists()
