"""Runs plans: does what the tree says a plan needs, and records the results.

A plan is a node of the call tree with its own path. Its caller waits for it as for a child. Its agent steps are its
children, its tool steps go through the same gate as an agent's calls, and the models' answers about it count on its
budget. Its records are described in `core.records.plans`.

So a plan can be drawn at any record: nodes and edges (`after`, `refs`) come from its `plan` records, states from its
`node` records. Decisions are made in the tree (`core.tree.apply_plan`), from records alone; this module only does what
needs the world. So a restart needs no special handling: the runner does what the tree still needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from pydantic import BaseModel

from iact.core.context.tokens import CHARACTERS_PER_TOKEN, estimate
from iact.core.errors import JournalUnwritable, ModelError, StructuredFailed, lone
from iact.core.models.failures import ContextTooLong
from iact.core.models.roles import Models
from iact.core.models.structured import structured
from iact.core.plan.model import PlanError
from iact.core.plan.protocol import PlanQuestion
from iact.core.plan.step_reader import StepReader
from iact.core.ports import ChatMessage, StreamRecast, StreamRestart, TextDelta, Usage, UsageReport
from iact.core.records.control import Cancel
from iact.core.records.dialogue import Discard, Draw
from iact.core.records.parts import Tokens
from iact.core.records.plans import Draft, Wake
from iact.core.records.record import Record
from iact.core.session.actions import ActionExecutor
from iact.core.session.forms import Forms
from iact.core.session.long_texts import read_answer_beside
from iact.core.session.model_calls import ModelCall
from iact.core.session.models import learnt
from iact.core.session.race_copies import Copies
from iact.core.session.results import record_result, result_of, settle
from iact.core.session.scheduler import Scheduler
from iact.core.tree import budget
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.apply_plan import answer_to, conclusion, role_of
from iact.core.tree.plan_run import Asking, Copied, PlanRun
from iact.core.tree.window import reply_limit
from iact.core.views.events import Delta

_LOG: Final = logging.getLogger(__name__)
_PIECE: Final = 16_384
"""The most characters of an answer that are read at once while it is written."""

_FOR_PEOPLE: Final = frozenset({"reason", "synthesize"})
"""Questions whose answers are prose that people like to watch."""
_VERDICT: Final = "reached"
"""The first word of a report that begins with its verdict (`core.plan.answers.report`)."""


class PlanRunner:
    """The plans of one session that are under way.

    A step that ends while the session is closing has no outcome.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        models: Models,
        actions: ActionExecutor,
        copies: Copies,
        forms: Forms,
        end_background: Callable[[Callable[[str], bool]], Awaitable[None]],
    ) -> None:
        """`end_background`: ends what agents have left running in modules."""
        self.live = scheduler.live
        self.scheduler = scheduler
        self.models = models
        self.actions = actions
        self.copies = copies
        self.forms = forms
        self._end_background = end_background
        self._running: dict[str, _Running] = {}
        agents = self.live.tree.agents.values()
        self._stopped = {agent.path for agent in agents if agent.plan is not None and agent.active}
        """Plans that were under way when the session was opened."""
        self.live.on_applied.append(self._applied)

    async def execute(self, plan: Agent) -> None:
        """Run a plan to its end, or continue it."""
        run = run_of(plan)
        running = self._running[plan.path] = _Running(self, plan, run)
        try:
            if plan.path in self._stopped:
                self._stopped.discard(plan.path)
                if run.running is not None:
                    self.live.record(Wake(reopened=True), plan.path)

            await running.to_its_end()

            if run.ending is not None and run.ending.verdict.by == "person":
                # What a person stops ends with all that it has begun, jobs included.
                below = frozenset(agent.path for agent in self.live.tree.subtree(plan.path))
                await self._end_background(below.__contains__)
        except BaseExceptionGroup as group_error:
            raise lone(group_error) from group_error
        finally:
            del self._running[plan.path]

    def _applied(self, record: Record) -> None:
        """Note that the tree applied a record; plans that it concerns have something to do."""
        stirred = self.live.tree.stirred
        while stirred:
            running = self._running.get(stirred.pop())
            if running is not None:
                running.stirred.set()

    def write(self, plan: Agent) -> None:
        """Record what follows from the news of a plan."""
        run = run_of(plan)
        while run.owed:
            owed = run.owed[0]
            self.live.record(owed.content, plan.path, body=owed.body)

    def cancel(self, plan: Agent, why: str) -> None:
        """Cancel a plan; its own end is recorded by `end`."""
        run = run_of(plan)
        if not run.cancelled:
            self.live.record(Cancel(by="core"), plan.path, body=why)
        self.write(plan)

    def end(self, plan: Agent) -> None:
        """Record that a plan has ended, or was ended."""
        self.write(plan)
        reply, body = conclusion(plan, run_of(plan))
        self.live.record(reply, plan.path, body=body)


