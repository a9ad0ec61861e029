"""A person's yes holds for what that person was shown, and for nothing that has taken its place since.

The page, terminals, commands and faces show what is to be agreed to with its digest, and send the digest back with the
yes. It is compared with the digest of what would be carried out now. If the two differ, the answer is `Changed`, and
nothing happens. A no needs no digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iact.core.errors import Changed
from iact.core.ports import JSON

if TYPE_CHECKING:
    from iact.core.records.record import Record
    from iact.core.tree.live_folder import PendingChange

SHORTEST: Final = 16
"""How many digits of a digest must be given at least: fewer could be found again by trying."""


def digest_of(shown: Mapping[str, JSON]) -> str:
    """Return the digest of what a person is shown: SHA-256, in hex, over its canonical JSON."""
    canonical = json.dumps(shown, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def question_digest(question: Record) -> str:
    """Return the digest of a question: the whole call, host or form, who asks it, and since when.

    A value that is kept beside the journal is in it by its own SHA-256.
    """
    place: dict[str, JSON] = {"n": question.n, "at": question.at, "agent": question.agent}
    return digest_of({"what": "question", **place, "asked": question.fields})


def change_digest(pending: PendingChange) -> str:
    """Return the digest of one change that waits for a person: both states of the path, and why it waits.

    Which calls made it is not part of it: they may repeat a change without changing anything.
    """
    change = pending.change
    states: dict[str, JSON] = {}
    for name, state in (("was", change.was), ("now", change.now)):
        if state is not None:
            states[name] = [state.type, state.mode, state.size, state.sha256, state.target]

    return digest_of(
        {
            "what": "change",
            "path": change.path,
            "kind": change.kind,
            "states": states,
            "conflict": change.conflict,
            "why": [pending.effect.impact, pending.effect.why, pending.reason],
            "labels": list[JSON](sorted(pending.labels)),
        }
    )


def plan_digest(shaped: Record) -> str:
    """Return the digest of a plan as the record `shaped` left it: the last one that wrote steps of it.

    Its number is in it, and no record before it can change.
    """
    place: dict[str, JSON] = {"n": shaped.n, "at": shaped.at, "agent": shaped.agent}
    return digest_of({"what": "plan", **place, "steps": shaped.fields})


def variable_digest(agent: str, name: str, sha256: str, labels: Iterable[str]) -> str:
    """Return the digest of a variable that a person may vouch for: its content, and where it comes from."""
    said: dict[str, JSON] = {"agent": agent, "name": name, "sha256": sha256}
    return digest_of({"what": "variable", **said, "labels": list[JSON](sorted(labels))})


def reading_digest(agent: str, turn: int, labels: Iterable[str]) -> str:
    """Return the digest of everything that an agent has read. `turn`: the record of its last turn."""
    said: dict[str, JSON] = {"agent": agent, "turn": turn}
    return digest_of({"what": "reading", **said, "labels": list[JSON](sorted(labels))})


def policy_digest(was: str, text: str) -> str:
    """Return the digest of a change of the policy: the file as it is, and as it is to be."""
    return digest_of({"what": "policy", "was": was, "text": text})


def together(digests: Iterable[str]) -> str:
    """Return the digest of several things that are agreed to at once, in the order in which they are shown."""
    return digest_of({"what": "list", "of": list(digests)})


def check(seen: str, current: str) -> None:
    """Check that what a person saw is still what it is now. `seen`: its digest, or at least its first 16 digits.

    Raises:
        Changed: it is not.
    """
    if len(seen) < SHORTEST or not current.startswith(seen):
        raise Changed


def check_questions(seen: Sequence[str], questions: Sequence[Record]) -> None:
    """Check the digests of several questions, one for each.

    Raises:
        Changed: one of them is not what the person saw, or has no digest.
    """
    if len(seen) != len(questions):
        raise Changed
    for digest, question in zip(seen, questions, strict=True):
        check(digest, question_digest(question))
