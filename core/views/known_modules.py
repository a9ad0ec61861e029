"""A module of the catalogue as people see it: what it declares, and which of its functions are approved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from typing_extensions import TypedDict

from iact.core.errors import ModuleFault, UsageError
from iact.core.modules.approval import FILE, Approvals
from iact.core.modules.manifest import Manifest
from iact.core.ports import JSON, CatalogueEntry, Origin
from iact.core.views import consent

ManifestObject: TypeAlias = Annotated[dict[str, JSON], Manifest]
"""A manifest as JSON, with all its fields."""


class FunctionRow(TypedDict):
    """A function of a module. `approved`: a person trusts what the manifest says about it."""

    name: str
    impact: Literal[0, 1, 2]
    approved: bool


class ModuleRow(TypedDict):
    """A module in a list. A module is `new` if it has never run here, so that its functions are not known yet."""

    name: str
    version: str | None
    state: Literal["ready", "new"]
    digest: str
    functions: list[FunctionRow]


class ModuleDescription(ModuleRow):
    """Everything a person should know before approving a module: where it comes from, and the whole manifest.

    `shared`: an administrator added it for all users; only administrators can remove or approve it.
    """

    origin: Origin
    summary: str
    shared: bool
    manifest: ManifestObject | None


@dataclass(frozen=True, slots=True)
class KnownModule:
    """A module of the catalogue. `manifest`: None if it has never run here. `approved`: functions, without the module's
    name."""

    entry: CatalogueEntry
    manifest: Manifest | None
    approved: frozenset[str]

    def to_json(self) -> ModuleRow:
        """The JSON form used by `iact module list --json` and the page."""
        module = self.entry.name
        if self.manifest is None:
            return {
                "name": module,
                "version": None,
                "state": "new",
                "digest": self.entry.digest,
                "functions": [],
            }

        functions: list[FunctionRow] = [
            {
                "name": f"{module}.{function.name}",
                "impact": function.impact,
                "approved": function.name in self.approved,
            }
            for function in self.manifest.functions
        ]
        return {
            "name": module,
            "version": self.manifest.version,
            "state": "ready",
            "digest": self.entry.digest,
            "functions": functions,
        }

    def description(self) -> ModuleDescription:
        """The full description."""
        return {
            **self.to_json(),
            "origin": self.entry.origin,
            "summary": self.entry.summary,
            "shared": self.entry.shared,
            "manifest": self.manifest.model_dump(mode="json") if self.manifest else None,
        }


def known(entry: CatalogueEntry, approvals: Approvals) -> KnownModule:
    """One entry with its approvals; a module that ships with the product is approved completely."""
    manifest: Manifest | None = None
    if entry.manifest is not None:
        # A kept manifest that is damaged, or older than our rules: the module is asked again when it runs.
        with suppress(ModuleFault):
            manifest = Manifest.from_proto(entry.manifest)

    functions = [function.name for function in manifest.functions] if manifest is not None else []
    if entry.origin == "shipped":
        return KnownModule(entry, manifest, frozenset(functions))
    approved = [name for name in functions if approvals.approved(entry.name, entry.digest, name)]
    return KnownModule(entry, manifest, frozenset(approved))


def known_here(entries: Iterable[CatalogueEntry], data: Path) -> list[KnownModule]:
    """Entries with the approvals of a data directory.

    Raises:
        UsageError: the file of the approvals can't be understood.
    """
    approvals = Approvals.load(data / FILE)
    return [known(entry, approvals) for entry in entries]


def approve(
    name: str,
    entries: Sequence[CatalogueEntry],
    approvals: Approvals,
    functions: Sequence[str] = (),
    *,
    digest: str,
) -> KnownModule:
    """Approve functions of a module, all if none is named. Their names may include the module's name.

    `digest`: the digest that the person saw, or at least its first 16 digits. It is of the source, and with it of the
    manifest, of which a host keeps one for each digest.

    Raises:
        UsageError: there is no such module or function; nothing was approved.
        Changed: the module is not the one that the person saw.
    """
    module = next((known(entry, approvals) for entry in entries if entry.name == name), None)
    if module is None:
        names = ", ".join(sorted(entry.name for entry in entries))
        raise UsageError(f"There is no module {name!r}; there are {names or 'none'}.")
    if module.entry.shared:
        raise UsageError(
            f"An administrator added the module {name} for all users; only an administrator can approve it."
        )
    consent.check(digest, module.entry.digest)
    if module.manifest is None:
        raise UsageError(f"The module {name} has never run here, so there is nothing to approve yet.")

    offered = [function.name for function in module.manifest.functions]
    wanted = [function.removeprefix(f"{name}.") for function in functions] or offered
    for function in wanted:
        if function not in offered:
            raise UsageError(f"The module {name} has no function {function!r}; it has {', '.join(offered)}.")

    if module.entry.origin != "shipped":
        approvals.approve(name, module.entry.digest, wanted)
    return known(module.entry, approvals)
