"""Plays everyday requests and dialogues on the product with the model on board, and judges how each ended."""

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
from iact.core.session.session import Session
from iact.models.giving_up import refuses

SETS: Final = ("requests", "held-out", "review", "made")
"""The files of requests: the first was written before the prompt, the second before its second version; the third holds the
first messages of newcomers, and the fourth asks for pages and pictures, written before the prompt's third version."""

DIALOGUES: Final = "dialogues"
"""The file of dialogues."""

_PLACE: Final = Path(__file__).parent
_WORDS_OF_FAILURE: Final = "I am the small model on board, and I did not manage this"
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_SPOKEN: Final = {
    "1": r"(?:one|an?|eins?|eine[nr]?|una?|uno)\b",
    "2": r"(?:two|zwei|dos)\b",
    "3": r"(?:three|drei|tres)\b",
    "4": r"(?:four|vier|cuatro)\b",
    "5": r"(?:five|fünf|cinco)\b",
    "6": r"(?:six|sechs|seis)\b",
    "7": r"(?:seven|sieben|siete)\b",
    "8": r"(?:eight|acht|ocho)\b",
}
"""Small numbers as they are written in words."""
_TRUTH: Final = """\
goal: Look how it is
steps:
  - {{id: look, call: shell.run, params: {{command: {command}}}}}
"""


class Ending(BaseModel):
    """How something that is asked must end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reply: tuple[str, ...]
    """Patterns that must all be found in the answer."""
    never: tuple[str, ...] = ()
    """Patterns of which none may be found in the answer."""
    ran: tuple[str, ...] = ()
    """Patterns of scripts, one of which must have run well."""
    file: Mapping[str, str] = {}
    """What must be found in files of the workspace, by their names."""
    any_file: str = ""
    """What must be found in some file of the workspace; empty if nothing must."""
    gone: tuple[str, ...] = ()
    """Files that must not be there any more."""
    acts: bool | None = None
    """False: nothing may be called."""
    calls: bool = False
    """True: a child must have been called."""
    quotes: bool = False
    """True: every number of the answer must be one of a result or of the request."""
    results: tuple[str, ...] = ()
    """Patterns that must all be found in what was printed."""
    printed: tuple[str, ...] = ()
    """Patterns with one group each. What one of the groups caught in a result must be in the answer."""
    truth: tuple[str, ...] = ()
    """Commands of bash for the same sandbox. What one of them prints must be in the answer."""


class Request(Ending):
    """One request, and how it must end."""

    among: str = SETS[0]
    """Which file it is from."""
    language: Literal["en", "de", "es"]
    kind: str
    text: str
    printed_in: str = ""
    """Where newcomers find it; empty if it is written in no page of ours."""
    plants: Mapping[str, str] = {}
    """Files of the workspace besides those of all requests, by their names."""


class Saying(Ending):
    """One message of a dialogue, and how its answer must be."""

    text: str


class Dialogue(BaseModel):
    """Messages of one session, each sent when the one before it is answered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    among: str = DIALOGUES
    language: Literal["en", "de", "es"]
    says: tuple[Saying, ...]
    held_out: bool = False
    """Whether it was not played while the prompt was changed."""


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


def requests(name: str = "requests") -> list[Request]:
    """All requests of one of the `SETS`."""
    return [Request.model_validate({"among": name, **row}) for row in _content(name)["request"]]


def dialogues() -> list[Dialogue]:
    """All dialogues."""
    return [Dialogue.model_validate(row) for row in _content(DIALOGUES)["dialogue"]]


def files() -> Mapping[str, str]:
    """The files of the workspace in which each is asked, by their names."""
    return {str(name): str(text) for name, text in _content("requests")["files"].items()}


def _content(name: str) -> dict[str, Any]:
    return tomllib.loads((_PLACE / f"{name}.toml").read_text(encoding="utf-8"))


async def play(runtime: Runtime, request: Request) -> Outcome:
    """Ask in a new session, and judge."""
    session = await _opened(runtime, {**files(), **request.plants})
    outcome = await _ask(session, request)
    await runtime.close(session.id)
    return outcome


async def lead(runtime: Runtime, dialogue: Dialogue) -> list[Outcome]:
    """Lead a dialogue in a new session, and judge each of its answers. `kind`: which message of the dialogue it is."""
    session = await _opened(runtime, files())
    outcomes: list[Outcome] = []
    for number, saying in enumerate(dialogue.says, start=1):
        about = {"among": dialogue.among, "language": dialogue.language, "kind": f"message {number}"}
        request = Request.model_validate({**saying.model_dump(), **about})
        outcomes.append(await _ask(session, request))
    await runtime.close(session.id)
    return outcomes


async def _opened(runtime: Runtime, planted: Mapping[str, str]) -> Session:
    """A new session with these files in its workspace."""
    session = await runtime.open()
    workspace = session.journal.parent / "workspace"
    workspace.mkdir(exist_ok=True)
    for name, text in planted.items():
        (workspace / name).write_text(text, encoding="utf-8")
    return session


