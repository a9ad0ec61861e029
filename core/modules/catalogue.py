"""The catalogue as people see it: each module with what it says of itself and what is approved of that."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import ModuleFault, UsageError
from core.modules.approval import Approvals
from core.modules.door import Door
from core.modules.manifest import Manifest
from core.ports import JSON, CatalogueEntry, ModuleHost, Report


@dataclass(frozen=True, slots=True)
class Known:
    """A module of the catalogue. `manifest`: None if it has never run here. `approved`: functions, without its name."""

    entry: CatalogueEntry
    manifest: Manifest | None
    approved: frozenset[str]

    def to_json(self) -> dict[str, JSON]:
        """As `iact module list --json` and the page have it."""
        functions: list[JSON] = [
            {
                "name": f"{self.entry.name}.{one.name}",
                "impact": one.impact,
                "approved": one.name in self.approved,
            }
            for one in (self.manifest.functions if self.manifest else ())
        ]
        return {
            "name": self.entry.name,
            "version": self.manifest.version if self.manifest else None,
            "state": "ready" if self.manifest else "new",
            "digest": self.entry.digest,
            "functions": functions,
        }

    def description(self) -> dict[str, JSON]:
        """All that a person should know before approving it: the whole manifest, and where it comes from."""
        manifest: JSON = self.manifest.model_dump(mode="json") if self.manifest else None
        about: dict[str, JSON] = {"origin": self.entry.origin, "summary": self.entry.summary}
        return {**self.to_json(), **about, "manifest": manifest}


def known(entry: CatalogueEntry, approvals: Approvals) -> Known:
    """One entry, with what is approved of it: all of a module that ships with the product."""
    try:
        manifest = Manifest.from_proto(entry.manifest) if entry.manifest is not None else None
    except ModuleFault:
        manifest = (
            None  # what was kept of it is damaged, or older than our rules; it is asked again when it runs
        )
    names = [one.name for one in manifest.functions] if manifest else []
    shipped = entry.origin == "shipped"
    approved = [one for one in names if shipped or approvals.approved(entry.name, entry.digest, one)]
    return Known(entry, manifest, frozenset(approved))


def approve(
    name: str,
    entries: Sequence[CatalogueEntry],
    approvals: Approvals,
    functions: Sequence[str] = (),
    *,
    digest: str = "",
) -> Known:
    """Approve functions of a module (none named: all), with or without the module's name in front.

    `digest`: the beginning of the digest that was looked at, which must be the one in the catalogue.

    Raises:
        UsageError: there is no such module, version or function; nothing was approved.
    """
    found = next((known(entry, approvals) for entry in entries if entry.name == name), None)
    if found is None:
        names = ", ".join(sorted(entry.name for entry in entries))
        raise UsageError(f"There is no module {name!r}; there are {names or 'none'}.")
    if not found.entry.digest.startswith(digest):
        raise UsageError(f"The module {name} has the digest {found.entry.digest} now; look at it again.")
    if found.manifest is None:
        raise UsageError(f"The module {name} has never run here, so there is nothing to approve yet.")
    offered = [one.name for one in found.manifest.functions]
    wanted = [function.removeprefix(f"{name}.") for function in functions] or offered
    for function in wanted:
        if function not in offered:
            raise UsageError(f"The module {name} has no function {function!r}; it has {', '.join(offered)}.")
    if found.entry.origin != "shipped":
        approvals.approve(name, found.entry.digest, wanted)
    return known(found.entry, approvals)


async def describe_once(host: ModuleHost, entry: CatalogueEntry, report: Report) -> Manifest:
    """Start a module in a place of its own, ask what it offers, and end it; the host keeps the answer.

    Raises:
        SandboxError: it can't be started.
        ModuleFault: what it says of itself breaks the rules.
    """
    with tempfile.TemporaryDirectory(prefix="iact-describe-") as folder:
        door = Door(host, f"describe-{secrets.token_hex(4)}", Path(folder))
        try:
            manifest = await door.describe(entry.name, report, digest=entry.digest)
        finally:
            await door.close()
    if manifest.name != entry.name:
        raise ModuleFault(f"The module {entry.name} says that its name is {manifest.name}.")
    return manifest
