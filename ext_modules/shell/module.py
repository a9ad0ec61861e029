"""`shell.run`: a bash script or a Python program, in the agent's own working directory, and jobs in the background.

Each script is a fresh process. For each agent, the working directory and the exported environment last from one script
to the next (`place`). Both are noted by `prologue.bash` and carried from call to call, so that any instance of this
module can run the next script. A script that fails is a result like any other; an error means that it could not be run
at all.

In an instance that can only read, nothing outlives a call: no process, and no temporary file.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, Literal

from ext_modules.sdk import Call, Module, Result, memory, strays, temporary
from ext_modules.sdk.call import AgentState
from ext_modules.sdk.kept import Kept
from ext_modules.sdk.process import Process, Status
from ext_modules.sdk.values import JSON

from . import npm, place
from .jobs import BUSY, MOST, READY, Job, Jobs
from .place import Place

module = Module(
    "shell",
    "Runs bash scripts and Python programs in a sandboxed Linux system with a persistent working directory.",
    keywords=[
        "shell", "bash", "command", "terminal", "console", "linux", "unix", "sandbox", "container",
        "file", "files", "directory", "folder", "path", "disk", "usage", "space", "memory", "cpu",
        "run", "execute", "script", "program", "python", "code", "process", "processes",
        "list", "count", "lines", "words", "find", "search", "grep", "sort", "print", "read", "write",
        "date", "time", "kernel", "version", "uname", "hostname", "user", "environment", "variable",
        "install", "package", "test", "tests", "build", "compile", "git", "log", "calculate", "compute",
    ],
    states={
        READY: "No job runs in the background.",
        BUSY: "Jobs run in the background, or have ended and were not read to their end.",
    },
)  # fmt: skip

_PROLOGUE: Final = str(Path(__file__).with_name("prologue.bash"))
_LARGEST_ARGUMENT: Final = 100_000
_LARGEST_LEFT: Final = 1 << 20
"""The most bytes that are read of what a script leaves: quoted, the lasting state can be four times as long."""
_TIMED_OUT: Final = 124
_HIDDEN: Final = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE", "IACT_WORKSPACE",
)  # fmt: skip
_INSTALLED: Final = ".local"
"""The folder of the workspace that scripts install into. Its content is kept with the session's versions."""
_LAST_WORDS: Final = 1.0
"""Seconds before the call's deadline at which a script is ended, so that its output still arrives."""
_WARMING: Final[set[int]] = set()
"""The processes of `_warm`, which do not belong to a call and leave nothing."""


@module.lifespan
@contextlib.asynccontextmanager
async def _warm() -> AsyncIterator[None]:
    """Run an empty script once while serving, because in a new container the first use of bash and Python is slow."""

    async def once() -> None:
        with contextlib.suppress(OSError):
            process = await Process.start(["bash", "-c", ":"], cwd="/", environment=os.environ)
            _WARMING.add(process.pid)
            try:
                async for _ in process.output():
                    pass
            finally:
                await process.end()
                _WARMING.discard(process.pid)

    task = asyncio.create_task(once())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@module.function(impact=1, summary="Run bash: stdout, stderr, exit status; the working directory lasts.", alias="BASH",
                 body="command", idempotent=False, exclusive=True, timeout=130)  # fmt: skip
async def run(
    call: Call,
    command: str,
    timeout: float = 120,  # noqa: ASYNC109
    language: Literal["bash", "python"] = "bash",
    background: bool = False,
    stdin: bytes = b"",
) -> Result:
    """Runs the body in bash (`language=python`: in Python) on a sandboxed Debian: the usual commands, python3 with
    pytest, git, jq. No network but hosts that a person allows. The working directory (at first /workspace) and
    exported variables last from call to call. You get stdout, stderr and the exit status. `stdin=$name` is the
    input. After `timeout` seconds it is killed, and what it left running ends with it; `background=true` starts a
    job that runs on.
    """
    if "\0" in command:
        raise ValueError("The script holds a NUL character; write it without.")
    if background and strays.only_looks():
        raise PermissionError(
            "A job in the background can't be started where nothing may be changed; leave that out."
        )

    here = _place(call)
    if background:
        return await _start(call, here, command, language, stdin)

    kept = Kept()
    installs = language == "bash" and npm.only_installs(command)
    killed_before = memory.kills()
    limit = max(0.1, min(timeout, call.remaining() - _LAST_WORDS))

    with (
        _descriptors(here) as (entering, leaving),
        _script(command) as script,
        _input(stdin) as given,
    ):
        try:
            process = await _process(
                here, command, script, language, entering, leaving, given, installs=installs
            )
            try:
                timed_out = await _stream(process, call, kept, limit)
            finally:
                status = await process.end()
            if language == "bash":
                here = place.left(os.pread(leaving, _LARGEST_LEFT, 0), here)
        finally:
            _clear()

    call.carry(here.carried())
    oom_killed = memory.kills() != killed_before
    last = _last_words(status, limit if timed_out else None, oom_killed)
    if not last and installs:
        last = npm.not_run(Path(here.cwd))
    return _result(call, kept, here, status, timed_out=timed_out, last=last)


