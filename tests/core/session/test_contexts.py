"""Contexts: the prefix law, compression by the agent and by the core, children that share a history."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from iact.core.context.prompt import STANDARD
from iact.core.context.tokens import estimate
from iact.core.ports import ChatMessage
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, ScriptedModel, replies, runtime
from tests.core.session.test_control import until

SUMMARY = "Task: read\nDecided: to add\nDone: `READ` of numbers\nOpen: the sum\nWhere: $read_1"
"""A summary with all headings."""


def play(data: Path, model: ScriptedModel, *says: str) -> list[Record]:
    async def main() -> Path:
        async with runtime(data, replies({}), model=model) as opened:
            session = await opened.open()
            for text in says or ("Go",):
                await session.ask(text)
            return session.journal

    return list(replay(asyncio.run(main()), verify=True).records)


def last_reply(records: Sequence[Record]) -> Record:
    return [record for record in records if record.kind == "reply"][-1]


def is_prefix(earlier: Sequence[ChatMessage], later: Sequence[ChatMessage]) -> bool:
    return list(later[: len(earlier)]) == list(earlier)


def test_every_context_is_a_prefix_of_the_next(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL a\n1\n```", "```READ\nx\n```\n```VAR v\ny\n```", "One.", "```CALL a\n2\n```", "Two."],
        "/a": ["```WRITE\nx\n```", "a1", "a2"],
    }
    model = ScriptedModel(replies(script))
    play(tmp_path, model, "first", "second")
    by_agent = defaultdict(list)
    for asked in model.asked:
        by_agent[asked.path].append(asked.messages)
    for contexts in by_agent.values():
        for earlier, later in pairwise(contexts):
            assert is_prefix(earlier, later)
    assert {contexts[0][0].content for contexts in by_agent.values()} == {STANDARD.system}


def test_the_static_prompt_is_small_and_names_nothing_that_changes() -> None:
    assert estimate(STANDARD.system) < 1200
    assert "shell.run" in STANDARD.system
    assert "20" not in STANDARD.system.replace("timeout=20", "")


def test_an_agent_is_asked_to_compress_and_cuts_its_history(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if "Your context is" in asked.newest:
            return "```COMPRESS\nI read many numbers; the sum is 42.\n```"
        if "Your history was cut." in asked.newest:
            return "The sum is 42."
        return "```READ\n" + "number " * 250 + f"{asked.turn}\n```"

    model = ScriptedModel(script, context=9000)
    records = play(tmp_path, model)
    last = model.asked[-1].messages
    assert last_reply(records).body == "The sum is 42."
    assert len(last) < len(model.asked[-2].messages)
    assert [one.role for one in last[1:]] == ["user", "assistant"] * ((len(last) - 2) // 2) + ["user"]
    assert "cut at your COMPRESS" in last[1].content
    assert any("the sum is 42" in one.content for one in last if one.role == "assistant")
    assert sum("full" in record.fields for record in records) == 1


def test_the_core_compresses_for_an_agent_that_does_not(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if asked.newest.startswith("Notice by the system: your context is full."):
            return SUMMARY
        if SUMMARY in asked.messages[1].content:
            return "Done."
        return "```READ\n" + "number " * 250 + f"{asked.turn}\n```"

    records = play(tmp_path, ScriptedModel(script, context=9000))
    compress = next(record for record in records if record.kind == "compress")
    assert compress.body == SUMMARY
    assert last_reply(records).body == "Done."


def test_a_forked_child_begins_with_its_callers_history_and_keeps_its_own_to_itself(tmp_path: Path) -> None:
    script = {
        "/": ["```READ\nsecret\n```", "```CALL a fork=true\nGo on from here.\n```", "Done."],
        "/a": ["child's own thought"],
    }

    def by_newest(asked: Asked) -> str:
        path = "/a" if "You are agent /a," in asked.newest else "/"
        return script[path].pop(0)

    model = ScriptedModel(by_newest)
    play(tmp_path, model)
    caller, child, after = model.asked[1].messages, model.asked[2].messages, model.asked[3].messages
    assert is_prefix(caller, child)
    assert "You are agent /a, called by /." in child[-1].content
    assert not any("Go on from here." in one.content for one in after if one.role == "user")
    assert is_prefix(caller, after)


def test_fifty_agents_share_the_static_prompt_byte_for_byte(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if asked.path != "/":
            return "Done."
        calls = (f"```CALL_ASYNC c{n}\nTask {n}.\n```" for n in range(49))
        return "\n".join([*calls, "```WAIT\n```"]) if asked.turn == 0 else "All done."

    model = ScriptedModel(script)
    play(tmp_path, model)
    assert len({asked.path for asked in model.asked}) == 50
    assert {asked.messages[0] for asked in model.asked} == {ChatMessage("system", STANDARD.system)}


def test_a_variable_of_5_mb_costs_each_level_less_than_sixty_tokens(tmp_path: Path) -> None:
    """Handed down through five agents and up again, each of which does the same without it for comparison."""

    def script(with_it: bool) -> Callable[[Asked], str]:
        mention = " $big" if with_it else ""

        def say(asked: Asked) -> str:
            if asked.path == "/" and asked.turn == 0 and with_it:
                return "```READ\nbig:5000000\n```"
            made = asked.turn - (1 if asked.path == "/" and with_it else 0)
            if made == 0 and asked.path.count("/") < 5:
                named = mention.replace("big", "read_1")
                return f"```CALL a\nPass it on.{named}\n```"
            return "Here it is." + mention.replace("big", "read_1")

        return say

    def newest(with_it: bool) -> dict[tuple[str, int], str]:
        model = ScriptedModel(script(with_it), chunk=1_000_000)
        play(tmp_path / str(with_it), model)
        assert max(estimate(one.content) for asked in model.asked for one in asked.messages) <= 131_000
        return {(asked.path, asked.turn): asked.newest for asked in model.asked if asked.path != "/"}

    plain, handed = newest(False), newest(True)
    assert len(handed) == len(plain) >= 9
    for key, text in handed.items():
        assert estimate(text) - estimate(plain[key]) < 60


def states(model: ScriptedModel) -> list[str]:
    """What the newest message of each context says about the state."""
    found = (re.search(r"\(state\) [^\n]*\Z", asked.newest) for asked in model.asked)
    return [match.group() if match else "" for match in found]


def test_the_state_is_told_once_and_then_what_is_different(tmp_path: Path) -> None:
    model = ScriptedModel(replies({"/": ["```READ\nx\ny\n```", "One.", "Two."]}))
    play(tmp_path, model, "first", "second")
    assert states(model) == [
        "(state) time: 2026-01-01 00:00 UTC",
        "",
        "",
    ]


def test_the_state_is_whole_again_behind_a_compression_and_in_a_forked_child(tmp_path: Path) -> None:
    reads = ["```READ\nx\ny\n```"] * 4
    script = {
        "/": [*reads, "```COMPRESS\nAll read.\n```", "```CALL a fork=true\nGo on.\n```", "Done."],
        "/a": ["Yes."],
    }

    def by_newest(asked: Asked) -> str:
        return script["/a" if "You are agent /a," in asked.newest else "/"].pop(0)

    model = ScriptedModel(by_newest)
    play(tmp_path, model)
    told = states(model)
    whole = "(state) time: 2026-01-01 00:00 UTC; variables: $read_4 (text/plain, 3 B)"
    assert [text.startswith(whole) for text in told] == [False] * 5 + [True, True, False]
    assert "history that stood here was cut" in model.asked[5].messages[1].content


@pytest.mark.no_prefix_law("the first layout drops its tails")
def test_journals_of_the_first_layout_replay_with_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iact.core.session.runtime.LAYOUT", "whole")
    model = ScriptedModel(replies({"/": ["```READ\nx\n```", "One.", "Two."]}))
    records = play(tmp_path, model, "first", "second")
    assert "tail" not in records[0].fields
    assert [text.count("time: ") for text in states(model)] == [1, 1, 1]
    assert not any("(state)" in one.content for one in model.asked[-1].messages[1:-1])


def test_a_note_stands_behind_the_message_that_it_is_about(tmp_path: Path) -> None:
    """Where a generation came to nothing, what was sent stays, and what arrived since stands behind it."""

    async def main() -> ScriptedModel:
        hold = asyncio.Event()
        model = ScriptedModel(replies({"/": ["Done."]}), holds={"/": hold})
        async with runtime(tmp_path, replies({}), model=model) as opened:
            session = await opened.open()
            await session.say("Go")
            await until(lambda: model.asked)
            hold.set()
            await session.inject("/", "Try t.read.", "interrupt")
            await session.answer(0)
            replay(session.journal, verify=True)
        return model

    model = asyncio.run(main())
    first, again = (asked.newest for asked in model.asked)
    assert "Documentation" not in first
    assert again.startswith(first[: first.index("\n\n(state)")])
    assert again.index("Try t.read.") < again.index("Documentation of `t.read`")
