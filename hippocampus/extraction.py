"""Chooses what to remember of an event: pure functions from an event to fragments.

    a user's message   the goal, if it opens the session, else a fact; each preference in it separately
    REMEMBER           as the agent asked, a fact by default
    a reply            its result: the first sentences, where agents state the outcome
    a failure          a lesson
    a correction       a lesson; each preference in it separately
    text that was cut  results, by passage

This also decides who can see a fragment later. Statements of the user belong to the user, and agents' findings belong
to the project, if there is one. Content from outside never reaches the user's own scope, so that a poisoned page can't
affect a later session about something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from iact.core.ports import FragmentKind, MemoryEvent
from iact.hippocampus.fragment import Fragment, MemoryScope, fragment_id
from iact.hippocampus.words import terms

PASSAGE: Final = 480
"""The most characters of one fragment; about 120 tokens."""

_PASSAGES: Final = 12
"""The most fragments from one event."""

_TELLING: Final = 3
"""Meaningful words that are needed for a goal."""

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_PREFERENCE: Final = re.compile(
    r"""\bi(?:'d|\s+would)?\s+(?:really\s+|much\s+|now\s+|also\s+|still\s+|always\s+|usually\s+|no\s+longer\s+|don't\s+|do\s+not\s+)*
          (?:prefer|rather|like|love|hate|dislike|enjoy|want\s+you\s+to|can't\s+stand|need\s+you\s+to)\b
      | \bmy\s+favou?rite\b | \bmy\s+preferred\b | \bcall\s+me\b | \bfrom\s+now\s+on\b | \bin\s+(?:the\s+)?future,
      | ^(?:please\s+)?(?:always|never|don't\s+ever|stop)\b | \bplease\s+(?:always|never)\b
      | \b(?:answer|reply|respond|write|speak)\s+(?:to\s+me\s+)?(?:only\s+)?in\s+\w+ """,
    re.I | re.X,
)


def is_preference(sentence: str) -> bool:
    """Whether a sentence of the user expresses a wish beyond the current task."""
    text = sentence.replace("’", "'").strip()
    return not text.endswith("?") and _PREFERENCE.search(text) is not None


def fragments_of(event: MemoryEvent, user: str) -> tuple[Fragment, ...]:
    """The fragments that an event leaves in `user`'s memory; may be empty."""
    parts = list(_parts(event))[:_PASSAGES]
    made = [_fragment(event, user, kind, text, n) for n, (kind, text) in enumerate(parts)]
    return tuple(replace(one, supersedes=event.supersedes) if one is made[0] else one for one in made)


def _parts(event: MemoryEvent) -> Iterator[tuple[FragmentKind, str]]:
    match event.occasion:
        case "say":
            yield from _said(event, "goal" if event.first else "fact")
        case "correction":
            yield from _said(event, "lesson")
        case "remember":
            kind: FragmentKind = event.kind or "fact"
            if kind == "preference" and event.untrusted:
                kind = "fact"
            yield from ((kind, passage) for passage in passages(event.text))
        case "reply":
            yield from (("result", passage) for passage in passages(event.text)[:1])
        case "failure":
            yield from (("lesson", passage) for passage in passages(event.text)[:1])
        case "cut":
            yield from (("result", passage) for passage in passages(event.text))


def _said(event: MemoryEvent, kind: FragmentKind) -> Iterator[tuple[FragmentKind, str]]:
    """The message without its preferences (unless a goal consists of nothing else), followed by these."""
    told = sentences(event.text)
    wishes = [] if event.untrusted else [one for one in told if is_preference(one)]
    rest = "\n".join(one for one in told if one not in wishes)
    whole = event.text if kind == "goal" and len(terms(rest)) < _TELLING else rest
    yield from ((kind, passage) for passage in passages(whole)[: _PASSAGES - len(wishes)])
    yield from (("preference", shorten(wish)) for wish in wishes)


def _fragment(event: MemoryEvent, user: str, kind: FragmentKind, text: str, ordinal: int) -> Fragment:
    fragment = Fragment(
        id=fragment_id(event.session, event.record, ordinal),
        text=text,
        kind=kind,
        scope=MemoryScope(user, "user"),
        session=event.session,
        agent=event.agent,
        at=event.at,
        record=event.record,
        occasion=event.occasion,
        untrusted=event.untrusted,
    )
    return replace(fragment, scope=_scope(event, fragment))


def _scope(event: MemoryEvent, fragment: Fragment) -> MemoryScope:
    """The narrowest scope in which the fragment can help."""
    user = fragment.scope.user
    session = MemoryScope(user, "session", event.session)
    project = MemoryScope(user, "project", event.project) if event.project else None
    if fragment.untrusted and event.scope != "session":
        return project or session
    if event.scope:
        wanted = {"person": MemoryScope(user, "user"), "project": project or session, "session": session}
        return wanted[event.scope]
    if event.occasion in ("say", "correction") or fragment.kind == "preference":
        return MemoryScope(user, "user")
    if event.occasion == "cut":
        return session
    if event.occasion == "remember" or event.agent == "/":
        return project or MemoryScope(user, "user")
    return project if project and fragment.kind == "lesson" else session


def sentences(text: str) -> list[str]:
    """Sentences and lines, stripped of white space."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def shorten(text: str, limit: int = PASSAGE) -> str:
    """One line of at most `limit` characters, cut between words."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    return line[: limit - 1].rsplit(" ", 1)[0].rstrip() + "…"


def passages(text: str, limit: int = PASSAGE) -> list[str]:
    """The text in pieces of whole sentences, each at most `limit` characters. Pieces without words are left out."""
    found: list[str] = []
    current = ""
    for sentence in sentences(text):
        joined = f"{current} {sentence}".strip()
        if len(joined) <= limit:
            current = joined
            continue
        if current:
            found.append(current)
        current = shorten(sentence, limit)
    if current:
        found.append(current)
    return [" ".join(piece.split()) for piece in found if re.search(r"\w", piece)]
