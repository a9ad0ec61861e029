"""One cluster for the tests of a file, and one host in it for each test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypedDict, Unpack

import pytest

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker import image
from iact.sandbox.docker.engine import connect
from iact.sandbox.egress import Outside
from iact.sandbox.kubernetes.host import KubernetesHost
from iact.sandbox.kubernetes.namespace import Namespace
from tests.kubernetes.cluster import FakeCluster


class HostOptions(TypedDict, total=False):
    """The options of a host that tests can change."""

    asking: float
    coming_up: float
    patience: float
    shipped: Path
    outside: Outside


class Hosts(Protocol):
    """Creates hosts."""

    def __call__(
        self, name: str = "host-1", *, lease: float = 600, pool: int = 0, **more: Unpack[HostOptions]
    ) -> KubernetesHost: ...


PLACE = Namespace("iact", "registry.test/iact", "data", "hosts", runtime="gvisor")


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the claim `data`. The data directory is its folder `hosts`."""
    return tmp_path_factory.mktemp("volume")


@pytest.fixture(scope="module")
def _running_cluster(volume: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    try:
        client = connect()
    except SandboxUnavailable as error:
        if os.geteuid() == 0:  # root's set-up installs the engine, so its absence is a failure
            raise
        pytest.skip(str(error))
    image.ensure(client, print, source="debian")
    client.close()
    made = FakeCluster(tmp_path_factory.mktemp("cluster"), {"data": volume})
    yield made
    made.close()


@pytest.fixture
def cluster(_running_cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    """The cluster without faults. At the end of each test, nothing of a module is left in it."""
    monkeypatch.setenv("KUBECONFIG", str(_running_cluster.kubeconfig))
    yield _running_cluster
    _running_cluster.faults = lambda verb, resource: None
    _running_cluster.controller = True
    _running_cluster.slow_ends.set()
    _running_cluster.before_create = lambda resource, name: None
    left = [(kind, name) for kind in ("sandboxes", "secrets") for name in _running_cluster.names(kind)]
    for kind, name in left:  # the next test begins without them
        _running_cluster.delete(kind, name)
    assert left == []


@pytest.fixture
def data(volume: Path) -> Path:
    folder = volume / "hosts"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def workspace(data: Path, request: pytest.FixtureRequest) -> Path:
    folder = data / "sessions" / str(request.node.name)[:40] / "workspace"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def hosts(loop: asyncio.Runner, data: Path, cluster: FakeCluster) -> Iterator[Hosts]:
    """Creates hosts that are closed however the test ends."""
    made: list[KubernetesHost] = []

    def make(
        name: str = "host-1", *, lease: float = 600, pool: int = 0, **more: Unpack[HostOptions]
    ) -> KubernetesHost:
        options: HostOptions = {"asking": 20, "coming_up": 60, "patience": 60, **more}
        made.append(KubernetesHost(data, PLACE, host=name, lease=lease, pool=pool, **options))
        return made[-1]

    yield make
    for each in made:
        loop.run(each.close())


@pytest.fixture
def host(hosts: Hosts) -> KubernetesHost:
    return hosts()
