"""Logs on an S3 server (moto, in this process), through s3fs and obstore: `make test-remote`."""

import io
import pickle
import random
import urllib.request

import pytest

pytest.importorskip("moto", reason="make test-remote installs it")

import fsspec
import obstore
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

import cordwood

MIB = 1 << 20
BLOCK_LEN = 32 << 10
KINDS = ["URL", "obstore", "open_reader"]


class Counted:
    """The server; counts the bytes of objects that it sends. `spoil` may change or drop a body."""

    def __init__(self, app):
        self._app = app
        self.sent_len = 0
        self.spoil = None

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] != "GET" or not environ["PATH_INFO"].endswith(".log"):
            return self._app(environ, start_response)
        answer = []

        def note(status, headers, exc_info=None):
            answer[:] = [status, headers]

        body = b"".join(self._app(environ, note))
        status, headers = answer
        if self.spoil:
            headers, body = self.spoil(headers, body)
        self.sent_len += len(body)
        start_response(status, headers)
        return [body]


def short(headers, body):
    """Half of the body, with its length in the header: it looks complete."""
    half = body[: len(body) // 2]
    return [(name, str(len(half)) if name.lower() == "content-length" else value) for name, value in headers], half


def dropped(headers, body):
    """Half of the body: the connection ends in the middle."""
    return headers, body[: len(body) // 2]


@pytest.fixture(scope="module")
def server():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    inner = vars(server)["_server"]
    counted = inner.app = Counted(inner.app)
    host, port = server.get_host_and_port()
    counted.url = f"http://{host}:{port}"
    yield counted
    server.stop()


@pytest.fixture
def bucket(server, monkeypatch):
    """A function that stores an object and returns a source for it, for a kind of client."""
    login = {"key": "testing", "secret": "testing"}
    # Without these, a body that is always dropped is requested for minutes.
    quick = {"config_kwargs": {"retries": {"max_attempts": 1}}, "client_kwargs": {"region_name": "us-east-1"}}
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": server.url, **login, **quick})
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/bucket", method="PUT"))  # noqa: S310
    store = S3Store(
        "bucket",
        endpoint=server.url,
        access_key_id="testing",
        secret_access_key="testing",  # noqa: S106
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        retry_config={"max_retries": 2},
    )

    def put(kind, data):
        name = f"{random.randrange(1 << 40):x}.log"
        obstore.put(store, name, data)
        server.sent_len = 0
        if kind == "URL":
            return f"s3://bucket/{name}"
        # It requests at least its buffer's length.
        return (store, name) if kind == "obstore" else obstore.open_reader(store, name, buffer_size=BLOCK_LEN)

    put.store = store
    yield put
    server.spoil = None
    fsspec.filesystem("s3").clear_instance_cache()


@pytest.fixture(scope="module")
def log():
    """64 MiB, and the offsets of its records."""
    payload = random.Random(1).randbytes(1 << 20)
    sink = io.BytesIO()
    with cordwood.Writer(sink, "w") as writer:
        offsets = [writer.append(payload[at % 1000 :][: at * 7919 % 20_000]) for at in range(6_700)]
    return sink.getvalue(), offsets


@pytest.mark.cell("remote", "whole")
@pytest.mark.parametrize("kind", KINDS)
def test_an_s3_object_has_the_same_records_as_the_local_file(kind, bucket, log, server):
    file, _ = log
    with cordwood.open(bucket(kind, file)) as reader:
        assert list(reader) == list(cordwood.open(file))
    assert server.sent_len == len(file)
    assert cordwood.verify(bucket(kind, file)).record_count == cordwood.verify(file).record_count
    assert list(cordwood.fragments(bucket(kind, file[:MIB]))) == list(cordwood.fragments(file[:MIB]))


@pytest.mark.parametrize("kind", KINDS)
def test_range_read_transfers_little_more_than_the_range(kind, bucket, log, server):
    file, offsets = log
    start, end = 16 * MIB, 24 * MIB
    # Detecting the dialect reads 256 KiB of any file object.
    dialect = "leveldb" if kind == "open_reader" else None
    with cordwood.open(bucket(kind, file), start=start, end=end, dialect=dialect) as reader:
        assert [record.offset for record in reader.records()] == [at for at in offsets if start <= at < end]
    assert 8 * MIB <= server.sent_len <= 8 * MIB + 5 * BLOCK_LEN


@pytest.mark.parametrize("spoil", [short, dropped])
@pytest.mark.parametrize("kind", KINDS)
def test_an_incomplete_response_body_does_not_end_the_log(kind, spoil, bucket, log, server):
    """If it happens once, a client may retry and get everything; if always, it is an error after valid records."""
    file, _ = log
    expected = list(cordwood.open(file))
    spoiled = 0

    def once(headers, body):
        nonlocal spoiled
        spoiled += 1
        return spoil(headers, body) if spoiled == 3 else (headers, body)

    def always(headers, body):
        return once(headers, body) if spoiled < 2 else spoil(headers, body)

    for spoiler in once, always:
        source = bucket(kind, file)
        spoiled, server.spoil = 0, spoiler
        records = []
        with cordwood.open(source) as reader:
            try:
                for record in reader:
                    records.append(record)  # noqa: PERF402 - those before an error are kept
            except (OSError, obstore.exceptions.BaseError):
                assert records == expected[: len(records)]
                assert reader.outcome.kind == "unfinished"
            else:
                # obstore's own file object requests the rest of a short body.
                assert spoiler is once or (kind, spoil) == ("open_reader", short)
                assert records == expected
        server.spoil = None


def test_a_stale_listing_does_not_shorten_the_log(bucket, log):
    file, _ = log
    url = bucket("URL", file[: 2 * BLOCK_LEN])
    fsspec.filesystem("s3").ls("s3://bucket")
    obstore.put(bucket.store, url.rpartition("/")[2], file[: 4 * BLOCK_LEN])
    assert list(cordwood.open(url)) == list(cordwood.open(file[: 4 * BLOCK_LEN]))


def test_storage_options_override_the_fsspec_configuration(bucket, log, monkeypatch):
    file, _ = log
    url = bucket("URL", file[: 4 * BLOCK_LEN])
    options = fsspec.config.conf["s3"]
    monkeypatch.setitem(fsspec.config.conf, "s3", {})
    records = list(cordwood.open(file[: 4 * BLOCK_LEN]))
    assert list(cordwood.open(url, storage_options=options)) == records
    directory, name = url.rsplit("/", 1)
    splits = pickle.loads(pickle.dumps(cordwood.plan_splits(f"{directory}/", BLOCK_LEN, storage_options=options)))  # noqa: S301 - our own
    own = [split for split in splits if split.path.endswith(name)]
    assert [record for split in own for record in cordwood.open(split)] == records
    assert cordwood.verify([url], threads=4, storage_options=options)[url].record_count == len(records)


@pytest.mark.parametrize("kind", ["URL", "obstore"])
def test_a_missing_store_object_raises_file_not_found_error(kind, bucket):
    source = bucket(kind, b"")
    source = source + "x" if kind == "URL" else (source[0], "missing.log")
    with pytest.raises(FileNotFoundError):
        cordwood.open(source)
