"""Chat programs that many people use, by the requests that their public code sends.

Open WebUI (`backend/open_webui/routers/openai.py`) asks for the models, streams each turn with its usage, sends pictures
as parts of a message, and asks for a title beside it. LibreChat (`packages/api/src/endpoints/openai/llm.ts` and
`custom/initialize.ts`) speaks through LangChain, and names the person in `user`.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from iact.accounts.rights import LOCAL
from iact.core.records.calls import Result
from iact.core.records.dialogue import Say, Upload
from iact.core.session.runtime import Runtime
from tests.core.session.fakes import replies, runtime
from tests.core.session.test_clearance import ASKS, ONE
from tests.faces.test_memory_of_callers import asking

WEBUI: Final = {
    "Content-Type": "application/json",
    "X-OpenWebUI-User-Name": "Ada",
    "X-OpenWebUI-User-Id": "u-1",
    "X-OpenWebUI-User-Email": "ada@home.test",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "c-1",
}
PIXEL: Final = f"data:image/png;base64,{base64.b64encode(b'pixel').decode()}"


def turn(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A turn of a chat as Open WebUI sends it."""
    return {
        "stream": True, "model": "iact", "messages": [*messages], "temperature": 0.8, "top_p": 0.9,
        "stream_options": {"include_usage": True}, **more,
    }  # fmt: skip


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


async def streamed(http: httpx.AsyncClient, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text and the usage of a streamed answer."""
    answered = await http.post("/v1/chat/completions", json=body, headers=WEBUI)
    assert answered.status_code == 200, answered.text
    lines = [line[6:] for line in answered.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    usage: dict[str, Any] = chunks[-1]["usage"]
    return text, usage


def said(opened: Runtime) -> list[list[str]]:
    """What was said in each session."""
    sessions = [*opened.opened.values()]
    return [[one.body for one in session.records() if isinstance(one.content, Say)] for session in sessions]


@pytest.mark.no_prefix_law("several sessions speak to one model")
async def test_a_chat_in_open_webui_with_its_title_is_one_session_and_another(tmp_path: Path) -> None:
    script = {"/": ["One.", "Two."]}
    async with runtime(tmp_path, replies(script)) as opened, asking(opened, LOCAL) as http:
        models = (await http.get("/v1/models")).json()
        assert [model["id"] for model in models["data"]] == ["iact"]

        # What it marks for caches of prompts is a part of a message, and has no effect.
        first = [{"type": "text", "text": "First", "cache_control": {"type": "ephemeral"}}]
        text, usage = await streamed(http, turn(user(first)))
        assert text == "One."
        assert usage["completion_tokens"] > 0

        task = (
            "### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\nUSER: First\nASSISTANT: One."
        )
        title = {"model": "iact", "messages": [user(task)], "stream": False, "max_completion_tokens": 1000}
        named = await http.post("/v1/chat/completions", json=title, headers=WEBUI)
        assert named.json()["choices"][0]["message"]["content"] == "One."

        text, _ = await streamed(http, turn(user("First"), assistant("One."), user("Second")))
        assert text == "Two."
        assert sorted(said(opened)) == [[task], ["First", "Second"]]


async def test_a_picture_in_a_chat_is_a_file_of_the_root(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["Seen.", "Yes."]})) as opened, asking(opened, LOCAL) as http:
        shown = user([
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": PIXEL, "detail": "auto"}},
        ])  # fmt: skip
        text, _ = await streamed(http, turn(shown))
        assert text == "Seen."
        text, _ = await streamed(http, turn(shown, assistant("Seen."), user("Sure?")))
        assert text == "Yes."
        (session,) = opened.opened.values()
        uploads = [one.content for one in session.records() if isinstance(one.content, Upload)]
        assert [(upload.media, upload.file) for upload in uploads] == [("image/png", "picture")]
        assert said(opened) == [["What is this?", "Sure?"]]


@pytest.mark.no_prefix_law("several sessions speak to one model")
async def test_the_same_words_with_another_picture_are_another_chat(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["Seen.", "Yes."]})) as opened, asking(opened, LOCAL) as http:
        other = f"data:image/png;base64,{base64.b64encode(b'other').decode()}"
        for picture in (PIXEL, other):
            parts = [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": picture}},
            ]
            await streamed(http, turn(user(parts)))
            await streamed(http, turn(user(parts), assistant("Seen."), user("Sure?")))
        assert said(opened) == [["What is this?", "Sure?"]] * 2


async def test_a_word_in_open_webui_answers_a_question(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(ONE), policy=ASKS) as opened, asking(opened, LOCAL) as http:
        asked, _ = await streamed(http, turn(user("Write it.")))
        assert 'Answer "allow" or "deny"' in asked
        done, _ = await streamed(http, turn(user("Write it."), assistant(asked), user("allow")))
        assert done == "Done."
        (session,) = opened.opened.values()
        results = [one.content.status for one in session.records() if isinstance(one.content, Result)]
        assert results == ["ok"]


@pytest.mark.no_prefix_law("several sessions speak to one model")
async def test_two_people_in_librechat_have_chats_of_their_own(tmp_path: Path) -> None:
    """They are behind one key, and say the same."""
    async with runtime(tmp_path, replies({"/": ["One.", "Two."]})) as opened, asking(opened, LOCAL) as http:
        for person in ("65f0a", "65f0b"):
            more = {"user": person, "max_tokens": 4000, "presence_penalty": 0, "frequency_penalty": 0}
            system = {"role": "system", "content": "Be brief."}
            assert (await streamed(http, turn(system, user("First"), **more)))[0] == "One."
            chat = [system, user("First"), assistant([{"type": "text", "text": "One."}]), user("Second")]
            assert (await streamed(http, turn(*chat, **more)))[0] == "Two."
        assert said(opened) == [["Be brief.\n\nFirst", "Second"]] * 2
