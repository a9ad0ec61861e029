"""A module that is an image: a person brings it, it is known by its digest, and it is confined like any other."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.modules.client import Completed, Invocation, ModuleClient
from iact.core.ports import ModuleSource
from iact.core.stored.source import source_of
from iact.sandbox import BubblewrapHost, DockerHost
from iact.sandbox.docker import image
from tests.sandbox.foreign import FOREIGN

TAG = "iact-test-foreign:1"


def write_image(engine: docker.DockerClient, tag: str, *, changes: list[str]) -> str:
    """An image with the foreign module's program in it; gives its digest."""
    base = image.ensure(engine, lambda _: None)
    made = engine.containers.create(base.reference, ["true"])
    try:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            entry = tarfile.TarInfo("srv/foreign.py")
            entry.size, entry.mode = len(FOREIGN.encode()), 0o644
            tar.addfile(entry, io.BytesIO(FOREIGN.encode()))
        made.put_archive("/", packed.getvalue())
        repository, _, version = tag.partition(":")
        return str(made.commit(repository, version, changes=changes).id)
    finally:
        made.remove(force=True)


@pytest.fixture
def brought(engine: docker.DockerClient) -> Iterator[str]:
    made = write_image(engine, TAG, changes=['ENTRYPOINT ["python3"]', 'CMD ["/srv/foreign.py"]'])
    yield made
    for name in (TAG, made):
        with suppress(ImageNotFound):
            engine.images.remove(name, force=True)


async def double(host: DockerHost, digest: str, workspace: Path) -> tuple[str, str]:
    """What the module answers, and what its container is made of."""
    instance = await host.start(
        "iact_test_foreign", session="s", workspace=workspace, report=print, digest=digest
    )
    async with ModuleClient(instance.target) as client:
        await client.wait_serving(60)
        made = await client.invoke(Invocation("s/1", "s", "/", "double", {"n": 21}), timeout=60)
    assert isinstance(made, Completed)
    container = instance.container
    return made.output, str(container.attrs["Image"])


def test_an_image_is_a_module(brought: str, engine: docker.DockerClient, tmp_path: Path) -> None:
    async def run() -> None:
        host = DockerHost(tmp_path)
        (tmp_path / "w").mkdir()
        try:
            entry = await host.add(source_of(TAG), "user")
            await host.adopt(entry.name, entry.digest, "user")
            assert await double(host, entry.digest, tmp_path / "w") == ("42", brought)
            await host.end_session("s")

            # Another image under the same name is another module; the one that was added stays what it is.
            other = write_image(engine, TAG, changes=['ENTRYPOINT ["python3", "-u", "/srv/foreign.py"]'])
            assert other != brought
            assert await double(host, entry.digest, tmp_path / "w") == ("42", brought)
            assert (await host.add(source_of(TAG), "user")).digest != entry.digest
        finally:
            await host.close()

    asyncio.run(run())


def test_what_can_be_no_module_is_refused(engine: docker.DockerClient, tmp_path: Path) -> None:
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    repository, _, version = TAG.partition(":")
    engine.api.import_image_from_data(empty.getvalue(), repository=repository, tag=version)
    silent = str(engine.images.get(TAG).id)

    async def run() -> None:
        host = DockerHost(tmp_path)
        try:
            with pytest.raises(UsageError, match="names no program"):
                await host.add(source_of(TAG), "user")
            write_image(engine, TAG, changes=['ENTRYPOINT ["x"]', 'VOLUME ["/data"]'])
            with pytest.raises(UsageError, match="declares volumes"):
                await host.add(source_of(TAG), "user")
            with pytest.raises(SandboxUnavailable, match="no image of that name"):
                await host.add(source_of("iact-test-nowhere"), "user")
            card = f'name = "mine"\nsummary = ""\nsystem = "{silent}"\ncommand = ["x"]\n'
            with pytest.raises(UsageError, match="only a person can add one"):
                await host.add(ModuleSource("mine", {"module.toml": card.encode()}), "agent")
        finally:
            await host.close()
        with pytest.raises(UsageError, match="needs the Docker engine"):
            await BubblewrapHost(tmp_path).add(source_of(TAG), "user")

    try:
        asyncio.run(run())
    finally:
        for name in (TAG, silent):
            with suppress(ImageNotFound):
                engine.images.remove(name, force=True)


def test_what_looks_like_a_path_is_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/nowhere", "./nowhere", "nowhere.py", "No Where"):
        with pytest.raises(UsageError):
            source_of(place)
    assert source_of("host.example:5000/team/my-weather:1.0").name == "my_weather"
    assert source_of(f"weather@sha256:{'0' * 64}").image == f"weather@sha256:{'0' * 64}"
    (tmp_path / "weather").mkdir()
    (tmp_path / "weather" / "module.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert source_of("weather").image == ""
