"""Whose memory a session reads and writes, for each caller and each face; a session without it leaves no statement.

Only tokens of an account have a memory, that of the account. The key of a server stands for many, and a request can say
that it speaks for somebody else, or wants nothing to be kept.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx
import pytest

from iact.accounts.rights import LOCAL, Principal
from iact.core.ports import JSON, NewStatement
from iact.core.records.session import Open
from iact.core.session.runtime import Runtime
from iact.core.tree.memory_events import statements_in_journal
from iact.faces.a2a.routes import routes as a2a
from iact.faces.ag_ui.routes import routes as ag_ui
from iact.faces.http.server import application
from iact.faces.responses.routes import routes as responses
from tests.core.session.fakes import replies, runtime

ACCOUNT: Final = replace(LOCAL, user="u-ada", name="ada")
SAID: Final = "I prefer tea."


@dataclass(frozen=True)
class OneUser:
    """A server that takes every request for one user's."""

    who: Principal
    runtime: Runtime

    def identify(self, authorization: str, peer: str) -> Principal | None:
        return self.who

    def lease(self, who: Principal) -> AbstractAsyncContextManager[Runtime]:
        return nullcontext(self.runtime)


def chat(**more: JSON) -> tuple[str, dict[str, JSON]]:
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": SAID}], **more}


def response(**more: JSON) -> tuple[str, dict[str, JSON]]:
    return "/v1/responses", {"input": SAID, **more}


def front_end() -> tuple[str, dict[str, JSON]]:
    message: JSON = {"id": "m", "role": "user", "content": SAID}
    given: dict[str, JSON] = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": []}
    return "/ag-ui", {**given, "forwardedProps": {}, "messages": [message]}


def task() -> tuple[str, dict[str, JSON]]:
    message: JSON = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": SAID}]}
    return "/a2a", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}


CASES: Final = (
    (LOCAL, chat(), False),
    (LOCAL, response(), False),
    (LOCAL, front_end(), False),
    (LOCAL, task(), False),
    (ACCOUNT, chat(), True),
    (ACCOUNT, response(), True),
    (ACCOUNT, front_end(), True),
    (ACCOUNT, task(), True),
    (ACCOUNT, chat(user="carl"), False),
    (ACCOUNT, response(user="carl"), False),
    (ACCOUNT, response(safety_identifier="carl"), False),
    (ACCOUNT, response(store=False), False),
    (ACCOUNT, chat(store=False), False),
)


@asynccontextmanager
async def asking(opened: Runtime, who: Principal) -> AsyncIterator[httpx.AsyncClient]:
    app = application([responses, ag_ui, a2a], OneUser(who, opened))
    transport = httpx.ASGITransport(app)
    headers = {"Authorization": "Bearer x", "A2A-Version": "1.0"}
    async with httpx.AsyncClient(transport=transport, base_url="http://face.test", headers=headers) as http:
        yield http


def name_of(value: object) -> str:
    if isinstance(value, Principal):
        return value.user or "server's key"
    if isinstance(value, tuple):
        return f"{value[0]} {json.dumps({k: v for k, v in value[1].items() if k in ('user', 'store', 'safety_identifier')})}"
    return str(value)


@pytest.mark.parametrize(("who", "request_of", "remembers"), CASES, ids=name_of)
async def test_a_session_has_the_memory_of_its_caller(
    tmp_path: Path, who: Principal, request_of: tuple[str, dict[str, JSON]], remembers: bool
) -> None:
    path, body = request_of
    async with runtime(tmp_path, replies({"/": ["Noted."]})) as opened, asking(opened, who) as http:
        answer = await http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        sessions = [*opened.opened.values()] or [await opened.open(one.id) for one in opened.sessions()]
        records = [record for session in sessions for record in session.records()]
        if not sessions:
            assert body.get("store") is False
            assert not remembers
            return
    (begun,) = [one.content for one in records if isinstance(one.content, Open)]
    assert begun.memory is remembers
    statements: Sequence[NewStatement] = [*statements_in_journal(records, _no_blobs)]
    assert [one.text for one in statements] == ([SAID] if remembers else [])


def _no_blobs(digest: str) -> bytes:
    return b""
