"""Secrets in their file, and in the environment of exactly the module that was granted them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from iact.core.errors import ModuleLost, UsageError
from iact.core.ports import ModuleSource
from iact.sandbox import DockerHost
from iact.sandbox.catalogue import Catalogue
from iact.sandbox.secrets import FILE, Secrets
from tests.sandbox.calling import write_module
from tests.sandbox.inside import called, hosting
from tests.sandbox.outside import PUBLIC, internet

VALUE = "a value of 31 characters, 4f9be"


def test_a_secret_is_stored_for_its_user_alone(tmp_path: Path) -> None:
    secrets = Secrets(tmp_path / "data")
    secrets.store("API_KEY", VALUE)
    secrets.store("OTHER", "another value")
    secrets.remove("OTHER")
    assert (secrets.names(), secrets.of(["API_KEY", "OTHER"])) == (["API_KEY"], {"API_KEY": VALUE})
    path = tmp_path / "data" / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        secrets.names()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lower", VALUE),
        ("PATH", VALUE),
        ("LD_PRELOAD", VALUE),
        ("HTTPS_PROXY", VALUE),
        ("KEY", "short"),
        ("KEY", "x" * 40_000),
    ],
)
def test_what_can_not_be_a_secret_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(UsageError):
        Secrets(tmp_path).store(name, value)
    with pytest.raises(UsageError):
        Secrets(tmp_path).remove(name)


CALLER = '''
import http.client, os, urllib.parse
from ext_modules.sdk import Module

module = Module("caller", "Calls out with its key.")

@module.function(impact=0)
def ask() -> str:
    """Send the key."""
    proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
    connection.set_tunnel("example.com", 80)
    connection.request("GET", "/", headers={"Authorization": os.environ["API_KEY"]})
    return connection.getresponse().read().decode()

@module.function(impact=0)
def known() -> list[str]:
    return sorted(name for name in os.environ if "KEY" in name)
'''


def test_a_secret_reaches_the_module_and_its_request(loop: asyncio.Runner, tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
        writer.close()

    async def scenario() -> None:
        Secrets(tmp_path).store("API_KEY", VALUE)
        shipped = write_module(tmp_path / "shipped", "caller", CALLER)
        async with (
            internet(listen, {"example.com": [PUBLIC]}) as world,
            hosting(tmp_path, shipped=shipped, outside=world.outside) as host,
        ):
            bare = await host.start("caller", session="s", workspace=tmp_path, report=print)
            async with called(bare) as caller:
                assert await caller.text("known") == "[]"
            said: list[str] = []
            instance = await host.start(
                "caller", session="s", workspace=tmp_path, report=said.append,
                egress=("example.com:80",), secrets=("API_KEY", "NO_KEY"),
            )  # fmt: skip
            assert any("iact secret set NO_KEY" in line for line in said)
            assert VALUE not in repr(instance)
            async with called(instance) as caller:
                assert await caller.text("known") == '["API_KEY"]'
                assert await caller.text("ask") == "ok"
        assert f"Authorization: {VALUE}".encode() in seen[0]

    loop.run(scenario())


def test_a_module_that_dies_with_a_secret_on_its_lips_does_not_tell(
    loop: asyncio.Runner, tmp_path: Path
) -> None:
    async def scenario() -> None:
        Secrets(tmp_path).store("API_KEY", VALUE)
        shipped = write_module(
            tmp_path / "shipped", "dying", "import os\nraise SystemExit(os.environ['API_KEY'])\n"
        )
        async with hosting(tmp_path, shipped=shipped) as host:
            with pytest.raises(ModuleLost) as lost:
                await host.start("dying", session="s", workspace=tmp_path, report=print, secrets=("API_KEY",))
        assert "[secret API_KEY]" in lost.value.log
        assert VALUE not in lost.value.log + str(lost.value)

    loop.run(scenario())


def test_a_module_takes_up_no_code_from_the_workspace(loop: asyncio.Runner, tmp_path: Path) -> None:
    """Where it starts, whoever owns the workspace could else be in its process, with its secrets."""
    workspace, stolen = tmp_path / "workspace", tmp_path / "workspace" / "stolen"
    taken = (
        "import os, pathlib\npathlib.Path('/workspace/stolen').write_text(os.environ.get('API_KEY', ''))\n"
    )
    for name in (
        "ext_modules/__init__.py",
        "ext_modules/sdk/__main__.py",
        "json.py",
        "hashlib.py",
        "helper.py",
    ):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(taken, encoding="utf-8")
    source = (
        "import importlib.util, os\nfrom ext_modules.sdk import Module\nmodule = Module('keeper', 'Knows a key.')\n"
        "@module.function(impact=0)\ndef look() -> str:\n"
        "    return f\"{len(os.environ['API_KEY'])} {os.getcwd()} {importlib.util.find_spec('helper')}\"\n"
    )

    async def scenario() -> None:
        Secrets(tmp_path).store("API_KEY", VALUE)
        shipped = write_module(tmp_path / "shipped", "keeper", source, needs='workspace = "write"')
        async with hosting(tmp_path, shipped=shipped) as host:
            instance = await host.start(
                "keeper", session="s", workspace=workspace, report=print, secrets=("API_KEY",)
            )
            async with called(instance) as keeper:
                assert await keeper.text("look") == f"{len(VALUE)} /workspace None"
        assert not stolen.exists()

    loop.run(scenario())


def test_everybodys_module_has_everybodys_secret_and_a_users_own_has_the_users(
    loop: asyncio.Runner, tmp_path: Path
) -> None:
    """Whatever both are called."""
    source = (
        "import os\nfrom ext_modules.sdk import Module\nmodule = Module('{name}', 'Knows a key.')\n"
        "@module.function(impact=0)\ndef length() -> str:\n    return str(len(os.environ.get('API_KEY', '')))\n"
    )
    data, shared = tmp_path / "data", tmp_path / "shared"
    everybodys = VALUE + " of everybody"

    async def lengths(host: DockerHost) -> list[str]:
        found = []
        for name in ("team", "own"):
            instance = await host.start(
                name, session="s", workspace=tmp_path, report=print, secrets=("API_KEY",)
            )
            async with called(instance) as caller:
                found.append(await caller.text("length"))
        return found

    async def scenario() -> None:
        Secrets(shared).store("API_KEY", everybodys)
        for folder, name in ((shared, "team"), (data, "own")):
            catalogue = Catalogue(folder)
            files = {"module.py": source.format(name=name).encode()}
            entry = catalogue.add(ModuleSource(name, files, summary="Knows a key."), "user")
            catalogue.adopt(name, entry.digest, "user")
        host = DockerHost(data, shared=shared)
        try:
            known = {
                entry.name: entry.shared for entry in await host.catalogue() if entry.origin != "shipped"
            }
            assert known == {"team": True, "own": False}
            assert await lengths(host) == [str(len(everybodys)), "0"]
            Secrets(data).store("API_KEY", VALUE)
            assert await lengths(host) == [str(len(everybodys)), str(len(VALUE))]
            with pytest.raises(UsageError, match="only an administrator can remove it"):
                await host.remove("team")
            for origin in ("agent", "user"):
                with pytest.raises(UsageError, match="choose another name"):
                    await host.add(ModuleSource("team", {"module.py": b"x = 1\n"}, summary="Mine."), origin)

            # What counts no more for everybody is given nothing of theirs, also where a session still has that version.
            digest = next(entry.digest for entry in await host.catalogue() if entry.name == "team")
            Catalogue(shared).remove("team")
            late = await host.start(
                "team", session="t", workspace=tmp_path, report=print, digest=digest, secrets=("API_KEY",)
            )
            async with called(late) as caller:
                assert await caller.text("length") == str(len(VALUE))
        finally:
            await host.close()

    loop.run(scenario())