def _clear() -> None:
    """Remove what escaped from a call.

    In an instance that can only read, also empty the temporary folder once no other call is running there.
    """
    strays.end_strays(Process.running)
    if strays.only_looks() and "TMPDIR" in os.environ and not Process.running - _WARMING:
        temporary.empty(os.environ["TMPDIR"])


@module.ends_background
async def end_background(agent: AgentState) -> None:
    """Kill the agent's jobs and any process that escaped from its scripts. The script that is running now goes on."""
    jobs = agent.data.get("jobs")
    spared = set(Process.running)
    if isinstance(jobs, Jobs):
        spared -= jobs.processes
        await jobs.end()
    strays.end_strays(spared)
    if agent.name != READY:
        agent.move(READY)


@module.function(
    impact=0,
    summary="Your jobs: those that run, and those whose end you have not read.",
    states=[BUSY],
    held=True,
)
async def jobs(call: Call) -> str:
    return "".join(f"{job.line()}\n" for job in _jobs(call).all())


@module.function(impact=0, summary="What a job wrote since you last read it; waits up to `wait` seconds (at most 60) for its end.", states=[BUSY], idempotent=False,
                 held=True)  # fmt: skip
async def output(call: Call, job: int, wait: float = 0) -> Result:
    found = _jobs(call).find(job)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, min(wait, call.remaining() - _LAST_WORDS))):
            await found.ended.wait()
    return _read(call, found)


@module.function(
    impact=1,
    summary="Kill a job; gives what it wrote since you last read it.",
    states=[BUSY],
    idempotent=False,
    held=True,
)
async def stop(call: Call, job: int) -> Result:
    found = _jobs(call).find(job)
    await _jobs(call).stop(found)
    return _read(call, found)


def _jobs(call: Call) -> Jobs:
    """The agent's jobs."""
    jobs = call.state.setdefault("jobs", Jobs(call.agent_state))
    assert isinstance(jobs, Jobs)
    return jobs


async def _start(
    call: Call, here: Place, command: str, language: Literal["bash", "python"], stdin: bytes
) -> Result:
    """Start a job. It inherits the lasting state and changes nothing of it."""
    if _jobs(call).full:
        raise RuntimeError(f"There are {MOST} jobs already; stop one, or read one that ended to its end.")

    with (
        _descriptors(here) as (entering, leaving),
        _script(command) as script,
        _input(stdin) as input_file,
    ):
        process = await _process(here, command, script, language, entering, leaving, input_file)
    number = _jobs(call).add(process, command).number
    call.move(BUSY, note=f"job {number} runs")

    text = (
        f"Job {number} runs in the background; you are told when it ends. `shell.output job={number}` gives what it wrote "
        f"(wait=60 waits for its end), `shell.stop job={number}` ends it.\n"
    )
    return Result(text, data={"job": number, "cwd": here.shown})


def _read(call: Call, job: Job) -> Result:
    """What a job wrote since it was last read. One that has ended is forgotten."""
    text = job.read()
    if text and not text.endswith("\n"):
        text += "\n"

    runs = job.status is None
    if not runs and _jobs(call).forget(job):
        call.move(READY)
    data: dict[str, JSON] = {"job": job.number, "running": runs}
    if runs:
        return Result(f"{text}[Job {job.number} still runs.]\n", data=data)
    data["exit_status"] = job.exit_status
    return Result(f"{text}[Job {job.number} ended with exit status {job.exit_status}.]\n", data=data)


async def _process(
    here: Place,
    command: str,
    script: int | None,
    language: Literal["bash", "python"],
    entering: int,
    leaving: int,
    stdin: int | None,
    *,
    installs: bool = False,
) -> Process:
    """Start a script. `installs`: it installs with npm and does nothing else."""
    environment = _environment(entering, leaving)
    if installs:
        environment |= npm.SETTINGS
    descriptors = [entering, leaving]
    if script is not None:
        descriptors.append(script)
    return await Process.start(
        _arguments(command, script, language),
        cwd=here.cwd,
        environment=environment,
        descriptors=descriptors,
        stdin=stdin,
    )


def _workspace() -> str:
    folder = os.environ.get("IACT_WORKSPACE", "/workspace")
    return folder if os.path.isdir(folder) else tempfile.gettempdir()


def _place(call: Call) -> Place:
    """The agent's current place, or the workspace if its folder no longer exists."""
    here = place.arrived(call.carried)
    if here is None:
        return Place(_workspace(), {})
    if os.path.isdir(here.cwd):
        return here
    call.output(f"[The working directory {here.shown} is gone; this runs in {_workspace()}.]\n")
    return Place(_workspace(), here.exports)


