"""Clearance over HTTP, against an endpoint that behaves well, badly, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from iact.core.gate.clearance import (
    ClearanceRequest,
    Remembered,
    RememberedCall,
    RememberedRule,
)
from iact.core.gate.gate import Answer, CallRequest, Question
from iact.core.gate.http_clearance import HttpClearance, read_answer

REQUEST = ClearanceRequest(
    Question(CallRequest("/a", "mail.send", "digest"), 2, "clearance", "why"), {"to": "bob"}, "ann", "s1", {}
)


def ask(
    handler: httpx.MockTransport | None, url: str = "http://clearance.test/", seconds: float = 2.0
) -> Answer:
    async def run() -> Answer:
        port = HttpClearance(url, seconds=seconds, transport=handler)
        try:
            return await port.ask(REQUEST)
        finally:
            await port.close()

    return asyncio.run(run())


def answering(status: int = 200, content: bytes = b"", **headers: str) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(status, content=content, headers=headers))


def test_the_endpoint_gets_the_call_and_its_yes_and_no_count() -> None:
    seen: list[object] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, json.loads(request.content)))
        return httpx.Response(200, json={"allow": True, "reason": "fine"})

    assert ask(httpx.MockTransport(handle)) == Answer(True, "fine")
    body = {"function": "mail.send", "params": {"to": "bob"}, "user": "ann", "session": "s1", "agent": "/a"}
    assert seen == [("POST", body)]
    assert ask(answering(content=b'{"allow": false, "reason": "no"}')) == Answer(False, "no")


@pytest.mark.parametrize(
    "transport",
    [
        answering(302, b"", location="http://elsewhere.test/yes"),
        answering(500, b'{"allow": true}'),
        answering(204),
        answering(201, b'{"allow": true}'),
        answering(200, b'{"allow": true}' + b" " * 100_000),
        answering(200, b"not json"),
        answering(200, b""),
        answering(200, b'{"allow": "true"}'),
        answering(200, b'{"allow": 1}'),
        answering(200, b'["allow"]'),
        answering(200, b'{"allow": false, "allow": true}'),
        answering(200, b"[" * 50_000),
        answering(200, b"\xff\xfe"),
    ],
)
def test_whatever_is_not_a_clear_yes_is_a_no(transport: httpx.MockTransport) -> None:
    assert not ask(transport).allow


def test_a_redirect_is_not_followed() -> None:
    hosts: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return httpx.Response(307, headers={"location": "http://evil.test/"})

    assert not ask(httpx.MockTransport(handle)).allow
    assert hosts == ["clearance.test"]


def test_an_unreachable_endpoint_denies() -> None:
    answer = ask(None, "http://127.0.0.1:1/")
    assert not answer.allow
    assert "can't be reached" in answer.reason
    assert not ask(None, "nonsense://x").allow


class Slow(httpx.AsyncByteStream):
    """A body that never ends, in small pieces: a timeout on each piece would not end it."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b" "


def test_a_slow_endpoint_denies_within_its_time() -> None:
    answer = ask(httpx.MockTransport(lambda _: httpx.Response(200, stream=Slow())), seconds=0.1)
    assert not answer.allow
    assert "within" in answer.reason


def test_reasons_are_cut() -> None:
    assert len(read_answer(json.dumps({"allow": True, "reason": "x" * 9999}).encode()).reason) == 500


def test_a_remembered_yes_is_bound_to_the_call() -> None:
    call = RememberedCall("mail.send", "digest", "ann", 2)
    assert Remembered(frozenset({call})).allow(REQUEST) is not None
    for other in (
        replace(call, arguments="other"),
        replace(call, function="mail.read"),
        replace(call, user="eve"),
        replace(call, impact=1),
    ):
        assert Remembered(frozenset({other})).allow(REQUEST) is None


def test_a_rule_is_bound_to_what_the_person_chose() -> None:
    rule = RememberedRule("mail.*", "ann", 2, (("to", "b*"),))
    assert Remembered(rules=frozenset({rule})).allow(REQUEST) is not None
    for other in (
        replace(rule, arguments=(("to", "x*"),)),
        replace(rule, arguments=(("cc", "*"),)),
        replace(rule, function="files.*"),
        replace(rule, user="eve"),
        replace(rule, impact=1),
    ):
        assert Remembered(rules=frozenset({other})).allow(REQUEST) is None
