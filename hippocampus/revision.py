"""Detects when a newer statement replaces an older one, repeats it, or contradicts it.

Vectors alone can't tell: "I prefer dark mode" is as near to "I prefer light mode" as to a rewording. So three questions
are asked. Are both about the same thing (a named slot such as "my phone number", or the same kind of wish)? Do they say
different things about it? Which of them can be trusted? Content from outside never replaces what the user or an agent
said; it is marked as contradicting it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from iact.hippocampus.statement import Statement
from iact.hippocampus.words import terms

Relation = Literal["replaces", "contradicts", "none"]

_SLOTS: Final = (
    re.compile(r"\b(?:my|our)\s+(?P<slot>(?:[\w'-]+\s+){0,3}?[\w'-]+)\s+(?:is|are|was)\s+(?:now\s+)?(?P<value>.+)", re.I),
    re.compile(r"\b(?:my|our|the)\s+(?P<slot>(?:[\w'-]+\s+){0,3}?[\w'-]+)\s+listens?\s+on\s+(?P<value>.+)", re.I),
    re.compile(r"\bi\s+(?:now\s+)?(?P<slot>live|work)\s+(?:now\s+)?(?:in|at|for|as)\s+(?P<value>.+)", re.I),
    re.compile(r"\b(?P<slot>call me|name is)\s+(?P<value>.+)", re.I),
    re.compile(r"\b(?:mein|unser)e?\s+(?P<slot>(?:[\w'-]+\s+){0,3}?[\w'-]+)\s+(?:ist|sind|heißt|lautet)\s+(?:jetzt\s+)?(?P<value>.+)", re.I),
    re.compile(r"\b(?P<slot>answer|reply|respond|speak|write)\s+(?:to me\s+)?(?:only\s+)?in\s+(?P<value>\w+)"
               r"(?=\s*(?:[.,;!]|$|from\b|now\b|always\b|instead\b|please\b))", re.I),
)  # fmt: skip
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|don't|doesn't|isn't|aren't|can't|cannot|won't|without|stop|hate|dislike"
    r"|nicht|nie|niemals|kein\w*|ohne|hasse)\b",
    re.I,
)
_CUE: Final = re.compile(
    r"\b(?:no longer|not any\s?more|any\s?more|instead|from now on|changed my mind|actually|switched|these days|now"
    r"|nicht mehr|stattdessen|ab jetzt|künftig|jetzt)\b",
    re.I,
)
_FRAME: Final = frozenset(
    terms(
        """prefer prefers preferred rather love loves hate dislike enjoy favourite favorite always never stop
        longer anymore instead switched changed mind actually future days use using used need everything every
        keep give forget said bevorzuge bevorzugen mag liebe hasse lieber immer nie niemals mehr statt künftig zukunft
        jetzt vergiss möchte will"""
    )
)
"""Words that frame a wish and don't say what it is about."""

_EXCLUSIVE: Final = re.compile(r"\b(?:prefer\w*|always|never|favou?rite|rather|call me|only|use)\b", re.I)

_SAME_NEAR: Final = 0.45
"""The cosine from which two statements may be about one thing, with the built-in model."""

_NEAR_WITH_ONE_END: Final = 0.3
"""The same for statements with the same last word, as in "tea for breakfast" and "rye bread for breakfast"."""


_BEINGS: Final = frozenset(
    terms(
        """brother sister mother father mum mom dad wife husband son daughter friend boss dog cat kid child children
        partner colleague teacher neighbour neighbor uncle aunt grandmother grandfather grandson granddaughter team"""
    )
)
"""Several statements about these can be true at once: "my brother is tall" does not replace "my brother is in Rome"."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What two statements share, and what only one of them says, as terms in order."""

    shared: frozenset[str]
    new: tuple[str, ...]
    """What only the newer one says."""
    old: tuple[str, ...]
    """What only the older one says."""

    @property
    def same(self) -> bool:
        """Whether neither says anything that the other does not."""
        return not self.new and not self.old

    @property
    def overlap(self) -> float:
        """How much of the shorter statement is shared, 0 to 1."""
        shorter = len(self.shared) + min(len(self.new), len(self.old))
        return len(self.shared) / shorter if shorter else 0.0


