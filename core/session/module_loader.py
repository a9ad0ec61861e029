"""The modules of one session: known from its start, loaded or written by agents, changed by people.

A `module` record says which version of a module the session uses and how much of its manifest is trusted. The functions
that agents find follow from these records alone. The catalogue and the approvals belong to the whole data directory and
are read only here; what they say is recorded before it counts. So a journal replays without them, and a version that
another session deploys changes nothing here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from typing import Final, Literal

from iact.core.errors import (
    ModuleFault,
    ModuleLost,
    ModuleWithdrawn,
    PackagesUnavailable,
    SandboxError,
    UsageError,
)
from iact.core.gate.gate import Ticket
from iact.core.modules.approval import Approvals
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import Completed, Outcome, Raised
from iact.core.modules.registry import Loaded
from iact.core.ports import CatalogueEntry, ModuleHost, ModuleSource, Right
from iact.core.records.session import Module
from iact.core.session.live import Live
from iact.core.tree.asked_packages import listed
from iact.core.views.events import NoticeEvent

Gone = Literal["removed", "withdrawn"]
"""Why a module is no longer available: a person removed it from the catalogue, or it failed too often."""

_WORDS: Final = ("requirements", "egress", "secrets")
"""Arguments of DEPLOY that are lists of words."""


class ModuleLoader:
    """Adds modules to one session, and removes them again."""

    def __init__(self, live: Live, host: ModuleHost, invoker: Modules, approvals: Approvals | None) -> None:
        self._live = live
        self._host = host
        self._invoker = invoker
        self._approvals = approvals
        self._changing = asyncio.Lock()

    # --- what people change ---------------------------------------------------------------------

    async def refresh(self) -> None:
        """Update the session with what the catalogue holds now. A module that an agent wrote is included only if the
        session already knew it.

        Raises:
            SandboxError: there is no catalogue.
        """
        modules = self._live.tree.modules
        async with self._changing:
            entries = {entry.name: entry for entry in await self._host.catalogue()}
            for entry in entries.values():
                if entry.origin != "agent":
                    await self._try(entry)
            for name in list(modules):
                if name not in entries:
                    await self.forget(name, "removed", "A person removed it from the catalogue.")
                else:
                    self.review(name)

    async def warm(self, names: Collection[str]) -> None:
        """Start modules before the root's first calls. If one can't be started, the first call reports why."""
        rights: tuple[Right, ...] = ("look", "work") if self._live.tree.grant.intent > 0 else ("look",)
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self._warm(name, rights))

    async def _warm(self, name: str, rights: Sequence[Right]) -> None:
        """Start instances one after the other: the reading one first, because the writing one is mostly called after
        it."""
        loaded = self._live.tree.modules.get(name)
        if loaded is None:
            return
        for right in rights:
            with contextlib.suppress(SandboxError):
                await self._invoker.warm(name, self._say, loaded.start, right=right, agent="/")

    def review(self, name: str) -> None:
        """Record what is approved of a module now, if that has changed."""
        loaded = self._live.tree.modules.get(name)
        if loaded is None or loaded.origin == "shipped":
            return
        approved = self._approved(loaded.manifest, loaded.digest)
        if approved != loaded.approved:
            self._record(Loaded(loaded.manifest, loaded.digest, loaded.origin, approved))

    async def forget(self, name: str, state: Gone, why: str) -> None:
        """Remove a module from the session; agents that know its functions are told."""
        loaded = self._live.tree.modules.get(name)
        if loaded is not None:
            gone = Module(name=name, digest=loaded.digest, origin=loaded.origin, state=state)
            self._live.record(gone, "/", body=why)
            await self._invoker.drop(name)

    # --- what agents ask for --------------------------------------------------------------------

    async def carry_out(self, ticket: Ticket, call: FunctionCall) -> Outcome:
        """Carry out a LOAD or a DEPLOY. Errors that the agent can fix are part of the outcome.

        Raises:
            SandboxError: there is no sandbox.
        """
        ticket.redeem(call.request)
        name = _text(call, "name")
        try:
            async with self._changing:
                entry = await (self._find(name) if call.function == "LOAD" else self._add(name, call))
                loaded = await self._bring(entry)
                if entry.origin == "agent":
                    await self._host.adopt(name, entry.digest, "agent")
        except (UsageError, ModuleFault, PackagesUnavailable, ModuleWithdrawn) as error:
            return Raised(type(error).__name__, str(error), "", "")
        except ModuleLost as error:
            return Raised("ModuleLost", f"The module {name} did not start.", error.log or str(error), "")
        return Completed(f"{name} {loaded.digest[:12]}", "text/plain", {}, None, (), None)

    def approved(self, name: str) -> bool:
        """Whether this session has a module whose functions were all approved by a person."""
        self.review(name)
        loaded = self._live.tree.modules.get(name)
        return loaded is not None and len(loaded.approved) == len(loaded.manifest.functions)

    async def keep_approved(self, source: ModuleSource) -> None:
        """Keep a module that a person has read and approved completely: in the catalogue, and for this session.

        Raises:
            UsageError: the source can't be a module, or the approval can't be kept.
            ModuleFault: its manifest breaks the rules.
            SandboxError: there is no sandbox, or the module did not start.
        """
        if self._approvals is None:
            raise UsageError("Nothing can be approved here.")
        async with self._changing:
            entry = await self._host.add(source, "user")
            loaded = await self._bring(entry)
            functions = [function.name for function in loaded.manifest.functions]
            self._approvals.approve(entry.name, entry.digest, functions)
            await self._host.adopt(entry.name, entry.digest, "user")
            self.review(entry.name)

    async def _find(self, name: str) -> CatalogueEntry:
        entries = {entry.name: entry for entry in await self._host.catalogue()}
        if name not in entries:
            raise UsageError(
                f"There is no module {name!r} in the catalogue; there are {', '.join(sorted(entries))}."
            )
        return entries[name]

    async def _add(self, name: str, call: FunctionCall) -> CatalogueEntry:
        lists = {key: listed(_text(call, key)) for key in _WORDS}
        source = ModuleSource(
            name,
            {"module.py": _text(call, "source").encode("utf-8", "replace")},
            summary=f"Written by the agent {call.agent}.",
            requirements=lists["requirements"],
            egress=lists["egress"],
            secrets=lists["secrets"],
            workspace=_text(call, "workspace") or "none",
        )
        return await self._host.add(source, "agent")

    # --- shared by both ---------------------------------------------------------------------------

    async def _try(self, entry: CatalogueEntry) -> None:
        """Add a module of the catalogue; a failure to read its manifest is reported to people only."""
        try:
            await self._bring(entry)
        except (ModuleFault, ModuleLost, PackagesUnavailable) as error:
            self._live.notice("/", "module", f"The module {entry.name} is left out. {error}")

    async def _bring(self, entry: CatalogueEntry) -> Loaded:
        """Make a version of a module known in this session, and start it once if it never was."""
        if entry.manifest is not None:
            manifest = Manifest.from_proto(entry.manifest)
        else:
            self._say(f"Starting the module {entry.name} for the first time.")
            manifest = await self._invoker.describe(entry.name, self._say, digest=entry.digest)
        if manifest.name != entry.name:
            raise ModuleFault(f"The module {entry.name} reports the name {manifest.name}.")
        shipped = entry.origin == "shipped"
        names = frozenset(function.name for function in manifest.functions)
        approved = names if shipped else self._approved(manifest, entry.digest)
        loaded = Loaded(manifest, entry.digest, entry.origin, approved)
        if self._live.tree.modules.get(entry.name) != loaded:
            self._record(loaded)
        return loaded

    def _approved(self, manifest: Manifest, digest: str) -> frozenset[str]:
        names, approvals = [function.name for function in manifest.functions], self._approvals
        if approvals is None:
            return frozenset()
        return frozenset(name for name in names if approvals.approved(manifest.name, digest, name))

    def _record(self, loaded: Loaded) -> None:
        body = f"```json\n{loaded.manifest.to_json()}\n```"
        self._live.record(loaded.content(live=self._live.tree.workspace != "scratch"), "/", body=body)

    def _say(self, line: str) -> None:
        self._live.publish(NoticeEvent(line))


def _text(call: FunctionCall, name: str) -> str:
    """A text argument, whether it was written inline or passed as a variable."""
    value = call.attached.get(name)
    return value.text() if value is not None else str(call.arguments.get(name, ""))
