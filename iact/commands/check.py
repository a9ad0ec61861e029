"""`iact module check PATH`: check whether a module follows the protocol, inside its container, on each backend.

The test suite belongs to the SDK, which this process never imports. It runs as a separate program that is given the
module's socket and returns its findings as JSON.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from iact import signals
from iact.core.errors import IactError, ModuleFault, ModuleLost, SandboxUnavailable, UsageError
from iact.core.stored.catalogue import check_manifest
from iact.core.stored.source import read_source
from iact.sandbox import BubblewrapHost, DockerHost
from iact.sandbox.module_versions import ModuleVersions
from iact.settings import Settings

Make = Callable[..., DockerHost | BubblewrapHost]
"""Makes a sandbox host on a data directory."""
_SUITE: Final = (sys.executable, "-m", "ext_modules.sdk", "check", "--json")
_PATIENCE: Final = 600
"""The maximum number of seconds for the whole suite."""


class CheckFinding(BaseModel):
    """The result of one check.

    `advice`: the check is only a recommendation. `backend`: where it ran, or "" without a sandbox.
    """

    check: str
    ok: bool
    detail: str = ""
    advice: bool = False
    backend: str = ""


_FINDINGS: Final = TypeAdapter(list[CheckFinding])


def check_module(
    path: Path, settings: Settings, *, backend: str = "", here: bool = False, as_json: bool = False
) -> int:
    """Check the module at `path`, a folder or a Python file, and print the findings. Returns 0 if it passes, else 1.

    `backend`: "docker", "bubblewrap", or "all" for every available one; "" for the configured one.
    `here`: run the module as an ordinary process of this machine, without a sandbox.

    Raises:
        UsageError: there is no module at `path`.
        SandboxError: no sandbox is available, or the module did not start in it.
    """
    with _folder_of(path) as folder:
        if here:
            if not (folder / "module.py").is_file():
                raise UsageError(
                    f"{path} has its own program, which runs only in a sandbox. Leave out --here."
                )
            findings = _read(_run([str(folder / "module.py")]))
        else:
            findings = signals.run(_on_each(folder, backend or settings.sandbox, settings.runtime))
    if as_json:
        print(json.dumps([finding.model_dump() for finding in findings], ensure_ascii=False, indent=2))
    else:
        print(_table(findings), end="")
    return 0 if all(finding.ok or finding.advice for finding in findings) else 1


@contextmanager
def _folder_of(path: Path) -> Iterator[Path]:
    """The folder of the module at `path`. For a Python file, a folder as `module add` would make it."""
    if path.suffix != ".py":
        folder = path.resolve()
        if not (folder / "module.toml").is_file():
            raise UsageError(f"{path} contains no module.toml. Give the folder of a module, or a .py file.")
        yield folder
        return
    source = read_source(path)
    with tempfile.TemporaryDirectory(prefix="iact-check-") as temporary:
        yield ModuleVersions(Path(temporary)).add(source, "user")


async def _on_each(folder: Path, backend: str, runtime: str) -> list[CheckFinding]:
    findings: list[CheckFinding] = []
    for name, make in await _backends(backend, runtime):
        _report(f"checking under {name}")
        found = await _in_container(folder, make)
        findings += [one.model_copy(update={"backend": name}) for one in found]
    return findings


async def _backends(backend: str, runtime: str) -> list[tuple[str, Make]]:
    """The available backends that `backend` selects: their names, and functions that make their hosts.

    Raises:
        SandboxUnavailable: none is available.
    """
    known: dict[str, Make] = {
        "docker": partial(DockerHost, runtime=runtime),
        "bubblewrap": BubblewrapHost,
    }
    wanted = [backend] if backend in known else list(known)
    present: list[tuple[str, Make]] = []
    why: list[str] = []
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="iact-check-") as data:
            host = known[name](Path(data))
            try:
                await host.open()
                present.append((name, known[name]))
            except SandboxUnavailable as error:
                why.append(str(error))
            finally:
                await host.close()
        if present and backend != "all":
            break
    if not present:
        raise SandboxUnavailable(why[0])
    return present


async def _in_container(folder: Path, make: Make) -> list[CheckFinding]:
    """Start the module as the product would, in its own workspace, and check it."""
    with tempfile.TemporaryDirectory(prefix="iact-check-") as temporary:
        data = Path(temporary)
        for name in ("shipped", "workspace"):
            (data / name).mkdir()
        host = make(data, shipped=data / "shipped", folders=[folder])
        try:
            (module,) = await host.catalogue()
            instance = await host.start(
                module.name, session="check", workspace=data / "workspace", report=_report
            )
            taken = await _taken(instance.target)
            said = await asyncio.to_thread(
                _run, ["--target", instance.target], descriptors=[instance.socket.descriptor]
            )
            lost = await instance.why_lost()
        finally:
            await host.close()
    return [
        taken,
        *_read(said),
        CheckFinding(check="the module is still running", ok=lost is None, detail=lost or ""),
    ]


async def _taken(target: str) -> CheckFinding:
    """Check whether the core accepts the module's manifest. It is stricter than the protocol where that is safer."""
    name = "describe: the core accepts the manifest"
    try:
        await check_manifest(target)
    except (ModuleFault, ModuleLost) as error:
        return CheckFinding(check=name, ok=False, detail=str(error))
    return CheckFinding(check=name, ok=True)


def _run(arguments: Sequence[str], *, descriptors: Sequence[int] = ()) -> str:
    """Run the suite and return what it prints. Blocks."""
    try:
        done = subprocess.run(
            [*_SUITE, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
            pass_fds=descriptors,
        )
    except subprocess.TimeoutExpired as error:
        raise ModuleLost(f"The checks did not finish within {_PATIENCE} seconds.") from error
    if not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise ModuleFault(f"The module could not be checked: {last[:300]}.")
    return done.stdout.strip().splitlines()[-1]


def _read(said: str) -> list[CheckFinding]:
    try:
        return _FINDINGS.validate_json(said)
    except ValidationError as error:
        raise IactError("The checks ended without a result. Run them again with --here.") from error


def _table(findings: Sequence[CheckFinding]) -> str:
    width = max(len(finding.check) for finding in findings)
    several = len({finding.backend for finding in findings}) > 1
    lines = [
        f"{'ok  ' if one.ok else 'hint' if one.advice else 'FAIL'}  {f'{one.backend:<10}  ' if several else ''}"
        f"{one.check:<{width}}  {one.detail}".rstrip()
        for one in findings
    ]
    return "".join(f"{line}\n" for line in lines)


def _report(line: str) -> None:
    print(f"iact: {line}", file=sys.stderr, flush=True)