def topic(text: str) -> list[str]:
    """The terms that say what a statement is about."""
    return [term for term in terms(text) if term not in _FRAME]


def difference(new: str, old: str) -> Difference:
    """Compare two statements."""
    new_terms = dict.fromkeys(topic(new))
    old_terms = dict.fromkeys(topic(old))
    return Difference(
        shared=frozenset(new_terms) & frozenset(old_terms),
        new=tuple(term for term in new_terms if term not in old_terms),
        old=tuple(term for term in old_terms if term not in new_terms),
    )


def slot(text: str) -> tuple[str, str] | None:
    """What a statement is about and what it says of it, both as terms; None if it has no such form."""
    for pattern in _SLOTS:
        match = pattern.search(text.replace("’", "'"))
        if match is None:
            continue

        # A slot may consist of words that carry no meaning alone, such as "call me".
        name = " ".join(terms(match["slot"])) or match["slot"].lower()
        value = " ".join(terms(match["value"]))
        if value and name not in _BEINGS:
            return name, value
    return None


def negative(text: str) -> bool:
    """Whether a statement denies or rejects something."""
    return len(_NEGATION.findall(text.replace("’", "'"))) % 2 == 1


def comparable(new: Statement, old: Statement) -> bool:
    """Whether one could replace the other at all."""
    if new.id == old.id or new.scope.user != old.scope.user or old.replaced_by:
        return False
    if new.withdraws or old.withdraws:
        return True
    return (new.kind == "preference") == (old.kind == "preference")


def relation(new: Statement, old: Statement, near: float) -> Relation:
    """How `new`, the later statement, relates to `old`; `near`: cosine of the two texts."""
    by_text = _says(new, old, near)
    is_less_trusted = bool(new.untrusted) and not old.untrusted
    if by_text == "replaces" and is_less_trusted:
        return "contradicts"
    return by_text


def _says(new: Statement, old: Statement, near: float) -> Relation:
    """The relation by what the texts say, no matter who said it."""
    apart = difference(new.text, old.text)
    if new.withdraws and not old.withdraws and apart.overlap > 0.5:
        return "replaces"

    are_opposed = negative(new.text) != negative(old.text)
    if apart.same:
        return "contradicts" if are_opposed and new.kind != "preference" else "replaces"

    new_slot = slot(new.text)
    old_slot = slot(old.text)
    if new_slot and old_slot and new_slot[0] == old_slot[0]:
        return "replaces"

    # From here on only what may be about one thing is compared.
    needed = _NEAR_WITH_ONE_END if _end_alike(new.text, old.text) else _SAME_NEAR
    if near < needed:
        return "none"
    if new.kind == "preference":
        return _wishes(new, old, apart, are_opposed)
    return "contradicts" if are_opposed and apart.overlap > 0.5 else "none"


def _wishes(new: Statement, old: Statement, apart: Difference, are_opposed: bool) -> Relation:
    """Compare two wishes: the later replaces the earlier if they are about one thing. If unsure, both stay, marked."""
    has_cue = _CUE.search(new.text) is not None
    if not apart.shared:
        return "contradicts" if has_cue else "none"

    says_otherwise = has_cue or are_opposed
    if not says_otherwise and not _exclusive(new.text):
        return "none"

    are_about_one_thing = apart.overlap > 0.5 or _end_alike(new.text, old.text)
    if are_about_one_thing and (apart.new or says_otherwise):
        return "replaces"
    if has_cue and are_opposed:
        return "replaces"
    return "contradicts" if says_otherwise else "none"


def _end_alike(new: str, old: str) -> bool:
    """Whether two statements name the same thing last, which is what a wish is for."""
    return topic(new)[-1:] == topic(old)[-1:]


def _exclusive(text: str) -> bool:
    """Whether a wish excludes others like it: people prefer one thing, but like many."""
    return _EXCLUSIVE.search(text) is not None
