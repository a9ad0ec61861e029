"""The JSON log of a server in use: who did what, without any contents of messages, files or secrets."""

from __future__ import annotations

import json

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.acceptance.conftest import Stage
from tests.acceptance.members import PASSWORD, bearer, dial, sign_in, token_of, until_record, with_people
from tests.acceptance.product import acknowledged

SAID, PATH, SECRET, TYPO = "plover", "heron", "bittern", "whimbrel"
"""What a person says, a model writes and a module is given; none of them may be in a log."""

CALLS = f"I read {PATH}.\n\n```files.read path={PATH}.txt\n```"


def test_what_is_logged_says_who_did_what_and_nothing_of_what_was_said(stage: Stage) -> None:
    product = stage.product(
        stage.endpoint({"/": [CALLS, f"There is no {PATH}."]}), IACT_LOG="debug", IACT_LOG_FORMAT="json",
        OPENAI_API_KEY=SECRET,
    )  # fmt: skip
    ids = with_people(product, "ada", "bob")
    program = token_of(product, "ada")
    with product.serving() as server:
        address = f"http://127.0.0.1:{server.port}"
        assert sign_in(server, TYPO, f"{TYPO} too").status_code == 401
        assert httpx.get(f"{address}/?token={TYPO}", trust_env=False).status_code == 401
        assert httpx.get(f"{address}/link/{TYPO}/{TYPO}", trust_env=False).status_code == 200
        signed = sign_in(server, "ada")
        cookie = signed.headers["set-cookie"].partition(";")[0]
        with pytest.raises(InvalidStatus):
            dial(server, **bearer(TYPO))
        with dial(server, Cookie=cookie, Origin=address) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            said = acknowledged(socket, {"type": "say", "text": f"Do you know {SAID}?"})
            until_record(socket, "reply")
            socket.send(json.dumps({"type": "users", "id": 1}))
            socket.send(json.dumps({"type": TYPO, "id": 2}))
        with dial(server, **bearer(token_of(product, "bob", "sessions:read"))) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            socket.send(json.dumps({"type": "say", "text": SAID, "id": 2}))
            while json.loads(socket.recv(timeout=300)).get("code") != "forbidden":
                pass
        assert product.run("quota", "set", "--user", "ada", "--tokens", "1").status == 0
        with dial(server, **bearer(program)) as socket:
            acknowledged(socket, {"type": "hello", "session": said["session"]})
            acknowledged(socket, {"type": "say", "text": f"And {SAID}?"})
            while "quota" not in str(until_record(socket, "reply")):
                pass
        server.process.terminate()
        assert server.process.wait(300) == 0
    written = product.data.with_name(f"{product.data.name}.stderr").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    assert all({"time", "level", "logger", "event"} <= set(line) for line in lines)

    told = {(line["event"], line.get("user"), line.get("session")) for line in lines}
    session, ada, bob = str(said["session"]), ids["ada"], ids["bob"]
    assert told >= {
        ("sign-in.failed", None, None),
        ("sign-in", ada, None),
        ("connection opened", ada, None),
        ("connection opened", bob, None),
        ("session opened", ada, session),
        ("call of a module failed", ada, session),
        ("refused by a quota", ada, session),
        ("message refused", bob, ""),
        ("session closed", ada, session),
        ("connection closed", bob, None),
        ("closing", None, None),
    }
    (failed,) = [line for line in lines if line["event"] == "call of a module failed"]
    assert (failed["function"], failed["status"]) == ("files.read", "error")
    refused = [(line["status"], line["route"]) for line in lines if line["event"] == "request refused"]
    assert refused == [(401, "/"), (403, "/ws")]
    never = [SAID, PATH, SECRET, TYPO, PASSWORD, cookie.partition("=")[2], program, server.key, server.token]
    assert [one for one in never if one in written] == []
    assert session in written, "what is looked for would be found"