def _arguments(command: str, script: int | None, language: Literal["bash", "python"]) -> list[str]:
    """The command line for a script: as a file, or written out if it is short."""
    source = ["-c", command] if script is None else [f"/proc/self/fd/{script}"]
    if language == "python":
        return ["python3", "-u", *source]
    if script is None:
        return ["bash", *source, "bash"]  # what bash calls itself in errors
    return ["bash", *source]


def _environment(entering: int, leaving: int) -> dict[str, str]:
    """A script's environment. `entering`, `leaving`: as `_descriptors`."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _HIDDEN and not name.startswith("GRPC_")
    }
    environment.setdefault("LANG", "C.UTF-8")
    environment.setdefault("TERM", "dumb")

    path = environment.get("PATH", os.defpath)
    environment |= _installing(f"{_workspace()}/{_INSTALLED}", path)
    return {**environment, "BASH_ENV": _PROLOGUE, "IACT_ENTER": str(entering), "IACT_LEAVE": str(leaving)}


def _installing(place: str, path: str) -> dict[str, str]:
    """Make scripts install to `place`, and search there after the system's own folders."""
    return {
        "PATH": f"{path}:{place}/bin",
        "PYTHONUSERBASE": place,
        "PIP_BREAK_SYSTEM_PACKAGES": "1",  # despite its name it breaks nothing: the system is read-only
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DEFAULT_TIMEOUT": "120",  # a person may have to answer first
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NPM_CONFIG_PREFIX": place,
        "NPM_CONFIG_CACHE": f"{tempfile.gettempdir()}/.npm",
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        "NPM_CONFIG_FUND": "false",
    }


@contextlib.contextmanager
def _descriptors(here: Place) -> Iterator[tuple[int, int]]:
    """Files in memory: the exports of the last script, and where this script writes what it leaves."""
    with _in_memory("enter", here.script()) as entering, _in_memory("leave", b"") as leaving:
        os.lseek(entering, 0, os.SEEK_SET)
        yield entering, leaving


@contextlib.contextmanager
def _script(command: str) -> Iterator[int | None]:
    """A file in memory for a script that is too long for an argument."""
    source = command.encode("utf-8", "replace")
    if len(source) <= _LARGEST_ARGUMENT:
        yield None
        return
    with _in_memory("script", source) as descriptor:
        yield descriptor


@contextlib.contextmanager
def _input(content: bytes) -> Iterator[int | None]:
    """A file in memory for what a script reads; None if it reads nothing."""
    if not content:
        yield None
        return
    with _in_memory("stdin", content) as descriptor:
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor


@contextlib.contextmanager
def _in_memory(name: str, content: bytes) -> Iterator[int]:
    descriptor = os.memfd_create(name)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield descriptor
    finally:
        os.close(descriptor)


async def _stream(process: Process, call: Call, kept: Kept, limit: float) -> bool:
    """Forward the output until it ends. Return whether the time ran out first."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        async with call.limit(limit):
            async for chunk in process.output():
                call.output(kept.feed(decoder.decode(chunk)))
                await call.drain()
    except TimeoutError:
        return True
    finally:
        call.output(kept.feed(decoder.decode(b"", final=True)))
    return False


def _result(call: Call, kept: Kept, here: Place, status: Status, *, timed_out: bool, last: str) -> Result:
    """`last`: a sentence behind the output, or ""."""
    data: dict[str, JSON] = {
        "exit_status": _TIMED_OUT if timed_out else _exit_status(status),
        "cwd": here.shown,
        "timed_out": timed_out,
        "left_out": kept.left_out,
    }
    remark = _on_a_line_of_its_own(kept, last) if last else ""
    if not kept.complete:
        return Result(kept.text() + remark, data=data)

    if remark:
        call.output(remark)
    return Result(data=data)


def _exit_status(status: Status) -> int:
    if status.code is None:
        return 128 + signal.SIGKILL
    return status.code if status.code >= 0 else 128 - status.code


def _last_words(status: Status, timeout: float | None, oom_killed: bool) -> str:
    """The sentence that says why the script did not end on its own, or "" if it did."""
    if oom_killed:
        limit = memory.limit()
        most = f" (the limit is {limit / (1 << 20):.0f} MiB)" if limit else ""
        return f"The kernel killed a process for lack of memory{most}."
    if timeout is not None:
        return f"The script did not end within {timeout:g} s and was killed with all its processes."

    if status.code is None:
        return "The script killed the process that watches over it, and was killed with all its processes."
    if status.code == -signal.SIGKILL:
        return "The script was killed (signal 9), most likely for lack of memory."
    if status.code < 0:
        return f"The script was ended by signal {-status.code} ({signal.Signals(-status.code).name})."
    return ""


def _on_a_line_of_its_own(kept: Kept, sentence: str) -> str:
    return f"[{sentence}]\n" if kept.at_line_start else f"\n[{sentence}]\n"
