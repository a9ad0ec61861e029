"""Every store that hosts can share keeps the promises of `core.ports.ObjectStore`. S3 is a server with its protocol."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from iact.cluster.objects import open_objects
from iact.core.errors import StoreUnavailable, UsageError
from iact.core.ports import ObjectStore
from tests.objects import Objects as Fake

KINDS = ("fake", "directory", "s3")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 server with a bucket."""
    # One request at a time: S3 looks whether a name is taken and takes it in one step, which moto's threads do in two.
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    if request.param == "fake":
        return Fake()
    if request.param == "directory":
        return open_objects(f"file://{tmp_path}/shared")
    endpoint = request.getfixturevalue("s3")
    for name, value in {
        "ENDPOINT_URL": endpoint,
        "ACCESS_KEY_ID": "k",
        "SECRET_ACCESS_KEY": "s",
        "REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    bucket = f"b{abs(hash(tmp_path)):x}"
    import httpx

    assert (
        httpx.put(
            f"{endpoint}/{bucket}",
            headers={"Authorization": "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request"},
        ).status_code
        == 200
    )
    return open_objects(f"s3://{bucket}/iact")


def test_what_is_there_stays(store: ObjectStore) -> None:
    assert store.create("a/1", b"one")
    assert not store.create("a/1", b"other")
    assert store.get("a/1") == b"one"
    assert store.get("a/2") is None


def test_what_is_deleted_keeps_its_name_and_what_needs_none_is_removed(store: ObjectStore) -> None:
    store.create("a/1", b"one")
    store.create("a/2", b"two")
    store.overwrite("a/1", b"")
    store.remove("a/2")
    store.remove("a/3")
    assert store.get("a/1") == b""
    assert not store.create("a/1", b"other"), "its name is never free"
    assert list(store.names("a/")) == ["a/1"]


def test_names_are_in_order_and_can_be_gone_on_with(store: ObjectStore) -> None:
    numbers = [f"s/journal/{n:04}" for n in range(1, 1203)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda name: store.create(name, b"x"), numbers))
    store.create("s/other", b"")
    store.create("s2/journal/0001", b"")
    assert list(store.names("s/journal/")) == numbers
    assert list(store.names("s/journal/", after=numbers[1199])) == numbers[1200:]
    assert list(store.names("s/journal/", after=numbers[-1])) == []
    assert list(store.names("nothing/")) == []


def test_of_many_that_create_the_same_one_does(store: ObjectStore) -> None:
    start = threading.Barrier(8)

    def create(n: int) -> bool:
        start.wait(300)
        return store.create("race", b"%d" % n)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(8)))
    assert sum(made) == 1
    assert store.get("race") == b"%d" % made.index(True)


def test_any_bytes_of_any_size(store: ObjectStore) -> None:
    for n, content in enumerate((b"", bytes(range(256)), b"x" * (6 << 20))):
        assert store.create(f"blob/{n}", content)
        assert store.get(f"blob/{n}") == content


def test_a_store_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
            monkeypatch.setenv(f"AWS_{name}", "k")
        store = open_objects("s3://bucket/prefix")
        with pytest.raises(StoreUnavailable, match=r"s3://bucket/prefix gave no answer"):
            store.create("a", b"")
        with pytest.raises(StoreUnavailable):
            store.get("a")
        with pytest.raises(StoreUnavailable):
            list(store.names("a"))
        with pytest.raises(StoreUnavailable):
            store.overwrite("a", b"")


@pytest.mark.parametrize("address", ["nowhere", "ftp://x/y", "file:///dev/null/x"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(UsageError, match="is no address of a store"):
        open_objects(address)
