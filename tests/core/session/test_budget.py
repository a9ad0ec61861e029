"""One pool of tokens: reserved at a call, refunded at a return, with a report kept for whoever is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from iact.core.context import history
from iact.core.context.prompt import STANDARD
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session import generation
from iact.core.stored.replay import replay
from iact.core.tree import budget
from iact.core.tree.account import Account
from iact.core.tree.agent import Agent
from iact.core.tree.agent_context import AgentContext
from iact.core.tree.tree import Tree
from tests.core.session.fakes import Asked, ScriptedModel, replies, runtime


def play(data: Path, model: ScriptedModel, bounds: Bounds) -> tuple[Tree, list[Record]]:
    async def main() -> tuple[Path, list[Record]]:
        async with runtime(data, replies({}), model=model, bounds=bounds) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal, list(session.records())

    journal, records = asyncio.run(main())
    return replay(journal, verify=True).tree, records


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
    assert tree.root.account.spent == spent(records) > 0
    assert tree.root.account.reserved == {}
    assert all(agent.account.allowance == 0 for agent in tree.agents.values() if agent.caller != "user")


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
        return (
            "I counted to " + str(asked.turn)
            if last
            else f"```READ\n{asked.turn}" + " number" * 400 + "\n```"
        )

    bounds = Bounds(tokens=40_000, turns=1000)
    tree, records = play(tmp_path, ScriptedModel(script), bounds)
    replied = [record for record in records if record.kind == "reply"]
    assert [record.agent for record in replied] == ["/a", "/"]
    assert replied[0].body.startswith("I counted to ")
    assert replied[0].text("last") == "tokens"
    assert replied[1].body == "It did not finish."
    assert spent(records) == tree.root.account.spent <= bounds.tokens


@pytest.mark.parametrize("count", [8, 300])
def test_children_side_by_side_all_get_their_work_done(tmp_path: Path, count: int) -> None:
    """With the default bound of tokens: none of them starves because the others began before it."""
    calls = "\n\n".join(f"```CALL_ASYNC c{number}\nDo part {number}.\n```" for number in range(count))

    def script(asked: Asked) -> str:
        if asked.path == "/":
            return f"{calls}\n\n```WAIT\n```" if asked.turn == 0 else "All done."
        return f"```READ\n{asked.path}\n```" if asked.turn == 0 else f"Part {asked.path[2:]} is done."

    tree, records = play(tmp_path, ScriptedModel(script, chunk=10_000), Bounds(agents=count + 1))
    replied = [record for record in records if record.kind == "reply" and record.agent != "/"]
    assert len(replied) == count
    assert {record.text("status") for record in replied} == {"ok"}
    assert tree.root.account.spent == spent(records) <= tree.bounds.tokens
    assert tree.root.account.reserved == {}
    assert tree.root.account.lent == 0


def test_children_side_by_side_that_need_more_than_there_is_all_report(tmp_path: Path) -> None:
    count = 12
    calls = "\n\n".join(f"```CALL_ASYNC c{number}\nCount.\n```" for number in range(count))

    def script(asked: Asked) -> str:
        if asked.path == "/":
            return f"{calls}\n\n```WAIT\n```" if asked.turn == 0 else "All reported."
        last = "answer now, with what you have" in asked.newest
        return f"Counted to {asked.turn}." if last else f"```READ\n{asked.turn}" + " number" * 100 + "\n```"

    bounds = Bounds(agents=count + 1, tokens=120_000, turns=1000)
    tree, records = play(tmp_path, ScriptedModel(script, chunk=10_000), bounds)
    replied = {record.agent: record for record in records if record.kind == "reply"}
    assert len(replied) == count + 1
    assert replied["/"].body == "All reported."
    assert any(record.kind == "draw" for record in records)
    assert all(record.body.startswith("Counted to ") for path, record in replied.items() if path != "/")
    assert tree.root.account.spent == spent(records) <= bounds.tokens


def family(tokens: int, *starts: int) -> tuple[Tree, list[Agent]]:
    """A root with `tokens` and below it a chain of agents, each lent so much by the one above it."""
    tree = Tree(strict=True, blobs=lambda digest: b"")
    chain = [
        Agent(
            "/",
            "user",
            "",
            "smart",
            AgentContext(history.begin(STANDARD)),
            account=Account(tokens),
            active=True,
        )
    ]
    tree.agents["/"] = chain[0]
    for start in starts:
        above = chain[-1]
        path = f"{above.path.rstrip('/')}/a"
        child = tree.agents[path] = Agent(
            path, above.path, "", "smart", AgentContext(history.begin(STANDARD)), active=True
        )
        budget.reserve(tree, above, child, start)
        chain.append(child)
    return tree, chain


def kept(agent: Agent) -> int:
    """What an agent keeps so that it can report."""
    return 2 * budget.cost_of_turn(agent.context.history.tokens)


def test_a_draw_goes_through_all_lenders() -> None:
    tree, (root, middle, leaf) = family(100_000, 4_096, 2_048)
    budget.draw(tree, leaf, 50_000)
    assert leaf.account.left == 52_048
    assert leaf.account.allowance == middle.account.lent == middle.account.reserved[leaf.path]
    assert middle.account.allowance == root.account.lent == root.account.reserved[middle.path]
    assert middle.account.left == kept(middle)


def test_no_draw_takes_what_a_lender_needs_to_report() -> None:
    tree, (root, middle, leaf) = family(100_000, 4_096, 2_048)
    there = budget.above(tree, leaf)
    budget.draw(tree, leaf, 10**9)
    assert leaf.account.allowance == 2_048 + there
    assert budget.above(tree, leaf) == 0
    assert [one.account.left for one in (root, middle)] == [kept(root), kept(middle)]
    assert sum(one.account.left for one in (root, middle, leaf)) == 100_000


def test_a_refund_brings_back_what_was_drawn_at_every_level() -> None:
    tree, (root, middle, leaf) = family(100_000, 4_096, 2_048)
    budget.draw(tree, leaf, 50_000)
    leaf.account.spent, middle.account.spent = 30_000, 1_000
    budget.refund(tree, leaf)
    budget.refund(tree, middle)
    assert (root.account.spent, root.account.lent, root.account.left) == (31_000, 0, 69_000)


def test_an_agent_that_changes_its_lender_is_paid_for_by_both() -> None:
    """A person woke it, the root paid; then its caller calls it while it is still at work."""
    tree, (root, middle, leaf) = family(100_000, 50_000, 2_048)
    budget.refund(tree, leaf)
    budget.reserve(tree, root, leaf, 4_096)
    leaf.account.spent = 1_000
    budget.reserve(tree, middle, leaf, budget.share(tree, middle, leaf, waits=True))
    assert (root.account.spent, root.account.reserved) == (1_000, {middle.path: 50_000})
    assert middle.account.reserved == {leaf.path: leaf.account.allowance}
    leaf.account.spent = 500
    budget.refund(tree, leaf)
    budget.refund(tree, middle)
    assert (root.account.spent, root.account.lent, root.account.reserved) == (1_500, 0, {})


def test_where_little_is_left_an_agent_draws_no_more_than_its_report_needs() -> None:
    tree, (_, leaf) = family(10_000, 1_000)
    there = budget.above(tree, leaf)
    assert budget.short(tree, leaf, cost=there) == there - 1_000
    assert budget.short(tree, leaf, cost=400) == 0


def test_an_agent_is_told_when_its_budget_runs_low(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if "tokens of your budget left" in asked.newest:
            return "Done."
        return f"```READ\n{asked.turn}" + "x" * 800 + "\n```"

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


REPEATED: Mapping[str, Callable[[int], str]] = {
    "a success": lambda turn: "```READ\nsame\n```",
    "blanks": lambda turn: f"```t.fail\n{' ' * turn}same\n```",
    "two in turn": lambda turn: f"```READ\n{turn % 2}\n```",
    "an unknown function": lambda turn: "```t.reed\nx\n```",
    "wrong arguments": lambda turn: f"```READ speed={turn}\nx\n```",
    "two mistakes in turn": lambda turn: "```t.reed\nx\n```" if turn % 2 else "```READ speed=3\nx\n```",
    "SHOW of nothing": lambda turn: "```SHOW nothing\n```",
    "SHOW of the same": lambda turn: "```SHOW x\n```" if turn else "```VAR x\n1\n```",
    "the same variable": lambda turn: "```VAR x\n1\n```",
    "WAIT for nobody": lambda turn: "```WAIT\n```",
    "QUERY of nobody": lambda turn: "```QUERY\n```",
}
"""What an agent writes in each of its turns, if it goes round in circles."""


@pytest.mark.parametrize("clothes", REPEATED)
def test_a_loop_in_any_clothes_is_told_and_then_ended(tmp_path: Path, clothes: str) -> None:
    model = ScriptedModel(lambda asked: REPEATED[clothes](asked.turn))
    _, records = play(tmp_path, model, Bounds())
    assert (records[-1].text("status"), records[-1].text("bound")) == ("bound", "loop")
    assert "was made 5 times with the same outcome." in records[-1].body
    assert any("3 times with the same outcome" in asked.newest for asked in model.asked)
    assert any("4 times with the same outcome" in asked.newest for asked in model.asked)
    assert 5 <= len(model.asked) <= 10


def test_a_check_after_each_change_is_no_loop(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if asked.turn == 20:
            return "Done."
        return f"```READ\n{asked.turn}\n```" if asked.turn % 2 else "```READ\nthe same check\n```"

    model = ScriptedModel(script)
    _, records = play(tmp_path, model, Bounds())
    assert records[-1].text("status") == "ok"
    assert not any("with the same outcome" in asked.newest for asked in model.asked)


def test_the_same_message_back_and_forth_is_ended(tmp_path: Path) -> None:
    model = ScriptedModel(lambda asked: "```CALL a\nAre you done?\n```" if asked.path == "/" else "Not yet.")
    _, records = play(tmp_path, model, Bounds())
    assert (records[-1].agent, records[-1].text("bound")) == ("/", "loop")


@pytest.mark.parametrize("function", ["destroy", "lose"])
def test_a_call_that_did_not_complete_is_made_once_more_then_refused_and_then_ends_the_work(
    tmp_path: Path, function: str
) -> None:
    """Scene 13 of the goals: the same denied call repeated. A lost one may be there again at the second attempt."""
    model = ScriptedModel(lambda asked: f"```t.{function}\nit\n```")
    _, records = play(tmp_path, model, Bounds())
    gates = [record for record in records if record.kind == "gate"]
    assert len(gates) == 2
    assert (records[-1].text("status"), records[-1].text("bound")) == ("bound", "loop")
    told = [asked.newest for asked in model.asked]
    assert [text.count(f"t.{function} did not complete.") for text in told] == [0, 1, 1, 1]
    assert ["was not tried again unchanged" in text for text in told] == [False, False, False, True]


@pytest.mark.parametrize("function", ["destroy", "lose"])
def test_other_clothes_make_no_other_call_of_one_that_did_not_complete(tmp_path: Path, function: str) -> None:
    model = ScriptedModel(lambda asked: f"```t.{function}\n{' ' * asked.turn}it\n```")
    _, records = play(tmp_path, model, Bounds())
    assert sum(record.kind == "gate" for record in records) == 2
    assert records[-1].text("bound") == "loop"


def test_denied_and_unreachable_look_the_same_to_the_model(tmp_path: Path) -> None:
    def contexts(function: str, data: Path) -> list[str]:
        model = ScriptedModel(lambda asked: f"```t.{function}\nit\n```" if asked.turn < 3 else "Gave up.")
        play(data, model, Bounds())
        return [asked.newest.replace(function, "F") for asked in model.asked if asked.turn]

    assert contexts("destroy", tmp_path / "denied") == contexts("lose", tmp_path / "lost")


def test_a_reply_ends_at_two_megabytes_with_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the pieces are in which it comes, and whatever limit in tokens its model has."""
    assert generation._LONGEST == 2_000_000
    monkeypatch.setattr(generation, "_LONGEST", 2000)
    model = ScriptedModel(replies({"/": ["Many words. " * 1000]}), chunk=5000)
    _, records = play(tmp_path, model, Bounds())
    (reply,) = [one for one in records if one.kind == "reply"]
    assert len(reply.body) == 2000
    assert [one.body for one in records if one.kind == "notice"] == [generation.TOO_LONG]
