"""The catalogue of modules as people see and change it: what each module declares, and which parts are approved.

A running server changes the catalogue through its runtime, so that open sessions are notified. A command that finds no
server changes it here. Neither runs a module, except for starting it once to read its manifest.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path

from iact.core.errors import ModuleFault, SandboxError
from iact.core.modules.approval import FILE, Approvals
from iact.core.modules.client import ModuleClient
from iact.core.modules.invoker import Invoker
from iact.core.modules.manifest import Manifest
from iact.core.ports import CatalogueEntry, ModuleHost, ModuleSource, Report
from iact.core.views.known_modules import KnownModule, approve, known


class ModuleCatalogue:
    """The modules that a host holds, and what people approved of them."""

    def __init__(self, host: ModuleHost, approvals: Approvals) -> None:
        self._host = host
        self._approvals = approvals

    @classmethod
    def of(cls, host: ModuleHost, data: Path) -> ModuleCatalogue:
        """The catalogue of a host, with the approvals of a data directory.

        Raises:
            UsageError: the file of the approvals can't be understood.
        """
        return cls(host, Approvals.load(data / FILE))

    async def modules(self) -> list[KnownModule]:
        """Every module.

        Raises:
            SandboxError: there is no catalogue.
        """
        return [known(entry, self._approvals) for entry in await self._host.catalogue()]

    async def described(self, report: Report) -> list[KnownModule]:
        """Every module. Modules that have never run here are started once; those that can't be started are reported to
        `report`.

        Raises:
            SandboxError: there is no catalogue.
        """
        for entry in await self._host.catalogue():
            if entry.manifest is None:
                try:
                    await describe_once(self._host, entry, report)
                except (SandboxError, ModuleFault) as error:
                    report(f"{entry.name}: {error}")
        return await self.modules()

    async def add(self, source: ModuleSource, report: Report = lambda line: None) -> KnownModule:
        """Add a module on behalf of a person: start it once, and keep it.

        Raises:
            UsageError: the source can't be a module.
            SandboxError: there is no sandbox, or the module did not start; `ModuleLost.log` may say why.
            ModuleFault: its manifest breaks the rules.
        """
        entry = await self._host.add(source, "user")
        if entry.manifest is None:
            await describe_once(self._host, entry, report)
        await self._host.adopt(entry.name, entry.digest, "user")
        return next(one for one in await self.modules() if one.entry.name == entry.name)

    async def remove(self, name: str) -> None:
        """Remove a module on behalf of a person.

        Raises:
            UsageError: there is no such module, or it ships with the product.
            SandboxError: there is no catalogue.
        """
        await self._host.remove(name)

    def withdraw(self, name: str) -> None:
        """Withdraw all approvals of a module.

        Raises:
            UsageError: the approvals can't be written.
        """
        self._approvals.withdraw(name)

    async def source(self, module: KnownModule) -> dict[str, str]:
        """The text of each file of a module's source, by its path; a file that is no text is described instead.

        Empty if the module is an image.
        """
        found = await self._host.files(module.entry.name, module.entry.digest)
        texts: dict[str, str] = {}
        for path, content in sorted(found.items()):
            try:
                texts[path] = content.decode()
            except UnicodeDecodeError:
                digest = hashlib.sha256(content).hexdigest()
                texts[path] = f"({len(content)} bytes that are no text, SHA-256 {digest})"
        return texts

    async def approve(self, name: str, functions: Sequence[str] = (), *, digest: str) -> KnownModule:
        """Approve functions of a module's manifest for this digest; all of them if none is named.

        Raises:
            UsageError: there is no such module or function.
            Changed: the module is not the one with this digest.
            SandboxError: there is no catalogue.
        """
        entries = await self._host.catalogue()
        return approve(name, entries, self._approvals, functions, digest=digest)


async def check_manifest(target: str) -> None:
    """Ask the module at the socket `target` for its manifest. The core is stricter than the contract where that is
    safer.

    Raises:
        ModuleFault: its manifest breaks the rules.
        ModuleLost: it does not answer.
    """
    async with ModuleClient(target) as client:
        await client.describe()


async def describe_once(host: ModuleHost, entry: CatalogueEntry, report: Report) -> Manifest:
    """Start a module in its own temporary place, ask for its manifest, and stop it; the host keeps the answer.

    Raises:
        SandboxError: it can't be started.
        ModuleFault: its manifest breaks the rules.
    """
    with tempfile.TemporaryDirectory(prefix="iact-describe-") as folder:
        invoker = Invoker(host, f"describe-{secrets.token_hex(4)}", Path(folder))
        try:
            manifest = await invoker.describe(entry.name, report, digest=entry.digest)
        finally:
            await invoker.close()
    if manifest.name != entry.name:
        raise ModuleFault(f"The module {entry.name} reports the name {manifest.name}.")
    return manifest
