"""A session as the model of third-party programs, through a real `iact serve` and the `openai` client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx
import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from iact.core.journal import read_journal
from tests.acceptance.members import token_of, with_people
from tests.acceptance.product import NO_MODULES, ROOT, Product, kill, until
from tests.acceptance.talks import ASKS, CHAT_ASKS
from tests.endpoint import Endpoint, Gate, Reply
from tests.rounds import rounds


@contextmanager
def serving(product: Product) -> Iterator[str]:
    """`iact serve --faces 0`; gives the address of the faces."""
    with product.started("serve", "--faces", "0") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("iact: ready http://127.0.0.1:")
        told = process.stdout.readline()
        assert told.startswith("iact: faces at http://127.0.0.1:"), told
        yield told.split()[-1]
        process.terminate()
        assert process.wait(300) == 0


_CLIENTS: Final[list[OpenAI]] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the connections of the test's clients, which would otherwise end in a warning in some later test."""
    yield
    while _CLIENTS:
        _CLIENTS.pop().close()


def client_at(url: str, key: str) -> OpenAI:
    _CLIENTS.append(OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0))
    return _CLIENTS[-1]


def client(product: Product, url: str) -> OpenAI:
    return client_at(url, json.loads((product.data / "server.json").read_text())["key"])


def sessions(product: Product) -> list[str]:
    return sorted(one.name for one in (product.data / "sessions").iterdir() if one.name[0] != ".")


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_a_program_speaks_to_a_session_as_to_a_model(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two.", "Another two.", "New."]}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            model = client(product, url)
            assert [one.id for one in model.models.list()] == ["iact"]
            first = model.responses.create(
                model="iact", input="First", instructions="Be brief.", metadata={"ticket": "T-7"}
            )
            assert (first.output_text, first.status) == ("One.", "completed")
            assert first.usage is not None
            assert first.usage.output_tokens > 0
            second = model.responses.create(model="iact", input="Second", previous_response_id=first.id)
            assert second.output_text == "Two."
            assert len(sessions(product)) == 1
            # What goes on from an earlier response is a fork: the session itself is as it was.
            other = model.responses.create(model="iact", input="Otherwise", previous_response_id=first.id)
            assert other.output_text == "Another two."
            assert len(sessions(product)) == 2
            assert model.responses.retrieve(second.id).output_text == "Two."
            for made in (first, second, other):
                again = model.responses.retrieve(made.id)
                assert (again.output_text, again.instructions) == (made.output_text, made.instructions)
                assert (again.metadata, again.previous_response_id) == (
                    made.metadata,
                    made.previous_response_id,
                )
            assert (first.metadata, second.previous_response_id) == ({"ticket": "T-7"}, first.id)
            with pytest.raises(openai.BadRequestError, match="metadata"):
                model.responses.create(model="iact", input="Much", metadata={str(n): "x" for n in range(17)})
            history = [
                {"role": "user", "content": "A"},
                {"role": "assistant", "content": "B"},
                {"role": "user", "content": "C"},
            ]
            model.responses.create(model="iact", input=history, store=False)  # type: ignore[arg-type]
            asked = endpoint.requests[-1].messages[-1][1]
            assert "User:\n\nA\n\nAssistant:\n\nB\n\nAnd now:\n\nC" in asked, (
                "a client that sends all is heard whole"
            )
            assert len(sessions(product)) == 2, "it is in the trash"
        for session in sessions(product):
            assert product.run("replay", "--verify", session).status == 0
        (session,) = [one for one in sessions(product) if one in first.id]
        said = [
            one.body
            for one in read_journal(tmp_path / "sessions" / session / "journal.md").records
            if one.kind == "say"
        ]
        assert said == ["Be brief.\n\nFirst", "Second"]


def test_what_is_streamed_comes_in_the_order_that_clients_expect(tmp_path: Path) -> None:
    replies = [
        "I look first.\n\n```VAR x\n1\n```\n\n```SHOW x\n```\n",
        "It is:\n\n```python\nprint(1)\n```\n\nThat is all.",
    ]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            model = client(product, url)
            events = list(model.responses.create(model="iact", input="Go", stream=True))
            kinds = [one.type for one in events]
            assert kinds[:2] == ["response.created", "response.in_progress"]
            assert kinds[-1] == "response.completed"
            assert [one.sequence_number for one in events] == list(range(len(events)))
            texts = [one.text for one in events if one.type == "response.output_text.done"]
            assert texts == ["I look first.", "It is:\n\n```python\nprint(1)\n```\n\nThat is all."]
            deltas = "".join(one.delta for one in events if one.type == "response.output_text.delta")
            assert deltas == "".join(texts)
            per_item = [one for one in kinds if one != "response.output_text.delta"][2:-1]
            assert per_item == 2 * [
                "response.output_item.added", "response.content_part.added", "response.output_text.done",
                "response.content_part.done", "response.output_item.done",
            ]  # fmt: skip
            done = events[-1]
            assert done.type == "response.completed"
            again = model.responses.retrieve(done.response.id)
            assert [one.model_dump() for one in again.output] == [
                one.model_dump() for one in done.response.output
            ]
            assert again.usage == done.response.usage


POLICY = '[scope.default]\nfunctions = ["*"]\nclearance = ["files.write"]\n'


@pytest.mark.parametrize("allow", ["allow", "deny"])
def test_a_question_comes_as_a_function_call_and_its_answer_decides(tmp_path: Path, allow: str) -> None:
    replies = ["```files.write path=a.txt\nhello\n```", "Done with it."]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            model = client(product, url)
            asked = model.responses.create(model="iact", input="Write it", tools=[ASKS])
            (call,) = asked.output
            assert call.type == "function_call"
            assert call.name == "iact_clearance"
            told = json.loads(call.arguments)
            assert told["function"] == "files.write"
            assert told["arguments"]["path"] == "a.txt"
            # Nothing else is an answer, and the question waits on.
            with pytest.raises(openai.BadRequestError, match="allow"):
                model.responses.create(
                    model="iact", previous_response_id=asked.id,
                    input=[{"type": "function_call_output", "call_id": call.call_id, "output": "maybe"}],
                )  # fmt: skip
            done = model.responses.create(
                model="iact", previous_response_id=asked.id, tools=[ASKS],
                input=[{"type": "function_call_output", "call_id": call.call_id, "output": allow}],
            )  # fmt: skip
            assert done.output_text == "Done with it."
            # Each is what it was when its client was told of it.
            assert model.responses.retrieve(asked.id).output == asked.output
            assert model.responses.retrieve(done.id).output == done.output
            (session,) = sessions(product)
            records = read_journal(tmp_path / "sessions" / session / "journal.md").records
            results = [one.text("status") for one in records if one.kind == "result"]
            assert results == ["ok" if allow == "allow" else "incomplete"]
        assert product.run("replay", "--verify", session).status == 0


def test_a_client_that_keeps_the_whole_history_answers_a_question(tmp_path: Path) -> None:
    """It names no earlier response, and sends back all that was said, also the call that asks and what else was ours."""
    replies = ["```files.write path=a.txt\nhello\n```", "Done with it.", "Gladly."]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            model = client(product, url)
            history: list[object] = [{"role": "user", "content": "Write it"}]
            asked = model.responses.create(model="iact", input=history, tools=[ASKS])  # type: ignore[arg-type]
            (call,) = asked.output
            assert call.type == "function_call"
            answer = {"type": "function_call_output", "call_id": call.call_id, "output": "allow"}
            history += [{"type": "reasoning", "id": "rs_1", "summary": []}, call.model_dump(), answer]
            done = model.responses.create(model="iact", input=history)  # type: ignore[arg-type]
            assert done.output_text == "Done with it."
            # The items of ours name their session: what is said next is said there, and no more than that.
            history += [*(one.model_dump() for one in done.output), {"role": "user", "content": "Thanks"}]
            assert model.responses.create(model="iact", input=history).output_text == "Gladly."  # type: ignore[arg-type]
            (session,) = sessions(product)
            records = read_journal(tmp_path / "sessions" / session / "journal.md").records
            assert [one.body for one in records if one.kind == "say"] == ["Write it", "Thanks"]
            # Whose question it is stands in the call; what is no question of anybody's is none here.
            strange = {**answer, "call_id": "call_20260101-000000-00000000_3"}
            with pytest.raises(openai.NotFoundError, match="no response"):
                model.responses.create(model="iact", input=[history[0], strange])  # type: ignore[list-item]


@pytest.mark.parametrize("allow", ["allow", "deny"])
def test_a_question_comes_as_a_tool_call_of_a_chat(tmp_path: Path, allow: str) -> None:
    replies = ["```files.write path=a.txt\nhello\n```", "Done with it."]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            model = client(product, url)
            chat: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Write it"}]
            asked = model.chat.completions.create(model="iact", messages=chat, tools=[CHAT_ASKS]).choices[0]
            assert asked.finish_reason == "tool_calls"
            assert asked.message.tool_calls
            call = asked.message.tool_calls[0]
            chat.append({"role": "assistant", "tool_calls": [call.model_dump()]})  # type: ignore[list-item]
            chat.append({"role": "tool", "tool_call_id": call.id, "content": allow})
            done = model.chat.completions.create(model="iact", messages=chat).choices[0]
            assert (done.message.content, done.finish_reason) == ("Done with it.", "stop")
            (session,) = sessions(product)
            records = read_journal(tmp_path / "sessions" / session / "journal.md").records
            results = [one.text("status") for one in records if one.kind == "result"]
            assert results == ["ok" if allow == "allow" else "incomplete"]


@pytest.mark.parametrize(
    ("path", "body", "piece"),
    [
        ("responses", {"input": "Go"}, "response.output_text.delta"),
        ("chat/completions", {"messages": [{"role": "user", "content": "Go"}]}, '"content": "Takes'),
    ],
)
def test_who_hangs_up_ends_the_work(tmp_path: Path, path: str, body: dict[str, object], piece: str) -> None:
    gate = Gate()
    with Endpoint({"/": [Reply("Takes\nits time.", gates={8: gate}), "Again."]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            model = client(product, url)
            asked = {"model": "iact", "stream": True, **body}
            key = {"Authorization": f"Bearer {model.api_key}"}
            with httpx.stream("POST", f"{url}/v1/{path}", headers=key, json=asked, timeout=300) as streamed:
                assert any(piece in line for line in streamed.iter_lines())
            (session,) = sessions(product)
            journal = tmp_path / "sessions" / session / "journal.md"
            until(
                lambda: [r.text("status") for r in read_journal(journal).records if r.kind == "reply"] == ["cancelled"],
                "the work to end",
            )  # fmt: skip
            gate.release()
            (said,) = [one.n for one in read_journal(journal).records if one.kind == "say"]
            again = model.responses.create(
                model="iact", input="Once more", previous_response_id=f"resp_{session}_{said}"
            )
            assert again.output_text == "Again."
        assert product.run("replay", "--verify", session).status == 0


def test_a_server_that_ends_does_not_wait_for_its_streams(tmp_path: Path) -> None:
    gate = Gate()
    with Endpoint({"/": [Reply("Takes\nits time.", gates={8: gate})]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url, ExitStack() as open_streams:
            events = iter(client(product, url).responses.create(model="iact", input="Go", stream=True))
            open_streams.callback(gate.release)
            assert any(one.type == "response.output_text.delta" for one in events)
            # `serving` ends it while the stream is open, and wants the status 0.


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_chat_completions_find_their_session_again(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two.", "Three.", "From anew."]}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            model = client(product, url)
            chat: list[ChatCompletionMessageParam] = [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "First"},
            ]
            for said, expected in (("Second", "One."), ("Third", "Two.")):
                answer = model.chat.completions.create(model="iact", messages=chat)
                assert answer.choices[0].message.content == expected
                assert answer.choices[0].finish_reason == "stop"
                chat += [{"role": "assistant", "content": expected}, {"role": "user", "content": said}]
            streamed = model.chat.completions.create(
                model="iact", messages=chat, stream=True, stream_options={"include_usage": True}
            )
            *chunks, last = streamed
            assert "".join(one.choices[0].delta.content or "" for one in chunks) == "Three."
            assert chunks[-1].choices[0].finish_reason == "stop"
            assert (last.choices, last.usage is not None and last.usage.completion_tokens > 0) == ([], True)
            (session,) = sessions(product)
            # A chat that nobody here knows begins a session with what was said.
            strange: list[ChatCompletionMessageParam] = [
                {"role": "user", "content": "A"},
                {"role": "assistant", "content": "B"},
                {"role": "user", "content": "C"},
            ]
            assert (
                model.chat.completions.create(model="iact", messages=strange).choices[0].message.content
                == "From anew."
            )
            (other,) = set(sessions(product)) - {session}
            text = (tmp_path / "sessions" / other / "journal.md").read_text()
            told = "What was said before:\n\nUser:\n\nA\n\nAssistant:\n\nB\n\nAnd now:\n\n"
            assert f"{told}C" in text
            assert f'"client":{len(told)}' in text, "it is the client's, and not the user's"


def test_who_may_not_is_refused_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    with Endpoint({"/": ["One."]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            model = client(product, url)
            with pytest.raises(openai.AuthenticationError, match="Say who you are"):
                client_at(url, "wrong").models.list()
            with pytest.raises(openai.NotFoundError, match="no response"):
                model.responses.retrieve("resp_20260101-000000-00000000_1")
            with pytest.raises(openai.NotFoundError, match="no response"):
                model.responses.create(model="iact", input="On", previous_response_id="resp_../../etc_1")
            with pytest.raises(openai.BadRequestError, match="web_search, are modules of iact"):
                model.responses.create(model="iact", input="Go", tools=[{"type": "web_search"}])
            with pytest.raises(openai.BadRequestError, match="tool_choice can be auto or none"):
                model.responses.create(model="iact", input="Go", tool_choice="required")
            with pytest.raises(openai.NotFoundError, match="no model 'gpt-5' here; there is iact"):
                model.responses.create(model="gpt-5", input="Go")
            assert model.models.retrieve("iact").id == "iact"
            with pytest.raises(openai.NotFoundError, match="there is iact"):
                model.models.retrieve("gpt-5")
            with pytest.raises(openai.BadRequestError, match="previous_response_id"):
                model.responses.create(model="iact", input="Go", conversation="conv_1")
            picture = {"type": "input_image", "image_url": "http://127.0.0.1/x.png", "detail": "auto"}
            message = {"role": "user", "content": [{"type": "input_text", "text": "Look"}, picture]}
            with pytest.raises(openai.BadRequestError, match="fetches no addresses"):
                model.responses.create(model="iact", input=[message])  # type: ignore[list-item]
            key = {"Authorization": f"Bearer {model.api_key}"}
            assert httpx.post(f"{url}/v1/responses", headers=key, content=b"{").status_code == 400
            for path in ("responses", "chat/completions"):
                assert httpx.post(f"{url}/v1/{path}", content=b"{").status_code == 401, "before it is read"
            # No page of a browser asks it, and nobody who was led here under another name.
            assert (
                httpx.get(f"{url}/v1/models", headers={**key, "Origin": "http://evil.test"}).status_code
                == 403
            )
            assert httpx.get(f"{url}/v1/models", headers={**key, "Host": "evil.test"}).status_code == 421
            assert httpx.get(f"{url}/nothing", headers=key).status_code == 404
            large = httpx.post(f"{url}/v1/responses", headers=key, content=b'"' + b"x" * (33 << 20))
            assert large.status_code == 413


def test_work_in_the_background_is_read_and_ended(tmp_path: Path) -> None:
    gate = Gate()
    with Endpoint({"/": [Reply("Takes its time.", gates={3: gate})]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            model = client(product, url)
            begun = model.responses.create(model="iact", input="Go", background=True)
            assert begun.status == "in_progress"
            assert gate.wait()
            assert model.responses.retrieve(begun.id).status == "in_progress"
            assert model.responses.cancel(begun.id).status == "cancelled"
            gate.release()
            assert model.responses.retrieve(begun.id).status == "cancelled"


def test_it_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two."]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with product.started("serve", "--faces", "0") as process:
            assert process.stdout is not None
            process.stdout.readline()
            first = client(product, process.stdout.readline().split()[-1]).responses.create(
                model="iact", input="First"
            )
            kill(process)
        with serving(product) as url:
            model = client(product, url)
            assert model.responses.retrieve(first.id).output_text == "One."
            again = model.responses.create(model="iact", input="Second", previous_response_id=first.id)
            assert again.output_text == "Two."
        assert sessions(product) == [first.id.split("_")[1]]


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_a_token_may_what_its_scopes_say_and_nobody_sees_what_is_anothers(tmp_path: Path) -> None:
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with_people(product, "ada", "bob", "eve")
        ada = token_of(product, "ada")
        bob = token_of(product, "bob")
        made_by = product.run(
            "token", "create", "reader", "--user", "bob", "--scope", "sessions:read", "--json"
        )
        reader = json.loads(made_by.stdout)["token"]
        with serving(product) as url:

            def model(token: str) -> OpenAI:
                return client_at(url, token)

            made = model(ada).responses.create(model="iact", input="Mine")
            assert model(ada).responses.retrieve(made.id).output_text == "Yes."
            with pytest.raises(openai.NotFoundError):
                model(bob).responses.retrieve(made.id)
            with pytest.raises(openai.NotFoundError):
                model(bob).responses.create(model="iact", input="Yours", previous_response_id=made.id)
            with pytest.raises(openai.PermissionDeniedError, match="sessions:write"):
                model(reader).responses.create(model="iact", input="Go")
            own = model(bob).responses.create(model="iact", input="Bob's")
            assert model(reader).responses.retrieve(own.id).status == "completed"
            # A quota refuses the next call, and what comes back says so.
            assert product.run("quota", "set", "--user", "bob", "--tokens", "1").status == 0
            with pytest.raises(openai.RateLimitError) as limited:
                model(bob).responses.create(model="iact", input="More", previous_response_id=own.id)
            assert limited.value.code == "insufficient_quota"
            assert product.run("token", "revoke", "of-a-test", "--user", "ada").status == 0
            with pytest.raises(openai.AuthenticationError):
                model(ada).responses.retrieve(made.id)


NOT_HELD: Final = ("positive_data_acceptance",)
"""Checks of schemathesis that don't fit: what is right by the description may name a session that is not there."""
DRAWN: Final = 300
"""More requests than this are drawn."""


@pytest.mark.no_prefix_law("the requests are drawn, and begin many sessions")
def test_what_is_published_is_what_is_answered(tmp_path: Path) -> None:
    """Schemathesis draws requests from our description, right and wrong ones, and checks each answer against it."""
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            key = json.loads((tmp_path / "server.json").read_text())["key"]
            command = [
                sys.executable, "-m", "schemathesis.cli", "run", f"{url}/v1/openapi.json", "--url", url,
                "--header", f"Authorization: Bearer {key}", "--max-examples", str(rounds(12)), "--seed", "1",
                "--phases", "examples,coverage,fuzzing", "--no-color",
                "--checks", "all", "--exclude-checks", ",".join(NOT_HELD),
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
            drawn = re.search(r"(\d+) generated", done.stdout)
            assert drawn is not None
            assert int(drawn[1]) > DRAWN
            assert "Tested: 6\n" in done.stdout


def test_the_port_is_a_setting_too(tmp_path: Path) -> None:
    """A variable, or a line of the settings' file; the command line comes before both."""
    with Endpoint({}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        (tmp_path / "iact.toml").write_text("faces = 0\n")
        with product.started("serve") as process:
            assert process.stdout is not None
            process.stdout.readline()
            told = process.stdout.readline()
            assert told.startswith("iact: faces at http://127.0.0.1:")
            port = told.split(":")[-1].strip()
        with product.started("serve", "--faces", port) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert process.stdout.readline() == told
            elsewhere = Product.at(tmp_path / "other", endpoint, IACT_FACES=port, **NO_MODULES).run("serve")
            assert (elsewhere.status, f"listen on 127.0.0.1 port {port} (" in elsewhere.stderr) == (2, True)
        wrong = Product.at(tmp_path, endpoint, IACT_FACES="65536", **NO_MODULES).run("serve")
        assert "The setting faces (or IACT_FACES) can't be '65536'" in wrong.sentence
        several = Product.at(tmp_path, endpoint, IACT_CLUSTER="static", **NO_MODULES).run("serve")
        assert several.sentence.startswith("A gateway to several hosts can't serve other programs.")


def test_nothing_of_it_is_loaded_without_being_asked_for() -> None:
    program = (
        "import sys, iact.commands.serve\n"
        "print(sorted({'starlette', 'uvicorn', 'iact.faces.http', 'iact.faces.responses'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
