"""The additions that turn a bare system into the modules' base image: the SDK, the protocol, and its wheels.

Wheels are fetched on the host, by name, version and digest, and are only unpacked; none of their code runs there. Files
of the SDK are found by path: the core's process never imports them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import io
import json
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, Literal

from iact.core.errors import PackagesUnavailable, SandboxUnavailable
from iact.sandbox.images.closure import Read, Wheel, on_host, with_dependencies

WHEELS = ("grpcio", "grpcio-health-checking", "grpcio-reflection", "protobuf", "typing-extensions")
"""The packages that the SDK needs, in the versions installed for our own process, so that both ends match."""

SITE = "opt/iact/site"
SDK = "opt/iact/sdk"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "PYTHONPATH": f"/{SITE}:/{SDK}",
    "PYTHONUNBUFFERED": "1",
    "PYTHONNOUSERSITE": "1",  # a module's own process imports no code from folders that scripts can write to
}

WARM = (
    "import asyncio, grpc, grpc.aio, inspect, json, subprocess, signal, tempfile, typing;"
    "import google.protobuf.descriptor_pool, google.protobuf.struct_pb2;"
    "import grpc_health.v1.health, grpc_health.v1.health_pb2_grpc;"
    "import grpc_reflection.v1alpha.reflection;"
    "import ext_modules.sdk.loader, ext_modules.sdk.server, ext_modules.sdk.process"
)
"""Run once while the image is built: Python then stores the byte code of exactly the modules that a start loads."""


_COMPILE = "python3 -m compileall -q -j 2 /usr/lib/python3 /usr/lib/python3.* /usr/local/lib; true"
"""A read-only system can't store byte code, and compiling pandas again takes seconds each time."""

_COMPILE_TESTER = "python3 -m compileall -q /usr/lib/python3; true"
"""The same for pytest in the plain system: with its byte code it starts in one second instead of three."""


def warm_up(*, workshop: bool) -> str:
    """The script that is run once in a new system."""
    warm = f"python3 -c '{WARM}'"
    return f"{warm} || exit; {_COMPILE if workshop else _COMPILE_TESTER}"


def package_folder(name: str) -> Path:
    """The folder of the top-level package `name`, found without importing it.

    Raises:
        SandboxUnavailable: it is not installed.
    """
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise SandboxUnavailable(f"The package {name} is not installed; run `make setup`.")
    return Path(places[0])


def sdk_files() -> dict[str, Path]:
    """The Python files of the SDK and the protocol, by their path inside the image's SDK folder, in order."""
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
    """All regular source files below `folder`, in order, without links."""
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
    """SHA-256, in hex, over everything that `archive` would contain, without fetching anything."""
    return digest_of(
        [
            ("sdk", sdk_digest().encode()),
            ("pins", "\n".join(pins()).encode()),
            ("warm", (WARM + _COMPILE_TESTER).encode()),
        ]
    )


def archive(python: str) -> bytes:
    """A tar of the whole payload, for an image with Python `python` ("3.11") on this machine's architecture.

    Raises:
        SandboxUnavailable: the wheels are not available.
    """
    with tempfile.TemporaryDirectory(prefix="iact-image-") as folder:
        site = Path(folder) / "site"
        unpack_wheels(list(_requirements()), site, python)
        members = {f"{SITE}/{path.relative_to(site).as_posix()}": path for path in sources(site)}
        members |= {f"{SDK}/{name}": path for name, path in sdk_files().items()}
        return _tar(members)


