"""Plays everyday requests on the product with the model on board, and judges how each ended."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from iact.core.records.record import Record
from iact.core.session.runtime import Runtime

_PLACE: Final = Path(__file__).with_name("requests.toml")
_WORDS_OF_FAILURE: Final = "I am the small model on board, and I did not manage this"


class Ending(BaseModel):
    """How something that is asked must end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reply: tuple[str, ...]
    """Patterns that must all be found in the answer."""
    ran: tuple[str, ...] = ()
    """Patterns of scripts, one of which must have run well."""
    file: Mapping[str, str] = {}
    """What must be found in files of the workspace, by their names."""
    gone: tuple[str, ...] = ()
    """Files that must not be there any more."""
    acts: bool | None = None
    """False: nothing may be called."""
    calls: bool = False
    """True: a child must have been called."""


class Request(Ending):
    """One request, and how it must end."""

    language: Literal["en", "de", "es"]
    kind: str
    text: str


class Outcome(BaseModel):
    """How a request ended. `wrong`: what is missing, or "" if it ended right."""

    request: Request
    wrong: str
    turns: int
    seconds: float
    misread: int
    """Replies of which an action was not run for its form."""
    answer: str
    prompt_tokens: int
    cached_tokens: int
    written_tokens: int


def requests() -> list[Request]:
    """All requests."""
    return [Request.model_validate(one) for one in _content()["request"]]


def files() -> Mapping[str, str]:
    """The files of the workspace in which each is asked, by their names."""
    return {str(name): str(text) for name, text in _content()["files"].items()}


def _content() -> dict[str, Any]:
    return tomllib.loads(_PLACE.read_text(encoding="utf-8"))


async def play(runtime: Runtime, request: Request) -> Outcome:
    """Ask in a new session, and judge."""
    session = await runtime.open()
    workspace = session.journal.parent / "workspace"
    workspace.mkdir(exist_ok=True)
    for name, text in files().items():
        (workspace / name).write_text(text, encoding="utf-8")

    started = time.monotonic()
    try:
        answer = (await session.ask(request.text)).body
    except TimeoutError:
        answer = ""
    seconds = time.monotonic() - started
    records = list(session.records())
    usage = session.view.usage
    outcome = Outcome(
        request=request,
        wrong=judge(request, answer, records, workspace),
        turns=session.view.model_calls,
        seconds=round(seconds, 1),
        misread=misread(records),
        answer=answer,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        written_tokens=usage.completion_tokens,
    )
    await runtime.close(session.id)
    return outcome


def judge(ending: Ending, answer: str, records: Sequence[Record], workspace: Path) -> str:
    """What is wrong with how it ended, or ""."""
    results = [record for record in records if record.kind == "result"]
    called = any(record.kind == "spawn" and record.agent != "/" for record in records)
    if answer.startswith(_WORDS_OF_FAILURE):
        return "it gave up"
    for pattern in ending.reply:
        if not re.search(pattern, answer, re.IGNORECASE):
            return f"the answer lacks {pattern}"
    if ending.acts is False and (results or called):
        return "it acted, where an answer was wanted"
    if ending.calls and not called:
        return "no child was called"
    replies = "\n".join(record.body for record in records if record.kind == "turn")
    if ending.ran and not (results and any(re.search(pattern, replies) for pattern in ending.ran)):
        return f"nothing like {ending.ran[0]} was run"
    for name, pattern in ending.file.items():
        path = workspace / name
        if not path.is_file() or not re.search(pattern, path.read_text(encoding="utf-8", errors="replace")):
            return f"{name} is not as it should be"
    left = [name for name in ending.gone if (workspace / name).exists()]
    return f"{left[0]} is still there" if left else ""


def misread(records: Sequence[Record]) -> int:
    """The replies of which an action was not run for its form."""
    return sum("was not run" in record.body for record in records if record.kind != "turn")
