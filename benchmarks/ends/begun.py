"""A command of ours, started as a person, an editor or a service manager starts it, and brought to a moment.

Nothing here is a stub: it is `python -m iact` in its own process, with real modules, and only the model is scripted.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import docker
from websockets.sync.client import ClientConnection, connect

from benchmarks.ends.cells import Cell
from benchmarks.ends.traces import Place
from iact.core.journal import read_journal
from iact.sandbox.docker import image
from tests.acceptance.product import Product, acknowledged, until
from tests.endpoint import Endpoint, Gate, Reply, Request

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 180.0
"""Seconds for a command to reach its moment, on a machine that has much else to do."""
TASK: Final = "Begin."
_ASKS: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["shell.*"]\n'
_LATER: Final = "3600"
"""Seconds after which `timeout` would end a command by itself. It is told that they are over by SIGALRM, as by its clock."""
_HEARS: Final = ("/usr/bin/env", "--default-signal=HUP,INT,TERM")
"""Gives a command every signal, even if this program is run by nohup or in the background of a shell."""
_IN_TERMINAL: Final = (
    "import fcntl, os, sys, termios\n"
    "os.setsid()\n"
    "fcntl.ioctl(2, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Makes a program the first one of a terminal, which is its standard error."""


@dataclass
class Script:
    """What the scripted model says in one cell. `over`: after the end, it only answers."""

    cell: Cell
    marker: str
    gate: Gate = field(default_factory=Gate)
    over: bool = False

    def __call__(self, request: Request) -> Reply:
        if self.over:
            return Reply("Went on.")
        match self.cell.moment:
            case "model writing":
                return Reply("I think about it for as long as I may.", gates={8: self.gate})
            case "job running" if request.turn == 0:
                return Reply(f"I begin it.\n\n```shell.run background=true\nsleep {self.marker}\n```")
            case "job running":
                return Reply("I think about it for as long as I may.", gates={8: self.gate})
            case "start" if self.cell.backend == "off":
                return Reply("I think about it for as long as I may.", gates={8: self.gate})
            case _:
                return Reply(f"I do it.\n\n```shell.run\nsleep {self.marker}\n```")


class Terminal:
    """A terminal with a person in front of it, until it is closed."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        self._closing, self._close = os.pipe()
        self._read = bytearray()
        self._thread = threading.Thread(target=self._reads, daemon=True)
        self._thread.start()

    @property
    def shown(self) -> str:
        return self._read.decode(errors="replace")

    def close(self) -> None:
        """Close it, as a person closes its window. May be called twice."""
        if self._close >= 0:
            os.close(self._close)
            self._close = -1
            self._thread.join()

    def _reads(self) -> None:
        while True:
            ready, _, _ = select.select([self._master, self._closing], [], [])
            if self._closing in ready:
                break
            try:
                self._read += os.read(self._master, 65536)
            except OSError:  # nobody has its other side any more
                break
        os.close(self._master)
        os.close(self._closing)


@dataclass
class Begun:
    """A command that is running."""

    cell: Cell
    product: Product
    script: Script
    place: Place
    process: subprocess.Popen[bytes]
    terminal: Terminal | None
    errors: Path
    """Its standard error, unless that is a terminal."""
    container: str = ""
    """The container that the command itself runs in, if it does."""
    output: bytearray = field(default_factory=bytearray)
    connection: ClientConnection | None = None
    status: int | None = None

    @property
    def said(self) -> str:
        """Everything on its standard error."""
        return self.terminal.shown if self.terminal else self.errors.read_text(encoding="utf-8")

    def write(self, message: Mapping[str, object]) -> None:
        """Send a line to a command that speaks JSON-RPC."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, object]:
        """The answer to a request, when it is there."""
        found: list[dict[str, object]] = []

        def there() -> bool:
            lines = [json.loads(line) for line in bytes(self.output).split(b"\n")[:-1]]
            found[:] = [
                dict(line["result"]) for line in lines if line.get("id") == number and "result" in line
            ]
            assert self.process.poll() is None, self.said
            return bool(found)

        until(there, f"the answer {number}", within=PATIENCE)
        return found[0]

    def end(self) -> None:
        """Send it its end."""
        match self.cell.ending:
            case "terminal closed":
                assert self.terminal is not None
                self.terminal.close()
            case "timeout":
                self.process.send_signal(signal.SIGALRM)
            case "container stop":
                subprocess.run(["docker", "stop", self.container], capture_output=True, check=False)
            case _ as name:
                self.process.send_signal(signal.Signals[f"SIG{name}"])

    def runs(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None


@contextmanager
def begun(cell: Cell, product: Product, script: Script, place: Place) -> Iterator[Begun]:
    """Start the command of a cell and bring it to the moment. What still runs at the end is killed."""
    if cell.moment == "approval pending":
        (product.data / "policy.toml").write_text(_ASKS, encoding="utf-8")
    needs_terminal = cell.command == "run" and cell.moment == "approval pending"
    terminal = Terminal() if needs_terminal or cell.ending == "terminal closed" else None
    name = f"ends-{os.getpid()}-{place.data.parent.name}" if cell.ending == "container stop" else ""
    command = _around(cell, product, terminal, name, [sys.executable, "-m", "iact", *_arguments(cell)])
    errors = product.data.parent / "errors"
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            command,
            env=product.environment,
            cwd=product.data.parent,
            stdin=_input(cell, terminal, name),
            stdout=_output(cell, terminal),
            stderr=terminal.slave if terminal else stream,
            start_new_session=terminal is None,
        )
    if terminal is not None:
        os.close(terminal.slave)
    running = Begun(cell, product, script, place, process, terminal, errors, name)
    if process.stdout is not None:
        threading.Thread(target=_drain, args=(process, running.output), daemon=True).start()
    with process:
        try:
            with _client(running):
                yield running
        finally:
            process.kill()
            if name:
                subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
            if terminal is not None:
                terminal.close()


