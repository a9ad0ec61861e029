"""What requests of Responses and of chats mean: retries, whose words answer which question, forms, memory, bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from iact.accounts.rights import LOCAL
from iact.core.errors import ModelUnreachable
from iact.core.records.dialogue import Say
from iact.core.records.forms import FormAsk
from iact.core.records.record import Record
from iact.core.session.forms import ANSWER
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.questions import OpenQuestions
from iact.faces.message import question_id
from iact.faces.responses.begin import _meant
from iact.faces.responses.given import ClientFields, kept
from iact.faces.responses.work import Continued
from tests.core.session import plan_scenes
from tests.core.session.fakes import Asked, Script, replies, runtime
from tests.core.session.test_clearance import ASKS, ONE
from tests.core.session.test_control import until
from tests.core.session.test_plans import PAINTER
from tests.faces.test_memory_of_callers import ACCOUNT, asking

READS: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.read"]\n'
BOTH: Final = {"/": ["```READ\na\n```\n```READ\nb\n```", "Done."]}
"""Two calls that are asked about at once."""
CALL: Final = '```FRONTEND tool=weather\n{"city": "Bonn"}\n```'
TOOLS: Final = [{"type": "function", "name": "weather", "description": "The weather.", "parameters": {}}]
QUESTIONS: Final = [{"type": "function", "name": "iact_clearance", "parameters": {}}]
SCHEMA: Final = {"type": "json_schema", "name": "it", "schema": {"type": "object", "required": ["name"]}}


async def post(http: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await http.post("/v1/responses", json=body)


async def answer(http: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    made = await post(http, **body)
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()
    return found


def text_of(response: dict[str, Any]) -> str:
    return "\n".join(
        part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]
    )


def only(opened: Runtime) -> Session:
    (session,) = opened.opened.values()
    return session


def said(session: Session) -> list[str]:
    return [one.body for one in session.records() if isinstance(one.content, Say)]


def failing_after(*texts: str) -> Script:
    """These replies, and then a model that nothing reaches."""

    def script(asked: Asked) -> str:
        if asked.turn < len(texts):
            return texts[asked.turn]
        raise ModelUnreachable("Nothing answers.")

    return script


# --- retries -----------------------------------------------------------------------------------------


async def test_a_tools_result_that_is_sent_again_reads_what_followed_it(tmp_path: Path) -> None:
    async with (
        runtime(tmp_path, replies({"/": [CALL, "It rains."]})) as opened,
        asking(opened, LOCAL) as http,
    ):
        asked = await answer(http, input="Weather?", tools=TOOLS)
        (call,) = asked["output"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Rain"}
        sent: dict[str, Any] = {"previous_response_id": asked["id"], "tools": TOOLS, "input": [result]}
        first = await answer(http, **sent)
        again = await answer(http, **sent)
        assert (again["id"], text_of(again)) == (first["id"], "It rains.")


@pytest.mark.no_prefix_law("several sessions speak to one model")
@pytest.mark.parametrize(("calls", "again"), [([], None), (["```READ\na\n```"], "false")])
async def test_nobody_is_invited_to_have_tools_called_again(
    tmp_path: Path, calls: list[str], again: str | None
) -> None:
    async with runtime(tmp_path, failing_after(*calls)) as opened, asking(opened, LOCAL) as http:
        failed = await post(http, input="Go")
        assert failed.status_code == 502
        assert failed.headers.get("x-should-retry") == again
        chat = await http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Go"}]})
        assert chat.headers.get("x-should-retry") == again


# --- whose words answer which question ---------------------------------------------------------------


@pytest.mark.parametrize("role", ["developer", "system"])
async def test_only_the_users_own_word_answers(tmp_path: Path, role: str) -> None:
    async with (
        runtime(tmp_path, replies({"/": [*ONE["/"], "Said."]}), policy=ASKS) as opened,
        asking(opened, LOCAL) as http,
    ):
        asked = await answer(http, input="Write it.")
        session = only(opened)
        word = [{"role": role, "content": "yes"}]
        await answer(http, previous_response_id=asked["id"], input=word)
        (waiting,) = OpenQuestions(session.records()).waiting
        assert waiting.kind == "clearance"
        assert said(session) == ["Write it.", "yes"]


async def test_a_word_for_several_questions_that_were_asked_by_calls_is_told_so(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(BOTH), policy=READS) as opened, asking(opened, LOCAL) as http:
        asked = await answer(http, input="Write it.", tools=QUESTIONS)
        assert len(asked["output"]) == 2
        refused = await post(http, previous_response_id=asked["id"], input="yes", tools=QUESTIONS)
        assert refused.status_code == 400
        assert "call_id" in refused.json()["error"]["message"]
        assert len(OpenQuestions(only(opened).records()).waiting) == 2


def _question(n: int) -> Record:
    asked = FormAsk(call=n - 1, function="CALL", message=f"Question {n}?", fields=(ANSWER,), seconds=60)
    return Record(n=n, step=1, at="2026-01-01T00:00:00.000Z", agent="/", content=asked, body="")


def test_a_word_answers_the_question_that_was_shown_and_no_older_one() -> None:
    """An older question may come to the person after the newer one was shown."""
    older, newer = _question(4), _question(6)
    shown = question_id("s", newer)
    session: Any = None
    for fields, given in ((ClientFields(asked=shown), None), (ClientFields(), shown)):
        meant = _meant(Continued(session, (older, newer), fields), "Blue.", given, by_call=False)
        assert meant is not None
        assert (meant.question, meant.said) == (newer.n, "Blue.")
        assert shown.endswith(f"_{meant.seen}")


async def test_the_question_that_a_response_ended_with_is_kept(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(BOTH), policy=READS) as opened, asking(opened, LOCAL) as http:
        asked = await answer(http, input="Write it.")
        first, second = OpenQuestions(only(opened).records()).waiting
        session = only(opened)
        shown = question_id(session.id, first)
        assert shown in text_of(asked)
        assert kept(session.journal.parent, int(asked["id"].rpartition("_")[2])).asked == shown
        refused = await answer(http, input="no", previous_response_id=asked["id"])
        assert question_id(session.id, second) in text_of(refused)


async def test_what_a_person_says_to_a_question_that_is_over_is_said(tmp_path: Path) -> None:
    answers = {"A helper asks something": '{"ask_person": true}', "A step failed.": "{}", "Plan the": "no"}
    script = replies({**PAINTER, "/": [*PAINTER["/"], "Heard."]})
    async with (
        plan_scenes.runtime(tmp_path, script, answers=answers) as opened,
        asking(opened, LOCAL) as http,
    ):
        asked = await answer(http, input="Go")
        assert "Which colour?" in text_of(asked)
        session = only(opened)
        await session.cancel("/")
        await until(lambda: not OpenQuestions(session.records()).waiting and not session.state.root.active)
        await answer(http, input="Green, of course.", previous_response_id=asked["id"])
        assert said(session)[-1] == "Green, of course."


# --- the form of an answer ---------------------------------------------------------------------------


async def test_what_was_wrong_with_a_first_answer_is_no_failure_of_a_question(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["I won't.", CALL]})) as opened, asking(opened, LOCAL) as http:
        made = await answer(http, input="Who?", tools=TOOLS, text={"format": SCHEMA})
        assert [one["type"] for one in made["output"]] == ["function_call"]
        read = (await http.get(f"/v1/responses/{made['id']}")).json()
        assert (read["status"], read["output"], read["error"]) == ("completed", made["output"], None)


async def test_a_model_that_fails_at_the_second_answer_is_told_as_that(tmp_path: Path) -> None:
    async with runtime(tmp_path, failing_after("I won't.")) as opened, asking(opened, LOCAL) as http:
        failed = await post(http, input="Who?", text={"format": SCHEMA})
        assert failed.json()["error"]["code"] == "model_unreachable"


@pytest.mark.parametrize("stream", [False, True])
async def test_no_form_is_promised_where_nobody_waits_for_it(tmp_path: Path, stream: bool) -> None:
    async with runtime(tmp_path, replies({})) as opened, asking(opened, LOCAL) as http:
        refused = await post(http, input="Who?", background=True, stream=stream, text={"format": SCHEMA})
        assert refused.status_code == 400
        assert "background" in refused.json()["error"]["message"]


# --- memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [{"user": "carl"}, {"safety_identifier": "carl"}, {"store": False}])
async def test_what_another_says_later_is_not_remembered_either(
    tmp_path: Path, apart: dict[str, Any]
) -> None:
    async with runtime(tmp_path, replies({"/": ["One.", "Two."]})) as opened, asking(opened, ACCOUNT) as http:
        first = await answer(http, input="I prefer tea.")
        session = only(opened)
        assert session.state.has_memory
        assert session.memory_off == frozenset()
        await answer(http, input="I prefer coffee.", previous_response_id=first["id"], **apart)
        assert session.memory_off == {"session"}


@pytest.mark.no_prefix_law("several sessions speak to one model")
async def test_two_who_begin_alike_have_chats_of_their_own(tmp_path: Path) -> None:
    async with (
        runtime(tmp_path, replies({"/": ["One.", "Two."]})) as opened,
        asking(opened, ACCOUNT) as http,
    ):
        begun: list[dict[str, str]] = [{"role": "user", "content": "Hello"}]
        for user in ("carl", "dora"):
            await http.post("/v1/chat/completions", json={"messages": begun, "user": user})
        for user in ("carl", "dora"):
            on = [
                *begun,
                {"role": "assistant", "content": "One."},
                {"role": "user", "content": f"I am {user}"},
            ]
            await http.post("/v1/chat/completions", json={"messages": on, "user": user})
        assert [said(one) for one in opened.opened.values()] == [
            ["Hello", "I am carl"],
            ["Hello", "I am dora"],
        ]


# --- bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "status"), [(50_000, 200), (100_000, 200), (100_001, 400)])
async def test_a_tools_result_has_a_bound_of_its_own(tmp_path: Path, length: int, status: int) -> None:
    async with (
        runtime(tmp_path, replies({"/": [CALL, "It rains."]})) as opened,
        asking(opened, LOCAL) as http,
    ):
        tools = [{"type": "function", "function": TOOLS[0]}]
        chat: list[dict[str, Any]] = [{"role": "user", "content": "Weather?"}]
        asked = await http.post("/v1/chat/completions", json={"messages": chat, "tools": tools})
        (call,) = asked.json()["choices"][0]["message"]["tool_calls"]
        chat.append({"role": "assistant", "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": call["id"], "content": "x" * length}
        done = await http.post("/v1/chat/completions", json={"messages": [*chat, result], "tools": tools})
        assert done.status_code == status, done.text[:300]
        if status == 400:
            assert "100,000" in done.json()["error"]["message"]
            sent = {"type": "function_call_output", "call_id": call["id"], "output": "x" * length}
            refused = await post(http, input=[sent])
            assert refused.status_code == 400
            assert "100,000" in refused.json()["error"]["message"]


async def test_instructions_that_are_too_long_together_are_refused(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({})) as opened, asking(opened, LOCAL) as http:
        parts = [{"role": "system", "content": "x" * 3_000_000} for _ in range(2)]
        chat = [*parts, {"role": "user", "content": "Go"}]
        assert (await http.post("/v1/chat/completions", json={"messages": chat})).status_code == 400
