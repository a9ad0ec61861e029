"""What works on this machine and what doesn't, each with the command that would mend it.

Every check stands alone and gives one `Check`; none raises, none changes anything.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.errors import SandboxUnavailable
from core.models import weights
from sandbox import bubblewrap_host, image, isolation
from sandbox.engine import EngineFailure, connect
from sandbox.versions import available

_ENOUGH_DISK = 1 << 30
"""Bytes that should be free: an image, a session's files."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `detail`: what was found; `remedy`: what to do about it, "" if nothing."""

    check: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(data: Path) -> list[Check]:
    """Look at everything that the product needs. `data`: the data directory. Blocks, for seconds at most."""
    looks: tuple[Callable[[], Check], ...] = (
        _python,
        _engine,
        _isolation,
        _image,
        _bubblewrap,
        _model,
        _versions,
        lambda: _data(data),
        lambda: _disk(data),
    )
    return [look() for look in looks]


def _python() -> Check:
    return Check(
        "python", sys.version_info >= (3, 11), f"Python {platform.python_version()} at {sys.executable}"
    )


def _engine() -> Check:
    try:
        with closing(connect(timeout=10)) as client:
            version = client.version()
    except SandboxUnavailable as error:
        what, _, remedy = str(error).partition("; ")
        return Check("engine", False, f"{what}.", remedy)
    except EngineFailure as error:
        return Check(
            "engine", False, f"The Docker engine answers wrongly: {error}.", "restart the Docker engine"
        )
    return Check("engine", True, f"Docker {version['Version']}, API {version['ApiVersion']}")


def _isolation() -> Check:
    """How far the engine itself keeps containers apart; ours are confined in any case."""
    try:
        with closing(connect(timeout=10)) as client:
            engine = client.info()
    except (SandboxUnavailable, *EngineFailure):
        return Check("isolation", False, "There is no engine to isolate anything.", "mend the engine first")
    options = [str(option) for option in engine.get("SecurityOptions") or ()]
    used = isolation.of(engine)
    mapped = f"to {used.mapped.first}" if used.mapped else "no"
    detail = (
        f"system calls filtered: {_yes('seccomp' in part for part in options)}; "
        f"user 0 mapped to another: {mapped}; "
        f"gVisor: {'used' if used.gvisor else isolation.without_gvisor(engine)}"
    )
    ok = any("seccomp" in part for part in options)
    return Check("isolation", ok, detail, "" if ok else "install an engine with seccomp")


def _yes(found: Iterable[bool]) -> str:
    return "yes" if any(found) else "no"


def _image() -> Check:
    remedy = "iact image build"
    try:
        with closing(connect(timeout=10)) as client:
            found = image.find(client)
    except SandboxUnavailable:
        return Check(
            "image", False, "There is no engine to hold the sandbox's base image.", "mend the engine first"
        )
    except EngineFailure as error:
        return Check(
            "image", False, f"The engine can't list its images: {error}.", "restart the Docker engine"
        )
    if found is None:
        return Check(
            "image", False, "The sandbox's base image is not built yet (the first tool call does it).", remedy
        )
    return Check("image", True, f"{found.reference}, {found.size / 1e6:.0f} MB, from {found.source}")


def _bubblewrap() -> Check:
    """What tools run under where no engine answers; where one does, it may be missing."""
    try:
        bubblewrap_host.check()
    except SandboxUnavailable as error:
        what, _, remedy = str(error).partition("; ")
        return Check("bubblewrap", _engine().ok, f"{what}.", remedy.removesuffix("."))
    return Check(
        "bubblewrap", True, "It works here: tools run under it, isolated more weakly, without an engine"
    )


def _model() -> Check:
    file = weights.model_file()
    if weights.present():
        return Check("model", True, f"{file}, {weights.SIZE / 1e6:.0f} MB")
    detail = "The embedded model's file is not here yet (it is fetched when it is first needed)."
    return Check("model", False, detail, f"{sys.executable} -m core.models.embedded fetch")


def _versions() -> Check:
    if available():
        return Check("versions", True, "git keeps versions of the files that agents work on")
    detail = "git is not there, so no versions of the files that agents work on are kept."
    return Check("versions", False, detail, "apt-get install git")


def _data(data: Path) -> Check:
    remedy = "make it writable, or set IACT_DATA to another directory"
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Check("data", False, f"{data} can't be written to: {error.strerror}.", remedy)
    return Check("data", True, str(data))


def _disk(data: Path) -> Check:
    place = next(folder for folder in (data.resolve(), *data.resolve().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    ok = free >= _ENOUGH_DISK
    return Check(
        "disk", ok, f"{free / 1e9:.1f} GB free at {place}", "" if ok else f"free some space at {place}"
    )
