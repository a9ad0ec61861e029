"""Dialogues between agents: what is said reaches exactly whom it is for, in the order it was said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iact.core.records.calls import Select
from iact.core.records.dialogue import Reply
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.core.session.plan_scenes import until


def play(
    data: Path,
    script: Mapping[str, Sequence[str]],
    *says: str,
    bounds: Bounds | None = None,
    world: World | None = None,
) -> tuple[list[Record], ScriptedModel]:
    """Say `says` one after another; gives all records and the model, after the journal was verified."""
    model = ScriptedModel(replies(script))

    async def main() -> Path:
        async with runtime(data, replies(script), model=model, bounds=bounds, world=world) as opened:
            session = await opened.open()
            for text in says:
                await session.ask(text)
            return session.journal

    path = asyncio.run(main())
    return list(replay(path, verify=True).records), model


def last_reply(records: Sequence[Record]) -> str:
    return [record.body for record in records if record.kind == "reply" and record.agent == "/"][-1]


def seen_by(model: ScriptedModel, path: str, turn: int) -> str:
    return next(asked.newest for asked in model.asked if (asked.path, asked.turn) == (path, turn))


def test_a_reply_without_actions_goes_to_the_user(tmp_path: Path) -> None:
    records, _ = play(tmp_path, {"/": ["Hello."]}, "Hi")
    assert last_reply(records) == "Hello."
    assert sorted(record.kind for record in records) == ["close", "module", "open", "reply", "say"]


def test_the_first_message_says_who_is_called_by_whom(tmp_path: Path) -> None:
    script = {"/": ["```CALL coder role=careful\nFix it.\n```", "Done."], "/coder": ["Fixed."]}
    _, model = play(tmp_path, script, "Go")
    assert "You are agent /, called by the user.\n" in seen_by(model, "/", 0)
    first = seen_by(model, "/coder", 0)
    assert "\nYou are agent /coder, called by /.\n" in first
    assert "careful" in first
    assert "Fix it." in first


def test_a_child_is_corrected_in_the_same_dialogue(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL coder\nAdd 2 and 2.\n```", "Wrong.\n\n```CALL coder\nNo, try again.\n```", "It is 4."],
        "/coder": ["5", "4"],
    }
    records, model = play(tmp_path, script, "Go")
    assert last_reply(records) == "It is 4."
    second = next(asked for asked in model.asked if (asked.path, asked.turn) == ("/coder", 1))
    assert [message.content for message in second.messages if message.role == "assistant"] == ["5"]
    assert "No, try again." in second.newest


def test_a_question_bubbles_up_and_the_answer_travels_down(tmp_path: Path) -> None:
    script = {
        "/": [
            "```CALL a\nBuild it.\n```",
            "Which colour?",
            "```CALL a\nThe user says: green.\n```",
            "Built in green.",
        ],
        "/a": ["```CALL b\nPaint.\n```", "Which colour?", "```CALL b\ngreen\n```", "Painted green."],
        "/a/b": ["Which colour?", "green it is"],
    }
    records, _ = play(tmp_path, script, "Build", "green")
    assert last_reply(records) == "Built in green."


def test_a_question_of_a_child_is_told_from_an_answer_and_ends_wait_any(tmp_path: Path) -> None:
    script = {
        "/": [
            "```CALL_ASYNC a\nPaint.\n```\n```WAIT any\n```",
            "```CALL a\ngreen\n```",
            "Painted.",
        ],
        "/a": ["Which colour?", "Painted it green."],
    }
    records, model = play(tmp_path, script, "Go")
    assert "Your child /a asks you, kept as $a_1:\n```\nWhich colour?\n```" in seen_by(model, "/", 1)
    assert "Answer it with CALL a; if you can't, ask your own caller." in seen_by(model, "/", 1)
    assert "Message from your child /a, kept as $a_2:" in seen_by(model, "/", 2)
    asked = [one.content.asks for one in records if isinstance(one.content, Reply)]
    assert asked == [True, False, False]


def test_a_question_to_the_user_is_their_reply(tmp_path: Path) -> None:
    records, _ = play(tmp_path, {"/": ["Which colour?"]}, "Paint")
    assert [one.content.asks for one in records if isinstance(one.content, Reply)] == [False]


def test_a_sibling_gets_what_another_lacks_by_variable(tmp_path: Path) -> None:
    script = {
        "/": [
            "```CALL coder\nWrite it.\n```",
            "```CALL researcher\nFind the API.\n```",
            "```CALL coder\nHere: $researcher_1\n```",
            "Done.",
        ],
        "/coder": ["I need the API.", "```READ text=$researcher_1\n```", "Written."],
        "/researcher": ["The API is f(x)."],
    }
    world = World()
    play(tmp_path, script, "Go", world=world)
    assert [text for _, _, text in world.done] == ["The API is f(x)."]


def test_a_child_is_told_once_which_siblings_may_change_the_shared_files(tmp_path: Path) -> None:
    script = {
        "/": [
            "```CALL_ASYNC reader intent=0\nLook.\n```\n\n```CALL_ASYNC writer\nWrite.\n```\n\n```WAIT\n```",
            "```CALL third\nLook, too.\n```",
            "```CALL writer\nOnce more.\n```",
            "Done.",
        ],
        "/reader": ["Looked."],
        "/writer": ["Written.", "Again."],
        "/third": ["Looked."],
    }
    _, model = play(tmp_path, script, "Go")
    line = "All agents work on the same files: the workspace is shared with your caller"
    assert f"{line} and your siblings, of whom `/writer` may change them, too." in seen_by(
        model, "/reader", 0
    )
    assert f"{line} and your siblings, none of whom may change them." in seen_by(model, "/writer", 0)
    assert f"{line}." in seen_by(model, "/third", 0), "its siblings have ended"
    assert line not in seen_by(model, "/writer", 1)
    assert line not in seen_by(model, "/", 0)


def test_a_child_is_told_of_siblings_that_the_same_message_calls(tmp_path: Path) -> None:
    calls = [
        "```CALL_ASYNC first\nLook.\n```",
        "```CALL_ASYNC reader intent=0\nLook.\n```",
        "```CALL_ASYNC writer\nWrite.\n```",
        "```WAIT\n```",
    ]
    script = {
        "/": ["\n\n".join(calls), "Done."],
        "/first": ["Looked."],
        "/reader": ["Looked."],
        "/writer": ["Written."],
    }
    _, model = play(tmp_path, script, "Go")
    line = "the workspace is shared with your caller and your siblings, of whom"
    assert f"{line} `/writer` may change them, too." in seen_by(model, "/first", 0)
    assert f"{line} `/first`, `/writer` may change them, too." in seen_by(model, "/reader", 0)
    assert f"{line} `/first` may change them, too." in seen_by(model, "/writer", 0)


def test_a_child_sees_nothing_of_its_callers_history(tmp_path: Path) -> None:
    script = {"/": ["secret thought\n\n```CALL a\nTask.\n```", "Done."], "/a": ["ok"]}
    _, model = play(tmp_path, script, "The user's own secret words")
    context = "".join(
        message.content for asked in model.asked if asked.path == "/a" for message in asked.messages
    )
    assert "secret" not in context


def test_parallel_children_are_awaited_together(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL_ASYNC a\n1\n```\n```CALL_ASYNC b\n2\n```\n```WAIT\n```", "Both."],
        "/a": ["from a"],
        "/b": ["```READ\nx\n```", "from b"],
    }
    records, model = play(tmp_path, script, "Go")
    feedback = seen_by(model, "/", 1)
    answers = [record for record in records if record.kind == "reply" and record.agent != "/"]
    order = ["Started /a", "Started /b", *(f"from {record.agent[1:]}" for record in answers)]
    assert [feedback.index(one) for one in order] == sorted(feedback.index(one) for one in order)
    select = next(record for record in records if record.kind == "select")
    assert select.fields["took"] == [record.n for record in answers]


async def test_wait_any_ends_with_the_first_reply_and_the_others_can_be_waited_for_again(
    tmp_path: Path,
) -> None:
    hold = asyncio.Event()
    script = {
        "/": [
            "```CALL_ASYNC slow\n1\n```\n```CALL_ASYNC quick\n2\n```\n```WAIT any\n```",
            "```WAIT any slow\n```",
            "Both.",
        ],
        "/slow": ["```READ\nlong\n```", "from slow"],
        "/quick": ["from quick"],
    }
    model = ScriptedModel(replies(script))
    async with runtime(tmp_path, replies(script), model=model, world=World(hold={"long": hold})) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await until(lambda: [one for one in session.records() if one.kind == "select"])
        hold.set()
        await session.answer(said.n)

    records = replay(session.journal, verify=True).records
    texts = {record.n: record.body for record in records if record.kind == "reply"}
    taken = [[texts[n] for n in one.content.took] for one in records if isinstance(one.content, Select)]
    assert taken == [["from quick"], ["from slow"]]
    assert "`WAIT`; still at work: `/slow`." in seen_by(model, "/", 1)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("ghost", "`WAIT` was not run: you have no child named ghost; your children are `/a`, `/any`."),
        ("any ghost", "`WAIT` was not run: you have no child named ghost; your children are `/a`, `/any`."),
        ("a, ghost", "Notice by the system: You have no child named ghost; your children are `/a`, `/any`."),
        ("any any", "from any"),
        ("/a", "from a"),
        ("all", "from any"),
    ],
)
def test_wait_says_which_children_there_are_and_waits_for_those(
    tmp_path: Path, names: str, told: str
) -> None:
    """A child whose name is "any" is reached as `WAIT any any`; a path is as good as a name."""
    started = "```CALL_ASYNC a\n1\n```\n```CALL_ASYNC any\n2\n```\n"
    script = {
        "/": [started + f"```WAIT {names}\n```", "```WAIT\n```", "Done."],
        "/a": ["from a"],
        "/any": ["from any"],
    }
    _, model = play(tmp_path, script, "Go")
    assert told in seen_by(model, "/", 1)


def test_wait_with_a_name_says_if_there_is_no_child_at_all(tmp_path: Path) -> None:
    _, model = play(tmp_path, {"/": ["```WAIT ghost\n```", "Done."]}, "Go")
    assert "you have no children yet; CALL begins a dialogue with one." in seen_by(model, "/", 1)


def test_the_same_exchange_again_ends_it_whether_called_or_waited_for(tmp_path: Path) -> None:
    asked = "```CALL_ASYNC a\nReady?\n```\n```WAIT a\n```"
    records, model = play(tmp_path, {"/": [asked] * 9, "/a": ["No."] * 9}, "Go")
    assert "You made the same CALL_ASYNC 3 times with the same outcome." in seen_by(model, "/", 3)
    assert "The same CALL_ASYNC was made 5 times with the same outcome." in last_reply(records)
    assert sum(one.path == "/a" for one in model.asked) == 5


async def test_a_reply_that_comes_while_its_caller_is_busy_is_kept_for_the_next_turn(tmp_path: Path) -> None:
    busy = asyncio.Event()
    script = {
        "/": ["```CALL_ASYNC a\n1\n```\n```READ\nx\n```\n```READ\ny\n```\n```READ\nz\n```", "Got it."],
        "/a": ["early"],
    }
    model = ScriptedModel(replies(script))
    async with runtime(tmp_path, replies(script), model=model, world=World(hold={"z": busy})) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await until(lambda: [one for one in session.records() if (one.kind, one.agent) == ("reply", "/a")])
        busy.set()
        await session.answer(said.n)
    replay(session.journal, verify=True)
    assert "Message from your child /a, kept as $a_1:\n```\nearly\n```" in seen_by(model, "/", 1)


def test_an_agent_that_answers_while_children_work_is_told_once_then_they_are_cancelled(
    tmp_path: Path,
) -> None:
    hold = asyncio.Event()
    script = {
        "/": ["```CALL_ASYNC a\n1\n```" + "\n```READ\nx\n```" * 60, "Premature.", "Final."],
        "/a": ["```READ\nforever\n```", "never said"],
    }
    records, model = play(tmp_path, script, "Go", world=World(hold={"forever": hold}))
    assert "`/a` still work for you" in seen_by(model, "/", 2)
    assert last_reply(records) == "Final."
    cancelled = [
        record for record in records if record.agent == "/a" and record.text("status") == "cancelled"
    ]
    assert [record.kind for record in cancelled] == ["result", "reply"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("```t.reed\nx\n```", "There is no function `t.reed`. The nearest names are `t.read`"),
        ("```READ speed=3\nx\n```", "it has no parameter `speed`"),
        ("```SHOW nothing\n```", "you have no variable $nothing"),
        ("```CALL a model=huge\nx\n```", "there is no model role 'huge'"),
        ("```t.destroy\nx\n```", "t.destroy did not complete."),
        ("```t.lose\nx\n```", "t.lose did not complete."),
        (
            "```t.fail\nx\n```",
            "Error of `t.fail`:\n```\nValueError: it failed\n```",
        ),
    ],
)
def test_what_goes_wrong_comes_back_as_feedback(tmp_path: Path, written: str, said: str) -> None:
    _, model = play(tmp_path, {"/": [written, "Done."]}, "Go")
    assert said in seen_by(model, "/", 1)


def test_an_upper_case_block_that_is_no_action_is_only_text(tmp_path: Path) -> None:
    records, _ = play(tmp_path, {"/": ["```SQL\nDROP TABLE x\n```"]}, "Go")
    assert last_reply(records) == "```SQL\nDROP TABLE x\n```"


def test_the_bound_on_turns_ends_an_agent_with_what_it_had(tmp_path: Path) -> None:
    script = {"/": ["```CALL a\nLoop.\n```", "It looped."], "/a": ["```READ\nx\n```"] * 9}
    _, model = play(tmp_path, script, "Go", bounds=Bounds(turns=5))
    assert "Your child /a did not finish (turns):\n````\n```READ" in seen_by(model, "/", 1)
    assert sum(asked.path == "/a" for asked in model.asked) == 5
    assert "2 turns left" in seen_by(model, "/a", 3)
    assert "This is your last turn" in seen_by(model, "/a", 4)


def test_the_bound_on_depth_is_told(tmp_path: Path) -> None:
    script = {"/": ["```CALL a\nx\n```", "Done."], "/a": ["```CALL b\nx\n```", "Did it myself."]}
    _, model = play(tmp_path, script, "Go", bounds=Bounds(depth=1))
    assert "agents may be at most 1 deep" in seen_by(model, "/a", 1)


def test_who_made_a_value_stays_with_it_and_what_was_written_is_text(tmp_path: Path) -> None:
    """A variable that an agent wrote is its own wherever it goes, and Markdown is text whatever its type is called."""
    script = {
        "/": [
            "```VAR report type=md\n# Mine\n```\n",
            "```SHOW report\n```\n",
            "```CALL a\nRead $report.\n```",
            "Done.",
        ],
        "/a": ["Read."],
    }
    _, model = play(tmp_path, script, "Go.")
    assert "Kept $report (text/markdown, 6 B)" in seen_by(model, "/", 1)
    assert "# Mine" in seen_by(model, "/", 2)
    [path] = (tmp_path / "sessions").iterdir()
    view = replay(path).view
    for agent, name in (("/", "report"), ("/a", "report")):
        assert view.variable(agent, name).origin == "/"
        assert view.variable(agent, name).is_text
