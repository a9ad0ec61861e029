"""What an agent reads of results and variables, through the tree, and that a replay reads the same."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iact.core.context.tokens import estimate
from iact.core.stored.replay import replay
from iact.core.tree.tree import Tree
from tests.core.session.fakes import ScriptedModel, replies, runtime

LINES = "\n".join(f"line {number} of a thousand" for number in range(1, 1001))


def play(
    folder: Path, script: Mapping[str, Sequence[str]], *says: str, context: int = 1_000_000
) -> tuple[Tree, ScriptedModel]:
    """The tree of a session after these messages, folded again, and the model that was asked."""
    model = ScriptedModel(replies(script), context=context)

    async def main() -> Path:
        async with runtime(folder, replies({}), model=model) as opened:
            session = await opened.open()
            for text in says or ("Go",):
                await session.ask(text)
            return session.journal

    return replay(asyncio.run(main()), verify=True).tree, model


def shown(folder: Path, *actions: str, context: int = 1_000_000) -> str:
    """What the root reads after these actions."""
    _, model = play(folder, {"/": ["\n".join(actions), "Done."]}, context=context)
    return model.asked[1].newest


def var(name: str, text: str) -> str:
    return f"```VAR {name}\n{text}\n```"


def show(arguments: str) -> str:
    return f"```SHOW {arguments}\n```"


def test_a_result_is_whole_up_to_an_eighth_of_the_window(tmp_path: Path) -> None:
    read = f"```READ\n{LINES}\n```"
    assert "left out" not in shown(tmp_path / "wide", read, context=128_000)
    assert "of 1,000 are left out: `SHOW read_1 lines=" in shown(tmp_path / "narrow", read, context=32_000)


def test_results_that_are_too_long_together_are_cut_once(tmp_path: Path) -> None:
    """Each alone would be cut to 6,000 characters; together they fill more than half of the window."""
    told = shown(tmp_path, var("v", LINES), *["```READ text=$v\n```"] * 6, context=12_000)
    notices = re.findall(
        r"\[… lines (\d+)–(\d+) of 1,000 are left out: `SHOW read_(\d) lines=(\d+)-(\d+)` …\]", told
    )
    assert [number for _, _, number, _, _ in notices] == list("123456")
    for first, last, _, begin, end in notices:
        assert f"line {int(first) - 1} of a thousand\n[… lines {first}–" in told
        assert f"…]\nline {int(last) + 1} of a thousand" in told
        assert int(first) == int(begin) < int(end) <= int(last)


@pytest.mark.parametrize("name", ["v", "$v"])
def test_show_takes_a_name_with_or_without_its_sign(tmp_path: Path, name: str) -> None:
    told = shown(tmp_path, var("v", LINES), show(f"{name} lines=3-4"))
    assert (
        "Result of `SHOW v lines=3-4 of 1,000`:\n```\nline 3 of a thousand\nline 4 of a thousand\n```" in told
    )


def test_show_says_what_is_not_there(tmp_path: Path) -> None:
    told = shown(
        tmp_path,
        var("v", "one\ntwo"),
        show("v lines=2-9"),
        show("v lines=7-9"),
        show("v lines=all"),
        show("v chars=5-99"),
        show("w"),
    )
    assert "SHOW v lines=2 of 2`:\n```\ntwo\n```\nIt has 2 lines; nothing follows." in told
    assert "`SHOW` was not run for $v: it has 2 lines, so there is nothing at lines=7-9." in told
    assert "`SHOW` was not run for $v: 'all' is no range; write lines=3-9." in told
    assert "SHOW v chars=5-7 of 7`:\n```\ntwo\n```\nIt has 7 characters; nothing follows." in told
    assert "you have no variable $w. You have $v." in told


def test_show_gives_the_beginning_of_what_is_too_long_and_how_to_read_on(tmp_path: Path) -> None:
    told = shown(tmp_path, var("v", LINES), show("v lines=100-900"), context=16_000)
    assert "SHOW v lines=100-900 of 1,000`:\n```\nline 100 of a thousand\n" in told
    (first,) = re.findall(r"\[… lines (\d+)–900 of 1,000 are left out: `SHOW v lines=(\d+)-\d+` …\]", told)
    assert first[0] == first[1]
    assert f"line {int(first[0]) - 1} of a thousand\n[…" in told


def test_show_reads_a_huge_line_by_its_characters(tmp_path: Path) -> None:
    huge = "0123456789" * 5_000
    told = shown(
        tmp_path,
        var("v", f"head\n{huge}\ntail"),
        show("v lines=2"),
        show("v lines=2 chars=11-20"),
        context=16_000,
    )
    assert (
        "characters 6,001–50,000 of 50,000 of lines=2 are left out: `SHOW v lines=2 chars=6001-12000`" in told
    )
    assert "SHOW v lines=2 of 3 chars=11-20 of 50,000`:\n```\n0123456789\n```" in told


def test_a_long_message_of_a_person_can_be_read_on_in_a_small_window(tmp_path: Path) -> None:
    _, model = play(tmp_path, {"/": ["```SHOW message_1 lines=500-502\n```", "Done."]}, LINES, context=8_000)
    assert "of 1,000 are left out: `SHOW message_1 lines=" in model.asked[0].newest
    assert (
        "\nline 500 of a thousand\nline 501 of a thousand\nline 502 of a thousand\n" in model.asked[1].newest
    )


def test_names_of_short_outcomes_can_be_guessed_and_are_not_told(tmp_path: Path) -> None:
    """`$write_1` and `$write_2` are in use before the model has seen them, and are no news afterwards."""
    script = {"/": ["```WRITE\none\n```\n```WRITE\ntwo\n```\n```READ text=$write_2\n```", "Both: $write_1."]}
    tree, model = play(tmp_path, script)
    assert tree.root.table["read_1"].text() == "two"
    assert "$" not in model.asked[1].newest
    assert "kept as" not in model.asked[1].newest


def test_a_child_reads_small_values_before_its_task_and_spends_no_turn(tmp_path: Path) -> None:
    script = {
        "/": [
            f"{var('spec', 'Be brief.')}\n{var('log', LINES)}\n```CALL a\nDo $spec with $log.\n```",
            "Done.",
        ],
        "/a": ["It was $spec."],
    }
    tree, model = play(tmp_path, script)
    heard = next(one.newest for one in model.asked if one.path == "/a")
    assert (
        'Message from your caller /, with $spec (text/plain, 9 B), $log (text/plain, 22.9 kB, begins "line 1 of a thousand"):\n'
        "$spec:\n```\nBe brief.\n```\nThe message:\n```\nDo $spec with $log.\n```"
    ) in heard
    back = model.asked[-1].newest
    assert "with $spec (text/plain, 9 B):\n```\nIt was $spec.\n```" in back, (
        "what its reader has is not shown again"
    )
    assert tree.agents["/a"].table["log"].text() == LINES


def test_values_of_many_messages_share_what_a_small_window_has_room_for(tmp_path: Path) -> None:
    """Eight replies bring a value of almost 2,000 characters each: half of the window is for all of them."""
    names = [f"c{number}" for number in range(8)]
    calls = "\n".join(f"```CALL_ASYNC {name}\nGo.\n```" for name in names)
    text = "\n".join(["some words on a line of a note"] * 63)
    script = {
        "/": [f"{calls}\n```WAIT\n```", "Done."],
        **{f"/{name}": [f"```VAR note_{name}\n{text}\n```", f"See $note_{name}."] for name in names},
    }
    _, model = play(tmp_path, script, context=6_000)
    told = next(one.newest for one in model.asked if "See $note_c7." in one.newest and one.path == "/")
    assert estimate(told) < 6_000
    for name in names:
        assert f"of 63 are left out: `SHOW note_{name} lines=" in told
        assert f"See $note_{name}." in told