def run_of(plan: Agent) -> PlanRun:
    """The run of an agent that is a plan."""
    assert plan.plan is not None, f"{plan.path} is an agent"
    return plan.plan


class _Running:
    """One plan under way. `stirred`: there is news for it."""

    def __init__(self, planning: PlanRunner, plan: Agent, run: PlanRun) -> None:
        self.stirred = asyncio.Event()
        self._planning = planning
        self._live = planning.live
        self._plan = plan
        self._run = run
        self._steps: dict[int, asyncio.Task[None]] = {}
        self._begun: set[int] = set()
        """Steps whose task has begun; a task that has not begun would never notice its cancellation."""
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._taking: dict[str, asyncio.Task[None]] = {}
        """Results being taken over into the workspace. This is finished even if the plan ends."""
        self._turns: dict[str, asyncio.Lock] = {}
        """A lock for each race whose steps have no copies, so that they take turns."""
        self._inquired: dict[int, int] = {}
        """The calls of steps whose agents' questions were put to the person, by action."""
        self._alarm: tuple[float, asyncio.Task[None]] | None = None

    async def to_its_end(self) -> None:
        """Record what the plan owes and do what it needs, until it has ended."""
        async with asyncio.TaskGroup() as self._group:
            try:
                while self._plan.active and self._live.failure is None:
                    # Cleared before the tree is read: news that arrives meanwhile is looked at in the next round.
                    self.stirred.clear()
                    self._planning.write(self._plan)
                    if not self._plan.active:
                        continue

                    if self._run.over and not self._plan.actions:
                        self._end()
                    else:
                        self._attend()
                        await self.stirred.wait()
            finally:
                for task in (*self._steps.values(), *self._asking.values()):
                    task.cancel()
                self._set_alarm(None)

                if not self._planning.scheduler.closing:
                    for call in self._inquired.values():
                        self._planning.forms.end(call)

    def _end(self) -> None:
        """Record the end of the plan, all of whose steps have ended."""
        if self._run.fault is not None:
            _LOG.error("The plan %s met a bug.", self._plan.path, exc_info=self._run.fault)
        self._planning.end(self._plan)

    def _attend(self) -> None:
        """Start work that is due and not under way; stop work that is no longer needed."""
        holding = self._planning.scheduler.holding
        for step in list(self._plan.actions):
            if step.stopped:
                self._stop(step)
            elif step.index not in self._steps and not holding:
                self._steps[step.index] = self._group.create_task(self._carry_out(step))

        for node, copied in self._run.taking.items():
            if node not in self._taking and not holding:
                self._taking[node] = self._group.create_task(self._take_over(node, copied))

        # A step that runs goes on during a pause; a question is stopped, and asked again afterwards.
        paused = self._live.tree.paused(self._plan.path)
        may_ask = not (paused or holding)
        if may_ask:
            self._inquire()
        for thought, task in list(self._asking.items()):
            if paused or thought not in self._run.asking:
                task.cancel()
        if may_ask:
            for thought, asking in self._run.asking.items():
                if thought not in self._asking:
                    self._asking[thought] = self._group.create_task(self._ask(thought, asking))

        self._set_alarm(self._run.due)

    def _inquire(self) -> None:
        """Put the questions of the agents of steps to the person."""
        for step in self._plan.actions:
            question = self._run.inquiries.get(step.node, "")
            is_open = bool(question) and step.question
            if is_open and step.index not in self._inquired:
                self._inquired[step.index] = step.call
                self._group.create_task(self._planning.forms.inquire(self._plan, step, question))

    # --- time -------------------------------------------------------------------------------------------------

    def _set_alarm(self, due: float | None) -> None:
        """Have the plan woken at a time, instead of at any other; None: not at all."""
        if self._alarm is not None and self._alarm[0] != due:
            self._alarm[1].cancel()
            self._alarm = None

        if self._alarm is None and due is not None:
            self._alarm = due, self._group.create_task(self._wake(due))

    async def _wake(self, due: float) -> None:
        """Wait until a time, and record that it has come."""
        clock = self._live.clock
        while (left := due - clock.now().timestamp()) > 0:
            await clock.sleep(left)

        self._alarm = None
        if self._plan.active and self._run.due == due:
            self._live.record(Wake(), self._plan.path)

    # --- steps ------------------------------------------------------------------------------------------------

    async def _carry_out(self, step: Pending) -> None:
        """Carry out one step: its call through the gate, or a dialogue with a child agent."""
        self._begun.add(step.index)
        try:
            if step.child:
                await self._begin_dialogue(step)
            elif step.race:
                await self._call_in_a_copy(step)
            else:
                await self._call(step)
        except asyncio.CancelledError:
            # While the session closes, the step has no outcome: it is carried out when the session is opened again.
            if not self._planning.scheduler.closing:
                self._abandon(step)
            raise
        except JournalUnwritable:
            raise
        except Exception as error:
            _LOG.exception("A step of the plan %s met a bug.", self._plan.path)
            self._crashed(step, error)

    async def _begin_dialogue(self, step: Pending) -> None:
        """Have a step's child work. Its call was recorded if the session was closed meanwhile."""
        if not step.call:
            await self._planning.actions.act(self._plan, step)
        self._planning.scheduler.drive(step.child)

    async def _call_in_a_copy(self, step: Pending) -> None:
        """Make the call of a step of a race in a copy of the workspace; without copies, such steps take turns."""
        copies = self._planning.copies
        try:
            await copies.make(self._plan, step)
            alone = contextlib.nullcontext() if step.base else self._turn(step.race)
            async with alone:
                await self._call(step)
        finally:
            copies.let_go(self._plan, step)

    async def _call(self, step: Pending) -> None:
        """Make a step's call, until it has its outcome."""
        while step in self._plan.actions:
            # If the step was paused while it waited for approval, it is decided when the pause ends.
            while self._live.tree.halted(self._plan, step):
                await self._live.moved()

            await self._planning.actions.act(self._plan, step)

    def _turn(self, race: str) -> asyncio.Lock:
        return self._turns.setdefault(race, asyncio.Lock())

    async def _take_over(self, node: str, copied: Copied) -> None:
        """Take over what a step wrote in its copy into the workspace; not during a pause or lockdown."""
        tree = self._live.tree
        try:
            while self._plan.active and (tree.paused(self._plan.path) or tree.lockdown):
                await self._live.moved()

            await self._planning.copies.take_over(self._plan, self._run, node, copied)
        finally:
            del self._taking[node]
            self.stirred.set()

    def _stop(self, step: Pending) -> None:
        """Stop a step; it is abandoned once its work has been stopped."""
        task = self._steps.get(step.index)
        if task is not None:
            task.cancel()

        # Otherwise the task itself abandons the step, when it notices that it was cancelled.
        if task is None or task.done() or step.index not in self._begun:
            self._abandon(step)

    def _abandon(self, step: Pending) -> None:
        """End a step without an outcome of its own."""
        if not self._plan.active or not self._is_under_way(step):
            return

        if step.child and step.call and self._live.tree.agents[step.child].active:
            self._planning.scheduler.cancel(step.child, "The step of the plan that called it was stopped.")

        # The end of its child may have been its outcome.
        if self._is_under_way(step):
            self._planning.forms.end(step.call)
            settle(self._live, self._plan, step, "cancelled")

    def _is_under_way(self, step: Pending) -> bool:
        """Whether this very step has no outcome yet; one that is tried again is another one, and may be equal."""
        return any(action is step for action in self._plan.actions)

    def _crashed(self, step: Pending, error: Exception) -> None:
        """Handle a bug of ours, which costs a step its outcome."""
        if not self._is_under_way(step):
            return

        name = type(error).__name__
        result = replace(result_of(self._plan, step, "error"), data={"type": name})
        record_result(self._live, self._plan, result, f"The step could not be run ({name}: {error}).")

    # --- questions --------------------------------------------------------------------------------------------

    async def _ask(self, thought: int, asking: Asking) -> None:
        """Put a question to a model, and record its answer, or why there is none."""
        answer = _Answer(ModelCall(self._live, self._plan.path))
        was_answered = False
        try:
            await self._get_answer(thought, asking, answer)
            await read_answer_beside(answer.text)
            was_answered = True
            if self._plan.active and self._run.asking.get(thought) is asking:
                self._answered(thought, asking, answer)
        finally:
            del self._asking[thought]
            self.stirred.set()
            if not was_answered and self._plan.active and not self._planning.scheduler.closing:
                self._discard(thought, asking, answer)

    async def _get_answer(self, thought: int, asking: Asking, answer: _Answer) -> None:
        """Ask a model until it has answered, or has failed to."""
        question = asking.question
        try:
            self._learn()
            self._afford(thought, question.text)
            with answer.call:
                if question.shape is not None:
                    await self._fill_in(question, question.shape, answer)
                else:
                    await self._stream(thought, asking, answer)
        except ContextTooLong as error:
            answer.fault = str(error)
            answer.too_long = True
            self._learn()  # so that it can be made to fit
        except ModelError as error:
            answer.fault = str(error)
        except JournalUnwritable:
            raise
        except Exception as error:
            _LOG.exception("A question about the plan %s met a bug.", self._plan.path)
            answer.fault = f"({type(error).__name__}: {error})"

    def _discard(self, thought: int, asking: Asking, answer: _Answer) -> None:
        """Record an answer that was cut off, with what it cost. If a pause did it, the question is asked again."""
        is_asked_again = self._run.asking.get(thought) is asking
        discard = Discard(
            reason="pause" if is_asked_again else "cancel",
            thought=thought if is_asked_again else 0,
            usage=answer.usage(""),
        )
        with contextlib.suppress(JournalUnwritable):
            self._live.record(discard, self._plan.path, body=answer.text)

    async def _fill_in(self, question: PlanQuestion, shape: type[BaseModel], answer: _Answer) -> None:
        """Get an answer that is data, in the form that the question wants; an answer in another form is kept as it
        came."""
        tree = self._live.tree
        role = role_of(tree, question)
        model = self._planning.models.model(role)
        messages = [ChatMessage("user", question.text)]
        try:
            limit = reply_limit(tree, role, estimate(question.text))
            filled = await structured(model, messages, shape, max_tokens=limit, tell=answer.call.take)
        except StructuredFailed as error:
            answer.text = error.reply
            answer.counted = Usage(error.prompt_tokens, 0, error.completion_tokens)
        else:
            answer.text = filled.value.model_dump_json(exclude_unset=True)
            answer.counted = filled.usage

    async def _stream(self, thought: int, asking: Asking, answer: _Answer) -> None:
        """Read one reply. While a plan is being written, the tree is notified of each complete step.

        Text that a retry made void stays in such an answer, because its steps may have begun.
        """
        question = asking.question
        role = role_of(self._live.tree, question)
        model = self._planning.models.model(role)
        limit = reply_limit(self._live.tree, role, estimate(question.text))
        written = _Written(
            StepReader() if asking.pieces else None, _Shown() if question.kind in _FOR_PEOPLE else None
        )

        async with aclosing(model.stream([ChatMessage("user", question.text)], max_tokens=limit)) as events:
            async for event in events:
                answer.call.take(event)
                match event:
                    case TextDelta(text):
                        room = limit * CHARACTERS_PER_TOKEN - len(answer.text)
                        if not await self._take_text(thought, asking, answer, written, text[:room]):
                            return
                        if len(text) > room:
                            return  # its endpoint ignores the limit
                    case StreamRestart() | StreamRecast():
                        answer.text = f"{answer.text}\n\n" if asking.read else ""
                        written.restart()
                    case UsageReport(usage):
                        answer.counted = usage

    async def _take_text(
        self, thought: int, asking: Asking, answer: _Answer, written: _Written, text: str
    ) -> bool:
        """Take in text of an answer, in pieces. Returns False once the question is no longer asked."""
        for piece in _pieces(text):
            answer.text += piece
            shown = written.show(piece)
            if shown:
                self._live.publish(Delta(self._plan.path, shown))

            if self._run.asking.get(thought) is not asking:
                return False

            if written.completes_a_step(piece):
                unread = answer.text[len(asking.read) :]
                self._live.record(Draft(thought=thought), self._plan.path, body=unread)
            if len(piece) == _PIECE:
                await asyncio.sleep(0)  # much comes at once; others have their turn
        return True

    def _learn(self) -> None:
        """Believe what endpoints have said about their windows, so that the limit of the answer fits."""
        limits = learnt(self._live.tree, self._planning.models)
        if limits is not None:
            self._live.record(limits, "/")

    def _afford(self, thought: int, question: str) -> None:
        """Draw the tokens that a question needs from the budget, as an agent does before its turn."""
        cost = budget.cost_of_turn(estimate(question))
        tokens = budget.short(self._live.tree, self._plan, cost)
        if tokens:
            self._live.record(Draw(tokens=tokens, thought=thought), self._plan.path)

        if self._plan.account.left * 2 < cost:
            raise ModelError("The budget of tokens is used up.")

    def _answered(self, thought: int, asking: Asking, answer: _Answer) -> None:
        """Record an answer, or why there is none."""
        question = asking.question
        # A question that reached no model is not counted.
        was_read = answer.text or not answer.fault
        usage = answer.usage(question.text if was_read else "")
        record = answer_to(
            self._live.tree,
            thought,
            question,
            usage,
            answer.fault,
            tuple(answer.call.waits),
            too_long=answer.too_long,
        )
        self._live.record(record, self._plan.path, body="" if answer.fault else answer.text)


