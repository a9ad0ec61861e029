"""Copies of the workspace in which steps of a race work, each in its own: made, taken over, let go of.

That a step races, and that what it wrote is to be taken over, follows from the records (`core.tree.apply_copies`). A
copy is made of a version of the workspace, and what was written in it is kept as a version before the step's outcome
is recorded. So a copy itself is needed by nobody but the call that works in it: after a crash it is made anew of the
one version, or taken over from the other.
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
from iact.core.session.workspace import Workspace
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
        """The copy in which a step works; None: it works in the workspace itself."""
        return self._place(plan, pending) if pending.base else None

    def _place(self, plan: Agent, pending: Pending) -> Path:
        whose = hashlib.sha256(plan.path.encode()).hexdigest()[:12]
        return self._workspace.copy(f"{whose}-{pending.index}")

    async def make(self, plan: Agent, pending: Pending) -> None:
        """Give a step of a race its copy, or record why there can be none."""
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
        """A step has its outcome, or none: its copy, and what works there, ends behind everybody's back."""
        place = self._place(plan, pending)
        self._scheduler.spawn(f"end of the copy {place.name}", partial(self._remove, place))

    async def _remove(self, place: Path) -> None:
        await self._modules.leave(place)
        await self._workspace.remove_copy(place)

    async def take_over(self, plan: Agent, run: PlanRun, node: str, copied: Copied) -> None:
        """Have what a step wrote in its copy stand in the workspace, and record what came of it."""
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
        """Let go of copies that a crash left, and finish what was under way for plans that were cancelled meanwhile."""
        await self.close()
        for plan in list(self._live.tree.agents.values()):
            if plan.plan is not None and not plan.active:
                for node, copied in list(plan.plan.taking.items()):
                    await self.take_over(plan, plan.plan, node, copied)

    async def close(self) -> None:
        """Let go of all copies: what needs one makes it anew."""
        await self._workspace.remove_copies()
