"""A third-party MCP server asks the session's user: through a real sandbox and the product, and back."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest
from mcp_types import ElicitRequestURLParams, ElicitResult
from playwright.sync_api import expect
from websockets.sync.client import ClientConnection

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.mcp_client import Asked, connected
from tests.acceptance.product import Product, kill
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_clearance import PATIENCE, answered, comes, records, serving, tell
from tests.command import Command
from tests.rounds import short

SERVER = Path(__file__).with_name("mcp_form_server.py")
MESSAGE = "Which room? <b>hurry</b> ORCHID"
FORM: Mapping[str, object] = {
    "mode": "form",
    "message": MESSAGE,
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your <i>name</i>", "maxLength": 40},
            "nights": {"type": "integer", "minimum": 1, "maximum": 30, "default": 2},
            "breakfast": {"type": "boolean", "default": True},
            "room": {"type": "string", "oneOf": [{"const": "s", "title": "Single"}, {"const": "d", "title": "Double"}]},
            "wishes": {"type": "array", "items": {"type": "string", "enum": ["quiet", "view"]}, "default": ["view"]},
        },
        "required": ["name", "room"],
    },
}  # fmt: skip


BOOK = "```inn.book\n```"


def many(fields: int) -> Mapping[str, object]:
    """A form with so many fields."""
    properties = {f"f{n}": {"type": "string"} for n in range(fields)}
    schema = {"type": "object", "properties": properties}
    return {"mode": "form", "message": "All of it.", "requestedSchema": schema}


def inn(
    stage: Stage,
    folder: Path,
    form: Mapping[str, object],
    *,
    backend: str = "bubblewrap",
    crashes: bool = False,
) -> Product:
    """The product, with the server as an approved module that asks `form`, and a model that calls it once."""
    place = folder / "inn"
    place.mkdir()
    shutil.copyfile(SERVER, place / "server.py")
    (place / "form.json").write_text(json.dumps(form), encoding="utf-8")
    (place / "module.toml").write_text(
        'name = "inn"\nsummary = "Books rooms."\n\n[mcp]\ncommand = ["python3", "/module/server.py"]\n\n'
        '[needs]\nworkspace = "none"\negress = []\n',
        encoding="utf-8",
    )
    endpoint = stage.endpoint({"/": [BOOK, "Over."]}, crashes=crashes)
    product = stage.product(endpoint, IACT_SANDBOX=backend)
    for done in (
        product.run("module", "add", str(place), seconds=300),
        product.run("module", "check", "inn", seconds=300),
        product.agree("module", "approve", "inn", seconds=300),
    ):
        assert done.status == 0, done
    return product


def forms(found: list[Record], op: str) -> list[Record]:
    return [one for one in found if one.kind == "form" and one.text("op") == op]


def question(socket: ClientConnection, within: float = PATIENCE) -> dict[str, object]:
    """The next question of a module, as the page gets it."""
    end = time.monotonic() + within
    while True:
        frame = json.loads(socket.recv(timeout=max(0.0, end - time.monotonic())))
        if (frame.get("type"), frame.get("kind"), frame.get("op")) == ("record", "form", "ask"):
            return dict(frame)


def heard(product: Product) -> dict[str, object]:
    """What the server was answered, as it says itself."""
    (text,) = [one.body for one in records(product) if one.kind == "result"]
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def verified(product: Product) -> None:
    (journal,) = product.journals()
    done = product.run("replay", str(journal), "--verify")
    assert done.status == 0, done


@pytest.mark.parametrize("backend", short(["bubblewrap"], of=["docker", "bubblewrap"]))
def test_what_a_person_fills_in_is_what_the_server_gets(stage: Stage, tmp_path: Path, backend: str) -> None:
    product = inn(stage, tmp_path, FORM, backend=backend)
    (endpoint,) = stage.endpoints
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        socket.send(json.dumps({"type": "say", "text": "Book a room."}))
        asked = question(socket)
        assert asked["function"] == "inn.book"
        assert asked["message"] == MESSAGE
        shown = str(asked["html"])
        assert "&lt;b&gt;hurry" in shown
        assert "Your &lt;i&gt;name" in shown
        assert "<b>hurry" not in shown
        assert len(endpoint.requests) == 1, "no model is asked meanwhile"
        values = {"name": "Ada <script>", "room": "d", "nights": 3}
        tell(socket, {"type": "form.answer", "ask": asked["n"], "accept": True, "values": values})
        comes(answered(product), "the reply")
        late = {
            "type": "form.answer",
            "ask": asked["n"],
            "accept": True,
            "digest": asked["digest"],
            "values": values,
        }
        socket.send(json.dumps({**late, "id": 77}))
        assert "No call waits for an answer" in refusal(socket, 77)
    content = {"name": "Ada <script>", "nights": 3, "breakfast": True, "room": "d", "wishes": ["view"]}
    assert heard(product) == {"action": "accept", "content": content}
    (said,) = forms(records(product), "answer")
    assert said.fields["values"] == content
    assert "ORCHID" not in str([one.messages for one in endpoint.requests]), "no model reads the question"
    verified(product)


def test_a_person_fills_it_in_on_the_page_and_the_agent_goes_on(stage: Stage, tmp_path: Path) -> None:
    product = inn(stage, tmp_path, FORM)
    with serving(product) as server, page_of(server) as page:
        page.locator("#composer-text").fill("Book a room.")
        page.locator("#composer-text").press("Enter")
        bar = page.get_by_role("region", name="Approvals")
        expect(bar).to_contain_text(MESSAGE)
        bar.get_by_label("Your <i>name</i> (needed)").fill("Ada")
        bar.get_by_label("room").select_option("Double")
        bar.get_by_label("breakfast").uncheck()
        bar.get_by_role("button", name="Send the answer").click()
        expect(page.locator(".entry.reply").get_by_text("Over.")).to_have_count(1)
        expect(bar).to_be_hidden()
    content = {"name": "Ada", "nights": 2, "breakfast": False, "room": "d", "wishes": ["view"]}
    assert heard(product) == {"action": "accept", "content": content}
    verified(product)


def refusal(socket: ClientConnection, id: int) -> str:
    """What the server says to the message with this id, which it refuses."""
    end = time.monotonic() + PATIENCE
    while True:
        frame = json.loads(socket.recv(timeout=max(0.0, end - time.monotonic())))
        if frame.get("re") == id or frame.get("id") == id:
            assert frame["type"] == "error", frame
            return str(frame["message"])


def test_a_person_refuses_and_nothing_leaves(stage: Stage, tmp_path: Path) -> None:
    product = inn(stage, tmp_path, FORM)
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        socket.send(json.dumps({"type": "say", "text": "Book a room."}))
        asked = question(socket)
        refused = {"type": "form.answer", "ask": asked["n"], "accept": False, "values": {"name": "Ada"}}
        tell(socket, refused)
        comes(answered(product), "the reply")
    assert heard(product) == {"action": "decline"}
    assert "Ada" not in next(iter(product.journals())).read_text(encoding="utf-8")


def test_a_question_that_was_open_when_the_process_died_is_of_no_effect(stage: Stage, tmp_path: Path) -> None:
    product = inn(stage, tmp_path, FORM, crashes=True)
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        socket.send(json.dumps({"type": "say", "text": "Book a room."}))
        asked = question(socket)
        comes(lambda: bool(forms(records(product), "ask")), "the question on disk")
        kill(server.process)
    (journal,) = product.journals()
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": journal.parent.name})
        late = {
            "type": "form.answer",
            "ask": asked["n"],
            "accept": True,
            "digest": asked["digest"],
            "values": {"name": "A", "room": "s"},
        }
        socket.send(json.dumps({**late, "id": 77}))
        assert "No call waits for an answer" in refusal(socket, 77)
        comes(answered(product), "the reply")
    found = read_journal(journal).records
    assert [one.text("by") for one in forms(found, "answer")] == ["core"]
    assert [one.text("status") for one in found if one.kind == "result"] == ["interrupted"]
    verified(product)


HOSTILE: Mapping[str, tuple[Mapping[str, object], str]] = {
    "10,000 fields": (many(10_000), ""),
    "60 fields": (many(60), "at most 50 fields; this one has 60"),
    "an address of a script": (
        {"mode": "url", "message": "Open it.", "url": "javascript:alert(1)", "elicitationId": "1"},
        "must begin with https://",
    ),
    "an odd kind": (
        {"mode": "form", "message": "Hm?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "null"}}}},
        "must be a text, a number",
    ),
    "a password": (
        {
            "mode": "form",
            "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "format": "password"}}},
        },
        "asks for a secret",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_nobody_can_be_shown_is_refused_and_the_session_goes_on(
    stage: Stage, tmp_path: Path, name: str
) -> None:
    form, says = HOSTILE[name]
    product = inn(stage, tmp_path, form)
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        tell(socket, {"type": "say", "text": "Book a room."})
        comes(answered(product), "the reply")
    assert not forms(records(product), "ask")
    (result,) = [one for one in records(product) if one.kind == "result"]
    assert (says in result.body) if says else result.text("status") == "incomplete"


def test_with_nobody_to_ask_the_server_is_told_so_at_once(stage: Stage, tmp_path: Path) -> None:
    product = inn(stage, tmp_path, FORM)
    assert product.ask("Book a room.").reply == "Over."
    assert heard(product) == {"action": "cancel"}
    # What would have been asked is in the journal, decided at once.
    assert [one.text("by") for one in forms(records(product), "answer")] == ["policy"]


def test_a_person_at_a_terminal_is_asked_field_by_field(stage: Stage, tmp_path: Path) -> None:
    product = inn(stage, tmp_path, FORM)
    lines = [
        ("Answer it? [y]es, [N]o: ", "y"), ("Your <i>name</i> [needed]: ", ""), ("This field is required.", "Ada"),
        ("nights [a whole number; default 2]", "99"), ("This can be at most 30.", "3"), ("breakfast", "no"),
        ("room [one of s (Single), d (Double); needed]", "d"), ("wishes [some of quiet, view", ""),
    ]  # fmt: skip
    master, slave = pty.openpty()
    try:
        with Command(
            ["run", "Book a room."],
            env=product.environment, cwd=product.data.parent, stdin=slave, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                assert process.stderr is not None
                for prompt, line in lines:
                    shown = ""
                    while not (prompt in shown and shown.endswith(": ")):
                        piece = os.read(process.stderr.fileno(), 4096).decode()
                        assert piece, f"it ended without {prompt!r}: {shown}"
                        shown += piece
                    os.write(master, f"{line}\n".encode())
                stdout, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
    finally:
        os.close(master)
        os.close(slave)
    assert stdout == "Over.\n"
    content = {"name": "Ada", "nights": 3, "breakfast": False, "room": "d", "wishes": ["view"]}
    assert heard(product) == {"action": "accept", "content": content}


def test_an_address_is_shown_and_opened_by_nobody_but_the_person(stage: Stage, tmp_path: Path) -> None:
    form = {"mode": "url", "message": "Pay first.", "url": "https://pay.example/7", "elicitationId": "7"}
    product = inn(stage, tmp_path, form)
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        socket.send(json.dumps({"type": "say", "text": "Book a room."}))
        asked = question(socket)
        assert asked["url"] == "https://pay.example/7"
        assert "<a " not in str(asked["html"])
        session = next(iter(product.journals())).parent.name
        said = product.agree("answer", "--session", session, str(asked["n"]), "--yes", "--json")
        assert json.loads(said.stdout)["n"] > int(str(asked["n"]))
        again = product.run("answer", "--session", session, str(asked["n"]), "--no")
        assert (again.status, "No call waits for an answer" in again.sentence) == (2, True)
        comes(answered(product), "the reply")
    assert heard(product) == {"action": "accept"}


@pytest.mark.parametrize(("era", "action"), [("2026-07-28", "accept"), ("legacy", "decline")])
async def test_an_mcp_client_is_given_the_address_as_one_to_open(
    stage: Stage, tmp_path: Path, era: str, action: Literal["accept", "decline"]
) -> None:
    form = {"mode": "url", "message": "Pay first.", "url": "https://pay.example/7", "elicitationId": "7"}
    product = inn(stage, tmp_path, form)
    asked = Asked(ElicitResult(action=action))
    async with connected(product, mode=era, answering=asked) as on:
        result = await on.client.call_tool("iact_ask", {"task": "Book a room."})
        assert not result.is_error
    (address,) = asked.seen
    assert isinstance(address, ElicitRequestURLParams)
    assert address.url == "https://pay.example/7"
    assert "Pay first." in address.message
    assert heard(product) == {"action": action}
    (said,) = forms(records(product), "answer")
    assert said.text("decision") == action
