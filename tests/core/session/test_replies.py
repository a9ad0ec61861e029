"""Replies as models write them: each does what it meant, or its agent is told in one line what to write instead.

Every reply is streamed whole and one character at a time, and every journal is verified.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from iact.core.language import unread
from iact.core.language.scanner import Scan, scan
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.records.session import Open
from iact.core.session.generation import RunningReply
from iact.core.stored.replay import replay
from iact.core.tree.apply import read_tree
from tests.core.language.documents import documents
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.rounds import rounds

RUN_READ = "```t.read\na\n```"
ANSWER = "```ANSWER\n```"


@dataclass(frozen=True, slots=True)
class Played:
    """A session of which every reply was written by hand."""

    records: Sequence[Record]
    model: ScriptedModel
    done: Sequence[str]
    """The texts that functions were called with, in order."""

    def heard(self, turn: int, path: str = "/") -> str:
        """What the agent read before its reply number `turn`."""
        return next(asked.newest for asked in self.model.asked if (asked.path, asked.turn) == (path, turn))

    @property
    def answers(self) -> list[str]:
        """What the root replied."""
        return [record.body for record in self.records if record.kind == "reply" and record.agent == "/"]

    @property
    def turns(self) -> list[str]:
        """The texts of the root's turns."""
        return [record.body for record in self.records if record.kind == "turn" and record.agent == "/"]


class Stage:
    """Plays sessions whose replies arrive in chunks of one size."""

    def __init__(self, data: Path, chunk: int) -> None:
        self._data = data
        self._chunk = chunk

    def play(self, *root: str, says: Sequence[str] = ("Go",), **children: Sequence[str]) -> Played:
        """Let the root write these replies, and its children theirs."""
        script = replies({"/": root, **{f"/{name}": texts for name, texts in children.items()}})
        model, world = ScriptedModel(script, chunk=self._chunk), World()

        async def main() -> Path:
            async with runtime(self._data, script, model=model, world=world) as opened:
                session = await opened.open()
                for text in says:
                    await session.ask(text)
                return session.journal

        records = list(replay(asyncio.run(main()), verify=True).records)
        return Played(records, model, [text for _, _, text in world.done])


