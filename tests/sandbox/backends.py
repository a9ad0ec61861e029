"""Every backend that a module can run under, so that one suite can be held against each of them.

Docker's is the machine's own engine. For gVisor and for mapped users an engine of the tests' own is started, since
both are set for an engine as a whole: it listens on a socket of its own, keeps its images and containers in a folder
of its own, and has no network. bubblewrap needs none. Each also comes with a workshop: a shell that has compilers,
interpreters and package managers, which attackers like to find, and that may reach one host; where the engine maps users
or has gVisor, it is real root there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import docker
import pytest

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Right
from iact.sandbox import BubblewrapHost, DockerHost
from iact.sandbox.bubblewrap.host import BubblewrapInstance
from iact.sandbox.docker import image
from iact.sandbox.docker.engine import connect
from iact.sandbox.docker.host import DockerInstance
from iact.sandbox.egress import Outside
from iact.sandbox.images.recipe import BASE, Recipe
from tests.rounds import LONG
from tests.sandbox import workshops
from tests.sandbox.calling import need_bubblewrap

Kind = Literal["docker", "gvisor", "mapped", "bubblewrap"]
Name = Literal[Kind, "workshop", "root", "gvisor-root", "bubblewrap-workshop"]
AnyHost = DockerHost | BubblewrapHost
AnyInstance = DockerInstance | BubblewrapInstance


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend. `runtime`: of its engine; `workshop`: its shell has one, and a host that it may reach."""

    name: Name
    kind: Kind
    runtime: str = "runc"
    workshop: bool = False

    @property
    def root(self) -> bool:
        """Whether its shell's worker is real root."""
        return self.workshop and self.kind in ("mapped", "gvisor")

    def host(
        self,
        data: Path,
        *,
        shipped: Path | None = None,
        folders: Sequence[Path] = (),
        outside: Outside | None = None,
        patience: float = 60,
    ) -> AnyHost:
        """A host on data directory `data`."""
        if self.workshop:
            workshops.equip(data, few=self.name != "workshop", bubblewrap=self.kind == "bubblewrap")
        if self.kind == "bubblewrap":
            return BubblewrapHost(data, shipped=shipped, folders=folders, outside=outside, patience=patience)
        return DockerHost(
            data, shipped=shipped, folders=folders, outside=outside, patience=patience, runtime=self.runtime
        )

    async def start(
        self,
        host: AnyHost,
        name: str,
        *,
        session: str,
        workspace: Path,
        right: Right = "work",
        agent: str = "",
    ) -> AnyInstance:
        """Start module `name`, or give the instance of it that runs."""
        permit = _one_host if self.workshop else None
        if isinstance(host, DockerHost):
            return await host.start(
                name,
                session=session,
                workspace=workspace,
                report=print,
                right=right,
                agent=agent,
                permit=permit,
            )
        return await host.start(
            name, session=session, workspace=workspace, report=print, right=right, agent=agent, permit=permit
        )


async def _one_host(host: str, port: int) -> bool:
    return (host, port) == ("allowed.test", 443)


PROXIES: Final = tuple(
    spelled
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
    for spelled in (name, name.lower())
)
"""What a module with a way out is told of it."""
DOCKER: Final = Backend("docker", "docker")
ALL: Final[Mapping[Name, Backend]] = {
    each.name: each
    for each in (
        DOCKER,
        Backend("gvisor", "gvisor", "runsc"),
        Backend("mapped", "mapped"),
        Backend("bubblewrap", "bubblewrap"),
        Backend("workshop", "docker", workshop=True),
        Backend("root", "mapped", workshop=True),
        Backend("gvisor-root", "gvisor", "runsc", workshop=True),
        Backend("bubblewrap-workshop", "bubblewrap", workshop=True),
    )
}


