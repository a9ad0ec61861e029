"""The product as a user has it: the command `iact` in separate processes, and a data directory.

Tests define its input and check its results: exit status, standard output and error, the journal on disk,
containers on the engine, and the requests to the scripted endpoint.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import docker
from websockets.sync.client import ClientConnection, connect

from iact.core.journal import read_journal
from iact.core.records.record import Record
from iact.sandbox import owner
from iact.sandbox.docker import reaper
from tests.command import Command, iact
from tests.endpoint import Endpoint

ROOT = Path(__file__).parents[2]
NO_MODULES = {"IACT_SANDBOX": "off"}
"""For tests that need no tools: the engine is not used."""

_QUIET = {"IACT_MEMORY": "off", "IACT_POOL": "0", "IACT_EMBEDDED": "off"}
"""Only tests of memory and of the pool turn them on, because they cost every process a second or two."""

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "DOCKER_HOST", "XDG_DATA_HOME", "TMPDIR", "SYSTEMROOT")
_PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def sentence(self) -> str:
        """The line on standard error that says what went wrong. Fails unless there is exactly one, at the end."""
        assert "Traceback" not in self.stderr, self.stderr
        lines = self.stderr.splitlines()
        said = [line for line in lines if line.startswith("iact: ")]
        assert len(said) == 1, self
        assert lines[-1] == said[0], self
        assert said[0].endswith((".", "…")), self
        return said[0].removeprefix("iact: ")

    def answer(self) -> Answer:
        """The report of `iact run --json`."""
        report = json.loads(self.stdout)
        return Answer(
            session=report["session"],
            reply=report["reply"],
            journal=Path(report["journal"]),
            status=report["status"],
            usage={name: int(count) for name, count in report["usage"].items()},
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of `iact run --json`."""

    session: str
    reply: str
    journal: Path
    status: str
    usage: dict[str, int]

    @property
    def records(self) -> list[Record]:
        """The journal's records."""
        return read_journal(self.journal).records

    @property
    def workspace(self) -> Path:
        """The session's own workspace folder."""
        return self.journal.parent / "workspace"


@dataclass(frozen=True)
class Product:
    """One data directory, with settings from the environment. `gateway`: it belongs to a host with a store, and clients
    connect through a gateway."""

    data: Path
    settings: dict[str, str] = field(default_factory=dict)
    gateway: bool = False

    @staticmethod
    def at(data: Path, endpoint: Endpoint | str | None = None, **settings: str) -> Product:
        """A product with `endpoint` for its models, if there is one."""
        url = endpoint.url if isinstance(endpoint, Endpoint) else endpoint
        given = {"OPENAI_BASE_URL": url, "IACT_MODEL": "scripted"} if url else {}
        return Product(data, {**given, **settings})

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process of the product."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        code = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        return {**kept, **code, **_QUIET, "IACT_DATA": str(self.data), **self.settings}

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        seconds: float = _PATIENCE,
        inside: Sequence[str] = (),
    ) -> Ran:
        """Run `iact` with `arguments` to its end. `inside`: a command that runs it; it then starts cold."""
        place = self.data.parent
        if not inside:
            done = iact(*arguments, environment=self.environment, cwd=place, stdin=stdin, seconds=seconds)
        else:
            done = subprocess.run(
                [*inside, sys.executable, "-m", "iact", *arguments], env=self.environment, cwd=place, input=stdin,
                capture_output=True, text=True, timeout=seconds, check=False,
            )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def agree(self, *arguments: str, seconds: float = _PATIENCE) -> Ran:
        """Run a command that asks for a yes twice: it shows what it is about, then the digest of that says yes."""
        shown = self.run(*arguments, seconds=seconds)
        digest = re.search(r"give the command again with --digest ([0-9a-f]{64})", shown.stderr)
        assert digest is not None, shown
        assert shown.status == 2, shown
        return self.run(*arguments, "--digest", digest[1], seconds=seconds)

    def ask(self, task: str, *options: str, session: str | None = None, seconds: float = _PATIENCE) -> Answer:
        """Run `iact run --json`, which must succeed."""
        going_on = ["--session", session] if session else []
        ran = self.run("run", "--json", *going_on, *options, task, seconds=seconds)
        assert ran.status == 0, ran
        assert "Traceback" not in ran.stderr, ran
        return ran.answer()

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start a process of the product. If it still runs at the end, it is killed."""
        with (
            (self.data.parent / f"{self.data.name}.stderr").open("a+") as errors,
            Command(
                arguments,
                env=self.environment,
                cwd=self.data.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()
                process.wait(300)
                errors.seek(0)
                assert "Traceback" not in errors.read()

    @contextmanager
    def serving(self, *arguments: str) -> Iterator[Server]:
        """Run `iact serve`, or another command that serves the page. With a gateway, the process is the host's."""
        if self.gateway:
            with self._host() as host, self._at_gateway().serving() as way_in:
                yield replace(way_in, process=host)
            return
        with self.started(*(arguments or ("serve",))) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"iact: ready http://127\.0\.0\.1:(\d+)/\?token=(\S+)\n", line)
            assert found is not None, line
            key = json.loads((self.data / "server.json").read_text(encoding="utf-8"))["key"]
            yield Server(process, int(found[1]), found[2], key)

    @contextmanager
    def _host(self) -> Iterator[subprocess.Popen[str]]:
        with self.started("cluster", "host") as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("iact: host ")
            yield process

    def _at_gateway(self) -> Product:
        """The product that runs the gateway. It needs the key of the host, and nothing else from it."""
        data = self.data.with_name(f"{self.data.name}-gateway")
        if not data.exists():
            data.mkdir()
            (data / "seal.key").write_bytes((self.data / "seal.key").read_bytes())
            (data / "seal.key").chmod(0o600)
        return Product(data, {**self.settings, "IACT_CLUSTER": "static", "IACT_SANDBOX": "off"})

    def journals(self) -> set[Path]:
        """The journals of all sessions."""
        return set(self.data.glob("sessions/*/journal.md"))

    def containers(self) -> list[str]:
        """The names of all containers of this data directory, running or not."""
        return containers_of(self.data)


