"""Commands about what runs in the sandbox: `module …`, `doctor`.

If a server runs on the data directory, it carries out the commands that change the catalogue, so that its sessions
are notified immediately. Otherwise, this process does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from iact import signals
from iact.catalogue import catalogue_of, known_modules, tell
from iact.commands import audit, remote
from iact.commands.agreement import agreed
from iact.core.characters import escaped
from iact.core.errors import IactError, ModuleLost, UsageError
from iact.core.stored.source import names_image, source_of
from iact.core.views.known_modules import KnownModule, ModuleRow
from iact.doctor import checks
from iact.everybody import Everybody, settings_of_everybody
from iact.settings import Settings


def list_modules(settings: Settings, *, everybody: bool, as_json: bool) -> int:
    """Print the catalogue, or the modules shared by all users. A module that was never started here shows no functions."""
    modules = signals.run(Everybody(settings).modules() if everybody else known_modules(settings))
    if as_json:
        print(json.dumps([module.to_json() for module in modules], ensure_ascii=False, indent=2))
        return 0

    for module in modules:
        entry = module.entry
        print(f"{entry.name}  {entry.digest[:12]}  {entry.origin}  {entry.summary}")
        print(_functions(module), end="")
    return 0


def _functions(module: KnownModule) -> str:
    if module.manifest is None:
        return ""

    lines: list[str] = []
    for function in module.manifest.functions:
        mark = "" if function.name in module.approved else "  (not approved)"
        lines.append(f"  {module.entry.name}.{function.name}  impact {function.impact}{mark}\n")
    return "".join(lines)


def add_module(settings: Settings, source: str, *, everybody: bool, as_json: bool) -> int:
    """Add the module at `source`, a path or an image, to the catalogue, or for all users.

    The module is started once and asked what it offers.

    Raises:
        UsageError: the source is not a module.
        SandboxError: no sandbox is available, or the module did not start in it.
        ModuleFault: its manifest breaks the rules.
    """
    place = source if names_image(source) else str(Path(source).resolve())
    message = "everybody.module.add" if everybody else "module.add"
    answer = remote.ask_server(settings, {"type": message, "source": place})
    if answer is not None:
        module: Mapping[str, object] = _module_in(answer)
    else:
        module = signals.run(_add(settings, place, everybody=everybody))
        about = {"module": str(module["name"]), "digest": str(module["digest"])[:12]}
        audit.tell(settings, "module.added", **about, **audit.whose(everybody=everybody))

    if as_json:
        print(json.dumps(module, ensure_ascii=False, indent=2))
        return 0

    print(f"{module['name']}  {str(module['digest'])[:12]}")
    how = " --everybody" if everybody else ""
    tell(f"Its functions are not approved yet. To see them: iact module describe {module['name']}{how}")
    return 0


def _module_in(answer: remote.Frame) -> Mapping[str, object]:
    """The module that a server has added."""
    module = answer["module"]
    assert isinstance(module, dict)
    return module


async def _add(settings: Settings, place: str, *, everybody: bool) -> ModuleRow:
    source = await asyncio.to_thread(source_of, place)
    if everybody:
        return (await Everybody(settings).add_module(source, tell)).to_json()
    async with catalogue_of(settings) as catalogue:
        try:
            return (await catalogue.add(source, tell)).to_json()
        except ModuleLost as error:
            raise IactError(f"{error}\n{error.log}".rstrip()) from error


def remove_module(settings: Settings, name: str, *, everybody: bool) -> int:
    """Remove a module from the catalogue, or for all users. Sessions on the running server lose its functions.

    Raises:
        UsageError: there is no such module, or it ships with the product.
    """
    message = "everybody.module.remove" if everybody else "module.remove"
    if remote.ask_server(settings, {"type": message, "name": name}) is None:
        signals.run(_remove(settings, name, everybody=everybody))
        audit.tell(settings, "module.removed", module=name, **audit.whose(everybody=everybody))
    return 0


async def _remove(settings: Settings, name: str, *, everybody: bool) -> None:
    if everybody:
        await Everybody(settings).remove_module(name)
        return
    async with catalogue_of(settings) as catalogue:
        await catalogue.remove(name)


def describe_module(settings: Settings, name: str, *, everybody: bool, as_json: bool) -> int:
    """Print what a module offers and needs, and its source: what a person should read before approving it.

    Raises:
        UsageError: there is no such module.
    """
    shown = signals.run(_shown(settings, name, everybody=everybody))
    if as_json:
        described = {**shown.module.description(), "files": dict(shown.files)}
        print(json.dumps(described, ensure_ascii=False, indent=2))
        return 0

    _show(shown)
    return 0


@dataclass(frozen=True, slots=True)
class ShownModule:
    """A module with its source."""

    module: KnownModule
    files: Mapping[str, str]
    """The text of each file, by its path. A file that is no text is described instead. Empty for an image."""


async def _shown(settings: Settings, name: str, *, everybody: bool) -> ShownModule:
    place = settings_of_everybody(settings) if everybody else settings
    async with catalogue_of(place) as catalogue:
        listed = await catalogue.described(tell)
        if everybody:
            listed = [module for module in listed if module.entry.origin != "shipped"]
        found = {module.entry.name: module for module in listed}
        if name not in found:
            raise UsageError(
                f"There is no module {name!r}. The modules are: {', '.join(sorted(found)) or 'none'}."
            )

        module = found[name]
        return ShownModule(module, await catalogue.source(module))


def _show(shown: ShownModule) -> None:
    module = shown.module
    print(f"{module.entry.name}  {module.entry.digest}  {module.entry.origin}")
    print(module.manifest.purpose if module.manifest else module.entry.summary)
    print(_functions(module), end="")
    print(_needs(module), end="")
    for path, text in shown.files.items():
        print(f"  {path}:")
        # Each line follows a bar, so that none can look like one of ours, and nothing in it is invisible.
        print("".join(f"  | {escaped(line, every=True)}\n" for line in text.split("\n")), end="")


def _needs(one: KnownModule) -> str:
    if one.manifest is None:
        return ""
    needs = one.manifest.needs
    lines = [f"reaches {target}" for target in needs.egress]
    lines += [f"is given the secret {name}" for name in needs.secrets]
    lines += [f"can {needs.workspace} the workspace"] if needs.workspace != "none" else []
    return "".join(f"  {line}\n" for line in lines)


def approve_module(
    settings: Settings, name: str, functions: Sequence[str], *, digest: str, everybody: bool, as_json: bool
) -> int:
    """Approve functions of a module, or of a shared one. If no functions are named, approve the whole manifest and its needs.

    `digest`: that of the module as the person saw it; without it the module is shown, and the person is asked. Running
    sessions, in any process, see the approval at their next call.

    Raises:
        UsageError: there is no such module or function, or there is nobody to ask.
        Changed: it is not the module that the person saw.
    """
    if not digest:
        shown = signals.run(_shown(settings, name, everybody=everybody))
        digest = shown.module.entry.digest
        _show(shown)
        if not agreed(f"Approve {', '.join(functions) or 'all of it'}?", digest):
            print("Nothing was approved.", file=sys.stderr)
            return 1

    one = signals.run(_approve(settings, name, functions, digest, everybody=everybody))
    about = {"module": name, "functions": ", ".join(sorted(one.approved))}
    audit.tell(settings, "module.approved", **about, **audit.whose(everybody=everybody))
    if as_json:
        print(json.dumps(one.to_json(), ensure_ascii=False, indent=2))
        return 0
    print(_functions(one), end="")
    whole = one.manifest is not None and len(one.approved) == len(one.manifest.functions)
    print(_needs(one) if whole else "", end="")
    return 0


async def _approve(
    settings: Settings, name: str, functions: Sequence[str], digest: str, *, everybody: bool
) -> KnownModule:
    if everybody:
        return await Everybody(settings).approve_module(name, functions, digest=digest)
    async with catalogue_of(settings) as catalogue:
        return await catalogue.approve(name, functions, digest=digest)


def doctor(settings: Settings, *, as_json: bool, fix: bool = False) -> int:
    """Print what works on this machine. Returns 1 if something does not. `fix`: remove what dead processes left."""
    found = checks(settings, fix=fix)
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
    else:
        for one in found:
            print(f"{'ok ' if one.ok else 'NO '} {one.check}: {one.detail}")
            if one.remedy:
                print(f"    → {one.remedy}")
    return 0 if all(one.ok for one in found) else 1
