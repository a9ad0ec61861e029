"""Real root with apt: where the engine keeps its users apart from the host's, or has a kernel of its own."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import grpc

from iact.core.modules.manifest import Manifest
from iact.sandbox import DockerHost
from iact.sandbox.limits import Limits
from tests.ext_modules.website import certificate
from tests.rounds import LONG
from tests.sandbox.backends import Backend, on
from tests.sandbox.calling import python, shell
from tests.sandbox.outside import PUBLIC, internet
from tests.sandbox.workshops import REGISTRY, equip, registry

MIB: Final = 1 << 20
pytestmark = on("root", "gvisor-root") if LONG else on("root")

_INSTALL: Final = f"""\
echo 'deb [trusted=yes] https://{REGISTRY}/apt ./' > /etc/apt/sources.list
echo 'Acquire::https::CaInfo "/workspace/cert.pem";' > /etc/apt/apt.conf.d/90test
(apt-get -q update && apt-get -q install tinydeb) > /workspace/log 2>&1 || cat /workspace/log
tinydeb
"""
_CONTROL: Final = """\
Package: tinydeb
Version: 1.0
Architecture: all
Maintainer: a <a@b>
Depends: adduser
Description: says something
"""
_SET_UP: Final = """\
#!/bin/sh -e
adduser --system --group --no-create-home --home /var/lib/tinydeb tinydeb
mkdir -p /var/lib/tinydeb && chown tinydeb:tinydeb /var/lib/tinydeb
"""


def archive(folder: Path) -> dict[str, bytes]:
    """A server with one package, whose set-up adds a user and gives a folder to it."""
    tree = folder / "tinydeb"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(_CONTROL, encoding="utf-8")
    (tree / "DEBIAN" / "postinst").write_text(_SET_UP, encoding="utf-8")
    (tree / "usr" / "bin" / "tinydeb").write_text(
        "#!/bin/sh\necho installed, $(find /var/lib/tinydeb -maxdepth 0 -printf %u)\n", encoding="utf-8"
    )
    for name in ("DEBIAN/postinst", "usr/bin/tinydeb"):
        (tree / name).chmod(0o755)
    made = folder / "tinydeb.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(made)], check=True, capture_output=True
    )
    listed = subprocess.run(
        ["sha256sum", str(made)], check=True, capture_output=True, text=True
    ).stdout.split()[0]
    index = f"{_CONTROL}Filename: ./tinydeb.deb\nSize: {made.stat().st_size}\nSHA256: {listed}\n"
    return {"/apt/./Packages": index.encode(), "/apt/./tinydeb.deb": made.read_bytes()} | {
        "/apt/Packages": index.encode(),
        "/apt/tinydeb.deb": made.read_bytes(),
    }


def test_apt_installs_and_the_next_shell_has_it_again(
    loop: asyncio.Runner, backend: Backend, data: Path, workspace: Path, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def permit(host: str, port: int) -> bool:
        asked.append(host)
        return (host, port) == (REGISTRY, 443)

    async def scenario() -> None:
        proof = certificate(tmp_path, REGISTRY)
        (workspace / "cert.pem").write_bytes((tmp_path / "cert.pem").read_bytes())
        equip(data, few=True)
        async with internet(registry(archive(tmp_path), proof), {REGISTRY: [PUBLIC]}) as world:
            host = backend.host(data, outside=world.outside)
            reports: list[str] = []

            try:
                first = await host.start(
                    "shell", session="one", workspace=workspace, report=print, permit=permit
                )
                told = await shell(first, f"id -un\n{_INSTALL}", seconds=120)
                assert told.output == "root\ninstalled, tinydeb\n", told
                assert set(asked) == {REGISTRY}
                if backend.kind == "mapped":
                    status = (workspace / "log").stat()
                    assert status.st_uid >= 65_536, "what root writes is nobody's outside"

                await host.end_session("one")
                asked.clear()
                again = await host.start(
                    "shell", session="one", workspace=workspace, report=reports.append, permit=permit
                )
                assert (await shell(again, "tinydeb")).output == "installed, tinydeb\n"
                assert "installing again what apt-get installed in this session" in reports
                assert asked == []

                look = await host.start(
                    "shell", session="one", workspace=workspace, report=print, right="look"
                )
                seen = await shell(
                    look, "grep CapEff /proc/self/status; touch /usr/x; touch /workspace/x; tinydeb"
                )
                assert seen.output.startswith("CapEff:\t0000000000000000\n")
                assert seen.exit_status != 0
                assert seen.output.count("cannot touch") == 2

                assert (await shell(again, "apt-get -q remove tinydeb", seconds=60)).exit_status == 0
                assert (await shell(again, "echo /workspace/.apt/*.deb")).output == "/workspace/.apt/*.deb\n"
                (entry,) = [each for each in await host.catalogue() if each.name == "shell"]
                assert entry.manifest is not None
                told_of = Manifest.from_proto(entry.manifest)
                assert "You are root" in told_of.functions[0].documentation
            finally:
                await host.close()

    loop.run(scenario())


def test_only_the_worker_on_a_sessions_own_files_is_root(
    loop: asyncio.Runner, backend: Backend, data: Path, workspace: Path, tmp_path: Path
) -> None:
    """Not on a directory of the user's, and not what isn't made for it."""
    status = "import os; print([line for line in open('/proc/self/status') if line.startswith('CapEff')][0].split()[1])"

    tmp_path.chmod(0o755)

    async def scenario() -> None:
        host = backend.host(data)
        try:
            live = await backend.start(host, "shell", session="live", workspace=tmp_path)
            assert int(await python(live, status), 16) == 0
            own = await backend.start(host, "shell", session="one", workspace=workspace)
            assert int(await python(own, status), 16) == 0b11111011
        finally:
            await host.close()

    loop.run(scenario())


def test_what_root_writes_to_its_system_is_bounded(
    loop: asyncio.Runner, backend: Backend, data: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        equip(data, few=True)
        host = DockerHost(
            data, bounds=replace(Limits(), system_size=64 * MIB), runtime=backend.runtime, patience=60
        )
        try:
            own = await host.start("shell", session="one", workspace=workspace, report=print)
            assert (await shell(own, "head -c 8M /dev/zero > /opt/some")).exit_status == 0
            with suppress(grpc.aio.AioRpcError, AssertionError):  # it ends in the middle of this
                await shell(own, "head -c 200M /dev/zero > /opt/much; sleep 60")
            why = await own.why_lost()
            assert why is not None
            assert "wrote more outside the workspace than allowed" in why
        finally:
            await host.close()

    loop.run(scenario())
