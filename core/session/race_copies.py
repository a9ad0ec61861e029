"""Copies of the workspace for the steps of a race, one for each: made, taken over, and removed.

The records decide that a step races, and that its results are taken over (`core.tree.apply_copies`). A copy is made
from a version of the workspace, and what was written in it is kept as a version before the step's outcome is recorded.
So only the call that works in a copy needs it: after a crash it is made again from the first version, or taken over
from the second.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from iact.core.errors import WorkspaceError
from iact.core.modules.invoker import Modules
from iact.core.records.plans import MakeCopy
from iact.core.session.live import Live
from iact.core.session.scheduler import Scheduler
from iact.core.stored.workspace import Workspace
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.apply_copies import wanted
from iact.core.tree.plan_run import Copied, PlanRun


class Copies:
    """The copies of one session's workspace."""

    def __init__(self, live: Live, scheduler: Scheduler, workspace: Workspace, modules: Modules) -> None:
        self._live = live
        self._scheduler = scheduler
        self._workspace = workspace
        self._modules = modules

    def of(self, plan: Agent, pending: Pending) -> Path | None:
        """The copy that a step works in; None: it works in the workspace itself."""
        return self._place(plan, pending) if pending.base else None

    def _place(self, plan: Agent, pending: Pending) -> Path:
        whose = hashlib.sha256(plan.path.encode()).hexdigest()[:12]
        return self._workspace.copy(f"{whose}-{pending.index}")

    async def make(self, plan: Agent, pending: Pending) -> None:
        """Make the copy for a step of a race, or record why there can be none."""
        place, said = self._place(plan, pending), MakeCopy(node=pending.node, action=pending.index)
        if pending.copied:
            if pending.base:  # it was made before the session was closed
                await self._workspace.make_copy(place, pending.base)
            return
        try:
            said = replace(said, base=await self._workspace.make_copy(place))
        except WorkspaceError as error:
            said = replace(said, why=str(error))
        self._live.record(said, plan.path)

    def let_go(self, plan: Agent, pending: Pending) -> None:
        """Remove the copy of a step that has ended, and what runs in it, in the background."""
        place = self._place(plan, pending)
        self._scheduler.spawn(f"end of the copy {place.name}", partial(self._remove, place))

    async def _remove(self, place: Path) -> None:
        await self._modules.leave(place)
        await self._workspace.remove_copy(place)

    async def take_over(self, plan: Agent, run: PlanRun, node: str, copied: Copied) -> None:
        """Take over what a step wrote in its copy into the workspace, and record the result."""
        live, tree = self._live, self._live.tree
        await live.journal.durable(copied.result)
        try:
            taken = await self._workspace.take_over(copied.base, copied.version)
            said = replace(wanted(tree, node, copied), version=taken.version, conflicts=taken.conflicts)
        except WorkspaceError as error:
            said = replace(wanted(tree, node, copied), why=str(error))
        if run.taking.get(node) is copied:
            live.record(said, plan.path)

    async def open(self) -> None:
        """Remove copies that a crash left, and finish the takeovers of plans that were cancelled in the meantime."""
        await self.close()
        for plan in list(self._live.tree.agents.values()):
            if plan.plan is not None and not plan.active:
                for node, copied in list(plan.plan.taking.items()):
                    await self.take_over(plan, plan.plan, node, copied)

    async def close(self) -> None:
        """Remove all copies; a step that needs one makes it again."""
        await self._workspace.remove_copies()
