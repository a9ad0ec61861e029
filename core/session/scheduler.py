"""The tasks of one session: which agents run, and what can stop them.

Every agent or plan that has something to do is driven by one task, which takes the next step until there is none. The
parts of the session get the scheduler, and tell it which agents to drive and whose work has ended; only the scheduler
starts or ends tasks.

All tasks are in one `TaskGroup`, which lasts as long as the session is open, and no task ends it by failing. A bug
gives the agent whose task met it an error, which is in the journal, and affects nothing else (law 10).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Final, Literal, Protocol

from iact.core.errors import BlobLost, IactError, JournalUnwritable
from iact.core.session.live import Live
from iact.core.session.results import drop, settle
from iact.core.tree.agent import Act, Agent, Pending, Step
from iact.core.tree.plan_run import BUG

StopReason = Literal["pause", "interrupt", "calls", "cancel", "changed"]
"""Why an agent's running work must stop: it is paused; a person interrupts it; its calls were ended; its work was
cancelled; what the work is about has changed."""

Ending = Literal["cancelled", "failed"]
"""How work ended that was not completed."""

Job = Callable[[], Coroutine[None, None, None]]
"""Work of the session itself and not of an agent."""

_LOG: Final = logging.getLogger(__name__)


class Stoppable(Protocol):
    """Work of an agent that can be stopped before it is done: a model's reply, a call, a plan."""

    def stop(self, reason: StopReason, why: str) -> None:
        """Stop, if `reason` applies to this work. `why`: in words, for people."""
        ...


class Steps(Protocol):
    """Carries out the steps of agents."""

    async def take(self, agent: Agent, step: Step) -> None:
        """Take one step, to its end."""
        ...

    def cancel(self, agent: Agent, why: str) -> None:
        """Record what must be known before the work of the agent's descendants ends."""
        ...

    def end(self, agent: Agent, status: Ending, why: str) -> None:
        """Record that the agent's work ended before it was done."""
        ...


class _Scope:
    """Ends what is done in it when the agent's work is cancelled."""

    def __init__(self, scope: asyncio.Timeout) -> None:
        self._scope = scope

    def stop(self, reason: StopReason, why: str) -> None:
        """While an agent is paused, its calls go on, unless they are to be ended as well."""
        if reason in ("calls", "cancel"):
            self._scope.reschedule(asyncio.get_running_loop().time())


