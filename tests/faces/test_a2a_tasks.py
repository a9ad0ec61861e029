"""What a task of A2A has beside its answer: files, tokens, no actions; and which text answers a question in words."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import httpx

from iact.accounts.rights import LOCAL
from iact.core.records.calls import Result
from iact.core.records.forms import FormAnswer
from iact.core.records.parts import Artifact
from iact.core.records.record import Record
from iact.faces.a2a.files import file_artifacts
from tests.core.session import plan_scenes
from tests.core.session.fakes import replies, runtime
from tests.core.session.test_plans import PAINTER
from tests.faces.acp.test_conversation import ASKS_PERSON, answers
from tests.faces.test_memory_of_callers import asking

FIGURE: Final = b"\x89PNG figure"


async def send(http: httpx.AsyncClient, text: str, task: str = "") -> dict[str, Any]:
    """The task that a message begins or goes on with, when it has ended or asks something."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], "taskId": task}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    answered = (await http.post("/a2a", json=asked)).json()
    found: dict[str, Any] = answered["result"]["task"]
    return found


async def test_a_task_says_no_actions_and_how_many_tokens_it_took(tmp_path: Path) -> None:
    script = {"/": ["I look.\n\n```READ\na\n```", "Seven."]}
    async with runtime(tmp_path, replies(script)) as opened, asking(opened, LOCAL) as http:
        task = await send(http, "Go")
        assert [message["parts"][0]["text"] for message in task["history"]] == ["Go", "I look.", "Seven."]
        used = task["metadata"]["usage"]
        (session,) = opened.opened.values()
        assert used["output_tokens"] == session.view.usage.completion_tokens > 0
        assert used["input_tokens"] == session.view.usage.prompt_tokens > 0


async def test_words_answer_what_is_asked_in_words(tmp_path: Path) -> None:
    async with (
        plan_scenes.runtime(tmp_path, replies(PAINTER), answers=ASKS_PERSON) as opened,
        asking(opened, LOCAL) as http,
    ):
        asked = await send(http, "Go")
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        words, about = asked["status"]["message"]["parts"]
        assert "Which colour?" in words["text"]
        assert about["data"]["answer"] == 'text with the answer, or "deny"'
        await send(http, "Dark green, please.", asked["id"])
        (session,) = opened.opened.values()
        assert answers(session) == [("accept", {"answer": "Dark green, please."})]
        assert [one.by for one in map(_form, session.records()) if one is not None] == ["user"]


def _form(record: Record) -> FormAnswer | None:
    return record.content if isinstance(record.content, FormAnswer) else None


def stored(folder: Path, n: int, name: str, content: bytes) -> Record:
    """A result with one file, whose content is with the journal in `folder`."""
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs").mkdir(exist_ok=True)
    (folder / "blobs" / digest).write_bytes(content)
    file = Artifact(name=name, media="image/png", sha256=digest, size=len(content))
    made = Result(turn=1, action=0, function="python.run", call=1, status="ok", artifacts=(file,))
    return Record(n=n, at="", agent="/helper", step=n, content=made, body="")


def test_files_of_calls_are_artifacts_until_they_are_too_many_bytes(tmp_path: Path) -> None:
    records = [stored(tmp_path, 4, "a.png", FIGURE), stored(tmp_path, 7, "b.png", FIGURE * 2)]
    first, second = file_artifacts("s.2", tmp_path, records, most=len(FIGURE) + 5)
    assert (first.artifact_id, first.name, first.parts[0].raw) == ("s.2.4.0", "a.png", FIGURE)
    assert (first.parts[0].media_type, first.parts[0].filename) == ("image/png", "a.png")
    assert dict(first.metadata) == {"agent": "/helper", "record": 4, "bytes": len(FIGURE)}
    assert (second.name, second.parts[0].raw) == ("b.png", b"")
    assert f"{len(FIGURE) * 2} bytes" in second.parts[0].text
    whole = [*file_artifacts("s.2", tmp_path, records)]
    assert [one.parts[0].raw for one in whole] == [FIGURE, FIGURE * 2]