def _arguments(cell: Cell) -> Sequence[str]:
    match cell.command:
        case "run":
            return ("run", TASK)
        case "host":
            return ("cluster", "host", "--grace", "2")
        case _:
            return (cell.command,)


def _around(
    cell: Cell, product: Product, terminal: Terminal | None, name: str, command: Sequence[str]
) -> Sequence[str]:
    """The command line that starts `command` in what it will be ended by."""
    if name:
        return [*_container(product, terminal, name), *command]
    command = [*_HEARS, *command]
    if cell.ending == "timeout":
        # A command that asks at its terminal must be in its foreground.
        asks = ["--foreground"] if terminal is not None else []
        command = ["/usr/bin/timeout", *asks, _LATER, *command]
    if terminal is not None:
        return [sys.executable, "-I", "-S", "-c", _IN_TERMINAL, *command]
    return command


def _container(product: Product, terminal: Terminal | None, name: str) -> Sequence[str]:
    """A command line that runs what follows it in a container, with the programs of this machine and the same paths."""
    with closing(docker.from_env()) as client:
        reference = image.ensure(client, lambda line: None).reference
    folder = product.data.parent
    shared = [f"{one}:{one}:ro" for one in (ROOT, Path(sys.prefix), Path(sys.base_prefix), Path("/usr"))]
    shared += [f"{folder}:{folder}", "/var/run/docker.sock:/var/run/docker.sock"]
    settings = [f"{key}={value}" for key, value in product.environment.items()]
    return [
        "docker", "run", "--rm", "--interactive", "--name", name, "--network", "host",
        *(["--tty"] if terminal is not None else []),
        *(part for one in shared for part in ("--volume", one)),
        *(part for one in settings for part in ("--env", one)),
        "--workdir", str(folder), "--entrypoint", "", reference,
    ]  # fmt: skip


def _speaks(cell: Cell) -> bool:
    """Whether its client talks to the command through pipes."""
    return cell.command in ("mcp", "acp")


def _input(cell: Cell, terminal: Terminal | None, name: str) -> int:
    if _speaks(cell):
        return subprocess.PIPE
    return terminal.slave if terminal is not None else subprocess.DEVNULL


def _output(cell: Cell, terminal: Terminal | None) -> int:
    if _speaks(cell) or terminal is None:
        return subprocess.PIPE
    return terminal.slave


def _drain(process: subprocess.Popen[bytes], output: bytearray) -> None:
    assert process.stdout is not None
    with suppress(ValueError):
        while piece := os.read(process.stdout.fileno(), 65536):
            output += piece


# --- to the moment --------------------------------------------------------------------------------


@contextmanager
def _client(running: Begun) -> Iterator[None]:
    """Connect as the command's client does, say the task, and wait for the moment."""
    cell = running.cell
    if cell.moment == "start" and cell.command in ("run", "serve", "host"):
        _wait(running, _starts(running))
        yield
        return

    match cell.command:
        case "run":
            _wait(running, _moment(running))
            yield
        case "serve":
            with _said_to_a_page(running, running.product.data):
                yield
        case "host":
            with _gateway(running) as data, _said_to_a_page(running, data):
                yield
        case "mcp":
            _call_a_tool(running)
            _wait(running, _moment(running))
            yield
        case "acp":
            _prompt(running)
            _wait(running, _moment(running))
            yield