def _pieces(text: str) -> Iterator[str]:
    """What arrived at once, in pieces that take a few milliseconds each."""
    return (text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE))


class _Written:
    """What follows from the text of an answer while it is written, apart from the answer itself."""

    __slots__ = ("_shown", "_steps")

    def __init__(self, steps: StepReader | None, shown: _Shown | None) -> None:
        """`steps`: reads the steps of a plan; None: it is no plan. `shown`: what a person sees; None: nothing."""
        self._steps = steps
        self._shown = shown

    def restart(self) -> None:
        """Forget the text so far: a retry made it void."""
        self._steps = StepReader() if self._steps is not None else None
        self._shown = _Shown() if self._shown is not None else None

    def show(self, piece: str) -> str:
        """What a person sees of the next piece."""
        return self._shown.take(piece) if self._shown is not None else ""

    def completes_a_step(self, piece: str) -> bool:
        """Whether the next piece completes a step of a plan. Unreadable text counts as complete, so that the tree
        reports the error."""
        if self._steps is None:
            return False

        try:
            return bool(self._steps.feed(piece))
        except PlanError:
            return True


class _Shown:
    """What a person sees of a report while it is written: not its first line, if that is the verdict."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: str | None = ""
        """The first line, as long as it is not complete; None once it was decided about."""

    def take(self, text: str) -> str:
        """Return what to show now, given the next piece."""
        if self._held is None:
            return text

        self._held += text
        line, _, rest = self._held.lstrip().partition("\n")
        beginning = line.lstrip("*_`># ").lower()[: len(_VERDICT)]
        if not _VERDICT.startswith(beginning):
            shown = self._held
            self._held = None
            return shown

        if rest:
            self._held = None
            return rest.lstrip("\n")
        return ""


class _Answer:
    """An answer while it streams."""

    __slots__ = ("call", "counted", "fault", "text", "too_long")

    def __init__(self, call: ModelCall) -> None:
        self.call = call
        self.text = ""
        self.counted: Usage | None = None
        """What the endpoint counted; None as long as it has not said so."""
        self.fault = ""
        """Why there is no answer."""
        self.too_long = False
        """Whether the question was too long for the model."""

    def usage(self, question: str) -> Tokens:
        """Token counts as reported by the endpoint, or estimated from the characters."""
        if self.counted is not None:
            return Tokens.of(self.counted)

        prompt = estimate(question)
        completion = estimate(self.text)
        return Tokens(prompt=prompt, cached=0, completion=completion, estimated=True)
