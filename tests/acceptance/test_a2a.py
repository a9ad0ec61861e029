"""Sessions as tasks of the Agent2Agent protocol: the official SDK's client against a real `iact serve`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from iact.core.journal import read_journal
from iact.core.stored.replay import Replay
from iact.core.stored.store import SessionStore
from iact.faces.a2a.listing import TaskPage, page_of
from tests.acceptance.members import token_of, with_people
from tests.acceptance.product import NO_MODULES, ROOT, Product, kill
from tests.acceptance.test_clearance import comes
from tests.endpoint import Endpoint, Gate, Reply

COMPLETED = TaskState.TASK_STATE_COMPLETED
INPUT_REQUIRED = TaskState.TASK_STATE_INPUT_REQUIRED
POLICY = '[scope.default]\nfunctions = ["*"]\nclearance = ["files.write"]\n'


@contextmanager
def serving(product: Product, *, killed: bool = False) -> Iterator[str]:
    """`iact serve --faces 0`; gives the address of the faces."""
    with product.started("serve", "--faces", "0") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("iact: ready http://127.0.0.1:")
        yield process.stdout.readline().split()[-1]
        if killed:
            kill(process)
            return
        process.terminate()
        assert process.wait(300) == 0


def key_of(product: Product) -> str:
    key = json.loads((product.data / "server.json").read_text())["key"]
    assert isinstance(key, str)
    return key


@asynccontextmanager
async def client(url: str, key: str, *, streaming: bool = True) -> AsyncIterator[Client]:
    """The SDK's client, which finds everything through the card."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=300) as http:
        config = ClientConfig(httpx_client=http, streaming=streaming)
        yield await ClientFactory(config).create_from_url(url)


def request(
    *parts: Part | str, context: str = "", task: str = "", at_once: bool = False
) -> SendMessageRequest:
    made = [Part(text=one) if isinstance(one, str) else one for one in parts]
    message = Message(message_id="m", role=Role.ROLE_USER, parts=made, context_id=context, task_id=task)
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(return_immediately=at_once)
    )


async def told(agent: Client, asked: SendMessageRequest) -> list[StreamResponse]:
    return [one async for one in agent.send_message(asked)]


async def done(agent: Client, asked: SendMessageRequest) -> Task:
    """The task in the last answer to a request."""
    last = (await told(agent, asked))[-1]
    task = last.task.id or last.status_update.task_id
    return await agent.get_task(GetTaskRequest(id=task))


