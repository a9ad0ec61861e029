"""A running session: one user's conversation with a tree of agents, and control at any depth.

Every method appends a record and lets the tree decide who runs; the scheduler drives the agents that have something to
do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from iact.core.context.excerpt import excerpt
from iact.core.errors import (
    Changed,
    IactError,
    JournalUnwritable,
    SandboxError,
    Superseded,
    UsageError,
    WorkspaceError,
)
from iact.core.gate.level import level
from iact.core.plan.forms import read_plan
from iact.core.plan.model import PlanError
from iact.core.plan.template import offers
from iact.core.ports import JSON
from iact.core.records.control import (
    BeginPlan,
    Cancel,
    Declassify,
    EditPlan,
    Inject,
    InjectMode,
    Lockdown,
    MemorySwitch,
    Pause,
    RaiseBudget,
    Restore,
    Resume,
    RetryStep,
    Reword,
    SendNow,
    SetIntent,
    StartPlan,
    StopCalls,
    SwitchMemory,
    Withdraw,
)
from iact.core.records.dialogue import Reply, Say, Spawn, Upload, is_traceparent
from iact.core.records.parts import PlanTerms
from iact.core.records.person import PersonMessage
from iact.core.records.record import Record
from iact.core.records.ways import DEFAULT_MODE, WAYS, Way
from iact.core.session.actions import ActionExecutor
from iact.core.session.child_calls import ChildCalls
from iact.core.session.distilling import Distilling
from iact.core.session.files import SessionFiles
from iact.core.session.forms import Forms
from iact.core.session.front_end import FrontEndTools
from iact.core.session.function_calls import FunctionCalls
from iact.core.session.grounding import Grounding
from iact.core.session.hosts import HostAccess, HostRow, Lasts, hosts_json
from iact.core.session.live import Live
from iact.core.session.long_texts import read_plan_beside
from iact.core.session.memory_actions import MemoryActions
from iact.core.session.models import chosen
from iact.core.session.module_loader import ModuleLoader
from iact.core.session.monitor import Monitor
from iact.core.session.person import acting_user, signed
from iact.core.session.person_steps import PersonSteps
from iact.core.session.person_waits import PersonWaits
from iact.core.session.plan_runner import PlanRunner
from iact.core.session.race_copies import Copies
from iact.core.session.reader_layers import ReaderLayers
from iact.core.session.routing import Routing
from iact.core.session.scheduler import Scheduler
from iact.core.session.services import Services
from iact.core.session.session_log import SessionLog
from iact.core.session.session_memory import SessionMemory
from iact.core.session.skill_offers import SkillOffers
from iact.core.session.steps import StepExecutor
from iact.core.session.turns import Turns
from iact.core.session.uploaded_files import choose_path, put
from iact.core.session.watch import Watcher
from iact.core.stored.templates import OfferedValue
from iact.core.stored.workspace import find_version
from iact.core.tree import budget, module_states
from iact.core.tree.agent import Agent
from iact.core.tree.apply import has_to_wait, unread
from iact.core.tree.apply_plan import called_by
from iact.core.tree.held import only_held
from iact.core.tree.plan_checks import check_plan, free_path
from iact.core.tree.plan_run import PlanRun
from iact.core.tree.tree import Tree
from iact.core.tree.uploads import LARGEST, file_name, upload_content
from iact.core.views import consent
from iact.core.views.ending import STOPPED_BY_USER
from iact.core.views.questions import alike
from iact.core.views.status import standing
from iact.core.views.view import NodeView, View

_LOG: Final = logging.getLogger(__name__)

LARGEST_UPLOAD: Final = LARGEST
"""The largest file that a user can give to a session, in bytes."""

LONGEST_SAID: Final = 65_536
"""How many characters of a message an agent reads as they are. A longer message becomes a file, …"""

_PREVIEWED: Final = 8_000
"""… and about so many characters of it are said: its beginning and its end."""

_LONG_NAME: Final = "message.md"
"""The name of the file that a long message becomes."""

_RETOLD: Final = 8000
"""How many characters of a message are repeated to a new session."""

_SENT_AGAIN: Final = 2_000
"""Among how many of the newest records a message is looked for that is sent again: it comes within minutes."""

_NEVER_SAID: Final = "A message must hold some text."


class Session:
    """One running session, made by `Runtime.open`. Every control method returns when its record is durable."""

    def __init__(self, live: Live, services: Services, files: SessionFiles) -> None:
        self.effects: Final = files.effects
        self.workspace: Final = files.workspace.folder
        self._live = live
        self._services = services
        self._files = files.workspace
        self._uploading = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._warms = True
        """Whether modules may be started in advance."""
        self._leaving: asyncio.Task[None] | None = None
        self._log = SessionLog(live.tree.session, services.user)
        live.on_applied.append(partial(services.experience.learn, live.tree))
        live.on_stopped.append(self._superseded)
        live.on_durable.append(self._log.take)

        self._scheduler = scheduler = Scheduler(live)
        self._modules = services.open_modules(services.host, live.tree.session, files.folder)
        self._modules.on_change(live.changed)
        self._memory = memory = SessionMemory(live, services.memory if live.tree.has_memory else None)
        self._grounding = grounding = Grounding(files.folder)

        # What asks a person.
        authorities = services.authorities
        waits = PersonWaits(live)
        self._monitor = Monitor(live, authorities)
        self._hosts = HostAccess(
            live, services.data, authorities.seconds, waits, attended=authorities.attended
        )
        self._forms = Forms(scheduler, waits, authorities.seconds, attended=authorities.attended)
        self._modules.permit_by(self._hosts.permit)

        # What carries out actions.
        self._loader = ModuleLoader(live, services.host, self._modules, authorities.approvals)
        self._copies = copies = Copies(live, scheduler, files.workspace, self._modules)
        self._layers = layers = ReaderLayers(scheduler, self._modules, files.folder, services.open_layer)
        functions = FunctionCalls(
            scheduler,
            self._modules,
            self._monitor,
            self._loader,
            files,
            copies,
            layers,
            self._forms,
            waits,
            SkillOffers(live, services.host, self._loader, self._forms, files.folder),
            FrontEndTools(live, self._forms),
        )
        actions = ActionExecutor(
            ChildCalls(live, services.experience, services.templates, memory, grounding),
            MemoryActions(live, scheduler, memory),
            functions,
            PersonSteps(live, self._forms),
        )

        # What takes the steps of agents and plans.
        self._distilling = Distilling(live, services.models, memory)
        self._planning = PlanRunner(
            scheduler, services.models, actions, copies, self._forms, self._modules.end_background
        )
        self._turns = turns = Turns(scheduler, services.models, memory, grounding)
        self._routing = Routing(scheduler, services.models, memory, services.experience)
        self._steps = StepExecutor(live, scheduler, turns, actions, self._planning, self._routing, layers)

    # --- properties -----------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id; its directory has the same name."""
        return self._live.tree.session

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self._live.journal.directory / "journal.md"

    @property
    def intent(self) -> float:
        """How much this session may do: 0 observe, 1 operate, 2 override, or a level between them."""
        return self._live.tree.grant.intent

    @property
    def levels(self) -> Mapping[str, float]:
        """The levels of intent that its policy names."""
        return dict(sorted(self._live.tree.policy.levels))

    @property
    def model_label(self) -> str:
        """Which model answers the next message, in words for people."""
        profile = self._services.models.newest.profile("smart")
        return profile.label or profile.name

    @property
    def failure(self) -> IactError | None:
        """Why the session has stopped, if it has."""
        return self._live.failure

    @property
    def state(self) -> Tree:
        """The tree itself, read-only."""
        return self._live.tree

    @property
    def view(self) -> View:
        """The session as it is now, for display."""
        return View(self._live.tree)

    def tree(self) -> tuple[NodeView, ...]:
        """Every agent and plan, in order of creation."""
        return self.view.nodes()

    @property
    def modules_running(self) -> int:
        """How many modules are running for this session, each in its own container if there is an engine."""
        return self._modules.running

    def records(self, since: int = 0) -> Sequence[Record]:
        """All durable records with a number above `since`, in order."""
        return self._live.records[since:]

    @property
    def read(self) -> int:
        """How many records the journal had when it was opened. What follows them is of this opening."""
        return self._live.read

    def watch(self) -> Watcher:
        """A watcher of events from the moment of entering it; see `core.views.events`."""
        return self._live.watch()

    # --- control --------------------------------------------------------------------------------

    async def say(
        self,
        text: str,
        *,
        mode: Way = "dialogue",
        plan_first: bool = False,
        tools: Sequence[str] | None = None,
        client: int = 0,
        traceparent: str = "",
        once: str = "",
    ) -> Record:
        """Send a message from the user to the root.

        While the root is at work, the message waits until the current answer is finished, unless a plan below the root
        takes it (see `send_now`, `reword`, `withdraw`). A message of more than `LONGEST_SAID` characters is uploaded as a
        file, and its beginning and end are said. In any mode other than "dialogue", the message is the goal of a
        plan below the root, and the plan's report is the root's reply; "auto" chooses. `plan_first`: the plan is
        written, and then waits for a person. `tools`: what the user's program can run for agents; None: unchanged.
        `client`: how many characters at the beginning are a program's words and not the user's: an earlier chat as it
        tells of it, or the whole message, if it passes on what others write.
        `traceparent`: the trace of the program that sends it, which spans and requests to models continue.
        `once`: what that program calls the message, so that `message_named` knows it.

        Raises:
            UsageError: there is no such mode, or it has no plan; or the root is at work, so that no plan can begin; or the
                message has more than `LARGEST_UPLOAD` bytes; or `traceparent` is no trace.
        """
        if traceparent and not is_traceparent(traceparent):
            raise UsageError(
                f"{traceparent[:100]!r} is not a trace in the form of W3C's traceparent: 00-TRACE-SPAN-FLAGS, in small letters."
            )
        if mode not in WAYS:
            raise UsageError(f"There is no way of working {mode!r}; there are {', '.join(WAYS)}.")
        if mode == "dialogue" and plan_first:
            raise UsageError(
                "A dialogue has no plan to review first. Choose another way of working, or leave out plan first."
            )
        self._check_can_begin(mode)
        body = _text(text)
        # What a program tells of an earlier chat has another label than the user's words behind it, so both stay here.
        relayed = client >= len(body)
        if len(body) > LONGEST_SAID and (relayed or not client):
            body = await self._said_as_file(body)
            client = len(body) if relayed else 0
            # The disk was waited for, and the root can have begun to work meanwhile.
            self._check_can_begin(mode)

        # Nothing is awaited from here to the record.
        self._renew_models()
        kept = tuple(self._services.templates.lines())
        news = kept if kept != self._live.tree.kept else None
        waits = has_to_wait(self._live.tree)
        others = tuple(tools) if tools is not None and tuple(tools) != self._live.tree.tools else None
        said = Say(
            mode=mode, plan_first=plan_first, kept=news, tools=others, waits=waits, client=client,
            traceparent=traceparent, once=once,
        )  # fmt: skip
        record = self._live.record(signed(said), "/", body=body)
        self._scheduler.drive("/")
        return await self._live.durable(record)

    def _check_can_begin(self, mode: Way) -> None:
        """Raise UsageError if a plan can't begin now, because the root is at work."""
        if mode != "dialogue" and self._find("/").active:
            raise UsageError(
                "The root agent is working, so this message can't start a plan. Wait for the answer, "
                "or send the message in the mode dialogue."
            )

    async def _said_as_file(self, text: str) -> str:
        """Upload a long message as a file. Returns what is said in its place: its beginning, its end, and its name."""
        content = text.encode("utf-8", "replace")
        if len(content) > LARGEST_UPLOAD:
            raise UsageError(
                f"The message has {len(content):,} bytes; a message may have {LARGEST_UPLOAD:,}. Hand over what is "
                "longer in several files."
            )

        record = await self.upload(_LONG_NAME, "text/markdown", content)
        assert isinstance(record.content, Upload)
        return excerpt(text, _PREVIEWED, record.content.var)

    def _renew_models(self) -> None:
        """Switch to the models that a person has chosen by now, if no agent is at work."""
        tree = self._live.tree
        if self._live.failure is not None or tree.at_work:
            return
        self._services.models.renew()
        renewed = chosen(tree, self._services.models)
        if renewed is not None:
            self._live.record(renewed, "/")

    async def foresee(self, text: str) -> tuple[Way, str]:
        """Which way of working `auto` would choose for a message, and why. The model's answer also counts when the
        message is sent."""
        self._find("/")
        self._renew_models()
        await self._scheduler.ready.wait()
        choice = await self._routing.foresee(_text(text))
        return choice.way, choice.why

    async def upload(self, name: str, media: str, content: bytes) -> Record:
        """Give the root a file, as a variable from its next turn on; the record's `var` is its name.

        In a workspace of the session's own it becomes a file, too; the record's `path` is its name there.

        Raises:
            UsageError: the file is too large or has no name.
        """
        if self._live.failure is not None:
            raise self._live.failure
        tree, folder = self._live.tree, self._files.folder

        async with self._uploading:
            path = ""
            if tree.workspace == "scratch" and len(content) <= LARGEST:
                path = await asyncio.to_thread(choose_path, folder, file_name(name), content)
            upload, body, blobs = upload_content(tree, name, media, content, path)
            record = await self._live.durable(self._live.record(signed(upload), "/", body=body, blobs=blobs))
            if path:
                await self._put(path, content)
        return record

    async def _put(self, path: str, content: bytes) -> None:
        """Make the file of an upload, whose record names it."""
        try:
            await asyncio.to_thread(put, self._files.folder, path, content)
        except WorkspaceError as error:
            self._live.notice("/", "workspace", str(error))

    async def inject(
        self,
        path: str,
        text: str,
        mode: InjectMode = "deliver",
        step: str = "",
        *,
        calls: bool = True,
        once: str = "",
    ) -> Record:
        """Send a message from the user to any agent's dialogue, or to a plan or one `step` of it.

        `queue`: read at the agent's next turn; `deliver`: before its next tool call; `interrupt`: at once. An interrupt
        stops the reply being written, and the agent's calls unless `calls` is false; children go on, but the agent no
        longer waits for them. The agent sees what it had written and what the calls had printed. The `took` field of
        the agent's next turn names this record. Plans running below the agent receive the message as well: they
        consider it when their running steps have ended, or, with `interrupt`, at once. `once`: as for `say`.

        Raises:
            UsageError: there is no such agent, step or mode.
        """
        if mode not in get_args(InjectMode):
            raise UsageError(f"Unknown inject mode {mode!r}. Use queue, deliver or interrupt.")
        text = _text(text)

        plan_step = self._step(path, step)
        if plan_step is not None:
            return await self._inject_step(*plan_step, text, mode, calls=calls, once=once)

        agent = self._find(path)
        if agent.plan is not None and not agent.active:
            raise UsageError(
                f"The plan {path} has ended; send the message to its caller {agent.caller} instead."
            )
        self._renew_models()
        said = Inject(by="user", mode=mode, once=once)
        record = self._interrupt(agent, said, text, mode, calls=calls)
        return await self._live.durable(record)

    def message_named(self, once: str) -> Record | None:
        """The message that the acting user sent under this name, if it is among the newest records; None if it isn't, or
        if the name is empty."""
        if not once:
            return None

        who = acting_user()
        for record in reversed(self._live.records[-_SENT_AGAIN:]):
            content = record.content
            if isinstance(content, PersonMessage) and content.once == once and content.who == who:
                return record
        return None

    def _interrupt(
        self, agent: Agent, said: Inject, text: str, mode: InjectMode, *, calls: bool, plan: str = ""
    ) -> Record:
        """Send a message to an agent. Returns the record, which belongs to `plan` if it is about one of its steps."""
        at_once = mode == "interrupt" and agent.active and agent.plan is None
        if at_once:
            self._scheduler.stop(agent, "interrupt")
        record = self._live.record(signed(said), plan or agent.path, body=text)
        if at_once:
            self._scheduler.make_way(agent, calls=calls)
        self._scheduler.drive(agent.path)
        return record

    async def send_now(self, path: str, message: int) -> Record:
        """Have a waiting message read as soon as possible: the agent's reply is stopped, but its calls finish first.

        Raises:
            UsageError: no message of the user with this record waits there.
        """
        agent = self._queued(path, message)
        self._scheduler.stop(agent, "interrupt")
        record = self._live.record(signed(SendNow(by="user", of=message)), path)
        self._scheduler.make_way(agent, calls=False)
        self._scheduler.drive(path)
        return await self._live.durable(record)

    async def reword(self, path: str, message: int, text: str) -> Record:
        """Replace the text of a message that has not been read yet.

        Raises:
            UsageError: as `send_now`.
        """
        self._queued(path, message)
        return await self._live.durable(
            self._live.record(signed(Reword(by="user", of=message)), path, body=_text(text))
        )

    async def withdraw(self, path: str, message: int) -> Record:
        """Take back a message that has not been read yet.

        Raises:
            UsageError: as `send_now`.
        """
        self._queued(path, message)
        return await self._live.durable(self._live.record(signed(Withdraw(by="user", of=message)), path))

    def _queued(self, path: str, message: int) -> Agent:
        agent = self._find(path)
        if message not in [one.n for one in unread(agent)]:
            raise UsageError(
                f"The message of record {message} no longer waits for {path}; it was read, or taken back."
            )
        return agent

    async def stop_calls(self, path: str) -> Record:
        """End the tools that run for an agent and below it; the agents continue with the output so far.

        A paused agent stays paused. A step of a plan whose tool is ended ends as well.
        """
        self._find(path)
        record = self._live.record(signed(StopCalls(by="user")), path)

        for agent in list(self._live.tree.subtree(path)):
            if agent.plan is None:
                self._scheduler.stop(agent, "calls")
                continue
            for call in agent.calls:
                self._live.record(signed(Cancel(by="user", node=call.node)), agent.path)

        return await self._live.durable(record)

    async def _inject_step(
        self, plan: Agent, step: str, text: str, mode: InjectMode, *, calls: bool, once: str
    ) -> Record:
        """Send a message about one step of a plan: to the agent that it calls, or to whichever model judges the
        plan."""
        child = called_by(self._live.tree, plan, step)
        said = Inject(by="user", mode=mode, node=step, once=once)
        if child is None:
            return await self._live.durable(self._live.record(signed(said), plan.path, body=text))
        return await self._live.durable(self._interrupt(child, said, text, mode, calls=calls, plan=plan.path))

    async def pause(self, path: str, step: str = "") -> Record:
        """Pause an agent: no model call and no tool call starts in it or below it until `resume`.

        Running calls finish, or are ended with `stop_calls`; background jobs of that part of the tree are ended. One
        `step` of a plan can be paused separately: it does not start, or the agent that it calls is paused, while the
        other steps go on.
        """
        top: Agent | None
        plan_step = self._step(path, step)
        if plan_step is None:
            top = self._find(path)
            record = self._live.record(signed(Pause(by="user")), path)
        else:
            plan, node = plan_step
            top = called_by(self._live.tree, plan, node)
            record = self._live.record(signed(Pause(by="user", node=node)), plan.path)

        below = (
            frozenset(agent.path for agent in self._live.tree.subtree(top.path)) if top is not None else ()
        )
        for paused in below:
            self._scheduler.stop(self._live.tree.agents[paused], "pause")
        await self._modules.halt(below.__contains__, most=math.inf, idle=False)

        return await self._live.durable(record)

    async def resume(self, path: str, step: str = "") -> Record:
        """End the pause of an agent, or of one `step` of a plan."""
        top: Agent | None
        plan_step = self._step(path, step)
        if plan_step is None:
            top = self._find(path)
            record = self._live.record(signed(Resume(by="user")), path)
        else:
            plan, node = plan_step
            record = self._live.record(signed(Resume(by="user", node=node)), plan.path)
            top = called_by(self._live.tree, plan, node)

        for agent in self._live.tree.subtree(top.path) if top is not None else ():
            self._scheduler.drive(agent.path)
        return await self._live.durable(record)

    async def cancel(self, path: str, step: str = "") -> Record:
        """End the work of an agent and everything below it; its caller gets an error instead of a reply.

        What was written and printed by then stays, and messages that the user sent in the meantime are read next.

        One `step` of a plan can be ended separately; the plan decides about the rest.
        """
        plan_step = self._step(path, step)
        if plan_step is not None:
            return await self._cancel_step(*plan_step)

        agent = self._find(path)
        below = frozenset(child.path for child in self._live.tree.subtree(path))
        record = self._live.record(signed(Cancel(by="user")), path)
        self._scheduler.cancel(path, STOPPED_BY_USER)

        self._scheduler.drive(path)
        self._scheduler.drive(agent.caller)
        if agent.plan is not None:
            await self._modules.end_background(below.__contains__)
        return await self._live.durable(record)

    def _step(self, path: str, step: str = "") -> tuple[Agent, str] | None:
        """Find the plan and the step that are meant: by `step`, or by a path below the plan that is not an agent's.

        Raises:
            UsageError: there is no such step, or it has ended.
        """
        agents = self._live.tree.agents
        plan: Agent | None
        if step:
            plan = self._find(path)
        elif path in agents:
            return None
        else:
            above, _, step = path.rpartition("/")
            plan = agents.get(above)
            if plan is None or plan.plan is None or step not in plan.plan.state.nodes:
                return None

        if plan.plan is None:
            raise UsageError(f"{path} is not a plan, so it has no step {step!r}.")
        node = plan.plan.state.nodes.get(step)
        if node is None:
            raise UsageError(f"The plan {plan.path} has no step {step!r}.")
        if plan.plan.running is None or not plan.active or node.ended is not None:
            raise UsageError(f"The step {step!r} of {plan.path} has ended; it is {node.state}.")
        return plan, step

    async def _cancel_step(self, plan: Agent, step: str) -> Record:
        """End one step of a plan."""
        record = self._live.record(signed(Cancel(by="user", node=step)), plan.path)
        return await self._live.durable(record)

    # --- plans ----------------------------------------------------------------------------------

    async def start_plan(self, path: str, *, seen: str | None = None) -> Record:
        """Start a plan that waits for a person's review.

        `seen`: the digest of the plan as the person was shown it (`plan_digest`); None: a program decides.

        Raises:
            UsageError: there is no such plan, or it is not waiting to be started.
            Changed: it has other steps now.
        """
        plan, run = self._plan(path)
        if not plan.active or run.running is None or not run.running.awaited:
            raise UsageError(f"The plan {path} is not waiting to be started.")
        if seen is not None and run.changing:
            raise Changed
        if seen is not None:
            consent.check(seen, self.plan_digest(path))
        return await self._live.durable(self._live.record(signed(BeginPlan(by="user")), path))

    def plan_digest(self, path: str) -> str:
        """The digest of a plan with its current steps, which a yes to start it sends back.

        Raises:
            UsageError: there is no such plan, or it has no steps.
        """
        _, run = self._plan(path)
        if run.shaped is None:
            raise UsageError(f"The plan {path} has no steps yet.")
        return consent.plan_digest(run.shaped)

    def unstarted_plans(self) -> list[str]:
        """The plans that are written and wait for a person to start them."""
        paths = []
        for agent in self._live.tree.at_work.values():
            plan = agent.plan
            if plan is None or plan.running is None or plan.shaped is None or plan.changing:
                continue

            if plan.running.awaited and plan.running.still:
                paths.append(agent.path)
        return paths

    async def edit_plan(self, path: str, text: str) -> Record:
        """Replace the steps that have not started, in a plan that waits or is paused. `text`: the whole plan, JSON or
        YAML.

        Raises:
            UsageError: there is no such plan, or it can't have these steps now; the message says why.
        """
        await read_plan_beside(text)
        plan, run = self._plan(path)
        if not plan.active or run.running is None:
            raise UsageError(f"The plan {path} has ended, so its steps can't be changed.")

        try:
            run.running.edited(read_plan(text, id=plan.name))
        except PlanError as error:
            raise UsageError(f"The plan was not changed: {error}") from error
        return await self._live.durable(self._live.record(signed(EditPlan(by="user")), path, body=text))

    async def retry_step(self, path: str, step: str) -> Record:
        """Run a failed step again, with the steps that needed it; a plan that had ended goes on.

        Raises:
            UsageError: there is no such step, or it can't be run again; the message says why.
        """
        live = self._live
        plan, run = self._plan(path)
        if run.running is None or step not in run.state.nodes:
            raise UsageError(f"The plan {path} has no step {step!r} that can be tried again.")
        try:
            run.running.again(step)
        except PlanError as error:
            raise UsageError(f"The step was not tried again: {error}") from error

        # A plan that has ended returned what was left of its tokens.
        tokens = 0
        if not plan.active:
            tokens = budget.share(live.tree, budget.lender_for(live.tree, plan), plan, waits=False)

        self._renew_models()
        record = live.record(signed(RetryStep(by="user", node=step, budget=tokens)), path)
        self._scheduler.drive(path)
        return await live.durable(record)

    def plan_text(self, path: str) -> str:
        """A plan as a person would write it, with its current steps.

        Raises:
            UsageError: there is no such plan.
        """
        _, run = self._plan(path)
        if run.running is None:
            raise UsageError(f"The plan {path} never ran, so it has no steps.")
        return run.running.written_as()

    def save_plan(self, path: str, name: str, parameters: Mapping[str, str] | None = None) -> Path:
        """Save a plan as a template, which `PLAN from=NAME` and people can use.

        `parameters`: values of the plan to leave open, by the names under which they are given when it is used.

        Raises:
            UsageError: there is no such plan, it has no steps, it does not have these values, or a name is invalid.
        """
        return self._services.templates.save(name, self._to_save(path), parameters)

    def plan_offers(self, path: str) -> Sequence[OfferedValue]:
        """Values of a plan that its person may want to leave open when they save it.

        Raises:
            UsageError: there is no such plan, or it has no steps.
        """
        return offers(self._to_save(path))

    def _to_save(self, path: str) -> str:
        if not self._plan(path)[1].work():
            raise UsageError(f"The plan {path} has no steps, so there is nothing to save.")
        return self.plan_text(path)

    def _plan(self, path: str) -> tuple[Agent, PlanRun]:
        plan = self._find(path)
        if plan.plan is None:
            raise UsageError(f"{path} is not a plan.")
        return plan, plan.plan

    async def begin_plan(
        self, text: str, *, name: str = "plan", mode: str = DEFAULT_MODE, plan_first: bool = False
    ) -> Record:
        """Begin a plan that a person wrote or saved, below the root. Returns its `control` record."""
        self._renew_models()
        return await self._begin_plan(text, name, mode, {}, thinks=True, first=plan_first)

    async def restore(self, version: str, path: str = "") -> Record:
        """Restore the files of a version, given by the beginning of its id or by a record's number.

        `path`: restore only this file; if there was none in that version, it is removed. Agents are told in their next
        turn.

        Raises:
            UsageError: there is no such version.
            WorkspaceError: it can't be restored, or the file is as it was.
        """
        wanted = find_version(self._live.records, version)
        if path:
            # The record names the version that results, so that a fork and a takeover find all files in it.
            wanted = await self._files.with_file(path, wanted)

        restored = Restore(by="user", version=wanted, path=path)
        record = await self._live.durable(self._live.record(signed(restored), "/"))
        await self._files.restore(wanted, path)
        return record

    def level(self, value: float | str) -> float:
        """The intent that a number or a level's name means in this session.

        Raises:
            UsageError: there is no such level.
        """
        return level(value, self.levels)

    async def set_intent(self, value: float | str) -> Record:
        """Set how much the session may do: a number from 0 (observe) to 2 (override), or a level's name.

        If that is less than before, it also applies to running work: calls with a higher impact are ended, and so are
        all background jobs.

        Raises:
            UsageError: there is no such level.
        """
        before, now = self.intent, self.level(value)
        record = self._live.record(signed(SetIntent(by="user", value=now)), "/")
        if now < before:
            await self._modules.halt(_anybody, most=now, idle=True)
        return await self._live.durable(record)

    async def raise_budget(self, tokens: int = 0, money: float = 0.0) -> Record:
        """Let the session use `tokens` more, or spend `money` more; questions that it could not afford are answered
        now.

        Raises:
            UsageError: neither is given, or the session has no limit on its cost.
        """
        raises_nothing = not tokens and not money
        if tokens < 0 or money < 0 or raises_nothing:
            raise UsageError(
                "The budget can only be raised: give the number of tokens to add, such as 1000000."
            )
        if money and self._live.tree.bounds.money is None:
            raise UsageError("This session has no money budget to raise.")

        self._find("/")
        record = self._live.record(signed(RaiseBudget(by="user", tokens=tokens, money=money)), "/")
        self._scheduler.drive("/")
        return await self._live.durable(record)

    async def compress(self) -> Record:
        """Summarize and cut the root's history, so that each turn takes fewer tokens.

        Raises:
            UsageError: the root is at work, or there is too little history.
            ModelError: no model could summarize it.
        """
        return await self._live.durable(await self._turns.compress(self._find("/")))

    async def summary(self) -> str:
        """What a new session must know to continue this one: a summary, and the messages since then that have no
        answer.

        If the history is too short to be summarized, it returns the messages themselves.

        Raises:
            UsageError, ModelError: as `compress`.
        """
        own = [record for record in self._live.records if record.agent == "/"]
        written = [
            record
            for record in own
            if getattr(record.content, "generation", None) or record.kind == "compress"
        ]
        # A summary that was the last thing the root wrote holds everything.
        newest = written[-1] if written and written[-1].kind == "compress" else None
        if newest is None:
            if self._turns.is_short(self._find("/")):
                return "\n\n".join(["From an earlier session.", *_said(own)])
            newest = await self.compress()

        root = self._find("/")
        waiting = [message.text for message in root.mail.inbox if message.kind == "say"]
        return "\n\n".join([newest.body or root.context.cut_note, *waiting])

    async def clear(
        self,
        call: int,
        allow: bool,
        remember: JSON = None,
        *,
        also: Sequence[int] = (),
        why: str = "",
        seen: Sequence[str] | None = None,
    ) -> Record:
        """Answer the call that waits for approval since record `call`, and those since the records `also` in the same
        way.

        `also`: questions that are the same as the first (`core.views.questions.alike`); either all are answered, or
        none.

        `remember`: for a yes, "call" for exactly this call from now on, or `{"function": pattern, "arguments": {name:
        pattern}}` for a rule; None: only this time. `why`: for a no, what the agents that asked are told. `seen`: for a
        yes, the digest of each question as the person was shown it (`core.views.consent`); None: a program decides.

        Raises:
            UsageError: the call does not wait (any more), the answer can't be remembered, or `also` names a different
                question.
            Changed: a question is not the one that the person was shown.
        """
        if self._live.failure is not None:
            raise self._live.failure

        calls = list(dict.fromkeys([call, *also]))
        questions = [record for n in calls for record in self.records(n - 1)[:1]]
        if any(not alike(questions[0].content, question.content) for question in questions[1:]):
            raise UsageError(
                "Only questions about the same function, for the same reason, are answered together."
            )
        if allow and seen is not None:
            consent.check_questions(seen, questions)

        asked = self._monitor.asked(calls)
        if why and not allow:
            self._explain(dict.fromkeys(asked), why)
        return await self._live.durable(self._monitor.person(calls, allow=allow, remember=remember))

    async def clear_host(
        self, ask: int, allow: bool, lasts: Lasts = "once", *, why: str = "", seen: str | None = None
    ) -> Record:
        """Answer the question at record `ask`: whether a module may reach a host, and how long a yes lasts.

        `why`, `seen`: as for `clear`.

        Raises:
            UsageError: the question is not open (any more), or the answer can't be stored.
            Changed: it is not the question that the person was shown.
        """
        if self._live.failure is not None:
            raise self._live.failure

        self._check_seen(ask, seen if allow else None)
        if why and not allow and self.asks_host(ask):
            self._explain([self.records(ask - 1)[0].agent], why)
        return await self._live.durable(self._hosts.answer(ask, allow=allow, lasts=lasts))

    def _explain(self, agents: Iterable[str], why: str) -> None:
        """Tell agents why they are refused. It must come before the answer, so that they read it before they go on."""
        for path in agents:
            said = Inject(by="user", mode="deliver")
            self._interrupt(self._find(path), said, _text(why), "deliver", calls=True)

    def _check_seen(self, ask: int, seen: str | None) -> None:
        """Check the digest of what a person was shown of the question at record `ask`. None: a program decides."""
        if seen is not None:
            consent.check_questions([seen], self.records(ask - 1)[:1])

    def asks_host(self, record: int) -> bool:
        """Whether the record is an open question about a host."""
        return record in self._live.tree.hosts.open

    def offers_skill(self, record: int) -> bool:
        """Whether the record is an open question about a skill that an agent offers."""
        asked = self._live.tree.forms.get(record)
        return asked is not None and asked.skill is not None

    async def answer_form(
        self,
        ask: int,
        action: Literal["accept", "decline"],
        values: Mapping[str, JSON] | None = None,
        *,
        seen: str | None = None,
    ) -> Record:
        """Answer a module's question at record `ask`; `values`: what was filled in, which goes to the module.

        `seen`: as for `clear`.

        Raises:
            UsageError: the question is not open (any more), or the values do not fit the form.
            Changed: it is not the question that the person was shown.
        """
        if self._live.failure is not None:
            raise self._live.failure

        self._check_seen(ask, seen if action == "accept" else None)
        return await self._forms.answer(ask, action, values)

    async def allow_hosts(
        self, module: str, hosts: Iterable[str], *, always: bool = False, remove: bool = False
    ) -> None:
        """Let a module reach hosts in this session, or in every one, on behalf of a person; or take that back.

        Raises:
            UsageError: there is no such module, a host is invalid, or the change can't be stored.
        """
        if self._live.failure is not None:
            raise self._live.failure
        self._hosts.allow(module, hosts, always=always, remove=remove)

    @property
    def hosts(self) -> list[HostRow]:
        """Every host that a module may reach without a question, and who allowed it: policy, always or session."""
        tree = self._live.tree
        hosts = tree.hosts
        return hosts_json(tree.policy.egress, hosts.always - hosts.outdated, hosts.session - hosts.outdated)

    def reading(self, path: str) -> tuple[frozenset[str], str]:
        """What an agent has read, by its labels, and the digest that a yes to trust all of it sends back.

        Raises:
            UsageError: there is no such agent.
        """
        agent = self._find(path)
        return agent.labels, consent.reading_digest(path, agent.turn, agent.labels)

    async def declassify(self, path: str, variable: str | None = None, *, seen: str | None = None) -> Record:
        """Vouch for one variable of an agent, or for everything the agent itself has read (not its variables).

        `seen`: the digest of what the person was shown (`consent.variable_digest`, `reading`); None: a program decides.

        Raises:
            UsageError: there is no such agent or variable.
            Changed: the variable has another value now, or the agent has read more.
        """
        agent = self._find(path)
        if variable is not None and variable not in agent.table:
            raise UsageError(f"The agent {path} has no variable {variable!r}.")
        if seen is not None and variable is None:
            consent.check(seen, self.reading(path)[1])
        elif seen is not None and variable is not None:
            value = agent.table[variable]
            consent.check(seen, consent.variable_digest(path, variable, value.sha256, value.labels))

        vouched = Declassify(by="user", variable=variable or "")
        return await self._live.durable(self._live.record(signed(vouched), path))

    async def lockdown(self, value: bool) -> Record:
        """Deny every call of this session from now on; or end that.

        It ends running calls and all background jobs.
        """
        if self._live.failure is not None:
            raise self._live.failure
        record = self._live.record(signed(Lockdown(by="user", value=value)), "/")
        if value:
            await self._modules.halt(_anybody, most=-math.inf, idle=True)
        return await self._live.durable(record)

    @property
    def memory_off(self) -> Collection[MemorySwitch]:
        """Whose switches of memory are off here. Memory is on if none is."""
        return self._live.tree.memory_off

    async def switch_memory(self, value: bool) -> None:
        """Switch memory off or on for this session. While it is off, nothing that is said here is remembered, and agents
        are told nothing of it."""
        if self._live.failure is not None:
            raise self._live.failure
        if value == ("session" in self.memory_off):
            record = self._live.record(signed(SwitchMemory(by="user", of="session", value=value)), "/")
            await self._live.durable(record)

    @property
    def can_be_distilled(self) -> bool:
        """Whether something was said that a model could still find statements in."""
        return self._distilling.is_due

    def seconds_since_last(self, now: datetime) -> float:
        """How long ago its last record was made."""
        return (now - datetime.fromisoformat(self._live.records[-1].at)).total_seconds()

    async def distil_in_background(self) -> None:
        """The same as `distil`, for nobody who waits: a failure is logged, and not tried again until more was said."""
        await self._distilling.in_background()

    async def distil(self) -> int:
        """Ask a model what of the person's messages is worth remembering; see `core.tree.distilling`. Returns how many
        messages it was asked about.

        Raises:
            ModelError: it can't be asked. What plain rules found is remembered all the same.
        """
        return await self._distilling.distil()

    def follow_memory(self) -> None:
        """Take in that the person who calls has switched memory off or on for all sessions."""
        if self._live.failure is None:
            self._memory.follow_person()

    async def ask(self, text: str, *, mode: Way = "dialogue") -> Record:
        """Send a message and wait for the root's answer; the `reply` record shows how it went.

        Raises:
            IactError: the session stopped before the answer.
        """
        said = await self.say(text, mode=mode)
        return await self.answer(said.n)

    async def answer(self, since: int) -> Record:
        """Wait until the root rests, and return its last reply after record `since`."""
        return await self._reply("/", since)

    async def answer_unless_held(self, since: int) -> Record | None:
        """The same, but None as soon as nothing can go on before a person answers, and no person is available."""
        return await self._reply_unless_held("/", since)

    async def run_plan(
        self,
        text: str,
        *,
        name: str = "plan",
        mode: str = DEFAULT_MODE,
        thinks: bool = True,
        options: Mapping[str, str | int] | None = None,
    ) -> Record | None:
        """Run a plan that a person wrote, below the root and within its grant. Returns the plan's `reply` record, or
        None as for `answer_unless_held`.

        `thinks`: whether models may be asked about it. `options`: of the mode (`n`, `rounds`), `concurrency`, and
        `model`, the role that is asked about it. The results of its steps are in `state.agents[path].plan`.

        Raises:
            UsageError: it can't be run; the message says why.
        """
        begun = await self._begin_plan(text, name, mode, options or {}, thinks=thinks, first=False)
        return await self._reply_unless_held(begun.agent, begun.n)

    async def _begin_plan(
        self, text: str, name: str, mode: str, options: Mapping[str, str | int], *, thinks: bool, first: bool
    ) -> Record:
        await self._scheduler.ready.wait()
        await self._memory.choose_standing()
        await read_plan_beside(text)
        live, tree = self._live, self._live.tree
        root = self._find("/")
        files = await self._grounding.listing(tree, root)

        # Nothing is awaited from here to the record: what is checked must still be so when it is recorded.
        self._find("/")
        given = dict(options)
        role = given.get("model")
        if role is not None and role not in tree.roles:
            raise UsageError(f"There is no model role {role!r}; there are {', '.join(sorted(tree.roles))}.")
        way, why = check_plan(text, tree.registry("/"), mode, given)
        if why and way == "profile":
            given["climb"] = 1
        terms = PlanTerms(mode=way, options=given, thinks=thinks, chosen=why, first=first)
        history = (self._services.experience.rates() or None) if way == "profile" else None
        path = free_path(tree, "/", name)
        live.record(Spawn(caller="/", plan=terms, history=history, files=files), path)
        tokens = budget.share(tree, root, tree.agents[path], waits=True)
        begun = live.record(signed(StartPlan(by="user", plan=terms, budget=tokens)), path, body=text)
        self._scheduler.drive(path)
        return await live.durable(begun)

    async def _reply(self, path: str, since: int) -> Record:
        while (reply := await self._reply_unless_held(path, since)) is None:
            await self._live.grew.wait()
        return reply

    async def _reply_unless_held(self, path: str, since: int) -> Record | None:
        """Wait for the last reply of an agent after record `since`; None once only a person's answer can bring one."""
        live = self._live
        reply: Record | None = None
        read = since
        while True:
            if live.failure is not None:
                raise live.failure

            fresh = live.records[read:]
            read += len(fresh)
            replies = (
                record
                for record in reversed(fresh)
                if isinstance(record.content, Reply) and record.agent == path
            )
            reply = next(replies, reply)

            # The tree is ahead of the disk: it may rest after a later reply than the one found.
            is_up_to_date = read >= live.tree.records
            if reply is not None and not live.tree.agents[path].active and is_up_to_date:
                return reply
            if live.closed:
                raise JournalUnwritable("The session was closed before its root had answered.")
            if is_up_to_date and only_held(live.tree):
                return None
            await live.grew.wait()

    # --- life -----------------------------------------------------------------------------------

    def start(self, group: asyncio.TaskGroup, *, warm: bool = True) -> None:
        """Load the modules and let every agent that was at work go on. Called once by `Runtime.open`. `warm`: whether
        modules may be started in advance."""
        self._group = group
        self._warms = warm
        self._log.opened()

        self._memory.follow()
        self._modules.supervise(group)
        # Whatever asked the questions that are still open is gone.
        self._hosts.leave()
        self._forms.leave()

        self._distilling.start(group)
        self._scheduler.start(self._steps, group, self._load_modules)
        self._scheduler.drop_forked()

    @property
    def epoch(self) -> int:
        """The session's epoch: 1, plus one for each change of hosts, as its journal says."""
        return self._live.tree.epochs

    @property
    def at_rest(self) -> bool:
        """Whether the session has nothing to do and waits for nothing."""
        return standing(self.state, failure=False)[0] in ("idle", "failed")

    @property
    def needed(self) -> bool:
        """Whether it must stay open: it has work, or a module holds something for it, or somebody watches it."""
        holds = module_states.in_use(self.state)
        return holds or self._live.watched or not self.at_rest

    async def rest(self, seconds: float) -> bool:
        """Begin nothing more, and wait at most `seconds` for running work to end. Returns whether it has.

        Only `close` may follow. Messages that arrive in the meantime are stored, and answered when the session is
        opened again.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._scheduler.hold()
        except TimeoutError:
            return False
        return True

    def _superseded(self) -> None:
        """Another host has the session: stop what still runs here at once, because its results can't count."""
        if isinstance(self._live.failure, Superseded) and self._group is not None and self._leaving is None:
            self._leaving = self._group.create_task(self._leave(), name=f"session {self.id} leaves")

    async def _leave(self) -> None:
        try:
            await self._stop_all()
        except Exception:  # a bug of ours here must not end the other sessions
            _LOG.exception("Session %s could not be left in order.", self.id, extra={"session": self.id})

    async def _stop_all(self) -> None:
        await self._distilling.close()
        await self._scheduler.close()
        await self._modules.close()
        await self._copies.close()
        await self._layers.close()

    async def close(self) -> None:
        """Stop everything and release the journal; the session can be opened again and continued."""
        if self._leaving is None:
            await self._stop_all()
        else:
            await asyncio.wait([self._leaving])

        await self.effects.close()
        with contextlib.suppress(JournalUnwritable):
            self._hosts.leave()
            self._forms.leave()
            self._live.end()

        await self._live.journal.close()
        self._live.close()
        self._log.closed()

    def _find(self, path: str) -> Agent:
        if self._live.failure is not None:
            raise self._live.failure
        agent = self._live.tree.agents.get(path)
        if agent is None:
            raise UsageError(f"There is no agent {path!r} in this session.")
        return agent

    async def refresh_modules(self) -> None:
        """Take in what people changed in the catalogue or approved; agents find new functions when their context
        matches.

        Raises:
            SandboxError: there is no catalogue.
        """
        await self._scheduler.ready.wait()
        await self._loader.refresh()

    async def _load_modules(self) -> None:
        """Make the functions of the catalogue known; agents begin when this is done."""
        try:
            await self._copies.open()
            await self.effects.recover()
            await self._loader.refresh()
        except SandboxError as error:
            self._live.notice("/", "sandbox", str(error))
        finally:
            self._scheduler.ready.set()
        if not self._warms:
            return

        services = self._services
        await self._loader.warm({*services.warm, *(services.warm_live if self.effects.on else ())})


def _anybody(agent: str) -> bool:
    return True


def _said(own: Iterable[Record]) -> Iterable[str]:
    """What the user said to the root, in its latest wording, and what the root answered; long texts are shortened."""
    lines: dict[int, str] = {}
    for record in own:
        match record.content:
            case Say():
                lines[record.n] = f"I said: {excerpt(record.body, _RETOLD)}"
            case Reply():
                lines[record.n] = f"You answered: {excerpt(record.body, _RETOLD)}"
            case Reword(of=n) if n in lines:
                lines[n] = f"I said: {excerpt(record.body, _RETOLD)}"
            case Withdraw(of=n):
                lines.pop(n, None)
    return lines.values()


def _text(text: str) -> str:
    if not text.strip():
        raise UsageError(_NEVER_SAID)
    return text
