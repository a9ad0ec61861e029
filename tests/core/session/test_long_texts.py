"""What takes long because a text is long is done in a thread, before the fold asks for it: nothing else waits for it.

Each scene of `benchmarks.loop` is played. How long the longest step of the loop took is printed, not asserted; asserted
is who did the work, and that the journal can be verified where nothing was done beforehand.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from pydantic import BaseModel

from benchmarks.loop.__main__ import SCENES, LongestStep, Scene
from iact.core.context import excerpt
from iact.core.errors import StructuredFailed
from iact.core.language.variables import Value, text_value
from iact.core.models.structured import structured
from iact.core.plan import answers, forms
from iact.core.plan.forms import MAX_STEPS, read_form
from iact.core.plan.model import PlanError
from iact.core.ports import ChatMessage, ModelEvent, TextDelta
from iact.core.session import live, long_texts
from iact.core.stored.replay import replay
from tests.core.session.fakes import Script, ScriptedModel, runtime

_NOTHING_LONG: Final = frozenset(
    scene.name for scene in SCENES if scene.name.startswith(("a message", "a reply"))
) | {
    "a plan file of 200 steps",
}
"""Scenes in which nothing is long enough for a thread, or whose work is watched in `test_long_replies`."""

_WORK: Final = (
    (excerpt, "_readable", excerpt.READ_AT_ONCE),
    (forms, "_read_form", forms.READ_AT_ONCE),
    (answers, "_extract", forms.READ_AT_ONCE),
    (live, "stored", excerpt.READ_AT_ONCE),
    (long_texts, "stored", excerpt.READ_AT_ONCE),
)
"""What is done with texts, and how long one is at most that the loop may work on."""


class Watched:
    """Notes which thread did which work on long texts."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.done: list[tuple[str, bool]] = []
        """Each work with whether the loop's thread did it."""
        for module, name, at_once in _WORK:
            patch.setattr(module, name, self._noting(name, at_once, getattr(module, name)))

    def _noting(self, name: str, at_once: int, work: Callable[..., object]) -> Callable[..., object]:
        def noting(text: str | Value, *more: object) -> object:
            size = text.size if isinstance(text, Value) else len(text)
            if size > at_once:
                self.done.append((name, threading.current_thread() is threading.main_thread()))
            return work(text, *more)

        return noting


def play(scene: Scene, data: Path) -> tuple[Path, LongestStep]:
    """Play a scene; its journal."""
    watch = LongestStep()

    async def main() -> Path:
        async with runtime(data, scene.script, world=scene.world(), chunk=2_000) as opened:
            session = await opened.open()
            with watch:
                await scene.act(session)
            return session.journal

    return asyncio.run(main()), watch


@pytest.fixture(autouse=True)
def nothing_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((excerpt, "_TEXTS"), (excerpt, "_READ"), (forms, "_READ"), (answers, "_EXTRACTED")):
        monkeypatch.setattr(module, name, type(getattr(module, name))(20_000_000))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_long_texts_are_worked_on_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    watched = Watched(monkeypatch)
    watch = play(scene, tmp_path)[1]

    print(f"{scene.name}: longest step of the loop {watch.seconds * 1000:.0f} ms")
    by_the_loop = [name for name, on_loop in watched.done if on_loop]
    assert by_the_loop == []
    assert bool(watched.done) is (scene.name not in _NOTHING_LONG)


@pytest.mark.parametrize("name", ["a result of 16 MB of German", "SHOW of a result of 16 MB of German"])
def test_what_was_read_beforehand_is_what_the_fold_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    scene = next(scene for scene in SCENES if scene.name == name)
    journal, _ = play(scene, tmp_path)

    for module, kept in ((excerpt, "_TEXTS"), (excerpt, "_READ")):
        monkeypatch.setattr(module, kept, type(getattr(module, kept))(20_000_000))
    records = replay(journal, verify=True).records
    assert [record.body for record in records if record.kind == "reply"] == ["Done."]


def test_a_long_value_is_read_once() -> None:
    loads: list[int] = []

    def load() -> bytes:
        loads.append(1)
        return b"word \x1b[31m" * 100_000

    short = text_value("a\u202eb\n")
    assert excerpt.readable(short) == "a\\u202eb"
    assert excerpt.whole(short) == "a\u202eb\n"

    value = Value("0" * 64, 1_000_000, "text/plain", load)
    assert excerpt.readable(value) == excerpt.readable(value) == "word " * 100_000
    assert excerpt.whole(value).startswith("word \x1b")
    assert loads == [1]


def test_steps_that_can_never_run_are_not_looked_at() -> None:
    written = json.dumps({"goal": "g", "steps": [{"nonsense": number} for number in range(MAX_STEPS + 1)]})
    with pytest.raises(PlanError, match=f"The plan has {MAX_STEPS + 1} steps, at most 256 are allowed"):
        read_form(written)


def test_a_long_text_that_is_no_plan_is_refused_alike_each_time() -> None:
    written = "goal: [" + "word, " * 10_000
    sentences = set()
    for _ in range(2):
        with pytest.raises(PlanError) as refused:
            read_form(written)
        sentences.add(str(refused.value))
    assert len(sentences) == 1


class Answer(BaseModel):
    """An answer as data."""

    word: str


class Rambling(ScriptedModel):
    """Sends its answers character by character, and counts how many were taken of each."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.read: dict[int, int] = {}

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        request = len(self.read)
        async for event in super().stream(messages, max_tokens=max_tokens):
            if not isinstance(event, TextDelta):
                yield event
                continue
            for character in event.text:
                self.read[request] = self.read.get(request, 0) + 1
                yield TextDelta(character)


def test_an_answer_ends_where_its_limit_does() -> None:
    """An endpoint that goes on and on is not read for ever."""
    limit, written = 100, "x" * 50_000
    model = Rambling(lambda asked: written)
    with pytest.raises(StructuredFailed) as failed:
        asyncio.run(structured(model, [ChatMessage("user", "Say it.")], Answer, max_tokens=limit))
    assert failed.value.reply == written[: limit * 16]
    assert set(model.read.values()) == {limit * 16 + 1}
