"""Workshops that tests build once for all, and a server with what a shell installs from."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import ssl
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from iact.sandbox import build
from iact.sandbox.images import payload, workshop
from iact.sandbox.images.recipe import Recipe
from tests.sandbox.outside import Serve

DEV = ("--profile", "dev", "--wheels", "idna==3.10")
FEW = ("--with", "gcc libc6-dev make sqlite3 curl python3-pip python3-venv", "--wheels", "idna==3.10")
"""What is named to `iact image build` under Docker, and without an engine."""

REGISTRY = "registry.test"


@cache
def recipe_of_few() -> Recipe:
    """The system of the smaller one, as it is built for any data directory."""
    wanted = workshop.chosen([], FEW[1], FEW[3])
    python = build.system(print, "docker").python
    return replace(wanted, wheels=payload.pinned(wanted.asked, python)).recipe()


def equip(data: Path, *, bubblewrap: bool = False, few: bool = False) -> None:
    """Let the shells of data directory `data` have a workshop; built if it isn't there."""
    if workshop.load(data) is None:
        smaller = bubblewrap or few
        wanted = workshop.chosen([], FEW[1], FEW[3]) if smaller else workshop.chosen(["dev"], "", DEV[3])
        build.make_workshop(data, wanted, print, "bubblewrap" if bubblewrap else "docker")


def registry(pages: Mapping[str, bytes], certificate: Path) -> Serve:
    """A server that has `pages` by path, over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
                await writer.start_tls(context)
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ")[1].decode().partition("?")[0]
                body = pages.get(path)
                status, content = ("404 Not Found", b"") if body is None else ("200 OK", body)
                kind = "application/json" if content.startswith(b"{") else "text/html"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
        finally:
            writer.close()

    return serve


def packages() -> dict[str, bytes]:
    """A Python package, an npm package and a repository, each with one thing to say."""
    with tempfile.TemporaryDirectory() as folder:
        return {**_wheel(), **_npm(), **_repository(Path(folder))}


def _wheel() -> dict[str, bytes]:
    out = io.BytesIO()
    about = "tinypack-1.0.dist-info"
    with zipfile.ZipFile(out, "w") as wheel:
        wheel.writestr("tinypack.py", "def main():\n    print('a wheel')\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tinypack\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\ntinypack = tinypack:main\n")
        wheel.writestr(f"{about}/RECORD", f"tinypack.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n")
    name = "tinypack-1.0-py3-none-any.whl"
    page = f'<!DOCTYPE html><html><body><a href="/files/{name}">{name}</a></body></html>'
    return {"/simple/tinypack/": page.encode(), f"/files/{name}": out.getvalue()}


def _npm() -> dict[str, bytes]:
    out = io.BytesIO()
    about = {"name": "tiny-npm", "version": "1.0.0", "main": "index.js"}
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(about), "index.js": "module.exports = 'npm'\n"}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = out.getvalue()
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    dist = {"tarball": f"https://{REGISTRY}/files/tiny.tgz", "integrity": f"sha512-{digest}"}
    whole = {
        "name": "tiny-npm",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {**about, "dist": dist}},
    }
    return {"/tiny-npm": json.dumps(whole).encode(), "/files/tiny.tgz": content}


def _repository(folder: Path) -> dict[str, bytes]:
    work, bare = folder / "work", folder / "repo.git"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for name in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@b"}

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], env=environment, check=True, capture_output=True)

    git("init", "-q", "-b", "main", str(work))
    (work / "README").write_text("a repository\n", encoding="utf-8")
    git("-C", str(work), "add", "README")
    git("-C", str(work), "commit", "-q", "-m", "First")
    git("clone", "-q", "--bare", str(work), str(bare))
    git("-C", str(bare), "update-server-info")
    return {
        f"/repo.git/{path.relative_to(bare).as_posix()}": path.read_bytes()
        for path in bare.rglob("*")
        if path.is_file()
    }