async def _ask(session: Session, request: Request) -> Outcome:
    """Send one message, and judge by what is recorded from then on."""
    known = len(list(session.records()))
    calls = session.view.model_calls
    before = session.view.usage

    started = time.monotonic()
    try:
        answer = (await session.ask(request.text)).body
    except TimeoutError:
        answer = ""
    seconds = time.monotonic() - started

    records = list(session.records())[known:]
    usage = session.view.usage
    turns = session.view.model_calls - calls
    workspace = session.journal.parent / "workspace"
    wrong = judge(request, answer, records, workspace)
    if refuses(answer.partition(_WORDS_OF_FAILURE)[0]):
        wrong = "it refused"
    if not wrong and request.truth:
        wrong = await _untrue(session, request, answer)
    return Outcome(
        request=request,
        wrong=wrong,
        turns=turns,
        seconds=round(seconds, 1),
        misread=misread(records),
        answer=answer,
        prompt_tokens=usage.prompt_tokens - before.prompt_tokens,
        cached_tokens=usage.cached_tokens - before.cached_tokens,
        written_tokens=usage.completion_tokens - before.completion_tokens,
    )


async def _untrue(session: Session, request: Request, answer: str) -> str:
    """What is wrong with an answer beside what its sandbox says, or ""."""
    truths = []
    for command in request.truth:
        quoted = "'" + command.replace("'", "''") + "'"
        await session.run_plan(_TRUTH.format(command=quoted))
        truth = [record.body.strip() for record in session.records() if record.kind == "result"][-1]
        if holds(answer, truth):
            return ""
        truths.append(truth)
    return f"the answer lacks {' or '.join(truths)}"


def holds(answer: str, truth: str) -> bool:
    """Whether an answer holds a word or a number, however its digits are grouped and whether it is written in words."""
    if not truth:
        return False
    forms = [re.escape(truth).replace(r"\.", "[.,]")]
    if truth.startswith("0"):
        forms.append(re.escape(truth[1:]))
    if truth in _SPOKEN:
        forms.append(_SPOKEN[truth])
    wanted = re.compile(rf"(?<![\w.,])(?:{'|'.join(forms)})(?![.,]?\d)", re.IGNORECASE)
    return any(wanted.search(text) for text in (answer, _joined(answer)))


def _joined(text: str) -> str:
    """The text without separators of thousands."""
    return re.sub(r"(?<=\d)[.,\u202f ](?=\d{3}\b)", "", text)


def judge(ending: Ending, answer: str, records: Sequence[Record], workspace: Path) -> str:
    """What is wrong with how it ended, or ""."""
    results = [record for record in records if record.kind == "result"]
    called = any(record.kind == "spawn" and record.agent != "/" for record in records)
    if _WORDS_OF_FAILURE in answer:
        return "it gave up"
    for pattern in ending.reply:
        if not re.search(pattern, answer, re.IGNORECASE):
            return f"the answer lacks {pattern}"
    for pattern in ending.never:
        if re.search(pattern, answer, re.IGNORECASE):
            return f"the answer has {pattern}"
    if ending.acts is False and (results or called):
        return "it acted, where an answer was wanted"
    if ending.calls and not called:
        return "no child was called"
    replies = "\n".join(record.body for record in records if record.kind == "turn")
    if ending.ran and not (results and any(re.search(pattern, replies) for pattern in ending.ran)):
        return f"nothing like {ending.ran[0]} was run"
    return _wrong_in_results(ending, answer, results) or _wrong_in_files(ending, workspace)


def _wrong_in_results(ending: Ending, answer: str, results: Sequence[Record]) -> str:
    bodies = [record.body for record in results]
    for pattern in ending.results:
        if not any(re.search(pattern, body) for body in bodies):
            return f"nothing printed {pattern}"
    caught = [found for pattern in ending.printed for body in bodies for found in re.findall(pattern, body)]
    if ending.printed and not any(holds(answer, text) for text in caught):
        return f"the answer lacks {' or '.join(caught) or 'what should have been printed'}"
    if ending.quotes:
        printed = "\n".join(bodies)
        invented = [number for number in _NUMBER.findall(_joined(answer)) if not holds(printed, number)]
        if invented:
            return f"no result holds {invented[0]}"
    return ""


def _wrong_in_files(ending: Ending, workspace: Path) -> str:
    for name, pattern in ending.file.items():
        path = workspace / name
        if not path.is_file() or not re.search(pattern, _text(path)):
            return f"{name} is not as it should be"
    if ending.any_file:
        made = [path for path in workspace.rglob("*") if path.is_file()]
        if not any(re.search(ending.any_file, _text(path)) for path in made):
            return f"no file holds {ending.any_file}"
    left = [name for name in ending.gone if (workspace / name).exists()]
    return f"{left[0]} is still there" if left else ""


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def misread(records: Sequence[Record]) -> int:
    """The replies of which an action was not run for its form."""
    return sum("was not run" in record.body for record in records if record.kind != "turn")
