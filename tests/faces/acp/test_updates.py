"""Events of a session as updates: a table of records and live text, with what a client is sent."""

from __future__ import annotations

import pytest
from acp.schema import AgentPlanUpdate
from pydantic import BaseModel

from iact.core.records.calls import Call, ClearanceAsk, Gate, Result, ResultStatus
from iact.core.records.content import Content
from iact.core.records.dialogue import Discard, Generation, Reply, Say, Turn
from iact.core.records.form_values import FormField
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk
from iact.core.records.parts import Seen, Tokens
from iact.core.records.plans import Node, Plan
from iact.core.records.record import Record
from iact.core.session.forms import ANSWER
from iact.core.stored.listing import short_title
from iact.core.views.events import Delta, OutputEvent
from iact.faces.acp import questions
from iact.faces.acp.updates import Updates, kind_of
from iact.faces.asked_text import needs_words

BLOCK = "Look.\n\n```shell.run\ntouch made\n```"


def generation(reasoning: str = "") -> Generation:
    return Generation(
        model="m", role="smart", context="", took=(), seen=Seen(now=""), usage=Tokens(prompt=7, cached=0, completion=3),
        ms=1, first_ms=1, finish="stop", reasoning=reasoning,
    )  # fmt: skip


def record(n: int, content: Content, body: str = "", agent: str = "/") -> Record:
    return Record(n=n, at="", agent=agent, step=n, content=content, body=body)


def turn(n: int, body: str, agent: str = "/", reasoning: str = "") -> Record:
    return record(n, Turn(generation=generation(reasoning)), body, agent)


def reply(n: int, body: str, agent: str = "/", to: str = "user", of: int = 0) -> Record:
    """A reply. `of`: the earlier turn in which it was written."""
    made = None if of else generation()
    return record(n, Reply(to=to, status="ok", generation=made, of=of), body, agent)


def call(n: int, of: int, agent: str = "/", function: str = "shell.run", to: str = "") -> Record:
    return record(n, Call(turn=of, action=0, function=function, args="", to=to), agent=agent)


def ask(n: int, of: int) -> Record:
    content = ClearanceAsk(
        turn=of, action=0, function="shell.run", to="person", rule="clearance", impact=1, why="", reason="",
        user="local", params={"command": "touch made"}, provenance={}, read=(),
    )  # fmt: skip
    return record(n, content)


def result(n: int, of: int, body: str = "", *, made: int = 0, ok: bool = True) -> Record:
    status: ResultStatus = "ok" if ok else "error"
    return record(n, Result(turn=of, action=0, function="shell.run", call=made, status=status), body)


def refused(n: int, of: int) -> Record:
    content = Gate(
        turn=of, action=0, function="shell.run", allow=False, by="impact", impact=1, reason="Too much."
    )
    return record(n, content)


def planned(n: int) -> Record:
    steps = ({"id": "a", "task": "Read"}, {"id": "b", "call": "shell.run"})
    content = Plan(version=1, parent=None, reason="", add=steps, drop=(), rewire=())
    return record(n, content, agent="/plan")


def stepped(n: int, node: str, to: str, detail: str = "") -> Record:
    content = Node(node=node, version=1, cause="x", from_="pending", to=to, attempt=1, t=0.0, detail=detail)
    return record(n, content, agent="/plan")


def short(update: BaseModel) -> str:
    """An update in a line."""
    told = update.model_dump(mode="json", by_alias=True, exclude_none=True)
    kind = told["sessionUpdate"]
    match kind:
        case "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk":
            return f"{kind.split('_')[0]} {kind.split('_')[1]}: {told['content']['text']}"
        case "tool_call" | "tool_call_update":
            text = " ".join(one["content"]["text"] for one in told.get("content", ()))
            rest = [told.get("title", ""), told["status"], text, told["_meta"]["iact"]["path"]]
            return f"{kind} {told['toolCallId']}: {' | '.join(rest)}"
        case "plan":
            return "plan: " + "; ".join(f"{one['content']} {one['status']}" for one in told["entries"])
        case "session_info_update":
            return f"title: {told['title']}"
    return f"{kind} {told.get('used')}/{told.get('size')}"


def told(*happens: Record | Delta | OutputEvent, replayed: bool = False) -> list[str]:
    updates = Updates("s", windows={})
    found: list[str] = []
    for one in happens:
        match one:
            case Record():
                found += map(short, updates.take(one, replayed=replayed))
            case Delta():
                found += map(short, updates.write(one))
            case OutputEvent():
                found += map(short, updates.prints(one))
    return found


STARTED = "tool_call /#2.0: shell.run touch made | in_progress |  | /"