def write_wheels(out: Path, wheels: Sequence[str], python: str) -> None:
    """Write a tar to `out` that puts `wheels` where all Python programs of a system find them; for Python `python`.

    Raises:
        PackagesUnavailable: they can't be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="iact-wheels-") as folder:
        site = Path(folder) / "site"
        unpack_wheels(wheels, site, python)
        programs = site / "bin"
        members = dict[str, Path]()
        for path in sources(site):
            if path.is_relative_to(programs):
                _run_by_theirs(path)
                members[f"usr/local/bin/{path.relative_to(programs).as_posix()}"] = path
            else:
                members[f"{local_site(python)}/{path.relative_to(site).as_posix()}"] = path
        with out.open("wb") as target:
            _write_tar(members, target)


def local_site(python: str) -> str:
    """Where a Debian system with Python `python` looks for packages that are not Debian packages."""
    return f"usr/local/lib/python{python}/dist-packages"


def _run_by_theirs(program: Path) -> None:
    """Correct the interpreter of a script made by pip, which names the Python that pip ran in."""
    ours, content = b"#!" + sys.executable.encode(), program.read_bytes()
    if content.startswith(ours):
        program.write_bytes(b"#!/usr/bin/python3" + content[len(ours) :])


def pinned(asked: Sequence[str], python: str) -> tuple[str, ...]:
    """Resolve `asked`, names of packages, to current versions for Python `python`, with all their dependencies.

    Each is one version of a wheel, with its digest. Nothing is unpacked.

    Raises:
        PackagesUnavailable: there is no such wheel, or the index doesn't answer.
    """
    if not asked:
        return ()
    with tempfile.TemporaryDirectory(prefix="iact-wheels-") as folder:
        lines = [wheel.pin for wheel in fetch_wheels(asked, python, Path(folder))]
    said = _pip(lines, python, ["--dry-run", "--ignore-installed", "--no-deps", "--report", "-"])
    found = [
        (each["metadata"], each["download_info"]["archive_info"].get("hashes", {}).get("sha256"))
        for each in json.loads(said)["install"]
    ]
    lines = [
        f"{meta['name']}=={meta['version']}" + (f" --hash=sha256:{digest}" if digest else "")
        for meta, digest in found
    ]
    if not all(" --hash=" in line for line in lines):  # pip accepts digests for all or for none
        lines = [line.partition(" ")[0] for line in lines]
    return tuple(sorted(lines, key=str.lower))


def unpack_wheels(requirements: Sequence[str], site: Path, python: str) -> None:
    """Unpack wheels for Python `python` into `site`, without their dependencies: wheels that we chose, or a person.

    Raises:
        PackagesUnavailable: they can't be fetched.
    """
    # pip never looks up dependencies: it would run the code of one that is given as an address.
    _pip(requirements, python, ["--target", str(site), "--no-compile", "--no-deps"])


def fetch_wheels(
    requirements: Sequence[str], python: str, folder: Path, read: Read | None = None
) -> list[Wheel]:
    """Download wheels for Python `python` into the empty `folder`, with all that they need. Opens none of them itself.

    `read`: reads the metadata of a wheel; None: here.

    Raises:
        PackagesUnavailable: they can't be fetched, or one is refused.
    """

    def download(wanted: Sequence[str], place: Path) -> None:
        fetch_exactly(wanted, python, place)

    return with_dependencies(requirements, python, download, read or on_host, folder)


def fetch_exactly(requirements: Sequence[str], python: str, folder: Path) -> list[Path]:
    """Download the wheels of these requirements and nothing else into `folder`. Returns its wheels.

    Raises:
        PackagesUnavailable: they can't be fetched.
    """
    _pip(requirements, python, ["--no-deps", "--dest", str(folder)], verb="download")
    return sorted(folder.glob("*.whl"))


_BOUNDED: Final = (
    "import resource, runpy, sys\n"
    "for what, most in ((resource.RLIMIT_AS, 2 << 30), (resource.RLIMIT_FSIZE, 2 << 30), (resource.RLIMIT_CPU, 600)):\n"
    "    resource.setrlimit(what, (most, most))\n"
    "runpy.run_module('pip', run_name='__main__', alter_sys=True)\n"
)
"""Runs pip so that no package takes the machine's memory or disk: pip reads the metadata of each wheel itself."""


def _pip(
    requirements: Sequence[str],
    python: str,
    options: Sequence[str],
    *,
    verb: Literal["install", "download"] = "install",
) -> str:
    """Run pip to find wheels for Python `python`. Return its output."""
    command = [
        *(
            sys.executable,
            "-P",
            "-c",
            _BOUNDED,
            "--disable-pip-version-check",
            "--no-input",
            verb,
            "-qq",
            *options,
        ),
        *("--only-binary", ":all:", "--implementation", "cp", "--python-version", python),
        *(argument for tag in _platforms() for argument in ("--platform", tag)),
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed, tempfile.TemporaryDirectory() as nowhere:
        listed.write("".join(f"{line}\n" for line in requirements))
        listed.flush()
        if (
            verb == "install" and "--target" not in options
        ):  # pip requires one for a Python other than its own, though it puts nothing there
            command += ["--target", nowhere]
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
            f"The sandbox's Python packages could not be fetched ({why}); check their names and the network."
        )
    return done.stdout


def _platforms() -> Sequence[str]:
    machine = platform.machine()
    return [f"manylinux{version}_{machine}" for version in ("_2_36", "_2_28", "_2_17", "2014")]


def _requirements() -> Iterator[str]:
    """The pins, with their digests if the repository's lock file is available."""
    lock = Path(__file__).resolve().parents[2] / "requirements.lock"
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
    """The entries of a lock file: `name==version`, and the whole entry with its digests."""
    for entry in re.split(r"^(?=[a-zA-Z0-9])", lock, flags=re.MULTILINE):
        if match := re.match(r"([a-zA-Z0-9._-]+==[^\s;\\]+)", entry):
            hashes = re.findall(r"--hash=\S+", entry)
            yield match[1], " ".join([match[1], *hashes])


def _tar(members: dict[str, Path]) -> bytes:
    out = io.BytesIO()
    _write_tar(members, out)
    return out.getvalue()


def _write_tar(members: Mapping[str, Path], out: IO[bytes]) -> None:
    """Write a tar in which everything, including its folders, belongs to root and is readable by all."""
    folders = sorted({parent for name in members for parent in _parents(name)})
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder in folders:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, path in members.items():
            entry = tarfile.TarInfo(name)
            runs = name.startswith("usr/local/") and path.stat().st_mode & 0o100
            entry.size, entry.mode = path.stat().st_size, 0o755 if runs else 0o644
            with path.open("rb") as content:
                tar.addfile(entry, content)


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    return ("/".join(parts[: index + 1]) for index in range(len(parts)))
