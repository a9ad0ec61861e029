"""`iact module check PATH`: whether a module keeps the contract, seen from inside its container, on each backend.

The suite itself belongs to the SDK, which this process never imports: it runs as a program of its own, is
handed the module's socket, and what it finds comes back as JSON.
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

from iact.core.errors import IactError, ModuleFault, ModuleLost, SandboxUnavailable, UsageError
from iact.core.session.catalogue import check_manifest
from iact.core.session.source import read_source
from iact.sandbox import BubblewrapHost, DockerHost
from iact.sandbox.module_versions import ModuleVersions
from iact.settings import Settings

Make = Callable[..., DockerHost | BubblewrapHost]
"""Makes a host on a data directory."""
_SUITE: Final = (sys.executable, "-m", "ext_modules.sdk", "check", "--json")
_PATIENCE: Final = 600
"""Seconds that the whole suite may take."""


class CheckFinding(BaseModel):
    """How one check went; `advice`: it need not hold; `backend`: where, "" without a sandbox."""

    check: str
    ok: bool
    detail: str = ""
    advice: bool = False
    backend: str = ""


_FINDINGS: Final = TypeAdapter(list[CheckFinding])


def check_module(
    path: Path, settings: Settings, *, backend: str = "", here: bool = False, as_json: bool = False
) -> int:
    """Check the module at `path`, a folder or a Python file, print what was found; 0 if it keeps the contract, else 1.

    `backend`: "docker", "bubblewrap", or "all" for every one that is present; "" for the one that the settings give.
    `here`: as an ordinary process of this machine, without a sandbox.

    Raises:
        UsageError: there is no module.
        SandboxError: there is no sandbox, or the module did not come up in it.
    """
    with _folder_of(path) as folder:
        if here:
            if not (folder / "module.py").is_file():
                raise UsageError(f"{path} has a program of its own; check it in a sandbox.")
            findings = _read(_run([str(folder / "module.py")]))
        else:
            findings = asyncio.run(_on_each(folder, backend or settings.sandbox, settings.runtime))
    if as_json:
        print(json.dumps([finding.model_dump() for finding in findings], ensure_ascii=False, indent=2))
    else:
        print(_table(findings), end="")
    return 0 if all(finding.ok or finding.advice for finding in findings) else 1


@contextmanager
def _folder_of(path: Path) -> Iterator[Path]:
    """The folder of the module at `path`; for a Python file one with a `module.toml` as `module add` would write it."""
    if path.suffix != ".py":
        folder = path.resolve()
        if not (folder / "module.toml").is_file():
            raise UsageError(f"{path} holds no module.toml; give the folder of a module, or a .py file.")
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
    """The names of the backends that are present and meant by `backend`, and what makes their hosts.

    Raises:
        SandboxUnavailable: there is none.
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
    """Start the module as the product would, in a workspace of its own, and check it."""
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
        CheckFinding(check="the module is still there", ok=lost is None, detail=lost or ""),
    ]


async def _taken(target: str) -> CheckFinding:
    """Whether the core takes what the module says of itself; it is stricter than the contract where that is safer."""
    name = "describe: the core takes the manifest"
    try:
        await check_manifest(target)
    except (ModuleFault, ModuleLost) as error:
        return CheckFinding(check=name, ok=False, detail=str(error))
    return CheckFinding(check=name, ok=True)


def _run(arguments: Sequence[str], *, descriptors: Sequence[int] = ()) -> str:
    """What the suite prints. Blocks."""
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
        raise ModuleLost(f"The checks did not end within {_PATIENCE} seconds.") from error
    if not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise ModuleFault(f"The module could not be checked: {last[:300]}.")
    return done.stdout.strip().splitlines()[-1]


def _read(said: str) -> list[CheckFinding]:
    try:
        return _FINDINGS.validate_json(said)
    except ValidationError as error:
        raise IactError("The checks ended without an answer; run them again with --here.") from error


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
