"""A session as a solver: `inspect eval TASK --solver iact/agent`.

A sample is one message to the root of its own session, and the reply is the sample's output. The session is opened and
closed with the sample, so samples share nothing. The rest of the sample's limits are the session's bounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

import anyio
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageSystem, ModelOutput, StopReason, get_model, model_roles
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolDef
from inspect_ai.util import LimitExceededError, StoreModel, sample_limits, sandbox
from pydantic import Field

from iact.core.errors import IactError
from iact.core.records.dialogue import Reply
from iact.core.records.ways import Way
from iact.core.session.models import Models
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.blobs import blob_reader
from iact.core.views.ending import verdict_on
from iact.core.views.text import looks_like_action
from iact.faces import conversation
from iact.faces.failure import failure_of
from iact.faces.inspect.log import log_of
from iact.faces.inspect.model import InspectModel
from iact.faces.inspect.sample import SampleBounds, bounds_of, exceeded, task_of

OpenRuntime = Callable[[Models | None, SampleBounds], AbstractAsyncContextManager[Runtime]]
"""Opens a runtime for one sample. Without models, those of the settings are used."""

_ROLES = ("smart", "fast")


class SessionLink(StoreModel):
    """The session's data in the sample's store. `journal`: the path of its journal on the machine that ran it.

    `denied`: how many questions to a person were answered with no, because no person can answer. `reached`: whether the
    goal is reached (yes, partly, no, unknown), and `because` of what; a dialogue's answer counts as reached.
    """

    session: str = ""
    journal: str = ""
    status: str = ""
    bound: str = ""
    reached: str = ""
    because: str = ""
    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    model_calls: int = 0
    denied: int = 0
    unused: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SessionSolver:
    """Solves samples with sessions.

    `intent`, `scope`: for each session. `mode`: the way of working. `context`: the context window of Inspect's models.
    """

    open: OpenRuntime
    intent: str = "1"
    scope: str | None = None
    mode: Way = "dialogue"
    context: int = 32_768

    async def solve(self, state: TaskState) -> TaskState:
        """Work on one sample.

        Raises:
            LimitExceededError: a limit of the sample ended the work. The output is what was written until then.
            IactError: there is no answer.
        """
        # Inspect cancels repeatedly until the sample has ended, but a session must not be interrupted while it closes.
        work = asyncio.ensure_future(self._solve(state))
        try:
            await asyncio.shield(work)
        finally:
            work.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({work})
        return state

    async def _solve(self, state: TaskState) -> None:
        task, limits = task_of(state.messages), sample_limits()
        bounds = bounds_of(limits, len(state.messages))
        models = self._models()
        lent = None if models is None else Models(models)
        async with self.open(lent, bounds) as runtime:
            session = await runtime.open(intent=self.intent, scope=self.scope)
            link = SessionLink(session=session.id, journal=str(session.journal), unused=_unused(state))
            try:
                for file in task.files:
                    await session.upload(file.name, file.media, file.content)
                exchange = await conversation.say(session, task.text, mode=self.mode)
                link.denied = await conversation.unattended(exchange)
                content = exchange.reply.content
                assert isinstance(content, Reply)
                verdict = verdict_on(content)
                link.status, link.bound = content.status, content.bound
                link.reached, link.because = verdict.reached, verdict.because
                _tell(session, state, content, exchange.reply.body)
            finally:
                _count(session, link)
        for model in (models or {}).values():
            if model.limit is not None:
                raise model.limit
        over = exceeded(content, limits, bounds)
        if over is not None:
            raise over
        # A full context is a failure too, and its sentence no answer to score.
        failure = failure_of(exchange.reply)
        if failure is not None:
            raise IactError(failure.sentence)
        if content.status == "cancelled":
            raise IactError(exchange.reply.body.partition("\n")[0] or "The session gave no answer.")

    def _models(self) -> dict[str, InspectModel] | None:
        """Inspect's models by role, or None if Inspect was given none."""
        main = get_model()
        if main.api.model_name == "none":
            return None
        given = {name: one[0] if isinstance(one, list) else one for name, one in model_roles().items()}
        roles = {"smart": main, **{name: given[name] for name in _ROLES if name in given}}
        return {name: InspectModel(one, context=self.context) for name, one in roles.items()}


def _unused(state: TaskState) -> list[str]:
    """The parts of the task that a session does not use."""
    found = [f"tool {ToolDef(one).name}" for one in state.tools]
    with suppress(ProcessLookupError, LookupError):
        sandbox()
        found.append("sandbox")
    return found


def _count(session: Session, link: SessionLink) -> None:
    """Write the usage to the store and the transcript."""
    used = session.view.usage
    link.model = session.model_label
    link.prompt_tokens, link.cached_tokens = used.prompt_tokens, used.cached_tokens
    link.completion_tokens, link.model_calls = used.completion_tokens, session.view.model_calls
    told = {
        name: getattr(link, name) for name in type(link).model_fields if name not in ("store", "instance")
    }
    transcript().info(told, source="iact")


def _tell(session: Session, state: TaskState, reply: Reply, text: str) -> None:
    """Set the answer as the sample's output, and the root's dialogue as its messages."""
    stop: StopReason = "max_tokens" if reply.status == "bound" else "stop"
    state.output = ModelOutput.from_content(str(state.model), text, stop)
    known = session.view.is_action("/") or looks_like_action
    log = log_of(
        session.records(),
        blob_reader(session.journal.parent),
        lambda name: known(name) or looks_like_action(name),
    )
    assert log.samples is not None
    with suppress(LimitExceededError):  # the sample's own limit stops further messages
        kept = [one for one in state.messages if isinstance(one, ChatMessageSystem)]
        state.messages = [*kept, *log.samples[0].messages]
