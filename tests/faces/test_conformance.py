"""The guides' tables of each face are correct: the parts in the protocol's own packages, and the supported parts."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Final, get_args, get_type_hints

import acp.schema
import ag_ui.core
import httpx
import openai.resources
from a2a.types import a2a_pb2
from a2a.utils.constants import TransportProtocol
from acp import RequestError
from acp.meta import AGENT_METHODS, CLIENT_METHODS
from inspect_ai.event import Event
from inspect_ai.log import EvalSampleLimit
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pydantic import BaseModel
from schemathesis.checks import CHECKS, load_all_checks
from skills_ref.validator import ALLOWED_FIELDS, validate

from iact.core.records.dialogue import Reply, Say
from iact.core.records.record import Record
from iact.core.stored.blobs import blob_reader
from iact.core.stored.journals import read_records
from iact.core.stored.skill import Skill, read_skill
from iact.core.views.events import Delta
from iact.core.views.text import looks_like_action
from iact.faces.a2a.tasks import TaskWords
from iact.faces.acp.updates import Updates
from iact.faces.inspect import sample
from iact.faces.inspect.log import log_of
from iact.faces.responses.description import description
from iact.faces.responses.wire import CreateCompletion, CreateResponse
from tests.acceptance import test_responses, test_skills
from tests.acceptance.editor import editing
from tests.acceptance.product import NO_MODULES, ROOT, Product
from tests.acceptance.test_a2a import key_of, serving
from tests.endpoint import Endpoint
from tests.faces.acp.test_updates import ask, generation, record, turn
from tests.faces.conformance import GUIDES, assert_has, assert_names, assert_told, row

JOURNALS: Final = sorted(
    one
    for folder in ("tests/journals/1.2", "examples", "docs/sessions")
    for one in (ROOT / folder).glob("*/journal.md")
)


def kinds(models: Iterable[type[BaseModel]], field: str) -> Iterator[str]:
    """What models of a union are told apart by."""
    for one in models:
        yield str(get_args(one.model_fields[field].annotation)[0])


def heard(face: str) -> set[str]:
    """The methods that a client was asked or told by, in the session that is kept of a face."""
    page = (ROOT / "docs" / "sessions" / face / "transcript.md").read_text(encoding="utf-8")
    return set(re.findall(r"^← ([\w/]+) \{", page, re.MULTILINE))


# --- editors -----------------------------------------------------------------------------------------

_DISK: Final = "agents see the project as it is on disk, and their changes go through the overlay"
_SERVERS: Final = "servers of an editor are not used; servers that a person adds to iact run in a container"
_PREDICTS: Final = "iact predicts no edits, and sees the project as it is on disk"


async def test_what_an_editor_can_ask_and_is_told(tmp_path: Path) -> None:
    product, folder = Product.at(tmp_path / "data", **NO_MODULES), tmp_path / "project"
    product.data.mkdir()
    folder.mkdir()
    offered, told = {"session/cancel"}, set[str]()  # the one notification; `test_acp.py` sends it
    async with editing(product) as editor:
        session = (await editor.new(folder)).session_id
        await editor.agent.set_session_mode(session_id=session, mode_id="auto")
        await editor.agent.set_config_option(session_id=session, config_id="intent", value="0")
        for method in AGENT_METHODS.values():
            try:
                answer = await editor.agent._conn.send_request(method, {"protocolVersion": 1})
            except RequestError as error:
                if error.code != -32601:
                    offered.add(method)
            else:
                offered.add(method)
                if method == "initialize":
                    blocks = answer["agentCapabilities"]["promptCapabilities"]
        told |= {str(one.model_dump()["session_update"]) for _, one in editor.person.updates}
    for journal in JOURNALS:
        for replayed in (True, False):
            updates = Updates(journal.parent.name, windows={"smart": 1})
            for happened in read_records(journal):
                told |= {update.session_update for update in updates.take(happened, replayed=replayed)}
    told |= {update.session_update for update in Updates("s").write(Delta("/", "Hm.", thought=True))}

    asked = heard("acp") | {"elicitation/create"}  # of an editor with forms, in `test_acp.py`
    update = get_args(acp.schema.SessionNotification.model_fields["update"].annotation)
    prompt = ("text", "image", "audio", "resource_link", "resource")
    takes = {"text", "resource_link"}  # every agent does
    takes |= {
        name
        for name, field in (("image", "image"), ("audio", "audio"), ("resource", "embeddedContext"))
        if blocks[field]
    }
    assert_told(
        "editors.md",
        row("methods of an agent", AGENT_METHODS.values(), offered, {
            "there is no sign-in: the process belongs to its user": ("authenticate", "logout"),
            "the settings choose the models": ("providers/list", "providers/set", "providers/disable"),
            _SERVERS: ("mcp/message",),
            _PREDICTS: (
                "nes/start", "nes/suggest", "nes/accept", "nes/reject", "nes/close", "document/didOpen", "document/didChange",
                "document/didClose", "document/didSave", "document/didFocus",
            ),
        }),
        row("methods of a client", CLIENT_METHODS.values(), asked & set(CLIENT_METHODS.values()), {
            _DISK: ("fs/read_text_file", "fs/write_text_file"),
            "commands run in the sandbox": (
                "terminal/create", "terminal/output", "terminal/release", "terminal/wait_for_exit", "terminal/kill",
            ),
            _SERVERS: ("mcp/connect", "mcp/message", "mcp/disconnect"),
            "only forms are asked for, and no addresses, whose end it tells of": ("elicitation/complete",),
        }),
        row("updates of a session", kinds(update, "session_update"), told, {
            "the whole plan is sent each time": ("plan_update", "plan_removed"),
            "there are no slash commands": ("available_commands_update",),
        }),
        row("what a prompt may hold", prompt, takes, {"models get no sound from an editor": ("audio",)}),
    )  # fmt: skip
    assert_names("editors.md", "agent-client-protocol", "@agentclientprotocol/sdk")


# --- A2A ---------------------------------------------------------------------------------------------

_PUSH: Final = "this server sends no notifications; a client reads a task or subscribes to it"
_NOT_OFFERED: Final = {-32601, -32003, -32004, -32007}
"""No such method; no push notifications; not supported; no extended card."""


def _at(one: Record) -> Record:
    return replace(one, at="2026-01-01T00:00:00Z")


def test_what_another_agent_can_ask(tmp_path: Path) -> None:
    service = a2a_pb2.DESCRIPTOR.services_by_name["A2AService"]
    offered = set[str]()
    with (
        Endpoint({"/": ["Hello."]}) as endpoint,
        serving(product := Product.at(tmp_path, endpoint, **NO_MODULES)) as url,
    ):
        headers = {"Authorization": f"Bearer {key_of(product)}", "A2A-Version": "1.0"}
        with httpx.Client(headers=headers, timeout=300) as http:
            card = http.get(f"{url}/.well-known/agent-card.json").json()

            def asked(method: str, **params: object) -> httpx.Response:
                return http.post(
                    f"{url}/a2a", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                )

            for method in service.methods:
                answer = asked(method.name, id="x", taskId="x").json()
                if answer.get("error", {}).get("code") not in _NOT_OFFERED:
                    offered.add(method.name)
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Go"}]}
            lines = asked("SendStreamingMessage", message=message).text.splitlines()
    streamed = {name for one in lines if one.startswith("data: ") for name in json.loads(one[6:])["result"]}

    words = TaskWords("s", _at(record(1, Say(), "Go")))
    asks = _at(ask(3, 2))
    stands = [words.status(_at(turn(2, "Hm.")), None, []), words.status(asks, None, [asks])]
    for status in get_args(get_type_hints(Reply)["status"]):
        reply = _at(record(4, Reply(to="user", status=status, generation=generation())))
        stands.append(words.status(reply, reply, []))
    states = {a2a_pb2.TaskState.Name(one.state) for one in stands}
    assert_told(
        "a2a.md",
        row("methods", (one.name for one in service.methods), offered, {
            _PUSH: tuple(one.name for one in service.methods if "PushNotification" in one.name),
            "there is one card for all clients": ("GetExtendedAgentCard",),
        }),
        row("states of a task", {*a2a_pb2.TaskState.keys()} - {"TASK_STATE_UNSPECIFIED"}, states, {
            "a task is already at work when it is stored": ("TASK_STATE_SUBMITTED",),
            "a refusal is an error, not a task": ("TASK_STATE_REJECTED",),
            "each request is authenticated": ("TASK_STATE_AUTH_REQUIRED",),
        }),
        row("what a stream tells", ("task", "message", "statusUpdate", "artifactUpdate"), streamed, {
            "every message is a task": ("message",),
        }),
        row("bindings", (one.value for one in TransportProtocol), {one["protocolBinding"] for one in card["supportedInterfaces"]}, {
            "one binding is enough, and every client of the SDK supports it": ("HTTP+JSON", "GRPC"),
        }),
    )  # fmt: skip
    assert_names("a2a.md", "a2a-sdk")


# --- Responses and chat completions ------------------------------------------------------------------

_TUNES: Final = "tunes a model, and has no effect: models and their settings are chosen in iact"


def _operations() -> set[str]:
    """What the client can ask for of both interfaces, as its own code has it."""
    found = set[str]()
    for folder in ("responses", "chat/completions"):
        for file in (Path(openai.resources.__file__).parent / folder).glob("*.py"):
            text = file.read_text(encoding="utf-8").partition("\nclass Async")[0]
            for verb, path in re.findall(
                r'self\._(get|post|delete|get_api_list)\(\s*(?:path_template\(\s*)?"([^"]+)"', text
            ):
                found.add(f"{verb.removesuffix('_api_list').upper()} {path}")
    return found


def _shaped(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def test_what_a_client_of_openais_can_ask() -> None:
    described = {
        f"{verb.upper()} {_shaped(path.removeprefix('/v1'))}"
        for path, verbs in description()["paths"].items()
        for verb in verbs
        if verb in ("get", "post", "delete")
    }
    operations = {_shaped(one): one for one in _operations()}
    events = {
        str(one).removeprefix("response.")
        for one in kinds(get_args(get_args(ResponseStreamEvent)[0]), "type")
    }
    source = (ROOT / "faces" / "responses" / "events.py").read_text(encoding="utf-8")
    source += (ROOT / "faces" / "responses" / "routes.py").read_text(encoding="utf-8")
    sent = set(re.findall(r'\.event\("response\.([\w.]+)"', source)) | {"completed", "incomplete", "failed"}
    takes = ({*CreateResponse.model_fields} & {*ResponseCreateParamsBase.__annotations__}) - {
        "conversation",
        "prompt",
    }
    chats = {*CreateCompletion.model_fields} & {*CompletionCreateParamsBase.__annotations__}
    tunes = (
        "moderation", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
        "service_tier", "temperature", "top_logprobs", "top_p",
    )  # fmt: skip
    load_all_checks()
    checks = CHECKS.get_all_names()
    assert_has("responses.md", f"more than {test_responses.DRAWN} requests")
    assert_told(
        "responses.md",
        row("checks of schemathesis", checks, {*checks} - {*test_responses.NOT_HELD}, {
            "a valid request may still name a session that does not exist": test_responses.NOT_HELD,
        }),
        row("operations", operations.values(), {one for shape, one in operations.items() if shape in described}, {
            "a session is deleted on the page": ("DELETE /responses/{response_id}",),
            "the messages are in the session": ("GET /responses/{response_id}/input_items",),
            "contexts are compressed automatically": ("POST /responses/compact",),
            "the endpoints of iact's models count tokens": ("POST /responses/input_tokens",),
            "each request has the whole chat, and chats can't be retrieved": (
                "GET /chat/completions", "GET /chat/completions/{completion_id}", "POST /chat/completions/{completion_id}",
                "DELETE /chat/completions/{completion_id}", "GET /chat/completions/{completion_id}/messages",
            ),
        }),
        row("fields of a response's request", ResponseCreateParamsBase.__annotations__, takes, {
            _TUNES: (
                *tunes, "context_management", "image", "reasoning", "stream_options", "truncation",
            ),
            "no effect: agents decide what they call": ("max_tool_calls",),
            "refused: `previous_response_id` names what is continued": ("conversation",),
            "refused: there are no stored prompts": ("prompt",),
            "there is no more to include": ("include",),
            "the key identifies the user": ("access_programs",),
        }),
        row("fields of a chat's request", CompletionCreateParamsBase.__annotations__, chats, {
            _TUNES: (
                *tunes, "audio", "frequency_penalty", "logit_bias", "logprobs", "modalities", "prediction", "presence_penalty",
                "reasoning_effort", "seed", "stop", "verbosity", "web_search_options",
            ),
            "chats can't be retrieved": ("metadata",),
        }),
        row("events of a stream, `response.…`", events, sent, {
            "for tools that OpenAI runs": tuple(sorted(one for one in events if re.match(
                r"code_interpreter|file_search|image_generation|mcp_list_tools|shell_call|web_search|custom_tool", one
            ))),
            "a session answers in text": ("audio.delta", "audio.done", "audio.transcript.delta", "audio.transcript.done"),
            "reasoning of models is not sent": tuple(sorted(one for one in events if one.startswith("reasoning_"))),
            "a refusal is a text": ("refusal.delta", "refusal.done"),
            "there is no queue": ("queued",),
            "compression of contexts is not reported": ("compaction.compacting",),
            "there are no footnotes": ("output_text.annotation.added",),
            "failures are sent as `response.failed`": ("error",),
        }),
    )  # fmt: skip
    assert_names("responses.md", "openai", "schemathesis")


# --- Inspect -----------------------------------------------------------------------------------------


def test_what_a_log_of_inspects_holds() -> None:
    written = set[str]()
    for journal in JOURNALS:
        log = log_of(read_records(journal), blob_reader(journal.parent), looks_like_action)
        written |= {one.event for found in log.samples or () for one in found.events}
    limits = get_args(EvalSampleLimit.model_fields["type"].annotation)
    assert_told(
        "inspect.md",
        row("kinds of events", kinds(get_args(Event), "event"), written, {
            "a session has no scorer; Inspect writes the events of the task's scorers": ("score", "score_edit"),
            "the sample itself has them, as `error` and `limit`": ("error", "sample_limit"),
            "messages and interruptions by people are `info`, with the record's kind": ("input", "interrupt"),
            "a summary is a `model` event": ("compaction",),
            "the sandbox is the session's own; actions in it are `tool` events": ("sandbox",),
            "a session's variables are not in Inspect's store": ("state", "store"),
            "spans have replaced them": ("step", "subtask"),
            "they describe Inspect's own run": ("anchor", "branch", "checkpoint", "logger", "review", "sentinel"),
        }),
        row("limits of a sample", limits, {one for one in limits if f'"{one}"' in inspect.getsource(sample)}, {
            "the window is the endpoint's, and contexts are compressed": ("context",),
            "Inspect enforces them, and cancels the session": ("operator", "custom"),
        }),
    )  # fmt: skip
    assert_names("inspect.md", "inspect-ai")


# --- AG-UI -------------------------------------------------------------------------------------------


def test_what_a_front_end_is_told() -> None:
    source = "".join(one.read_text(encoding="utf-8") for one in (ROOT / "faces" / "ag_ui").glob("*.py"))
    made = [
        getattr(ag_ui.core, name)
        for name in set(re.findall(r"\b(\w+Event)(?:\.model_validate)?\(", source))
        if hasattr(ag_ui.core, name)
    ]
    assert_told(
        "ag-ui.md",
        row("kinds of events", (one.value for one in ag_ui.core.EventType), {one.model_fields["type"].default.value for one in made}, {
            "short forms of a start, a content and an end, which are sent instead": (
                "TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CHUNK",
            ),
            "messages are sent as they are written, and a client that starts again has its own": ("MESSAGES_SNAPSHOT",),
            "the activity of agents is in the state": ("ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"),
            "nothing outside the protocol's own events is sent": ("RAW", "CUSTOM"),
            "reasoning is never sent back": ("REASONING_ENCRYPTED_VALUE",),
        }),
    )  # fmt: skip
    assert_names("ag-ui.md", "ag-ui-protocol", "@ag-ui/client")


# --- skills ------------------------------------------------------------------------------------------


def test_the_skill_of_the_guide_is_one(tmp_path: Path) -> None:
    told = (GUIDES / "skills.md").read_text(encoding="utf-8")
    (card,) = re.findall(r"^```markdown\n(.*?)^```$", told, re.MULTILINE | re.DOTALL)
    place = tmp_path / "release-notes"
    place.mkdir()
    (place / "SKILL.md").write_text(card, encoding="utf-8")
    assert not validate(place)
    assert read_skill(place).name == place.name


def test_what_of_a_skill_is_read() -> None:
    cases = len(test_skills.GOOD) + len(test_skills.BAD)
    assert_has("skills.md", f"{cases} folders, of which {len(test_skills.GOOD)} are skills")
    assert_told(
        "skills.md",
        row("fields of `SKILL.md`", ALLOWED_FIELDS, {*ALLOWED_FIELDS} & {one.name for one in fields(Skill)}, {
            "the policy says what a skill may call": ("allowed-tools",),
            "accepted, and only for people who read the file": ("compatibility", "license", "metadata"),
        }),
    )  # fmt: skip
    assert_names("skills.md", "skills-ref")