class Scheduler:
    """The tasks of one session."""

    def __init__(self, live: Live) -> None:
        self.ready: Final = asyncio.Event()
        """The modules are known, so agents may begin."""
        self.closing = False
        """Whether no task may start any more."""
        self.holding = False
        """Whether no new work begins, while running work may finish."""
        self.live: Final = live
        self._session: Final = live.tree.session
        self._about: Final = {"session": self._session}
        self._steps: Steps | None = None
        self._group: asyncio.TaskGroup | None = None
        self._host: asyncio.Task[None] | None = None
        """The task in which the group runs."""
        self._stopped = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By the path of the agent, or the name of the job."""
        self._working: dict[str, list[Stoppable]] = {}
        """What can be stopped of the work of an agent, by its path."""

    # --- life -----------------------------------------------------------------------------------

    def start(self, steps: Steps, group: asyncio.TaskGroup, job: Job) -> None:
        """Run `job`, and let every agent that has something to do go on. `group`: belongs to the opener of the
        session."""
        self._steps = steps
        self._host = group.create_task(self._run(job), name=f"session {self._session}")

    async def hold(self) -> None:
        """Begin nothing more, and wait until nothing is under way; only `close` may follow."""
        live = self.live
        self.holding = True
        while live.at_work and live.failure is None:
            await live.grew.wait()

    async def close(self) -> None:
        """Stop every task; unfinished work has no outcome, as after a crash."""
        self.closing = True
        self._stopped.set()
        if self._host is not None:
            await asyncio.wait([self._host])

    async def _run(self, job: Job) -> None:
        """The session's own task, in which all its others run: until `close`."""
        try:
            async with asyncio.TaskGroup() as self._group:
                self.spawn("modules", job)
                for path in list(self.live.tree.agents):
                    self.drive(path)

                await self._stopped.wait()

                for task in self._tasks.values():
                    task.cancel()
        except Exception:  # none of our tasks ends by failing, so this is a bug in this file or in the tree
            self._give_up()
        finally:
            self._group = None

    @property
    def steps(self) -> Steps:
        """The object that carries out the steps of agents, set by `start`."""
        assert self._steps is not None, "the session was not started"
        return self._steps

    # --- tasks ----------------------------------------------------------------------------------

    def drive(self, path: str) -> None:
        """Make sure that an agent with something to do has a task."""
        live = self.live
        begins_nothing = self.closing or self.holding or live.failure is not None
        if self._group is None or begins_nothing or path in self._tasks:
            return

        if path in live.tree.agents and live.tree.next_step(path) is not None:
            self._tasks[path] = self._group.create_task(self._drive(path), name=f"{self._session} {path}")

    def spawn(self, name: str, job: Job) -> None:
        """Run a job for the session as a whole; if it fails, people are notified."""
        if self._group is not None and not self.closing:
            self._tasks[name] = self._group.create_task(self._do(name, job), name=f"{self._session} {name}")

    async def _do(self, name: str, job: Job) -> None:
        try:
            await self.supervise(name, job)
        finally:
            self._tasks.pop(name, None)

    async def supervise(self, name: str, job: Job) -> None:
        """Run a job for the session in the calling task; if it fails, people are notified and nothing else is
        affected."""
        try:
            await job()
        except JournalUnwritable as error:
            self.live.stop(error)
        except BlobLost as error:
            self._stop_without(error)
        except Exception:
            _LOG.exception("The task %s of session %s met a bug.", name, self._session, extra=self._about)

            text = (
                f"An internal error ended a task of this session ({name}); see the server's log. The "
                "session continues."
            )
            with contextlib.suppress(JournalUnwritable):
                self.live.notice("/", "internal", text, level="error")

    async def _drive(self, path: str) -> None:
        """Take the steps of an agent until it has none, then see to its caller, which may have waited for it."""
        live = self.live
        agent = live.tree.agents[path]
        try:
            await self.ready.wait()

            while not self.holding and (step := self._next_step(agent)) is not None and live.failure is None:
                await self.steps.take(agent, step)
                live.changed()
        except JournalUnwritable as error:
            live.stop(error)
        except BlobLost as error:
            self._stop_without(error)
        except Exception:
            _LOG.exception("Agent %s of session %s met a bug.", path, self._session, extra=self._about)
            self._fail(agent)
        finally:
            self._tasks.pop(path, None)

        # It may have got a step between its last look and the end of its task.
        self.drive(path)
        self.drive(agent.caller)

    def _next_step(self, agent: Agent) -> Step | None:
        """What the agent has to do now. A message to be delivered before the next tool call replaces that call."""
        tree = self.live.tree
        step = tree.next_step(agent.path)

        if isinstance(step, Act) and (agent.mail.urgent or step.pending.stopped):
            drop(self.live, agent, "skipped")
            step = tree.next_step(agent.path)
        return step

    def _fail(self, agent: Agent) -> None:
        """Handle a bug of ours: this agent loses its task and its caller gets an error; nothing else is affected (law
        10)."""
        if not agent.active:
            return

        try:
            self.stop(agent, "cancel", BUG)
            self.cancel_children(agent, "Its caller failed before it was done.")
            self.steps.end(agent, "failed", BUG)
        except JournalUnwritable as error:
            self.live.stop(error)
        except Exception:
            self._give_up()

    def _stop_without(self, error: BlobLost) -> None:
        """Stop the session because content that it needs is lost. Opening it records that, and goes on without."""
        self.live.journal.set_aside(error.digest)
        self.live.stop(IactError(f"{error} Open the session again to go on without this value."))

    def _give_up(self) -> None:
        """Stop the session because the tree itself can't go on; reopening it restores what its journal says."""
        _LOG.exception("Session %s met a bug and stopped.", self._session, extra=self._about)
        self.live.stop(
            IactError(
                "An internal error stopped this session; see the server's log. Open the session again to "
                "continue."
            )
        )

    # --- running work of agents -----------------------------------------------------------------

    @contextlib.contextmanager
    def working(self, agent: Agent, work: Stoppable) -> Iterator[None]:
        """Register `work` as running for the agent inside the context, so that it can be stopped."""
        self._working.setdefault(agent.path, []).append(work)
        try:
            yield
        finally:
            running = self._working[agent.path]
            running.remove(work)
            if not running:
                del self._working[agent.path]

    @contextlib.asynccontextmanager
    async def cancellable(self, agent: Agent) -> AsyncIterator[None]:
        """End what is done inside with a `TimeoutError` when the agent's work is cancelled."""
        scope = asyncio.timeout(None)
        with self.working(agent, _Scope(scope)):
            async with scope:
                yield

    def stop(self, agent: Agent, reason: StopReason, why: str = "") -> None:
        """Stop an agent's running work, as far as the reason applies."""
        for work in list(self._working.get(agent.path, ())):
            work.stop(reason, why)

    def make_way(self, agent: Agent, *, calls: bool) -> None:
        """Let an agent read a person's message at once. Its children go on, but it no longer waits for them.

        `calls`: its calls end as well; otherwise they finish, and no new call begins.
        """
        waits = [action for action in agent.actions if _waits_for_children(action)]
        for action in waits:
            settle(self.live, agent, action, "skipped")

        if calls:
            self.stop(agent, "calls")
        if not agent.calls:  # else the actions after them are dropped when the calls have ended
            drop(self.live, agent, "skipped")

    def cancel(self, path: str, why: str) -> None:
        """End all work of an agent and its descendants, the deepest first, so that every CALL has its outcome."""
        active = [agent for agent in self.live.tree.subtree(path) if agent.active]
        for agent in active:
            self.steps.cancel(agent, why)

        # The end of a plan ends its steps, so some may have ended meanwhile.
        for agent in reversed(active):
            if agent.active:
                self.stop(agent, "cancel", why)
                self.steps.end(agent, "cancelled", why)

    def drop_forked(self) -> None:
        """End the work that was under way where the session was forked, unless it is to be carried out in the fork."""
        root = self.live.tree.root
        try:
            for path in root.children.values():
                if any(agent.forked for agent in self.live.tree.subtree(path)):
                    self.cancel(path, "The session was forked before this was done.")

            if any(action.forked for action in root.actions):
                drop(self.live, root, "forked")
        except JournalUnwritable as error:
            self.live.stop(error)

    def cancel_children(self, agent: Agent, why: str = "Its caller answered before it was done.") -> None:
        """Cancel the children of an agent that returns: no one needs their work any more.

        `why`: a sentence for the agent, if it is called again, and for people.
        """
        for path in agent.children.values():
            self.cancel(path, why)


def _waits_for_children(pending: Pending) -> bool:
    """Whether an action only waits for the work of children."""
    return pending.spec.name == "WAIT" or (pending.spec.name == "CALL" and pending.call > 0)