def answer(task: Task) -> str:
    return "".join(part.text for one in task.artifacts for part in one.parts)


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_the_sdks_client_gives_tasks_and_reads_what_came_of_them(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two.", "Three."]}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            key = key_of(product)
            async with client(url, key, streaming=False) as agent:
                first = await done(agent, request("First"))
                assert (first.status.state, answer(first)) == (COMPLETED, "One.")
                assert [one.parts[0].text for one in first.history] == ["First", "One."]
                second = await done(agent, request("Second", context=first.context_id))
                assert (second.context_id, answer(second)) == (first.context_id, "Two.")
                data = Part(raw=b"\x00\x01", filename="a.bin", media_type="application/octet-stream")
                third = await done(agent, request("Third", data))
                assert third.context_id != first.context_id
                # What was said later changes nothing of a task that ended.
                assert answer(await agent.get_task(GetTaskRequest(id=first.id))) == "One."
                short = await agent.get_task(GetTaskRequest(id=first.id, history_length=1))
                assert [one.parts[0].text for one in short.history] == ["One."]
                listed = await agent.list_tasks(ListTasksRequest(page_size=2))
                assert [one.id for one in listed.tasks] == [third.id, second.id]
                assert (listed.total_size, answer(listed.tasks[0])) == (3, "")
                more = await agent.list_tasks(
                    ListTasksRequest(page_size=2, page_token=listed.next_page_token, include_artifacts=True)
                )
                assert [(one.id, answer(one)) for one in more.tasks] == [(first.id, "One.")]
                own = await agent.list_tasks(ListTasksRequest(context_id=first.context_id))
                assert {one.id for one in own.tasks} == {first.id, second.id}
                failed = ListTasksRequest(status=TaskState.TASK_STATE_FAILED)
                assert list((await agent.list_tasks(failed)).tasks) == []
        assert product.run("replay", "--verify", first.context_id).status == 0


async def test_what_happens_is_streamed(tmp_path: Path) -> None:
    with Endpoint({"/": ["I look first.\n\n```QUERY\n```\n", "It is 1."]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            async with client(url, key_of(product)) as agent:
                events = await told(agent, request("Go"))
        kinds = [one.WhichOneof("payload") for one in events]
        assert (kinds[0], kinds[-2:]) == ("task", ["artifact_update", "status_update"])
        assert events[-2].artifact_update.artifact.parts[0].text == "It is 1."
        assert events[-1].status_update.status.state == COMPLETED
        assert (
            len({one.task.id or one.status_update.task_id or one.artifact_update.task_id for one in events})
            == 1
        )


@pytest.mark.parametrize("word", ["allow", "deny"])
async def test_a_question_waits_for_a_message_and_its_word_decides(tmp_path: Path, word: str) -> None:
    replies = ["```files.write path=a.txt\nhello\n```", "Done with it."]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            async with client(url, key_of(product)) as agent:
                asked = await done(agent, request("Write it"))
                assert asked.status.state == INPUT_REQUIRED
                words, data = asked.status.message.parts
                assert "files.write" in words.text
                question = MessageToDict(data.data)
                assert (question["function"], question["arguments"]["path"]) == ("files.write", "a.txt")
                # Nothing else is an answer, and nothing else can be said meanwhile; the question waits on.
                with pytest.raises(InvalidParamsError, match="allow"):
                    await told(agent, request("maybe", task=asked.id))
                for blind in ("allow", "allow 0123456789abcdef", f"allow {question['digest'][:15]}"):
                    with pytest.raises(InvalidParamsError, match="changed since you looked"):
                        await told(agent, request(blind, task=asked.id))
                with pytest.raises(InvalidParamsError, match="not of this context"):
                    await told(agent, request("allow", task=asked.id, context="other"))
                with pytest.raises(UnsupportedOperationError, match="at work"):
                    await told(agent, request("And now?", context=asked.context_id))
                said = Part(
                    data=ParseDict(
                        {"question": question["question"], "digest": question["digest"], "allow": True},
                        Value(),
                    )
                )
                ended = await done(agent, request(said if word == "allow" else word, task=asked.id))
                assert (ended.id, ended.status.state, answer(ended)) == (asked.id, COMPLETED, "Done with it.")
                with pytest.raises(UnsupportedOperationError, match="ended"):
                    await told(agent, request("allow", task=asked.id))
            records = read_journal(tmp_path / "sessions" / asked.context_id / "journal.md").records
            results = [one.text("status") for one in records if one.kind == "result"]
            assert results == ["ok" if word == "allow" else "incomplete"]
        assert product.run("replay", "--verify", asked.context_id).status == 0


async def test_who_hangs_up_leaves_the_task_at_work_and_a_killed_server_knows_it_again(
    tmp_path: Path,
) -> None:
    gate = Gate()
    with Endpoint({"/": [Reply("Takes its time.", gates={3: gate}), "Yes."]}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product, killed=True) as url:
            async with client(url, key_of(product)) as agent:
                async with aclosing(agent.send_message(request("Go"))) as events:  # type: ignore[type-var]
                    task = (await anext(events)).task
                assert gate.wait()
                found = await agent.get_task(GetTaskRequest(id=task.id))
                assert found.status.state == TaskState.TASK_STATE_WORKING
                async with aclosing(agent.subscribe(SubscribeToTaskRequest(id=task.id))) as again:  # type: ignore[type-var]
                    assert (await anext(again)).task.id == task.id
        gate.release()
        with serving(product) as url:
            async with client(url, key_of(product)) as agent:
                events_after = [one async for one in agent.subscribe(SubscribeToTaskRequest(id=task.id))]
                assert events_after[-1].status_update.status.state == COMPLETED
                assert answer(await agent.get_task(GetTaskRequest(id=task.id))) == "Yes."
                with pytest.raises(UnsupportedOperationError, match="ended"):
                    [one async for one in agent.subscribe(SubscribeToTaskRequest(id=task.id))]
        assert product.run("replay", "--verify", task.context_id).status == 0


async def test_a_task_is_cancelled_once(tmp_path: Path) -> None:
    gate = Gate()
    with Endpoint({"/": [Reply("Takes its time.", gates={3: gate})]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            async with client(url, key_of(product), streaming=False) as agent:
                (begun,) = await told(agent, request("Go", at_once=True))
                assert begun.task.status.state == TaskState.TASK_STATE_WORKING
                assert gate.wait()
                ended = await agent.cancel_task(CancelTaskRequest(id=begun.task.id))
                assert ended.status.state == TaskState.TASK_STATE_CANCELED
                gate.release()
                with pytest.raises(TaskNotCancelableError):
                    await agent.cancel_task(CancelTaskRequest(id=begun.task.id))


async def test_what_is_wrong_is_refused_in_the_protocols_words(tmp_path: Path) -> None:
    with Endpoint({"/": ["One."]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            key = key_of(product)
            async with client(url, key, streaming=False) as agent:
                for identity in ("20260101-000000-00000000.1", "../../etc.1", "x"):
                    with pytest.raises(TaskNotFoundError):
                        await agent.get_task(GetTaskRequest(id=identity))
                with pytest.raises(InvalidParamsError, match="no such context"):
                    await told(agent, request("On", context="../../etc"))
                with pytest.raises(ContentTypeNotSupportedError, match="fetches no addresses"):
                    await told(agent, request("Look", Part(url="http://127.0.0.1/x.png")))
                with pytest.raises(InvalidParamsError, match="empty"):
                    await told(agent, request(" "))
                wanted = request("Go")
                wanted.configuration.task_push_notification_config.url = "http://169.254.169.254/"
                with pytest.raises(PushNotificationNotSupportedError):
                    await told(agent, wanted)
                push = TaskPushNotificationConfig(task_id="x", url="http://127.0.0.1/")
                with pytest.raises((PushNotificationNotSupportedError, UnsupportedOperationError)):
                    await agent.create_task_push_notification_config(push)
                with pytest.raises(InvalidParamsError, match="token"):
                    await agent.list_tasks(ListTasksRequest(page_token="x"))
            assert endpoint.requests == [], "nothing of it came to a model"
            async with httpx.AsyncClient(headers={"A2A-Version": "1.0"}, timeout=300) as http:
                card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
                assert card["supportedInterfaces"][0]["url"] == f"{url}/a2a"
                assert (await http.post(f"{url}/a2a", content=b"{")).status_code == 401, "before it is read"
                known = {"Authorization": f"Bearer {key}"}
                broken = await http.post(f"{url}/a2a", content=b"{", headers=known)
                assert broken.json()["error"]["code"] == -32700
                strange = {"jsonrpc": "2.0", "id": 1, "method": "Nothing"}
                assert (await http.post(f"{url}/a2a", json=strange, headers=known)).json()["error"][
                    "code"
                ] == -32601
                old = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
                version = {**known, "A2A-Version": "0.3"}
                assert (await http.post(f"{url}/a2a", json=old, headers=version)).json()["error"][
                    "code"
                ] == -32009
                page = {**known, "Origin": "http://evil.test"}
                assert (await http.post(f"{url}/a2a", json=old, headers=page)).status_code == 403


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_a_token_may_what_its_scopes_say_and_nobody_sees_what_is_anothers(tmp_path: Path) -> None:
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with_people(product, "ada", "bob")
        ada, bob = token_of(product, "ada"), token_of(product, "bob")
        made = product.run("token", "create", "reader", "--user", "bob", "--scope", "sessions:read", "--json")
        reader = json.loads(made.stdout)["token"]
        with serving(product) as url:
            async with client(url, ada, streaming=False) as agent:
                hers = await done(agent, request("Mine"))
            async with client(url, bob, streaming=False) as agent:
                own = await done(agent, request("Bob's"))
                for task in (hers.id, f"{hers.context_id}.1"):
                    with pytest.raises(TaskNotFoundError):
                        await agent.get_task(GetTaskRequest(id=task))
                    with pytest.raises(TaskNotFoundError):
                        await agent.cancel_task(CancelTaskRequest(id=task))
                with pytest.raises(InvalidParamsError):
                    await told(agent, request("Yours", context=hers.context_id))
                assert [one.id for one in (await agent.list_tasks(ListTasksRequest())).tasks] == [own.id]
            async with client(url, reader, streaming=False) as agent:
                assert (await agent.get_task(GetTaskRequest(id=own.id))).status.state == COMPLETED
                with pytest.raises((A2AClientError, A2AError), match="403"):
                    await told(agent, request("Go"))
                with pytest.raises((A2AClientError, A2AError), match="403"):
                    await agent.cancel_task(CancelTaskRequest(id=own.id))
            # A quota refuses the next call, and the task says that it came to nothing.
            assert product.run("quota", "set", "--user", "bob", "--tokens", "1").status == 0
            async with client(url, bob, streaming=False) as agent:
                ended = await done(agent, request("More", context=own.context_id))
                assert ended.status.state == TaskState.TASK_STATE_FAILED


def test_nothing_of_it_is_loaded_without_being_asked_for() -> None:
    program = (
        "import sys, iact.commands.serve\n"
        "print(sorted({'a2a', 'starlette', 'iact.faces.a2a'} & {*sys.modules}))\n"
        "import iact.faces.a2a.routes  # as the server of faces has it, for whoever speaks something else\n"
        "print(sorted({'a2a', 'sse_starlette', 'iact.faces.a2a.handler'} & {*sys.modules}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n[]\n"


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_a_page_of_tasks_is_read_from_the_newest_sessions_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the journals that the product wrote: what is read for a page, and what the pages come to."""
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        sessions: list[str] = []
        for number in range(3):
            answered = product.ask(f"Task {number}")
            sessions.insert(0, answered.session)
            written = answered.journal.stat().st_mtime
            comes(lambda: time.time() > written + 2, "a later second, since the list has whole ones")  # noqa: B023
        product.ask("One more", session=sessions[0])
    store = SessionStore(product.data)
    read: list[str] = []

    def reading(session: str) -> Replay:
        read.append(session)
        return SessionStore.read(store, session)

    monkeypatch.setattr(store, "read", reading)

    def page(size: int, **asked: object) -> TaskPage:
        read.clear()
        return page_of(store, {}, ParseDict(asked, ListTasksRequest()), size)

    first = page(1)
    assert read == sessions[:1]
    assert (first.total, first.next != "") == (4, True), (
        "two tasks there, and two sessions that were not looked at"
    )
    second = page(1, pageToken=first.next)
    assert read == sessions[:2]
    third = page(1, pageToken=second.next)
    assert read == sessions, "whether there is a page behind it is known by the last one alone"
    last = page(2, pageToken=third.next)
    assert read == sessions
    listed = [task.context_id for one in (first, second, third, last) for task in one.tasks]
    assert listed == [sessions[0], *sessions]
    assert (last.total, last.next) == (4, "")
    assert [one.id for one in page(50).tasks] == [
        task.id for one in (first, second, third, last) for task in one.tasks
    ]
    recent = page(50, statusTimestampAfter=third.tasks[0].status.timestamp.ToJsonString())
    assert (len(recent.tasks), read) == (3, sessions[:2]), "older sessions can't hold what is asked for"

    # What can't be read is left out, and the rest is listed.
    journal = product.data / "sessions" / sessions[1] / "journal.md"
    whole = journal.read_bytes()
    at = whole.index(b"Task 1")
    journal.write_bytes(whole[:at] + b"Tusk 1" + whole[at + 6 :])
    assert [task.context_id for task in page(50).tasks] == [sessions[0], sessions[0], sessions[2]]
