"""`iact clear` and `iact answer`: a person's answer to a question, which names what the person was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iact.commands import remote
from iact.commands.agreement import agreed
from iact.commands.remote import Frame
from iact.core.characters import escaped
from iact.core.ports import JSON
from iact.core.views import consent
from iact.settings import Settings


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """A question as the server describes it."""

    text: str
    digest: str


def clear(
    settings: Settings, session: str, calls: Sequence[int], message: Frame, *, seen: str, as_json: bool
) -> int:
    """Approve calls. `seen`: the digest of what the person was shown; without it they are shown, and the person is asked.

    Raises:
        UsageError: a question does not wait (any more), or there is nobody to ask.
        Changed: it is not the one that the person was shown.
        IactError: no server runs, or the server refuses; the message is the server's.
    """
    questions = [_question(settings, session, call) for call in dict.fromkeys(calls)]
    if not _agrees(questions, seen, "Allow it?" if len(questions) == 1 else "Allow them?"):
        return 1

    digest, *others = [question.digest for question in questions]
    also = list(dict.fromkeys(calls))[1:]
    said: Frame = {**message, "also": list(also), "digest": digest, "also_digests": list(others)}
    return remote.control(settings, session, said, as_json=as_json)


def answer(settings: Settings, session: str, ask: int, message: Frame, *, seen: str, as_json: bool) -> int:
    """Answer a module's question with yes. Parameters and errors as for `clear`."""
    question = _question(settings, session, ask)
    if not _agrees([question], seen, "Answer it?"):
        return 1

    return remote.control(settings, session, {**message, "digest": question.digest}, as_json=as_json)


def start_plan(settings: Settings, session: str, path: str, *, seen: str, as_json: bool) -> int:
    """Start a plan that waits for it. Parameters and errors as for `clear`."""
    told = remote.ask_session(settings, session, {"type": "plan.text", "path": path})
    text = escaped(str(told["text"]).rstrip("\n"), every=False)
    plan = ShownQuestion(text, str(told["digest"]))
    if not _agrees([plan], seen, "Start it?"):
        return 1

    frame: Frame = {"type": "plan.start", "path": path, "digest": plan.digest}
    return remote.control(settings, session, frame, as_json=as_json)


def declassify(
    settings: Settings, session: str, path: str, variable: str | None, *, seen: str, as_json: bool
) -> int:
    """Vouch for a variable of an agent, or for everything that the agent has read. Parameters and errors as for
    `clear`.
    """
    if variable is None:
        told: Frame = remote.ask_session(settings, session, {"type": "reading", "path": path})
        text = f"Agent {path} has read: {_listed(told['labels'])}"
    else:
        told = remote.ask_session(settings, session, {"type": "variable", "path": path, "name": variable})
        text = f"${variable}, from {_listed(told['labels'])}, SHA-256 {told['sha256']}:\n{_content(told)}"

    shown = ShownQuestion(escaped(text, every=False), str(told["digest"]))
    if not _agrees([shown], seen, "Trust it?"):
        return 1

    frame: Frame = {"type": "declassify", "path": path, "name": variable, "digest": shown.digest}
    return remote.control(settings, session, frame, as_json=as_json)


def _content(told: Frame) -> str:
    """The content of a variable, as far as the server shows it."""
    if told["text"] is None:
        return "(not a text)"
    if told["left_out"]:
        return f"{told['text']}\n({told['left_out']} characters in the middle are not shown)"
    return str(told["text"])


def _listed(labels: JSON) -> str:
    """Labels in one line."""
    names = [str(label) for label in labels] if isinstance(labels, list) else []
    return ", ".join(names) or "nobody else"


def _question(settings: Settings, session: str, n: int) -> ShownQuestion:
    found = remote.ask_session(settings, session, {"type": "question", "n": n})
    return ShownQuestion(str(found["text"]), str(found["digest"]))


def _agrees(questions: Sequence[ShownQuestion], seen: str, words: str) -> bool:
    """Whether the person agrees to these questions, beforehand by their digest or now at the terminal."""
    digests = [question.digest for question in questions]
    whole = digests[0] if len(digests) == 1 else consent.together(digests)
    if seen:
        consent.check(seen, whole)
        return True

    for question in questions:
        print(question.text)
    return agreed(words, whole)