@dataclass(frozen=True, slots=True)
class Server:
    """A running `iact serve`. `token`: from the address that it printed. `key`: the key that programs send."""

    process: subprocess.Popen[str]
    port: int
    token: str
    key: str

    def connect(self) -> ClientConnection:
        """Open a websocket to it."""
        return connect(
            f"ws://127.0.0.1:{self.port}/ws",
            additional_headers={"Authorization": f"Bearer {self.key}"},
            max_size=None,
            close_timeout=0.2,  # its other end may have been killed
            ping_interval=None,  # or be frozen
            proxy=None,
        )


def acknowledged(
    socket: ClientConnection, message: dict[str, object], *, within: float = 300.0
) -> dict[str, object]:
    """Send a message and wait for its `ok`. Drops other messages. A yes without a digest looks at its question first."""
    for place, n in _unseen(message):
        digest = acknowledged(socket, {"type": "question", "n": n}, within=within)["digest"]
        several = message.get(place)
        message = {**message, place: [*several, digest] if isinstance(several, list) else digest}

    socket.send(json.dumps({**message, "id": "test"}))
    end = time.monotonic() + within
    while (left := end - time.monotonic()) > 0:
        frame = json.loads(socket.recv(timeout=left))
        if frame.get("id") == "test":
            assert frame["type"] == "ok", frame
            return dict(frame)
    raise AssertionError(f"{message} was not acknowledged")


def _unseen(message: dict[str, object]) -> list[tuple[str, object]]:
    """The questions that a message says yes to without their digests, each with the field for its digest."""
    if "digest" in message or not (message.get("allow") or message.get("accept")):
        return []
    also = message.get("also")
    others = also if isinstance(also, list) else []
    if others:
        message["also_digests"] = []
    first = message["call"] if message["type"] == "clear" else message["ask"]
    return [("digest", first), *(("also_digests", n) for n in others)]


def kill(process: subprocess.Popen[str]) -> bool:
    """Send SIGKILL. Returns whether the process was still running."""
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait(300)
    return running


def containers_of(data: Path) -> list[str]:
    """The names of all containers with the label of a data directory."""
    client = docker.from_env()
    try:
        chosen = {"label": f"{owner.OWNER}={owner.data_digest(data)}"}
        return [str(item["Names"][0]) for item in client.api.containers(all=True, filters=chosen)]
    finally:
        client.close()


def reap(data: Path) -> None:
    """Remove containers that a failed test may have left on the engine."""
    client = docker.from_env()
    try:
        reaper.reap(client, data)
    finally:
        client.close()


def until(condition: Callable[[], bool], what: str, *, within: float = 300.0, every: float = 0.01) -> None:
    """Wait until `condition` is true of something outside this process. Checks `every` seconds, at most `within`."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"waited {within:g} s in vain for {what}"
        time.sleep(every)
