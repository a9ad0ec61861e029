"""Sessions whose agents write plans: a model that answers the engine's questions, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path

from iact.core.errors import ModelError
from iact.core.gate.policy_file import Policies
from iact.core.journal import read_journal
from iact.core.models.roles import Models
from iact.core.modules.invoker import Modules
from iact.core.ports import (
    ChatMessage,
    Clock,
    ModelEvent,
    ModuleHost,
    StreamEnd,
    TextDelta,
    Usage,
    UsageReport,
)
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import FakeHost, FakeModules, Script, ScriptedModel, World

Answers = Mapping[str, Sequence[str] | str | ModelError]
"""By the first words of a question: one answer after another, or the same each time, or what goes wrong each time."""


class Thinker(ScriptedModel):
    """Agents get what `script` says; questions about plans, which have no opening, get `answers` by their first words."""

    def __init__(self, script: Script, answers: Answers) -> None:
        super().__init__(script)
        self._answers = {
            start: texts if isinstance(texts, str | ModelError) else list(texts)
            for start, texts in answers.items()
        }
        self.questions: list[str] = []

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if messages[0].role == "system":
            async for event in super().stream(messages, max_tokens=max_tokens):
                yield event
            return
        question = messages[0].content
        self.questions.append(question)
        start = next(one for one in self._answers if question.startswith(one))
        texts = self._answers[start]
        if isinstance(texts, ModelError):
            raise texts
        text = texts if isinstance(texts, str) else texts.pop(0)
        for at in range(0, len(text), 16):
            await asyncio.sleep(0)
            yield TextDelta(text[at : at + 16])
        yield UsageReport(Usage(len(question) // 4, 0, len(text) // 4))
        yield StreamEnd("stop")


def runtime(
    data: Path,
    script: Script,
    *,
    answers: Answers | None = None,
    world: World | None = None,
    bounds: Bounds | None = None,
    policy: str = "",
    clock: Clock | None = None,
    authorities: Authorities | None = None,
    model: ScriptedModel | None = None,
) -> Runtime:
    """As in `fakes`, with a real clock: a plan has timers."""
    it = world or World()

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return FakeModules(it)

    models = Models({"smart": model or Thinker(script, answers or {})})
    return Runtime(
        data,
        models,
        FakeHost(),
        bounds=bounds,
        clock=clock,
        authorities=authorities,
        open_modules=open_modules,
        policies=lambda: Policies.from_toml(policy),
    )


def ask(data: Path, script: Script, **options: object) -> tuple[Session, Record, list[Record]]:
    """One task to its end: the session, its answer, its records; and it verifies."""

    async def run() -> tuple[Session, Record]:
        async with runtime(data, script, **options) as opened:  # type: ignore[arg-type]
            session = await opened.open()
            return session, await session.ask("Go")

    session, answer = asyncio.run(run())
    replay(session.journal, verify=True)
    return session, answer, list(read_journal(session.journal.parent).records)


def plan(body: str, head: str = "PLAN audit") -> str:
    return f"I have a plan.\n\n```{head}\n{body}\n```"


def changes(records: Sequence[Record], path: str = "/audit") -> list[tuple[str, str]]:
    return [(one.text("node"), one.text("to")) for one in records if one.kind == "node" and one.agent == path]


async def until(condition: Callable[[], object]) -> None:
    """Wait for `condition`: timers of plans are real, so this looks again and again, not for ever."""
    for _ in range(150_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never came to that")


def heard(session: Session, path: str = "/") -> str:
    return "\n".join(one.content for one in session.state.agents[path].context.history.messages())


TWO = """\
goal: Look
steps:
  - {id: a, call: t.read, params: {text: one}}
  - {id: b, call: t.read, refs: {text: {step: a, field: stdout, template: "<{}>"}}}
"""


AGENTS = """\
goal: Ask somebody
steps:
  - {id: version, call: t.read, params: {text: "6.1"}}
  - {id: cves, agent: researcher, task: "Find CVEs.", role: "You know CVEs.", refs: {kernel: {step: version}}}
  - {id: again, agent: researcher, task: "And once more.", after: [cves]}
  - {id: save, call: t.write, refs: {text: {step: again}}}
"""


WRITTEN = """\
steps:
  - {id: a, call: t.read, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}, after: [a]}
"""


def researcher() -> dict[str, list[str]]:
    return {
        "/": [plan(AGENTS), "Done."],
        "/audit/researcher": ["I look.\n\n```WRITE\nnote\n```", "Three CVEs, see $write_1.", "Still three."],
    }
