"""One pool of tokens: reserved at a call, refunded at a return, with a report kept for whoever is cut off."""

from __future__ import annotations

import asyncio
from pathlib import Path

from core.journal.record import Record
from core.tree.bounds import Bounds
from core.tree.replay import replay
from core.tree.tree import Tree
from tests.core.tree.fakes import Asked, ScriptedModel, replies, runtime


def play(data: Path, model: ScriptedModel, bounds: Bounds) -> tuple[Tree, list[Record]]:
    async def main() -> Path:
        async with runtime(data, replies({}), model=model, bounds=bounds) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    found = replay(asyncio.run(main()), verify=True)
    return found.tree, list(found.records)


def spent(records: list[Record]) -> int:
    usages = [record.fields.get("usage") for record in records]
    return sum(
        int(str(one["prompt"])) + int(str(one["completion"])) for one in usages if isinstance(one, dict)
    )


def test_totals_at_the_root_equal_the_sum_over_the_tree(tmp_path: Path) -> None:
    script = {
        "/": [
            "```CALL_ASYNC a\nx\n```\n```CALL_ASYNC b\nx\n```\n```WAIT\n```",
            "```CALL a\nagain\n```",
            "Done.",
        ],
        "/a": ["```CALL c\nx\n```", "a", "a again"],
        "/b": ["b"],
        "/a/c": ["c"],
    }
    tree, records = play(tmp_path, ScriptedModel(replies(script)), Bounds())
    assert tree.root.spent == spent(records) > 0
    assert tree.root.reserved == {}
    assert all(agent.allowance == 0 for agent in tree.agents.values() if agent.caller != "user")


def test_a_child_gets_a_share_and_never_more_than_its_caller_has(tmp_path: Path) -> None:
    script = {"/": ["```CALL a\nx\n```", "Done."], "/a": ["```CALL b\nx\n```", "a"], "/a/b": ["b"]}
    _, records = play(tmp_path, ScriptedModel(replies(script)), Bounds(tokens=100_000))
    first, second = (record.number("budget") for record in records if record.text("function") == "CALL")
    assert 0 < second < first < 100_000


def test_a_tree_at_its_budget_still_reports(tmp_path: Path) -> None:
    """Scene 8 of the goals: the child that is cut off writes its report, and the root answers."""

    def script(asked: Asked) -> str:
        if asked.path == "/":
            return "```CALL a\nCount to infinity.\n```" if asked.turn == 0 else "It did not finish."
        last = "answer now, with what you have" in asked.newest
        return "I counted to " + str(asked.turn) if last else "```READ\n" + "number " * 400 + "\n```"

    bounds = Bounds(tokens=40_000, turns=1000)
    tree, records = play(tmp_path, ScriptedModel(script), bounds)
    replied = [record for record in records if record.kind == "reply"]
    assert [record.agent for record in replied] == ["/a", "/"]
    assert replied[0].body.startswith("I counted to ")
    assert replied[0].text("last") == "tokens"
    assert replied[1].body == "It did not finish."
    assert spent(records) == tree.root.spent <= bounds.tokens


def test_an_agent_is_told_when_its_budget_runs_low(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        return "Done." if "tokens of your budget left" in asked.newest else "```READ\n" + "x" * 800 + "\n```"

    model = ScriptedModel(script)
    play(tmp_path, model, Bounds(tokens=100_000, turns=1000))
    assert "tokens of your budget left" in model.asked[-1].newest
    assert "tokens of your budget left" not in model.asked[0].newest


def test_the_same_failing_call_is_told_then_ended(tmp_path: Path) -> None:
    model = ScriptedModel(lambda asked: "```t.fail\nsame\n```")
    _, records = play(tmp_path, model, Bounds())
    assert (records[-1].text("status"), records[-1].text("bound")) == ("bound", "loop")
    assert sum(record.kind == "result" for record in records) == 5
    assert any("You made the same t.fail 3 times" in asked.newest for asked in model.asked)


def test_a_loop_that_makes_progress_goes_on(tmp_path: Path) -> None:
    model = ScriptedModel(lambda asked: "Done." if asked.turn == 12 else f"```t.fail\n{asked.turn}\n```")
    _, records = play(tmp_path, model, Bounds())
    assert records[-1].text("status") == "ok"


def test_the_same_message_back_and_forth_is_ended(tmp_path: Path) -> None:
    model = ScriptedModel(lambda asked: "```CALL a\nAre you done?\n```" if asked.path == "/" else "Not yet.")
    _, records = play(tmp_path, model, Bounds())
    assert (records[-1].agent, records[-1].text("bound")) == ("/", "loop")


def test_a_call_that_did_not_complete_is_refused_unchanged_and_then_ends_the_work(tmp_path: Path) -> None:
    """Scene 13 of the goals: the same denied call repeated."""
    model = ScriptedModel(lambda asked: "```t.destroy\nit\n```")
    _, records = play(tmp_path, model, Bounds())
    assert sum(record.kind == "gate" for record in records) == 1
    assert (records[-1].text("status"), records[-1].text("bound")) == ("bound", "loop")
    assert "was not tried again unchanged" in model.asked[-1].newest


def test_denied_and_unreachable_look_the_same_to_the_model(tmp_path: Path) -> None:
    def contexts(function: str, data: Path) -> list[str]:
        model = ScriptedModel(lambda asked: f"```t.{function}\nit\n```" if asked.turn < 2 else "Gave up.")
        play(data, model, Bounds())
        return [asked.newest.replace(function, "F") for asked in model.asked if asked.turn]

    assert contexts("destroy", tmp_path / "denied") == contexts("lose", tmp_path / "lost")
