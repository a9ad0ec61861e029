"""Commands about what runs in the sandbox: `module …`, `doctor`.

A command that changes the catalogue is carried out by the server of the data directory if one runs, so that its
sessions hear of it at once; otherwise here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from iact.commands import audit, remote
from iact.core.errors import IactError, ModuleLost, UsageError
from iact.core.session.catalogue import KnownModule, ModuleCatalogue, ModuleRow
from iact.core.session.source import names_image, source_of
from iact.doctor import checks
from iact.sandbox import open_host
from iact.settings import Settings
from iact.wiring import make_data_directory


def list_modules(settings: Settings, *, as_json: bool) -> int:
    """Print the catalogue. A module that has never run here and can't be started shows no functions."""
    found = asyncio.run(known_modules(settings))
    if as_json:
        print(json.dumps([one.to_json() for one in found], ensure_ascii=False, indent=2))
        return 0
    for one in found:
        print(f"{one.entry.name}  {one.entry.digest[:12]}  {one.entry.origin}  {one.entry.summary}")
        print(_functions(one), end="")
    return 0


async def known_modules(settings: Settings) -> list[KnownModule]:
    """Every module, with what it says of itself; those that have never run here are started once."""
    async with _catalogue(settings) as catalogue:
        return await catalogue.described(_tell)


@asynccontextmanager
async def _catalogue(settings: Settings) -> AsyncIterator[ModuleCatalogue]:
    make_data_directory(settings)
    host = await open_host(
        settings.data, backend=settings.sandbox, runtime=settings.runtime, kubernetes=settings.kubernetes
    )
    try:
        yield ModuleCatalogue.of(host, settings.data)
    finally:
        await host.close()


def _tell(line: str) -> None:
    print(f"iact: {line}", file=sys.stderr, flush=True)


def _functions(one: KnownModule) -> str:
    lines = []
    for function in one.manifest.functions if one.manifest else ():
        mark = "" if function.name in one.approved else "  (not approved)"
        lines.append(f"  {one.entry.name}.{function.name}  impact {function.impact}{mark}\n")
    return "".join(lines)


def add_module(settings: Settings, source: str, *, as_json: bool) -> int:
    """Add the module at `source`, a path or an image, to the catalogue: it is started once, and asked what it offers.

    Raises:
        UsageError: it can't be a module.
        SandboxError: there is no sandbox, or it did not come up in it.
        ModuleFault: what it says of itself breaks the rules.
    """
    place = source if names_image(source) else str(Path(source).resolve())
    answer = remote.ask_server(settings, {"type": "module.add", "source": place})
    fields = answer["module"] if answer is not None else asyncio.run(_add(settings, place))
    if as_json:
        print(json.dumps(fields, ensure_ascii=False, indent=2))
    elif isinstance(fields, dict):
        print(f"{fields['name']}  {str(fields['digest'])[:12]}")
        _tell(f"Its functions are not approved; look at them with: iact module describe {fields['name']}")
    return 0


async def _add(settings: Settings, place: str) -> ModuleRow:
    source = await asyncio.to_thread(source_of, place)
    async with _catalogue(settings) as catalogue:
        try:
            return (await catalogue.add(source, _tell)).to_json()
        except ModuleLost as error:
            raise IactError(f"{error}\n{error.log}".rstrip()) from error


def remove_module(settings: Settings, name: str) -> int:
    """Take a module out of the catalogue; sessions of the running server lose its functions.

    Raises:
        UsageError: there is none, or it ships with the product.
    """
    if remote.ask_server(settings, {"type": "module.remove", "name": name}) is None:
        asyncio.run(_remove(settings, name))
    return 0


async def _remove(settings: Settings, name: str) -> None:
    async with _catalogue(settings) as catalogue:
        await catalogue.remove(name)


def describe_module(settings: Settings, name: str, *, as_json: bool) -> int:
    """Print what a module offers and needs: what a person should read before approving it.

    Raises:
        UsageError: there is none.
    """
    found = {one.entry.name: one for one in asyncio.run(known_modules(settings))}
    if name not in found:
        raise UsageError(f"There is no module {name!r}; there are {', '.join(sorted(found)) or 'none'}.")
    one = found[name]
    if as_json:
        print(json.dumps(one.description(), ensure_ascii=False, indent=2))
        return 0
    print(f"{name}  {one.entry.digest}  {one.entry.origin}")
    print(one.manifest.purpose if one.manifest else one.entry.summary)
    print(_functions(one), end="")
    print(_needs(one), end="")
    return 0


def _needs(one: KnownModule) -> str:
    if one.manifest is None:
        return ""
    needs = one.manifest.needs
    lines = [f"reaches {target}" for target in needs.egress]
    lines += [f"is given the secret {name}" for name in needs.secrets]
    lines += [f"can {needs.workspace} the workspace"] if needs.workspace != "none" else []
    return "".join(f"  {line}\n" for line in lines)


def approve_module(
    settings: Settings, name: str, functions: Sequence[str], *, digest: str, as_json: bool
) -> int:
    """Approve functions of a module (none named: its whole manifest, with what it needs).

    Sessions that run, in whatever process, see it at their next call.

    Raises:
        UsageError: there is no such module, version or function.
    """
    one = asyncio.run(_approve(settings, name, functions, digest))
    audit.tell(settings, "module.approved", module=name, functions=", ".join(sorted(one.approved)))
    if as_json:
        print(json.dumps(one.to_json(), ensure_ascii=False, indent=2))
        return 0
    print(_functions(one), end="")
    whole = one.manifest is not None and len(one.approved) == len(one.manifest.functions)
    print(_needs(one) if whole else "", end="")
    return 0


async def _approve(settings: Settings, name: str, functions: Sequence[str], digest: str) -> KnownModule:
    async with _catalogue(settings) as catalogue:
        return await catalogue.approve(name, functions, digest=digest)


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Print what works here; 1 if something does not."""
    found = checks(settings)
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
    else:
        for one in found:
            print(f"{'ok ' if one.ok else 'NO '} {one.check}: {one.detail}")
            if one.remedy:
                print(f"    → {one.remedy}")
    return 0 if all(one.ok for one in found) else 1
