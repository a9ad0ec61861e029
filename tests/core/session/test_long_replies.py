"""A reply of any length stops nothing else: it is read beside everything, once, and few of its actions are run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from iact.core.language.actions import MOST_ACTIONS
from iact.core.language.labels import too_many_actions
from iact.core.language.scanner import scan
from iact.core.records.record import Record
from iact.core.session import generation
from iact.core.stored.replay import replay
from iact.core.tree import replies as fold
from tests.core.session.fakes import Asked, ScriptedModel, World, replies, runtime

SIZE: Final = 300_000

LONG: Final = {
    "prose": "The quick brown fox jumps over the lazy dog, and so on. ",
    "blocks": "Text here.\n\n```python\nprint(1)\n```\n\n",
    "actions": "```t.read\na\n```\n\n",
    "nested": "```t.write\n```python\n",
    "one line": "word ",
    "backticks": "`",
    "fences": "```\n",
    "lines without a fence": "WAIT any\n\n",
    "HTML": "<div>\n\n",
}


@dataclass
class Read:
    """Who read what, while a session was played."""

    records: Sequence[Record] = ()
    model: ScriptedModel | None = None
    world: World = field(default_factory=World)
    threads: list[str] = field(default_factory=list)
    """The threads that read long replies, once for each."""
    times: int = 0
    """How often the text of a long reply was taken up to be understood."""
    longest_gap: float = 0.0
    """The most processor time in seconds that the session took before it let anything else go on."""


class Reader(fold.ReplyText):
    """Notes who reads long replies."""

    read: Read

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        if len(self.text) > SIZE // 2:
            self.read.times += 1
            self.read.threads.append(threading.current_thread().name)


def play(data: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Read:
    """Let the root reply with a text, and verify the journal."""
    read = Read()
    monkeypatch.setattr(Reader, "read", read, raising=False)
    monkeypatch.setattr(generation, "ReplyText", Reader)
    monkeypatch.setattr(fold, "ReplyText", Reader)
    script = replies({"/": [text, *["Done."] * 10]})
    read.model = ScriptedModel(script, chunk=1_000)

    async def watch() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.002)
            now = time.thread_time()
            read.longest_gap = max(read.longest_gap, now - last)
            last = now

    async def main() -> Path:
        async with runtime(data, script, model=read.model, world=read.world) as opened:
            session = await opened.open()
            watching = asyncio.ensure_future(watch())
            await session.ask("Go")
            watching.cancel()
            return session.journal

    journal = asyncio.run(main())
    live = read.times, list(read.threads)
    read.records = list(replay(journal, verify=True).records)
    read.times, read.threads = live
    return read


@pytest.mark.parametrize("unit", LONG.values(), ids=LONG.keys())
def test_a_long_reply_is_read_once_and_beside_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    text = (unit * (SIZE // len(unit) + 1))[:SIZE]

    read = play(tmp_path, monkeypatch, text)

    print(f"longest without a pause: {read.longest_gap * 1000:.0f} ms")
    assert read.times == 1
    assert [name.startswith("iact-replies") for name in read.threads] == [True]


def test_a_short_reply_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(written: object) -> None:
        raise AssertionError("a thread costs more than reading it")

    monkeypatch.setattr(generation, "_read_all", refuse)
    read = play(tmp_path, monkeypatch, "A few words.")
    assert [one.body for one in read.records if one.kind == "reply"] == ["A few words."]


def test_what_is_stopped_while_it_is_read_counts_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(asked: Asked) -> str:
        return "Heard." if "Stop that." in asked.newest else "word " * 20_000

    reading, go_on = threading.Event(), threading.Event()
    read_all = generation._read_all

    def slowly(written: generation._Written) -> generation._Understood:
        reading.set()
        go_on.wait()
        return read_all(written)

    monkeypatch.setattr(generation, "_read_all", slowly)

    async def main() -> Path:
        async with runtime(tmp_path, script) as opened:
            session = await opened.open()
            asked = asyncio.ensure_future(session.ask("Go"))
            await asyncio.to_thread(reading.wait)
            await session.inject("/", "Stop that.", "interrupt")
            go_on.set()
            assert (await asked).body == "Heard."
            return session.journal

    records = list(replay(asyncio.run(main()), verify=True).records)
    assert [record.text("reason") for record in records if record.kind == "discard"] == ["interrupt"]
    assert [record.body for record in records if record.kind == "reply"] == ["Heard."]


@pytest.mark.parametrize("more", [0, 1, 100])
def test_of_many_actions_the_first_are_run_and_their_agent_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    text = "\n\n".join(f"```VAR v{number}\nx\n```" for number in range(MOST_ACTIONS + more))
    read = play(tmp_path, monkeypatch, f"{text}\n\n```SHOW v{MOST_ACTIONS - 1}\n```")

    assert read.model is not None
    heard = read.model.asked[1].newest
    assert heard.count(too_many_actions(MOST_ACTIONS)) == 1
    assert f"$v{MOST_ACTIONS - 1}" in heard
    assert f"$v{MOST_ACTIONS}" not in heard.replace(f"v{MOST_ACTIONS - 1}", "")


def test_as_many_actions_as_may_be_are_all_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n\n".join(f"```t.write\n{number}\n```" for number in range(MOST_ACTIONS))
    read = play(tmp_path, monkeypatch, text)

    assert [text for _, _, text in read.world.done] == [str(number) for number in range(MOST_ACTIONS)]
    assert read.model is not None
    assert too_many_actions(MOST_ACTIONS) not in read.model.asked[1].newest


def test_blocks_that_do_nothing_are_not_counted() -> None:
    shown = "```\nx\n```\n\n" * MOST_ACTIONS
    named = "```text name=a\nx\n```\n\n" * (MOST_ACTIONS + 5)

    assert len(fold.first_actions(scan(shown + shown, lambda name: False).blocks)) == 2 * MOST_ACTIONS
    assert len(fold.first_actions(scan(shown + named, lambda name: False).blocks)) == 2 * MOST_ACTIONS