@pytest.fixture(params=[1, 1 << 20], ids=["by 1", "whole"])
def stage(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(unread, "RUNNERS", {"bash": "t.write", "sh": "t.write", "python": "t.none"})
    return Stage(tmp_path, request.param)


# --- actions with text between them -------------------------------------------------------------


def test_actions_with_sentences_and_blocks_between_them_are_all_run_in_order(stage: Stage) -> None:
    reply = f"First:\n\n{RUN_READ}\n\nThen this, as in\n\n```text\nan example\n```\n\n```t.write\nb\n```\n\nThat is all."
    played = stage.play(reply, "Done.")
    assert played.done == ["a", "b"]
    assert played.turns == [reply]
    assert played.answers == ["Done."]


def test_an_invented_result_is_cut_and_its_author_is_told(stage: Stage) -> None:
    invented = "Result of `t.read`:\n```\nINVENTED\n```\n\n```t.write\nb\n```"
    played = stage.play(f"I look.\n\n{RUN_READ}\n\nNow I wait.\n\n{invented}", "Done.")
    assert played.done == ["a"]
    assert played.turns == [f"I look.\n\n{RUN_READ}\n\nNow I wait."]
    assert "The end of your message was left out" in played.heard(1)
    assert "INVENTED" not in played.heard(1)


def test_an_invented_result_without_its_label_stays_text(stage: Stage) -> None:
    reply = f"{RUN_READ}\n\n```output\nINVENTED\n```"
    played = stage.play(reply, "Done.")
    assert played.turns == [reply]
    assert "left out" not in played.heard(1)


# --- blocks that are not run --------------------------------------------------------------------


def test_a_block_that_was_never_closed_is_not_run(stage: Stage) -> None:
    played = stage.play(f"{RUN_READ}\n\n```t.write\nhalf a scri", "Done.")
    assert played.done == ["a"]
    assert "`t.write` was not run: its block was never closed with ```." in played.heard(1)


CLOSED_EARLY = "```t.write\n# Title\n\n```\npip install it\n```\n\nThen use it.\n```"


def test_a_body_that_ends_at_a_fence_of_its_own_is_not_run(stage: Stage) -> None:
    played = stage.play(CLOSED_EARLY, "Done.")
    assert played.done == []
    assert played.turns == [CLOSED_EARLY]
    told = played.heard(1)
    assert "`t.write` was not run: a line ``` ends its block" in told
    assert "use a longer fence: ````t.write" in told


def test_what_stands_behind_a_body_that_ends_too_early_is_not_run_either(stage: Stage) -> None:
    played = stage.play(f"{RUN_READ}\n\n{CLOSED_EARLY}\n\n```t.write\nrm\n```", "Done.")
    assert played.done == ["a"]
    assert "nor were the actions behind it" in played.heard(1)


def test_a_longer_fence_is_the_way_out(stage: Stage) -> None:
    body = CLOSED_EARLY.removeprefix("```t.write\n").removesuffix("\n```")
    played = stage.play(f"````t.write\n{body}\n````", "Done.")
    assert played.done == [body]


def test_text_and_a_block_behind_an_action_are_no_rest_of_its_body(stage: Stage) -> None:
    reply = "```t.write\nls\n```\n\nIt will print\n\n```\na.txt\n```"
    played = stage.play(reply, "Done.")
    assert played.done == ["ls"]


def test_an_action_in_a_quote_is_not_run(stage: Stage) -> None:
    played = stage.play(f"{RUN_READ}\n\n> As you wrote:\n> ```t.write\n> x\n> ```\n", "Done.")
    assert played.done == ["a"]
    assert "A block in a quote is not run: `t.write`." in played.heard(1)


def test_an_answer_with_a_quoted_action_is_asked_about(stage: Stage) -> None:
    text = "You wrote:\n\n> ```t.write\n> x\n> ```"
    played = stage.play(text, "ANSWER")
    assert played.done == []
    assert played.answers == [text]


# --- commands without an action, and ANSWER -----------------------------------------------------

COMMAND = "You need this:\n\n```bash\nls\n```"


def test_commands_at_the_end_are_asked_about(stage: Stage) -> None:
    played = stage.play(COMMAND, "```t.write\nls\n```", "Done.")
    assert played.done == ["ls"]
    assert played.answers == ["Done."]
    told = "Nothing was run. To run the block, write ```t.write instead of ```bash. If your message was your answer, "
    assert told + "write ANSWER." in played.heard(1)


@pytest.mark.parametrize(
    "written", [ANSWER, "ANSWER", "ANSWER.", "**ANSWER**", "`ANSWER`", "```\nANSWER\n```"]
)
def test_the_reply_before_an_answer_is_the_reply(stage: Stage, written: str) -> None:
    played = stage.play(COMMAND, written)
    assert played.answers == [COMMAND]
    assert len(played.model.asked) == 2


def test_who_repeats_a_reply_has_answered(stage: Stage) -> None:
    played = stage.play(COMMAND, COMMAND)
    assert played.answers == [COMMAND]


def test_each_task_is_asked_about_once(stage: Stage) -> None:
    played = stage.play(COMMAND, "It is done.", COMMAND, ANSWER, says=("Go", "Again"))
    assert played.answers == ["It is done.", COMMAND]


def test_code_of_a_function_that_the_agent_may_not_use_is_an_answer(stage: Stage) -> None:
    text = "It is this:\n\n```python\nprint(1)\n```"
    assert stage.play(text).answers == [text]


def test_commands_with_text_behind_them_are_an_answer(stage: Stage) -> None:
    text = f"{COMMAND}\n\nIt lists your files."
    assert stage.play(text).answers == [text]


def test_the_body_of_an_answer_is_the_reply(stage: Stage) -> None:
    played = stage.play(RUN_READ, "```ANSWER\nIt is a.\n```")
    assert played.answers == ["It is a."]


def test_an_answer_without_a_reply_before_it_is_told(stage: Stage) -> None:
    played = stage.play(ANSWER, "It is a.")
    assert "`ANSWER` was not done: you have written no answer yet." in played.heard(1)
    assert played.answers == ["It is a."]


def test_an_answer_beside_other_actions_waits_for_their_results(stage: Stage) -> None:
    played = stage.play(f"It is b.\n\n{RUN_READ}\n\n{ANSWER}", "It is a.")
    assert played.done == ["a"]
    assert "`ANSWER` was not done: other actions stand in the same message." in played.heard(1)
    assert played.answers == ["It is a."]


@pytest.mark.parametrize("word", ["ANSWER", "**ANSWER**", ANSWER])
def test_a_text_that_ends_with_the_word_answer_is_the_answer_without_it(stage: Stage, word: str) -> None:
    played = stage.play(RUN_READ, f"It is a.\n\n{word}")
    assert played.answers == ["It is a."]
    assert len(played.model.asked) == 2


@pytest.mark.parametrize("word", ["ANSWER", "**ANSWER**"])
def test_the_word_answer_is_no_part_of_what_is_answered_later(stage: Stage, word: str) -> None:
    played = stage.play(f"{RUN_READ}\n\nIt is b.\n\n{word}", "ANSWER")
    assert "`ANSWER` was not done: other actions stand in the same message." in played.heard(1)
    assert played.answers == ["It is b."]


def test_who_was_asked_and_adds_a_sentence_means_the_message_before(stage: Stage) -> None:
    played = stage.play(COMMAND, f"That was my answer.\n\n{ANSWER}")
    assert played.answers == [COMMAND]


def test_the_word_answer_in_a_block_or_a_sentence_stays(stage: Stage) -> None:
    text = "Write it so:\n\n```text\nANSWER\n```\n\nThen you get the ANSWER"
    assert stage.play(text).answers == [text]


def test_a_child_answers_like_that_too(stage: Stage) -> None:
    played = stage.play("```CALL child\nDo it.\n```", "Done.", child=[COMMAND, ANSWER])
    assert "You need this:" in played.heard(1)
    assert [record.agent for record in played.records if record.kind == "reply"] == ["/child", "/"]


# --- answers with actions beside them -----------------------------------------------------------

BESIDE = "```REMEMBER kind=fact\nThe sum is 42.\n```"


@pytest.mark.parametrize(
    "text",
    [
        f"It is 42.\n\n{BESIDE}",
        f"{BESIDE}\n\nIt is 42.",
        "It is 42.\n\n```VAR sum\n42\n```",
        f"Noted: it is 42.\n\n{BESIDE}",
    ],
)
def test_an_answer_with_actions_beside_it_is_the_reply(stage: Stage, text: str) -> None:
    played = stage.play(text, "It is nothing.", says=("Go", "And now?"))
    assert played.answers == [text.split("\n\n")[text.startswith("```")], "It is nothing."]
    assert played.turns == [text]
    assert len(played.model.asked) == 2


@pytest.mark.parametrize(
    "text", ["I keep this first:", "Let me note it.", "It has columns. Ich merke mir das."]
)
def test_a_text_that_announces_what_it_keeps_is_no_answer(stage: Stage, text: str) -> None:
    played = stage.play(f"{text}\n\n```VAR sum\n42\n```", "It is $sum.")
    assert played.answers == ["It is $sum."]
    assert "Your caller has not received your text." in played.heard(1)


def test_actions_alone_are_no_answer(stage: Stage) -> None:
    played = stage.play(BESIDE, "It is 42.")
    assert played.answers == ["It is 42."]


def test_an_answer_that_works_beside_is_held_for_children_as_any_other(stage: Stage) -> None:
    first = "```CALL_ASYNC child\nDo it.\n```"
    wait = "```WAIT\n```"
    played = stage.play(first, f"It is 42.\n\n{BESIDE}", wait, "It is 43.", child=["43"])
    assert played.answers in (["It is 42."], ["It is 43."])


# --- other forms --------------------------------------------------------------------------------


def call(name: str, text: str) -> str:
    """A call as Hermes writes it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"text": "{text}"}}}}\n</tool_call>'


def test_a_call_in_another_form_is_made_and_stands_in_the_history_in_ours(stage: Stage) -> None:
    played = stage.play(f"I look.\n{call('t.read', 'a')}\n{call('t_write', 'b')}", "Done.")
    assert played.done == ["a", "b"]
    assert played.turns == ["I look.\n\n```t.read\na\n```\n\n```t.write\nb\n```"]
    assert played.answers == ["Done."]


def test_an_invented_result_in_another_form_is_cut(stage: Stage) -> None:
    played = stage.play(
        f"{call('t.read', 'a')}\n<tool_response>\nINVENTED\n</tool_response>\nSo it is.", "Done."
    )
    assert played.turns == ["```t.read\na\n```"]
    assert "The end of your message was left out" in played.heard(1)


def test_a_call_of_what_does_not_exist_is_told_each_time_it_is_another(stage: Stage) -> None:
    played = stage.play(call("t.reads", "a"), call("nothing", "a"), call("t.read", "a"), "Done.")
    assert played.done == ["a"]
    assert "There is no function `t.reads`. The nearest names are `t.read`" in played.heard(1)
    assert "There is no function `nothing`." in played.heard(2)
    assert played.answers == ["Done."]


def test_a_call_that_cannot_be_read_is_told(stage: Stage) -> None:
    played = stage.play("<tool_call>\nt.read please\n</tool_call>", "Done.")
    assert "This call was not made: <tool_call>" in played.heard(1)


def test_who_writes_about_calls_is_asked_once(stage: Stage) -> None:
    text = "Hermes begins a call with this line:\n\n<tool_call>\n\nand so on."
    played = stage.play(text, "ANSWER")
    assert played.answers == [text]


def test_an_action_in_a_list_item_is_run(stage: Stage) -> None:
    reply = "1. First I look:\n\n   ```t.read\n   a\n   ```\n2. Then I write:\n\n   ```t.write\n   b\n   ```"
    played = stage.play(reply, "Done.")
    assert played.done == ["a", "b"]


# --- names in messages --------------------------------------------------------------------------


def test_a_name_in_a_message_that_is_almost_a_variable_is_told_once(stage: Stage) -> None:
    keep = "```VAR report\nIt rained.\n```"
    code = "`echo $line`\n\n~~~sh\nfor each in *; do echo $each; done\n~~~\n"
    send = f"````CALL child\nRead $repot and $read_7, for $5, $HOME, $i, and $other.\n\n{code}````"
    played = stage.play(f"{keep}\n\n{RUN_READ}\n\n{send}", send, "Done.", child=["Read it.", "Again."])
    told = played.heard(1)
    assert "$repot in your message names no variable; you have $report." in told
    assert "$read_7 in your message names no variable; you have $read_1." in told
    assert "$other in your message names no variable; you have none like it." in told
    assert told.count("names no variable") == 3
    assert "names no variable" not in played.heard(2)


def test_a_child_is_asked_once_about_an_answer_that_misspells_a_variable(stage: Stage) -> None:
    child = ["```VAR report\nIt rained.\n```", "It is in $repot.", "It is in $report."]
    played = stage.play("```CALL child\nGo.\n```", "```SHOW report\n```", "Done.", child=child)
    told = played.heard(2, "/child")
    assert "Your caller has not received your text: $repot names no variable (you have $report)." in told
    assert "If your message was your answer, write ANSWER." in told
    assert "It is in $repot." not in played.heard(1)
    assert "It rained." in played.heard(1)
    assert "names no variable" not in played.heard(1)


def test_a_caller_is_told_of_names_in_an_answer_that_name_nothing(stage: Stage) -> None:
    keep, text = (
        "```VAR report\nIt rained.\n```",
        "It is in $repot, and $other, not `$reporte`. It costs $5, see $HOME.",
    )
    played = stage.play("```CALL child\nGo.\n```", "Done.", child=[keep, text, ANSWER])
    assert text in played.heard(1)
    assert "$repot, $other in this message name no variable of its author." in played.heard(1)


def test_an_answer_with_a_name_that_is_like_no_variable_costs_no_turn(stage: Stage) -> None:
    played = stage.play("```CALL child\nGo.\n```", "Done.", child=["It is in $other."])
    assert [asked.path for asked in played.model.asked] == ["/", "/child", "/"]
    assert "$other in this message names no variable of its author." in played.heard(1)


# --- functions in another spelling --------------------------------------------------------------


@pytest.mark.parametrize("written", ["T READ", "I look first.\n\nT.READ a", "t read", "```T READ\n```"])
def test_a_function_in_another_spelling_is_told_before_it_is_an_answer(stage: Stage, written: str) -> None:
    played = stage.play(written, RUN_READ, "Done.")
    assert (
        "was not run. To run it, write a block that begins with ```t.read and ends with ```."
        in played.heard(1)
    )
    assert played.done == ["a"]
    assert played.answers == ["Done."]


def test_a_line_in_another_spelling_can_be_the_answer(stage: Stage) -> None:
    assert stage.play("T READ", ANSWER).answers == ["T READ"]


def test_a_line_with_an_unknown_name_is_told(stage: Stage) -> None:
    played = stage.play("FIND query=tea", "Done.")
    assert "There is no action `FIND` here." in played.heard(1)


# --- blocks that name what does not exist -------------------------------------------------------


@pytest.mark.parametrize("before", ["", "I count.\n\n", f"{RUN_READ}\n\n"])
@pytest.mark.parametrize("behind", ["", "\n\nThat is all."])
def test_a_block_of_a_module_that_is_not_loaded_is_told(stage: Stage, before: str, behind: str) -> None:
    played = stage.play(f"{before}```stationlog.counts day=1\n```{behind}", "Done.")
    assert played.answers == ["Done."]
    told = played.heard(1)
    assert "There is no function `stationlog.counts` here. `LOAD stationlog` may bring its module." in told


def test_a_block_of_an_action_that_does_not_exist_is_told(stage: Stage) -> None:
    played = stage.play("```REMEMBRE\nThe user likes tea.\n```", "```MODULE stationlog\n```", ANSWER)
    assert "There is no action `REMEMBRE` here. The nearest names are `REMEMBER`" in played.heard(1)
    assert "There is no action `MODULE` here." in played.heard(2)
    assert played.answers == ["```MODULE stationlog\n```"]


@pytest.mark.parametrize("info", ["main.py", "config.yaml", "asp.net", "JSON", "SQL", "text", "a.b.c"])
def test_a_block_with_the_name_of_a_file_or_a_language_is_an_answer(stage: Stage, info: str) -> None:
    reply = f"It is:\n\n```{info}\nx\n```"
    assert stage.play(reply).answers == [reply]


# --- what the shell reads, and what the fold reads ----------------------------------------------


@settings(max_examples=rounds(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(), st.integers(1, 40), st.integers(1, 12))
@example("```t.read\n" + "a" * 40, 1, 3)
@example("```t.read\na\n```\n\n```t.write\nsome text\n\n\n", 2, 4)
def test_a_reply_is_read_from_its_record_as_it_was_read_while_it_came(
    tmp_path: Path, text: str, chunk: int, limit: int
) -> None:
    """The limit is that of an endpoint that ignores it, so the stream is left in the middle of any block."""
    text = text.replace("BASH", "t.read").replace("shell.run timeout=3", "t.write")
    script = replies({"/": [text, "Done.", "Done.", "Done."]})
    model = ScriptedModel(script, chunk=chunk)
    read: list[Scan] = []
    understood = RunningReply.understood

    def watched(reply: RunningReply) -> object:
        done = understood(reply)
        read.append(done.scanned)
        return done

    async def main() -> Path:
        bounds = Bounds(reply_tokens=limit)
        async with runtime(tmp_path, script, model=model, bounds=bounds) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunningReply, "understood", watched)
        journal = asyncio.run(main())

    done = replay(journal, verify=True)
    recorded = [record.body for record in done.records if record.kind in ("turn", "reply")]
    assert [scan(body, done.tree.registry("/").is_action) for body in recorded[: len(read)]] == read


# --- journals of older formats ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "pending"),
    [
        ("```t.write\nhalf a scri", ["t.write"]),
        (CLOSED_EARLY, ["t.write"]),
        (f"{RUN_READ}\n\n```t.write x y z\n```", ["t.read", "t.write"]),
    ],
)
def test_a_reply_of_an_older_format_is_read_as_it_was_then(
    stage: Stage, reply: str, pending: Sequence[str]
) -> None:
    played = stage.play(reply, "Done.", "Done.")
    first = next(number for number, record in enumerate(played.records) if record.kind == "turn")
    records = list(played.records[: first + 1])
    opened = records[0].content
    assert isinstance(opened, Open)
    records[0] = dataclasses.replace(records[0], content=dataclasses.replace(opened, format="1.2"))

    tree = read_tree(records, lambda digest: b"", strict=False)
    assert [action.spec.name for action in tree.root.actions] == pending
    assert "ANSWER" not in tree.registry("/")
    assert not any("not run" in str(line) for line in tree.root.mail.feedback)


# --- lines without a fence ----------------------------------------------------------------------


def test_a_line_without_a_fence_is_an_action_and_stands_in_the_history_as_a_block(stage: Stage) -> None:
    played = stage.play(f"I begin.\n\n{RUN_READ}\n\nSHOW read_1", "Then:\n\n- `HELP t`", "WAIT any", "Done.")
    assert played.done == ["a"]
    assert played.turns[0] == f"I begin.\n\n{RUN_READ}\n\n```SHOW read_1\n```"
    assert played.turns[1:] == ["Then:\n\n```HELP t\n```", "```WAIT any\n```"]
    assert "Result of `SHOW read_1" in played.heard(1)
    assert "The module `t`" in played.heard(2)
    assert "no child is at work" in played.heard(3)
    assert played.answers == ["Done."]


def test_a_line_that_waits_ends_no_work(stage: Stage) -> None:
    start = "```CALL_ASYNC a\nGo.\n```\n\n```CALL_ASYNC b\nGo.\n```\n\nWAIT"
    played = stage.play(start, "Both are there.", a=["A."], b=["B."])
    assert "A." in played.heard(1)
    assert "B." in played.heard(1)
    assert played.answers == ["Both are there."]


@pytest.mark.parametrize(
    "text", ["HELP dox", "WAIT bob", "CALL a", "CALL a\nDo it.", "```\nHELP dox\n```", "t.read a"]
)
def test_what_only_looks_like_an_action_is_asked_about_once(stage: Stage, text: str) -> None:
    played = stage.play(text, text)
    first = text.strip("`\n").partition("\n")[0]
    said = f"`{first}` was not run. An action is a block that begins with ```{first.split()[0]} and ends with ```."
    assert f"{said} If your message was your answer, write ANSWER." in played.heard(1)
    assert played.answers == [text]


def test_a_line_that_is_no_action_beside_actions_is_told_of(stage: Stage) -> None:
    played = stage.play(f"{RUN_READ}\n\nCALL a\nDo it.", "Done.")
    assert played.done == ["a"]
    assert (
        "`CALL a` was not run. An action is a block that begins with ```CALL and ends with ```."
        in played.heard(1)
    )


def test_a_sentence_is_an_answer(stage: Stage) -> None:
    played = stage.play("The desk says:\n\nHELP is on its way to you.")
    assert played.answers == ["The desk says:\n\nHELP is on its way to you."]


@pytest.mark.parametrize(
    "text", ["It is 42.\n\nANSWER", "It is 42.\n\n```ANSWER\n```", "**ANSWER**\n\nIt is 42."]
)
def test_answer_beside_the_text_makes_it_the_answer(stage: Stage, text: str) -> None:
    played = stage.play(f"{RUN_READ}\n\nI look.", text)
    assert played.answers[0].endswith("It is 42.")
    assert "I look" not in played.answers[0]


def test_answer_behind_an_announcement_is_what_was_written_before(stage: Stage) -> None:
    played = stage.play(f"It is 42.\n\n{RUN_READ}", "Here is my answer:\n\nANSWER")
    assert played.answers == ["It is 42."]


def test_what_follows_in_a_block_that_was_never_closed_is_named(stage: Stage) -> None:
    played = stage.play("```t.write\nold\n\n```t.read\nx\n```", "Done.")
    assert played.done == []
    assert "was never closed with ```. Nor was what follows in it: `t.read`." in played.heard(1)


def test_a_block_of_commands_between_actions_is_told_of_once(stage: Stage) -> None:
    reply = f"I look.\n\n```bash\ngit log\n```\n\n{RUN_READ}"
    played = stage.play(reply, reply.replace("git log", "pwd").replace("\na\n", "\nb\n"), "Done.")
    assert "The block ```bash was not run; write ```t.write to run it." in played.heard(1)
    assert "was not run" not in played.heard(2)
    assert played.done == ["a", "b"]


# --- calls that are refused, and SHOW -----------------------------------------------------------


def test_a_refused_call_names_its_child_and_what_to_write_instead(stage: Stage) -> None:
    first = "```CALL_ASYNC one\nGo.\n```\n\n```CALL_ASYNC two timeout: 300\nGo.\n```"
    played = stage.play(first, "```CALL one model=big\nGo.\n```", "Done.", "Done.", one=["1."])
    told = "`CALL_ASYNC two` was not run: it has no parameter `timeout`; to limit how long you wait, write CALL_ASYNC"
    assert told in played.heard(1)
    assert "model role" not in played.heard(1)
    assert "`CALL one` was not run: there is no model role 'big'" in played.heard(2)


def test_show_shows_each_variable_that_it_names(stage: Stage) -> None:
    keep = "```VAR x\none\ntwo\n```\n\n```VAR y\nthree\nfour\n```"
    played = stage.play(f"{keep}\n\n```SHOW x y z\n```", "```SHOW $x, y 2-2\n```", "Done.")
    told = played.heard(1)
    assert told.index("Result of `SHOW x`") < told.index("Result of `SHOW y`") < told.index("no variable $z")
    assert "three\nfour" in told
    assert "Result of `SHOW x lines=2 of 2`" in played.heard(2)
    assert "Result of `SHOW y lines=2 of 2`" in played.heard(2)


# --- what stands beside an action ---------------------------------------------------------------


@pytest.mark.parametrize("action", [RUN_READ, "HELP t.read"])
@pytest.mark.parametrize("behind", [True, False])
def test_commands_beside_an_action_are_told_of(stage: Stage, action: str, behind: bool) -> None:
    commands = "```bash\nls\n```"
    reply = f"{action}\n\n{commands}" if behind else f"{commands}\n\n{action}"
    played = stage.play(reply, "Done.")
    assert "The block ```bash was not run; write ```t.write to run it." in played.heard(1)
    assert "```bash" not in played.heard(0)


def test_commands_in_an_answer_are_a_part_of_it(stage: Stage) -> None:
    played = stage.play(f"You need this:\n\n```bash\nls\n```\n\n{BESIDE}")
    assert played.answers == ["You need this:\n\n```bash\nls\n```"]


@pytest.mark.parametrize("line", ["HELP t.read", "WAIT", "SHOW x_1"])
def test_an_answer_that_a_line_held_back_is_told_of(stage: Stage, line: str) -> None:
    played = stage.play(f"It is 42.\n\n{line}", "ANSWER")
    assert "Your caller has not received your text. If your message was your answer, write ANSWER." in (
        played.heard(1)
    )
    assert played.answers == ["It is 42."]
    assert len(played.model.asked) == 2


def test_who_says_what_it_does_now_gave_no_answer(stage: Stage) -> None:
    played = stage.play("Let me look it up.\n\nHELP t.read", "It is 42.")
    assert "has not received" not in played.heard(1)


def test_who_waits_for_a_child_gave_no_answer(stage: Stage) -> None:
    first = "```CALL_ASYNC child\nDo it.\n```"
    child = [f"```t.read\n{number}\n```" for number in range(12)]  # more than its caller writes meanwhile
    played = stage.play(first, "The child is at work.\n\n```WAIT\n```", "It is 43.", child=[*child, "43"])
    assert len(played.done) == len(child)
    assert "has not received" not in played.heard(2)
    assert played.answers == ["It is 43."]


def test_who_has_heard_all_its_children_may_have_answered(stage: Stage) -> None:
    """The reply is read before its turn has taken the child's message, and again, from the journal, after that."""
    first = "```CALL_ASYNC child\nDo it.\n```\n\n```CALL other\nDo that.\n```"
    other = [RUN_READ, RUN_READ, RUN_READ, "Done."]
    played = stage.play(first, "It is 43.\n\n```WAIT\n```", "ANSWER", child=["43"], other=other)
    assert "Your child /child" in played.heard(1) or "your child /child" in played.heard(1)
    assert "Your caller has not received your text." in played.heard(2)
    assert played.answers == ["It is 43."]


WRITTEN_ELSEWHERE = '```json\n{"name": "t.write", "arguments": {"text": "b"}}\n```'


@pytest.mark.parametrize(
    "elsewhere", [WRITTEN_ELSEWHERE, '```python\nt.write("b")\n```', '{"name": "t.write", "arguments": {}}']
)
def test_a_call_in_another_form_before_an_action_is_told_of(stage: Stage, elsewhere: str) -> None:
    played = stage.play(f"I do this.\n\n{elsewhere}\n\nThen I read.\n\n{RUN_READ}", "Done.")
    assert played.done == ["a"]
    assert "This call was not made: " in played.heard(1)


def test_a_call_that_is_called_an_example_is_not_told_of(stage: Stage) -> None:
    played = stage.play(f"For example:\n\n{WRITTEN_ELSEWHERE}\n\n{RUN_READ}", "Done.")
    assert played.done == ["a"]
    assert "not made" not in played.heard(1)


def test_a_mark_in_the_first_line_of_a_block_is_a_part_of_it(stage: Stage) -> None:
    reply = '~~~t.write <tool_call>{"name": "t.read", "arguments": {"text": "a"}}</tool_call>\nb\n~~~'
    played = stage.play(reply, "Done.")
    assert played.turns == [reply]
    assert "a" not in played.done


@pytest.mark.parametrize(
    "written", ["```remember kind=fact\nThe sum is 42.\n```", "~~~Remember\nThe sum is 42.\n~~~"]
)
@pytest.mark.parametrize("text", ["", "It is 42.\n\n"])
def test_an_action_in_small_letters_is_told_of(stage: Stage, written: str, text: str) -> None:
    played = stage.play(f"{text}{written}", ANSWER if text else "Done.")
    assert "was not run. An action is a block that begins with ```REMEMBER" in played.heard(1)