TABLE: dict[str, tuple[list[Record | Delta | OutputEvent], list[str]]] = {
    "text that streamed is not told again": (
        [Delta("/", "All "), Delta("/", "well."), reply(2, "All well.")],
        ["agent message: All", "agent message:  well."],
    ),
    "a record brings what is missing": (
        [Delta("/", "All "), reply(2, "All well.")],
        ["agent message: All", "agent message:  well."],
    ),
    "a call in another form is told as it is recorded": (
        [Delta("/", "I look.\n<tool_"), Delta("/", 'call>{"name": "shell.run"}</tool_call>'), turn(2, f"I look.\n\n{BLOCK}")],
        ["agent message: I look.", "agent message: \n\nLook."],
    ),
    "an answer of an earlier turn is told once": (
        [Delta("/", "All well."), turn(2, "All well."), Delta("/", "ANSWER"), turn(3, "```ANSWER\n```"), reply(4, "All well.", of=2)],
        ["agent message: All well."],
    ),
    "an answer in a block is told once": (
        [Delta("/", "Now:\n```ANSWER\nAll well.\n```"), turn(2, "Now:\n```ANSWER\nAll well.\n```"), reply(3, "All well.", of=2)],
        ["agent message: Now:", "agent message: All well."],
    ),
    "an answer with an action beside it is told once": (
        [turn(2, "All well.\n\n```REMEMBER\nIt is.\n```"), reply(3, "All well.", of=2)],
        ["agent message: All well."],
    ),
    "what is said between two actions is told, and no action is": (
        [Delta("/", f"{BLOCK}\n\nThen:\n\n"), turn(2, f"{BLOCK}\n\nThen:\n\n{BLOCK}")],
        ["agent message: Look.", "agent message: \n\nThen:\n\nLook."],
    ),
    "code that is not run is part of an answer": (
        [Delta("/", "So:\n\n```js\nrun()\n```\n"), reply(2, "So:\n\n```js\nrun()\n```\n\nThat is all.")],
        ["agent message: So:", "agent message: \n\n```js\nrun()\n```\n\nThat is all."],
    ),
    "text that was cut is not told again": ([Delta("/", "All well. And"), reply(2, "All well.")], ["agent message: All well. And"]),
    "thoughts come as thoughts, and once": (
        [Delta("/", "Hm", thought=True), Delta("/", "Yes."), turn(2, "Yes.", reasoning="Hm")],
        ["agent thought: Hm", "agent message: Yes."],
    ),
    "what a child writes is no message": ([Delta("/coder", "Fix"), reply(2, "Fixed.", "/coder", "/")], []),
    "a model that begins again is told again": (
        [Delta("/", "On"), Delta("/", "One", restart=True), reply(2, "One.")],
        ["agent message: On", "agent message: One", "agent message: ."],
    ),
    "what was stopped is told as far as it came": (
        [Delta("/", "On"), record(2, Discard(reason="cancel", usage=Tokens(prompt=1, cached=0, completion=1)), "One")],
        ["agent message: On", "agent message: e"],
    ),
    "a call": (
        [turn(2, BLOCK), call(3, 2), OutputEvent("/", 3, "so"), result(4, 2, "so far", made=3)],
        ["agent message: Look.", STARTED, "tool_call_update /#2.0:  | in_progress | so | /",
         "tool_call_update /#2.0:  | completed | so far | /"],
    ),
    "a call that fails": (
        [turn(2, BLOCK), call(3, 2), result(4, 2, "no", made=3, ok=False)],
        ["agent message: Look.", STARTED, "tool_call_update /#2.0:  | failed | no | /"],
    ),
    "a call that waits for a person": (
        [turn(2, BLOCK), ask(3, 2), call(4, 2), result(5, 2, made=4)],
        ["agent message: Look.", "tool_call /#2.0: shell.run touch made | pending |  | /",
         "tool_call_update /#2.0:  | in_progress |  | /", "tool_call_update /#2.0:  | completed |  | /"],
    ),
    "a call that the gate refuses": (
        [turn(2, BLOCK), refused(3, 2), result(4, 2, ok=False)],
        ["agent message: Look.", "tool_call /#2.0: shell.run touch made | failed | Denied by impact: Too much. | /"],
    ),
    "a child agent is a call that stays open until it replies": (
        [turn(2, "```CALL coder\nFix it.\n```"), call(3, 2, function="CALL", to="/coder"),
         turn(4, BLOCK, "/coder"), call(5, 4, "/coder"), reply(6, "Fixed.", "/coder", "/")],
        ["tool_call /#2.0: CALL coder Fix it. | in_progress |  | /",
         "tool_call_update /#2.0:  | in_progress | Look. | /coder",
         "tool_call /coder#4.0: /coder: shell.run touch made | in_progress |  | /coder",
         "tool_call_update /#2.0:  | completed | Look.\n\nFixed. | /coder"],
    ),
    "a question about a host": (
        [record(2, HostAsk(module="web", host="a.example", port=443, seconds=1), agent="/"),
         record(3, HostAnswer(ask=2, allow=False, by="user"), agent="/")],
        ["tool_call host#2: web wants to reach a.example | pending |  | /", "tool_call_update host#2:  | failed |  | /"],
    ),
    "what a module asks": (
        [record(2, FormAsk(call=1, function="inn.book", message="Which room?", seconds=1), agent="/"),
         record(3, FormAnswer(ask=2, decision="accept", by="user"), agent="/")],
        ["tool_call form#2: inn.book asks you something | pending |  | /", "tool_call_update form#2:  | completed |  | /"],
    ),
    "a plan": (
        [planned(2), stepped(3, "a", "running"), stepped(4, "a", "executed"), stepped(5, "b", "failed", "Gone.")],
        ["plan: a: Read pending; b: shell.run pending", "plan: a: Read in_progress; b: shell.run pending",
         "plan: a: Read completed; b: shell.run pending",
         "plan: a: Read completed; b: shell.run (failed: Gone.) completed"],
    ),
}  # fmt: skip


