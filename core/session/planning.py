"""Runs plans: the seams of the plan engine, filled by the tree.

A plan is a node of the call tree with a path of its own. Its caller waits for it as for a child, its agent steps are
its children, its tool steps go through the same gate and door as an agent's calls, and what models answer about it
counts on its budget. Everything that happens to it is recorded:

    spawn    agent = the plan's path; caller, plan {mode, options, thinks}
    call     by the caller: function PLAN, to = the plan's path, budget (or `control` op plan, by a person)
    plan     a version: version, parent, reason, add [step], drop [id], rewire [step]. A step: id, kind (tool, agent,
             reflection, observer, micro_planner, interjection, aggregator), call, task, params, refs, after, join, …;
             what has its default is left out
    node     a step's state changed: node, version, cause, from, to, t (seconds since the plan's start), attempt,
             detail (the error, or why); executed: validation, and output, or result = the record that holds it
    fire     a step is carried out: node, attempt, action, function, to (a child's path)
    gate, call, result of a step name the same action; the call of an agent step is a CALL of the plan
    ask      a model answered: question (plan, reflect, patch, …), node, role, model, digest, usage; body: the answer
    reply    the plan ended: plan (concluded, partial, failed), answer, missing {step: why}, ended_by, warnings;
             body: the message to its caller

So a plan drawn at any record is: nodes and edges (`after`, `refs`) from its `plan` records, states from its `node`
records. After a crash the engine takes these events as its history and goes on; what ran is taken up where it was,
and a call with an effect is never made twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from core.context.tokens import estimate
from core.errors import ModelError, lone
from core.language.actions import ActionSpec
from core.models.roles import Models
from core.plan.engine import PlanEngine
from core.plan.forms import node_to_json, version_to_json
from core.plan.limits import Limits
from core.plan.model import WORK, Node, PlanError, PlanVersion
from core.plan.modes.registry import make_mode
from core.plan.refs import MissingField
from core.plan.seams import Failure, Firing, Outcome, Question, Waiting
from core.plan.state import NodeChange
from core.plan.states import TERMINAL
from core.plan.validate import parameter_faults
from core.ports import JSON, ChatMessage, StreamRestart, TextDelta, Usage, UsageReport
from core.session.actions import ActionExecutor
from core.session.events import Delta
from core.session.results import drop, settle
from core.session.scheduler import Scheduler, StopReason
from core.tree import budget
from core.tree.agent import Agent, Pending
from core.tree.apply_plan import arguments_of
from core.tree.plan_aim import Functions
from core.tree.plan_report import ending_fields, ending_of, report
from core.tree.plan_run import PlanRun

_NEVER: Final = float("inf")
_FOR_PEOPLE: Final = frozenset({"reason", "synthesize"})
"""Questions whose answers are prose that people like to watch."""


class Planning:
    """The plans of one session that are under way.

    While the session is closing, nothing that ends has an outcome.
    """

    def __init__(self, scheduler: Scheduler, models: Models, actions: ActionExecutor) -> None:
        self.live = scheduler.live
        self.scheduler = scheduler
        self.models = models
        self.actions = actions
        self._engines: dict[str, PlanEngine] = {}
        self._seams: dict[str, _Seams] = {}

    async def execute(self, plan: Agent) -> None:
        """Run a plan to its end, or go on with it, and record what came of it."""
        run = _run_of(plan)
        seams = self._seams[plan.path] = _Seams(self, plan, run)
        try:
            engine = self._engines[plan.path] = self._engine(plan, run, seams)
            with self.scheduler.working(plan, _Stop(engine, seams)):
                async with asyncio.TaskGroup() as group:
                    task = group.create_task(engine.run())
                    await asyncio.sleep(0)
                    self.deliver(plan)
                    result = await task
        except PlanError as error:
            self._fail(plan, str(error))
            return
        except BaseExceptionGroup as group_error:
            raise lone(group_error) from group_error
        finally:
            self._engines.pop(plan.path, None)
            self._seams.pop(plan.path, None)
        if plan.active:
            ending = ending_of(result, engine.answer)
            fields: dict[str, JSON] = {"to": plan.caller, "status": "ok", **ending_fields(ending)}
            self.live.record("reply", plan.path, fields, report(run, ending))

    def _engine(self, plan: Agent, run: PlanRun, seams: _Seams) -> PlanEngine:
        live = self.live
        left = live.tree.bounds.activation - live.elapsed(plan, live.clock.now())
        return PlanEngine(
            run.source,
            runner=seams,
            clock=live.clock,
            asker=seams if run.thinks else None,
            catalogue=Functions(live.tree.registry(plan.path)),
            observer=seams,
            mode=make_mode(run.mode, run.options),
            # How long a person has is the gate's to say.
            limits=Limits(wall_clock=max(left, 1.0), node_timeout=None, human_timeout=_NEVER),
            history=tuple(run.events),
            answers=tuple(run.answers),
            taken_up=seams.taken_up,
        )

    def _fail(self, plan: Agent, why: str) -> None:
        drop(self.live, plan, "cancelled")
        self.live.record("reply", plan.path, {"to": plan.caller, "status": "failed"}, why)

    # --- control ------------------------------------------------------------------------------------------

    def resume(self, plan: Agent) -> None:
        """A latch has opened; another one above may still be closed."""
        engine = self._engines.get(plan.path)
        if engine is not None and not self.live.tree.latched(plan.path):
            engine.resume()

    def cancel_step(self, plan: Agent, step: str, why: str) -> None:
        """End one step; the rest of the plan goes on as after a failure."""
        engine = self._engines.get(plan.path)
        if engine is not None:
            engine.cancel_node(step, reason=why)

    def person(self, plan: Agent, pending: Pending, waits: bool) -> None:
        """A call of a plan waits for a person's clearance, or no longer does."""
        seams = self._seams.get(plan.path)
        if seams is not None:
            seams.person(pending, waits=waits)

    def deliver(self, plan: Agent) -> None:
        """Make the messages of people that the plan has not yet taken into steps that think about them."""
        engine = self._engines.get(plan.path)
        if engine is not None:
            for message in list(plan.mail.inbox):
                engine.interject(message.text)


