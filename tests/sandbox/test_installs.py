"""What a shell installs from hosts that a person allowed: it is found by scripts, by later instances and in versions.

And what it installed is taken up by scripts alone, never by the module's own process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from iact.sandbox.workspace.versions import GitVersions
from tests.ext_modules.website import certificate
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, either_backend
from tests.sandbox.calling import shell
from tests.sandbox.outside import PUBLIC, internet
from tests.sandbox.workshops import REGISTRY, equip, packages, registry

pytestmark = either_backend("docker")

_SET = f"""\
export PIP_INDEX_URL=https://{REGISTRY}/simple NPM_CONFIG_REGISTRY=https://{REGISTRY}/
export PIP_CERT=/workspace/cert.pem NODE_EXTRA_CA_CERTS=/workspace/cert.pem GIT_SSL_CAINFO=/workspace/cert.pem
"""


class Asked:
    """Whoever is asked about hosts: allows the registry."""

    def __init__(self) -> None:
        self.hosts: list[str] = []

    async def permit(self, host: str, port: int) -> bool:
        self.hosts.append(host)
        return (host, port) == (REGISTRY, 443)


@asynccontextmanager
async def working(
    backend: Backend, data: Path, workspace: Path
) -> AsyncIterator[tuple[AnyHost, AnyInstance, Asked]]:
    """A shell in a workshop, with a registry out there."""
    made = data / "made"
    made.mkdir(exist_ok=True)
    proof = certificate(made, REGISTRY)
    (workspace / "cert.pem").write_bytes((made / "cert.pem").read_bytes())
    equip(data, bubblewrap=backend.kind == "bubblewrap")
    asked = Asked()
    async with internet(registry(packages(), proof), {REGISTRY: [PUBLIC], "other.test": [PUBLIC]}) as world:
        host = backend.host(data, outside=world.outside)
        try:
            instance = await host.start(
                "shell", session="one", workspace=workspace, report=print, permit=asked.permit
            )
            yield host, instance, asked
        finally:
            await host.close()


def test_pip_npm_and_git_install_into_the_workspace(
    loop: asyncio.Runner, backend: Backend, data: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        async with working(backend, data, workspace) as (host, instance, asked):
            first = await shell(instance, f"{_SET}pip install -q tinypack && tinypack", seconds=120)
            assert first.output.splitlines()[-1:] == ["a wheel"], first
            again = await shell(
                instance, "python3 -c 'import tinypack; tinypack.main()'; command -v tinypack"
            )
            assert again.output == "a wheel\n/workspace/.local/bin/tinypack\n"
            own = await shell(
                instance,
                f"{_SET}python3 -m venv e && e/bin/pip install -q tinypack && e/bin/tinypack && rm -r e",
                seconds=120,
            )
            assert own.output.splitlines()[-1:] == ["a wheel"], own
            cloned = await shell(
                instance, f"{_SET}git clone -q https://{REGISTRY}/repo.git && cat repo/README"
            )
            assert cloned.output.splitlines()[-1:] == ["a repository"], cloned
            if backend.kind != "bubblewrap":
                node = f"{_SET}npm install --silent tiny-npm && node -p 'require(\"tiny-npm\")'"
                assert (await shell(instance, node, seconds=120)).output.splitlines()[-1:] == ["npm"]
            assert set(asked.hosts) == {REGISTRY}

            refused = f"{_SET}git clone -q https://other.test/repo.git other"
            told = await shell(instance, refused, seconds=120)
            assert told.exit_status != 0
            assert "502" in told.output
            assert "other.test" in asked.hosts

            look = await host.start("shell", session="one", workspace=workspace, report=print, right="look")
            assert (await shell(look, "tinypack")).output == "a wheel\n"

    loop.run(scenario())
    store = data / "sessions" / "one" / "versions.git"
    versions = GitVersions()
    version = versions.keep(workspace, store)
    kept = {one.path for one in versions.files(store, version)}
    assert {".local/bin/tinypack", "repo/README"} <= kept


_TAKEN_UP = """\
for base in /workspace/.local "$HOME/.local" /tmp/.local; do
    site=$base/lib/python3.11/site-packages
    mkdir -p $site && echo 'import os; open(os.environ.get("TMPDIR", "/tmp") + "/taken-up-as-it-began", "w")' > $site/x.pth
    echo 'open("/tmp/taken-up", "w")' > $site/usercustomize.py
done
"""


@pytest.fixture
def poisoned(workspace: Path) -> Iterator[None]:
    yield
    for path in (workspace / ".local").rglob("*") if (workspace / ".local").is_dir() else ():
        if path.name in ("x.pth", "usercustomize.py"):
            path.unlink()


@pytest.mark.usefixtures("poisoned")
def test_the_modules_own_process_takes_up_nothing_that_scripts_installed(
    loop: asyncio.Runner, backend: Backend, data: Path, workspace: Path
) -> None:
    """What is in a folder of packages runs as Python starts: in a viewer, before it gave up to write anything."""

    async def scenario() -> None:
        async with working(backend, data, workspace) as (host, instance, _):
            await shell(instance, _TAKEN_UP)
            assert (
                "taken-up" in (await shell(instance, "python3 -c pass; ls /tmp; rm -f /tmp/taken-up*")).output
            )
            look = await host.start("shell", session="one", workspace=workspace, report=print, right="look")
            seen = await shell(look, "ls /tmp /run/look")
            assert (seen.exit_status, "taken-up" in seen.output) == (0, False)

    loop.run(scenario())