def test_an_editor_answers_a_form_as_it_is_or_not_at_all() -> None:
    asked = FormAsk(
        call=1,
        function="inn.book",
        message="Where?",
        fields=(FormField(name="town", kind="text"),),
        seconds=1,
    )
    _, options = questions.request(record(2, asked))
    assert [one.option_id for one in options] == ["once", "no"]
    assert [questions.form(one) for one in ("once", "no", "")] == ["accept", "decline", "decline"]


@pytest.mark.parametrize(
    ("function", "fields", "needed"),
    [
        ("inn.book", (), False),
        ("inn.book", (FormField(name="town", kind="text"),), False),
        ("inn.book", (FormField(name="town", kind="text", required=True),), True),
        ("CALL", (ANSWER,), True),
        ("PERSON", (ANSWER,), True),
    ],
)
def test_which_questions_take_words(function: str, fields: tuple[FormField, ...], needed: bool) -> None:
    """They are answered by the next prompt: a request for permission has no place for words."""
    asked = FormAsk(call=1, function=function, message="Where?", fields=fields, seconds=1)
    assert needs_words(record(2, asked)) is needed


@pytest.mark.parametrize("name", TABLE)
def test_what_a_client_is_told(name: str) -> None:
    happens, expected = TABLE[name]
    assert told(*happens) == expected


def test_what_the_user_said_is_told_to_whoever_was_not_there() -> None:
    said = record(1, Say(), "Do it.")
    assert told(said, replayed=True) == ["user message: Do it."]
    assert told(said, reply(2, "Done."), replayed=True) == ["user message: Do it.", "agent message: Done."]


def test_a_session_that_begins_has_a_title_as_in_the_list() -> None:
    first, second = record(1, Say(), "Do it,\n" + 100 * "well, "), record(3, Say(), "Again.")
    assert told(first, reply(2, "Done."), second) == [
        f"title: {short_title(first.body)}",
        "agent message: Done.",
    ]
    updates = Updates("s")
    updates.take(first, replayed=True)
    assert updates.take(second) == [], "whoever loads it has its title from the list"


def test_text_that_was_missed_comes_with_its_record() -> None:
    updates = Updates("s")
    updates.lost()
    assert updates.write(Delta("/", "well.")) == []
    assert [short(one) for one in updates.take(reply(2, "All well."))] == ["agent message: All well."]
    assert updates.write(Delta("/", "Next")) != []


def test_each_message_has_an_id_of_its_own() -> None:
    updates = Updates("s")
    one, two = updates.take(turn(2, "One.")), updates.take(reply(3, "Two."))
    ids = [update.model_dump()["message_id"] for update in (*one, *two)]
    assert len(set(ids)) == 2


def test_usage_is_told_where_the_window_is_known() -> None:
    updates = Updates("s", windows={"smart": 100})
    assert [short(one) for one in updates.take(reply(2, "All well."))][1:] == ["usage_update 10/100"]


def test_a_plan_that_is_over_is_not_told_with_the_next_one() -> None:
    updates = Updates("s")
    for one in (planned(2), stepped(3, "a", "executed"), stepped(4, "b", "executed"), reply(5, "Done.")):
        updates.take(one)
    (update,) = updates.take(record(6, planned(6).content, agent="/plan-2"))
    assert isinstance(update, AgentPlanUpdate)
    assert [one.field_meta for one in update.entries] == [
        {"iact": {"path": "/plan-2", "step": "a"}},
        {"iact": {"path": "/plan-2", "step": "b"}},
    ]


@pytest.mark.parametrize(
    ("function", "kind"),
    [("shell.run", "execute"), ("files.read", "read"), ("files.write", "edit"), ("web.search", "fetch"), ("CALL", "other")],
)  # fmt: skip
def test_kinds_of_tools(function: str, kind: str) -> None:
    assert kind_of(function) == kind