class OwnEngine:
    """An engine of the tests' own, started when it is first asked for."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def address(self) -> str:
        """Where it listens. Skips where we may not start one; where we may, a failure is a failure."""
        if os.geteuid() != 0 or shutil.which("dockerd") is None:
            pytest.skip("only root can start an engine of the tests' own")
        if self._folder is None:
            self._forget_the_dead()
            self._folder = Path(tempfile.mkdtemp(prefix="iact-engine-"))
            self._folder.chmod(0o711)  # mapped users pass it
            self._start(self._folder)
        return f"unix://{self._folder}/engine.sock"

    def _forget_the_dead(self) -> None:
        """Remove what runs of an hour ago or more left when they were killed; their engines died with them."""
        for folder in Path(tempfile.gettempdir()).glob("iact-engine-*"):
            if folder.stat().st_mtime < time.time() - 3600 and not self._answers(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def _start(self, folder: Path) -> None:
        shared = {"path": shutil.which("runsc"), "runtimeArgs": ["--network=none", "--host-uds=all"]}
        runtimes = {"runsc": shared} if shared["path"] else {}
        (folder / "engine.json").write_text(json.dumps({"runtimes": runtimes}), encoding="utf-8")
        options = {
            "config-file": folder / "engine.json", "data-root": folder / "data", "exec-root": folder / "run",
            "pidfile": folder / "pid", "host": f"unix://{folder}/engine.sock", "userns-remap": "default",
            "bridge": "none", "iptables": "false", "ip-forward": "false",
        }  # fmt: skip
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "dockerd", *(f"--{key}={each}" for key, each in options.items())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        until = time.monotonic() + 120
        while not self._answers(folder):
            if self._process.poll() is not None or time.monotonic() > until:
                raise AssertionError((folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:])
            time.sleep(0.1)
        self.bring()

    def _answers(self, folder: Path) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(folder / "engine.sock")) == 0

    def bring(self, recipe: Recipe = BASE) -> None:
        """An image of the machine's engine, which takes seconds less than to build another; once for each."""
        with closing(docker.DockerClient(self.address(), version="auto")) as ours:
            if image.find(ours, recipe) is None:
                with (
                    suppress(SandboxUnavailable),
                    closing(connect()) as theirs,
                ):  # without one, the hosts build it
                    made = image.ensure(theirs, print, recipe=recipe)
                    ours.images.load(b"".join(theirs.images.get(made.reference).save(named=True)))

    def close(self) -> None:
        """End it, with all that it runs and keeps."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=120)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def present(name: Name, own_engine: OwnEngine) -> Iterator[Backend]:
    """The backend, ready; its engine is the one that hosts find while the block runs. Skips where there is none."""
    backend = ALL[name]
    with pytest.MonkeyPatch.context() as environment:
        if backend.kind == "bubblewrap":
            need_bubblewrap()
        elif backend.kind != "docker":
            if backend.kind == "gvisor" and shutil.which("runsc") is None:
                pytest.skip("there is no gVisor: apt-get install runsc")
            if backend.workshop:
                own_engine.bring(workshops.recipe_of_few())
            environment.setenv("DOCKER_HOST", own_engine.address())
        yield backend


def on(*names: Name) -> pytest.MarkDecorator:
    """Marks a test, or a file of tests, with the backends that it runs under."""
    return pytest.mark.parametrize("backend", names, indirect=True, scope="module")


each_backend = on(*ALL) if LONG else on("docker", "bubblewrap")
"""Marks a test, or a file of tests, that every backend must pass: a run that is not long has the usual one and the
one without an engine."""
every_wall = on(*ALL) if LONG else on("docker", "gvisor", "mapped", "bubblewrap", "root")
"""Marks those that say in short what holds of every kind of wall; only long runs have each with a workshop, too."""


def either_backend(usual: Name) -> pytest.MarkDecorator:
    """Marks those of whole modules, whose walls are tested by the former: with an engine and without; one in a short run."""
    return on("docker", "bubblewrap") if LONG else on(usual)