def _wait(running: Begun, moment: Callable[[], bool]) -> None:
    def come() -> bool:
        assert running.runs(), f"ended too early: {running.said}"
        return moment()

    until(come, running.cell.name, within=PATIENCE)


def _starts(running: Begun) -> Callable[[], bool]:
    """The first module is coming up; without modules, the command itself."""
    data = running.product.data
    if running.cell.backend == "off":
        return lambda: any(data.iterdir())
    return lambda: any((data / "run").glob("*"))


def _moment(running: Begun) -> Callable[[], bool]:
    match running.cell.moment:
        case "start":
            return _starts(running)
        case "model writing":
            return running.script.gate.arrived.done
        case "call running":
            return running.place.has_marked
        case "job running":
            return lambda: running.script.gate.arrived.done() and running.place.has_marked()
        case "approval pending":
            return lambda: _asks(running)


def _asks(running: Begun) -> bool:
    """Whether the person has been asked."""
    if running.cell.command == "mcp":
        return b"elicitation/create" in running.output
    if running.cell.command == "acp":
        return b"session/request_permission" in running.output
    if running.connection is not None:
        with suppress(TimeoutError):
            frame = json.loads(running.connection.recv(timeout=0))
            return (frame.get("kind"), frame.get("op")) == ("clearance", "ask")
        return False
    journals = running.product.journals()
    records = [record for journal in journals for record in read_journal(journal).records]
    return any(record.kind == "clearance" for record in records)


@contextmanager
def _said_to_a_page(running: Begun, data: Path) -> Iterator[None]:
    address = data / "server.json"
    _wait(running, address.exists)
    published = json.loads(address.read_text(encoding="utf-8"))
    port = int(published["url"].split(":")[2].split("/")[0])
    with connect(
        f"ws://127.0.0.1:{port}/ws",
        additional_headers={"Authorization": f"Bearer {published['key']}"},
        max_size=None,
        close_timeout=0.2,  # its other end has ended
        ping_interval=None,
        proxy=None,
    ) as connection:
        acknowledged(connection, {"type": "hello", "session": None, "since": 0})
        acknowledged(connection, {"type": "say", "text": TASK})
        running.connection = connection
        _wait(running, _moment(running))
        yield


@contextmanager
def _gateway(running: Begun) -> Iterator[Path]:
    """The way in to a host, on a data directory of its own. It is not what ends."""
    host = running.product
    _wait(running, (host.data / "seal.key").exists)
    data = host.data.with_name("gateway")
    data.mkdir()
    (data / "seal.key").write_bytes((host.data / "seal.key").read_bytes())
    (data / "seal.key").chmod(0o600)
    settings = {**host.settings, "IACT_CLUSTER": "static", "IACT_SANDBOX": "off"}
    with Product(data, settings).started("serve") as gateway:
        assert gateway.stdout is not None
        yield data


def _call_a_tool(running: Begun) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": _SELF}
    running.write({"id": 1, "method": "initialize", "params": hello})
    running.answer(1)
    running.write({"method": "notifications/initialized"})
    asked = {"name": "iact_ask", "arguments": {"task": TASK}}
    running.write({"id": 2, "method": "tools/call", "params": asked})


def _prompt(running: Begun) -> None:
    project = running.product.data.with_name("project")
    project.mkdir()
    running.write(
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
    )
    running.answer(1)
    running.write({"id": 2, "method": "session/new", "params": {"cwd": str(project), "mcpServers": []}})
    session = running.answer(2)["sessionId"]
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": TASK}]}
    running.write({"id": 3, "method": "session/prompt", "params": prompt})


_SELF: Final = {"name": "ends", "version": "1"}


def product_of(cell: Cell, folder: Path, endpoint: Endpoint) -> Product:
    """The product of a cell, with a data directory in `folder`."""
    data = folder / "data"
    data.mkdir()
    (folder / "tmp").mkdir()
    pool = "1" if cell.command in ("serve", "host") and cell.moment == "start" else "0"
    settings = {"IACT_SANDBOX": cell.backend, "IACT_POOL": pool, "TMPDIR": str(folder / "tmp")}
    if cell.command == "host":
        settings |= {"IACT_STORE": f"file://{folder}/store", "IACT_HOST": f"host-{folder.name}"}
    return Product.at(data, endpoint, **settings)