def _run_of(plan: Agent) -> PlanRun:
    assert plan.plan is not None, f"{plan.path} is an agent"
    return plan.plan


class _Stop:
    """What stops a plan."""

    def __init__(self, engine: PlanEngine, seams: _Seams) -> None:
        self._engine = engine
        self._seams = seams

    def stop(self, reason: StopReason, why: str) -> None:
        """A pause lets nothing new begin; a cancel ends every step. The plan's own end is recorded by whoever cancels."""
        if reason == "pause":
            self._engine.pause()
        elif reason == "cancel":
            self._engine.cancel(abort=True, reason=why)
            self._seams.discard("cancel")


class _Asking:
    """An answer while it streams. `over`: it has its record, or needs none."""

    __slots__ = ("over", "role", "text", "usage")

    def __init__(self, role: str) -> None:
        self.role = role
        self.text = ""
        self.usage: Usage | None = None
        self.over = False


class _Seams:
    """Runner, asker and observer of one plan."""

    def __init__(self, planning: Planning, plan: Agent, run: PlanRun) -> None:
        self._planning = planning
        self._live = planning.live
        self._plan = plan
        self._run = run
        self._asking: list[_Asking] = []
        self._waiting: dict[str, Waiting] = {}
        self.taken_up = {
            one
            for one in run.state.in_state("running", "waiting_human")
            if run.state.nodes[one].node.kind in WORK
        }
        """Steps that ran when the program stopped."""
        for pending in [one for one in plan.actions if one.node not in self.taken_up]:
            self._abandon(pending)

    # --- Runner ---------------------------------------------------------------------------------------------

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        """Carry out one step: its call through the gate, or a dialogue with a child agent."""
        node, run = firing.node, self._run
        if node.id in self.taken_up:
            self.taken_up.discard(node.id)
            settled = run.latest.get(node.id)
            if node.id not in run.firing and settled is not None and settled.attempt == firing.attempt:
                return settled.outcome
        if node.id not in run.firing:
            refused = self._fire(firing)
            if refused is not None:
                return refused
        index = run.firing[node.id]
        pending = next(one for one in self._plan.actions if one.index == index)
        self._waiting[node.id] = waiting
        try:
            await self._carry_out(pending)
        except BaseException:
            if not self._planning.scheduler.closing:
                self._abandon(pending)
            raise
        finally:
            del self._waiting[node.id]
        return run.settled[index].outcome

    async def _carry_out(self, pending: Pending) -> None:
        planning, plan = self._planning, self._plan
        if not pending.child:
            await self._call(pending)
            return
        if not pending.call:
            await planning.actions.act(plan, pending)
        planning.scheduler.drive(pending.child)
        while pending.index not in self._run.settled:
            await self._live.moved()

    async def _call(self, pending: Pending) -> None:
        """One call through the gate. Where a latch closed while it waited for leave, it is decided when that opens."""
        while pending.index not in self._run.settled:
            while self._live.tree.latched(self._plan.path):
                await self._live.moved()
            await self._planning.actions.act(self._plan, pending)

    def person(self, pending: Pending, *, waits: bool) -> None:
        """A call begins to wait for a person, or no longer does."""
        waiting = self._waiting.get(pending.node)
        if waiting is not None:
            (waiting.waits_for_person if waits else waiting.goes_on)()

    def _fire(self, firing: Firing) -> Failure | None:
        """Record that a step begins; why it can't, if so."""
        node, plan, tree = firing.node, self._plan, self._live.tree
        fields: dict[str, JSON] = {
            "node": node.id,
            "attempt": firing.attempt,
            "turn": plan.turn,
            "action": self._run.fired + 1,
        }
        if node.kind == "agent":
            path = f"{plan.path}/{node.call}"
            refused = self._no_child(path, node)
            fields |= {"function": "CALL", "to": path}
        else:
            spec = tree.registry(plan.path).find(node.call)
            if not isinstance(spec, ActionSpec) or spec.core:
                return Failure("incomplete", f"{node.call} did not complete.")
            resolved = replace(node, params=firing.arguments, refs={})
            refused = " ".join(parameter_faults(resolved, spec.parameters))
            fields |= {"function": spec.name}
        if refused:
            return Failure("raised", refused)
        body = ""
        try:
            same = arguments_of(self._run, node) == firing.arguments
        except MissingField:
            same = False
        if not same:
            body = json.dumps(dict(firing.arguments), ensure_ascii=False)
        self._live.record("fire", plan.path, fields, body)
        return None

    def _no_child(self, path: str, node: Node) -> str:
        """Why an agent step can't be carried out; empty if it can."""
        tree, plan = self._live.tree, self._plan
        if path in tree.agents:
            known = tree.agents[path]
            return f"{path} is a plan." if known.plan is not None else ""
        if node.model and node.model not in tree.roles:
            return f"There is no model role {node.model!r}; there are {', '.join(sorted(tree.roles))}."
        if plan.depth + 1 > tree.bounds.depth:
            return f"Agents may be at most {tree.bounds.depth} deep."
        if len(tree.agents) >= tree.bounds.agents:
            return f"There are {tree.bounds.agents} agents, the most there may be."
        return ""

    def _abandon(self, pending: Pending) -> None:
        """A firing ends without an outcome of its own."""
        if pending.child and pending.call and self._live.tree.agents[pending.child].active:
            self._planning.scheduler.cancel(pending.child, "The step of the plan that called it was stopped.")
        if any(one.index == pending.index for one in self._plan.actions):
            settle(self._live, self._plan, pending, "cancelled")

    # --- Observer -------------------------------------------------------------------------------------------

    def on_change(self, change: NodeChange) -> None:
        """A step's state changed. What it gave stands in the record that brought it."""
        if self._planning.scheduler.closing or not self._plan.active:
            return
        fields = change.to_json()
        fields["t"] = fields.pop("at")
        settled = self._run.latest.get(change.node)
        kind = self._run.state.nodes[change.node].node.kind
        if (
            change.cause == "succeeded"
            and kind in WORK
            and settled is not None
            and change.validation != "left_out"
        ):
            fields = {name: value for name, value in fields.items() if name not in ("output", "labels")}
            fields["result"] = settled.n
        self._live.record("node", self._plan.path, fields)
        if change.target in TERMINAL and change.node in self._run.firing:
            index = self._run.firing[change.node]
            self._abandon(next(one for one in self._plan.actions if one.index == index))

    def on_version(self, version: PlanVersion) -> None:
        """A version begins."""
        if not self._planning.scheduler.closing and self._plan.active:
            body = "\n".join(f"- {_in_words(node)}" for node in (*version.add, *version.rewire))
            self._live.record("plan", self._plan.path, version_to_json(version), body)

    def on_text(self, question: Question, text: str) -> None:
        """Prose is shown while it is written."""
        if question.kind in _FOR_PEOPLE:
            self._live.publish(Delta(self._plan.path, text))

    def on_notice(self, text: str) -> None:
        """Something for a person."""
        if not self._planning.scheduler.closing and self._plan.active:
            self._live.record("notice", self._plan.path, {"level": "warning", "code": "plan"}, text)

    # --- Asker ------------------------------------------------------------------------------------------------

    async def ask(self, question: Question) -> AsyncGenerator[str]:
        """Put a question to a model. An answer that a closing latch stops is asked for again when it opens.

        A planner's text is given on while it is written, any other answer when it is whole.

        Raises:
            ModelError: there is none, or no budget for one.
        """
        while True:
            while self._live.tree.latched(self._plan.path):
                await self._live.moved()
            self._afford(question)
            asking = _Asking(question.role if question.role in self._live.tree.roles else "smart")
            self._asking.append(asking)
            stopped = False
            try:
                async for piece in self._stream(question, asking):
                    if question.kind == "plan":
                        yield piece
                    if stopped := self._live.tree.latched(self._plan.path):
                        break
                if not stopped:
                    self._answered(question, asking)
                    if question.kind != "plan":
                        yield asking.text
                    return
            finally:
                self._asking.remove(asking)
                if not asking.over and not self._planning.scheduler.closing and self._plan.active:
                    self._discard(asking, "pause" if stopped else "cancel")

    async def _stream(self, question: Question, asking: _Asking) -> AsyncGenerator[str]:
        """The pieces of one reply. What a retry made void stays in a plan, which passes over what it can't read."""
        model = self._planning.models.model(asking.role)
        limit = self._live.tree.bounds.reply_tokens
        async with aclosing(model.stream([ChatMessage("user", question.text)], max_tokens=limit)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        asking.text += text
                        yield text
                    case StreamRestart():
                        asking.text = ""
                        yield "\n\n"
                    case UsageReport(usage):
                        asking.usage = usage

    def _afford(self, question: Question) -> None:
        """Draw what a question needs, as an agent does before its turn."""
        tree, plan = self._live.tree, self._plan
        cost = budget.cost_of_turn(estimate(question.text))
        tokens = budget.short(tree, plan, cost)
        if tokens:
            self._live.record("draw", plan.path, {"tokens": tokens})
        if plan.account.left * 2 < cost:
            raise ModelError("The budget of tokens is used up.")

    def _answered(self, question: Question, asking: _Asking) -> None:
        asking.over = True
        tree = self._live.tree
        fields: dict[str, JSON] = {
            "question": question.kind,
            "role": asking.role,
            "model": tree.roles[asking.role].model,
            "digest": hashlib.sha256(question.text.encode("utf-8", "replace")).hexdigest()[:16],
            "usage": _usage(question.text, asking),
        }
        if question.node:
            fields["node"] = question.node
        self._live.record("ask", self._plan.path, fields, asking.text)

    def discard(self, reason: str) -> None:
        """Every answer that streams now is void."""
        for asking in self._asking:
            if not asking.over:
                self._discard(asking, reason)

    def _discard(self, asking: _Asking, reason: str) -> None:
        asking.over = True
        fields: dict[str, JSON] = {"reason": reason, "usage": _usage("", asking)}
        self._live.record("discard", self._plan.path, fields, asking.text)


def _usage(question: str, asking: _Asking) -> JSON:
    """Token counts as the endpoint reported them, else estimated from the characters."""
    usage = asking.usage
    if usage is None:
        prompt, completion = estimate(question), estimate(asking.text)
        return {"prompt": prompt, "cached": 0, "completion": completion, "estimated": True}
    counts: dict[str, JSON] = {
        "prompt": usage.prompt_tokens,
        "cached": usage.cached_tokens,
        "completion": usage.completion_tokens,
    }
    return {**counts, "estimated": True} if usage.estimated else counts


def _in_words(node: Node) -> str:
    """A step as one line, for people."""
    data = node_to_json(node)
    behind = ", ".join(node.dependencies)
    what = (
        f"agent {node.call}: {node.task}"
        if node.kind == "agent"
        else node.call or f"{node.kind}: {node.task}"
    )
    given = f" {json.dumps(data['params'], ensure_ascii=False)}" if "params" in data else ""
    return " ".join(f"`{node.id}` {what}{given}{f' ← {behind}' if behind else ''}".split())
