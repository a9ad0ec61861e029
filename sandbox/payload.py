"""What we add to a bare system to make the modules' base image: the SDK, the protocol, its wheels.

Wheels are fetched on the host, by name and version and with their digests, and only unpacked; no
code of theirs runs there. Files of the SDK are found by path: the core's process never imports them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import io
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from core.errors import PackagesUnavailable, SandboxUnavailable

WHEELS = ("grpcio", "grpcio-health-checking", "grpcio-reflection", "protobuf", "typing-extensions")
"""What the SDK needs. Versions are those that are installed beside us, so that both ends speak alike."""

SITE = "opt/iact/site"
SDK = "opt/iact/sdk"
WARM = (
    "import asyncio, grpc, grpc.aio, inspect, json, subprocess, signal, tempfile, typing;"
    "import google.protobuf.descriptor_pool, google.protobuf.struct_pb2;"
    "import grpc_health.v1.health, grpc_health.v1.health_pb2_grpc;"
    "import grpc_reflection.v1alpha.reflection;"
    "import ext_modules.sdk.loading, ext_modules.sdk.server, ext_modules.sdk.process"
)
"""Run once while the image is made: Python then keeps the byte code of exactly what a module's start loads."""


def package_folder(name: str) -> Path:
    """The folder of the top-level package `name`, found without importing it.

    Raises:
        SandboxUnavailable: it isn't installed.
    """
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise SandboxUnavailable(f"The package {name} is not installed; run `make setup`.")
    return Path(places[0])


def sdk_files() -> dict[str, Path]:
    """The SDK's and the protocol's Python files, by their path inside the image's SDK folder, in order."""
    modules, protos = package_folder("ext_modules"), package_folder("protos")
    found = [modules / "__init__.py", modules / "sdk.py", *sources(modules / "sdk"), *sources(protos)]
    bases = {modules: "ext_modules", protos: "protos"}
    named = {
        f"{name}/{path.relative_to(base).as_posix()}": path
        for path in found
        for base, name in bases.items()
        if path.is_file() and path.is_relative_to(base) and path.suffix == ".py"
    }
    return dict(sorted(named.items()))


def sources(folder: Path) -> list[Path]:
    """All regular files below `folder` that are source, in order; links are left out."""
    if not folder.is_dir():
        return []
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if "__pycache__" not in path.parts and path.suffix != ".pyc")


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """SHA-256, in hex, over names and contents."""
    total = hashlib.sha256()
    for name, content in files:
        total.update(f"{len(name)}:{name}:{len(content)}:".encode())
        total.update(content)
    return total.hexdigest()


def sdk_digest() -> str:
    """SHA-256, in hex, over the SDK and the protocol."""
    return digest_of((name, path.read_bytes()) for name, path in sdk_files().items())


def pins() -> list[str]:
    """The wheels, each as `name==version`."""
    return [f"{name}=={importlib.metadata.version(name)}" for name in WHEELS]


def digest() -> str:
    """SHA-256, in hex, over all that `archive` would hold, without fetching anything."""
    return digest_of(
        [("sdk", sdk_digest().encode()), ("pins", "\n".join(pins()).encode()), ("warm", WARM.encode())]
    )


def archive(python: str) -> bytes:
    """A tar of the whole payload, for an image with Python `python` ("3.11") on this machine's architecture.

    Raises:
        SandboxUnavailable: the wheels can't be had.
    """
    with tempfile.TemporaryDirectory(prefix="iact-image-") as folder:
        site = Path(folder) / "site"
        unpack_wheels(list(_requirements()), site, python, dependencies=False)
        members = {f"{SITE}/{path.relative_to(site).as_posix()}": path for path in sources(site)}
        members |= {f"{SDK}/{name}": path for name, path in sdk_files().items()}
        return _tar(members)


def unpack_wheels(requirements: Sequence[str], site: Path, python: str, *, dependencies: bool) -> None:
    """Unpack wheels for Python `python` into `site`; with those that they depend on, if so wanted.

    Raises:
        PackagesUnavailable: they can't be fetched.
    """
    command = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq"),
        *("--target", str(site), "--no-compile", "--only-binary", ":all:"),
        *(() if dependencies else ("--no-deps",)),
        *("--implementation", "cp", "--python-version", python),
        *(argument for tag in _platforms() for argument in ("--platform", tag)),
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("".join(f"{line}\n" for line in requirements))
        listed.flush()
        done = subprocess.run(
            [*command, "-r", listed.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise PackagesUnavailable(
            f"The sandbox's Python packages could not be fetched ({why}); check the network."
        )


def _platforms() -> Sequence[str]:
    machine = platform.machine()
    return [f"manylinux{version}_{machine}" for version in ("_2_36", "_2_28", "_2_17", "2014")]


def _requirements() -> Iterator[str]:
    """The pins, with their digests where the repository's lock file is at hand."""
    lock = Path(__file__).resolve().parents[1] / "requirements.lock"
    try:
        entries = dict(_entries(lock.read_text(encoding="utf-8")))
    except OSError:
        entries = {}
    wanted = pins()
    locked = [entries[pin] for pin in wanted if pin in entries]
    yield from locked if len(locked) == len(wanted) else wanted


def locked(lock: Path) -> list[str]:
    """The requirements in a lock file, each as `name==version --hash=…`."""
    return [entry for _, entry in _entries(lock.read_text(encoding="utf-8"))]


def _entries(lock: str) -> Iterator[tuple[str, str]]:
    """The entries of a lock file: `name==version`, and its whole text with the digests."""
    for entry in re.split(r"^(?=[a-zA-Z0-9])", lock, flags=re.MULTILINE):
        if match := re.match(r"([a-zA-Z0-9._-]+==[^\s;\\]+)", entry):
            hashes = re.findall(r"--hash=\S+", entry)
            yield match[1], " ".join([match[1], *hashes])


def _tar(members: dict[str, Path]) -> bytes:
    """A tar in which everything belongs to root and is readable by all, with folders of their own."""
    out = io.BytesIO()
    folders = sorted({parent for name in members for parent in _parents(name)})
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder in folders:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, path in members.items():
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    return ("/".join(parts[: index + 1]) for index in range(len(parts)))
