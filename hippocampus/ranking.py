"""From candidates to the few lines that an agent reads. Pure, so that every choice can be tested and displayed.

A candidate's relevance is its similarity in meaning plus its match of rare words, increased by its neighbours in the
conversation and by the time that the question names. Relevance below the embedder's floor is noise and scores nothing:
an agent that needs nothing gets nothing. The rest is weighted by freshness and kind, superseded and nearly identical
candidates are removed, and the best are taken until the token budget is used up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from iact.core.ports import FragmentKind, MemoryQuestion, Recalled
from iact.hippocampus import dates
from iact.hippocampus.extraction import shorten
from iact.hippocampus.fragment import Fragment
from iact.hippocampus.words import terms

CHARACTERS_PER_TOKEN: Final = 4

_ENOUGH: Final = 4
"""Meaningful words that make an input understandable on its own."""

_TRIED: Final = 3
"""Candidates that are examined for each available place."""

_GOAL: Final = 240
"""The most characters of a goal that an agent is shown."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each sign counts. Chosen by `benchmarks/memory`.

    `lexical`, `time`, `when`, `neighbour`: added to similarity at a full match. `half_life`: days until age has taken
    half of what it can take from a fragment of this kind; `age`: the share of its score that age can take. `kind`:
    factors. `alike`: share of common words from which two fragments count as the same. `standing`: share of the floor
    that a preference needs.
    """

    lexical: float = 0.8
    time: float = 0.25
    when: float = 0.08
    neighbour: float = 0.4
    age: float = 0.1
    half_life: Mapping[FragmentKind, float] = field(
        default_factory=lambda: {
            "goal": 90,
            "preference": 720,
            "decision": 360,
            "fact": 180,
            "lesson": 360,
            "result": 60,
        }
    )
    kind: Mapping[FragmentKind, float] = field(
        default_factory=lambda: {
            "goal": 1.0,
            "preference": 1.2,
            "decision": 1.1,
            "fact": 1.0,
            "lesson": 1.1,
            "result": 0.95,
        }
    )
    alike: float = 0.8
    standing: float = 0.7


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fragment with its scores from the stores. `similarity`: cosine; `lexical`: share of rare words matched."""

    fragment: Fragment
    similarity: float
    lexical: float = 0.0


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question. `times`: spans that it names; `when`: it asks for a time."""

    text: str
    now: datetime
    times: tuple[dates.TimeSpan, ...] = ()
    when: bool = False
    leaning: str = ""

    @staticmethod
    def of(text: str, now: datetime) -> Query:
        """Parse a question."""
        named = tuple(dates.spans(text, now))
        return Query(text, now, named, dates.asks_when(text) and not named, dates.leaning(text))


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its score. `relevance`: before age and kind; `why`: the reasons for finding it."""

    candidate: Candidate
    relevance: float
    score: float
    why: str

    @property
    def fragment(self) -> Fragment:
        return self.candidate.fragment


def rank(candidates: Iterable[Candidate], query: Query, weights: Weights) -> list[Scored]:
    """Every candidate with its score, best first; if equal, the newer one first."""
    given = list(candidates)
    own = {one.fragment.id: max(0.0, one.similarity) + weights.lexical * one.lexical for one in given}
    nearby = _neighbours(given, own)
    scored = [_score(one, own[one.fragment.id], nearby[one.fragment.id], query, weights) for one in given]
    return sorted(scored, key=lambda one: (-one.score, -one.fragment.when.timestamp(), one.fragment.id))


def stands_out(one: Candidate, floor: float, weights: Weights) -> bool:
    """Whether a candidate is more than noise. Matched words count only a quarter as much here."""
    needed = floor * (weights.standing if one.fragment.kind == "preference" else 1.0)
    return one.similarity + weights.lexical / 4 * one.lexical >= needed and one.similarity >= needed / 2


def _neighbours(given: Sequence[Candidate], own: Mapping[str, float]) -> dict[str, float]:
    """The relevance of each candidate's best neighbour: said just before or after in the same session."""
    places: dict[tuple[str, int], float] = {}
    for one in given:
        place = (one.fragment.session, one.fragment.record)
        places[place] = max(places.get(place, 0.0), own[one.fragment.id])
    return {
        one.fragment.id: max(
            (places.get((one.fragment.session, one.fragment.record + step), 0.0) for step in (-2, -1, 1, 2)),
            default=0.0,
        )
        for one in given
    }


def _score(one: Candidate, own: float, nearby: float, query: Query, weights: Weights) -> Scored:
    fragment = one.fragment
    near_time = _time(fragment, query)
    relevance = own + weights.neighbour * max(0.0, nearby - own)
    relevance += weights.time * near_time
    tells = query.when and own > 0 and dates.tells_when(fragment.text)
    if tells:
        relevance += weights.when
    fresh = freshness(fragment, query.now, weights)
    if query.leaning:
        old = 1 - fresh
        fresh = (fresh if query.leaning == "newest" else old) ** 2
    score = relevance * (1 - weights.age + weights.age * fresh) * weights.kind[fragment.kind]
    signs = [f"meaning {one.similarity:.2f}"]
    if one.lexical:
        signs.append(f"words {one.lexical:.2f}")
    if near_time:
        signs.append(f"time {near_time:.2f}")
    if tells:
        signs.append("tells when")
    if nearby > own:
        signs.append("beside a match")
    signs.append(f"fresh {fresh:.2f}")
    return Scored(one, relevance, score, ", ".join(signs))


def _time(fragment: Fragment, query: Query) -> float:
    """How near the fragment's times are to the times that the question names, 0 to 1."""
    if not query.times:
        return 0.0
    spoken = dates.spans(fragment.text, fragment.when) or [dates.day_of(fragment.when)]
    return max(mine.near(theirs) for mine in spoken for theirs in query.times)


def freshness(fragment: Fragment, now: datetime, weights: Weights) -> float:
    """1 for a new fragment, halving with each half-life of its kind."""
    days = max(timedelta(0), now - fragment.when) / timedelta(days=1)
    return math.exp2(-days / weights.half_life[fragment.kind])


def choose(
    scored: Iterable[Scored], weights: Weights, *, fits: Callable[[Scored], bool], limit: int
) -> list[Scored]:
    """The best that `fits` accepts, at most `limit`, without those that say the same as a better one."""
    chosen: list[tuple[Scored, frozenset[str]]] = []
    for one in islice(scored, _TRIED * limit):
        if len(chosen) == limit:
            break
        words = frozenset(terms(one.fragment.text))
        if not any(_alike(words, theirs, weights.alike) for _, theirs in chosen) and fits(one):
            chosen.append((one, words))
    return [one for one, _ in chosen]


def _alike(mine: frozenset[str], theirs: frozenset[str], share: float) -> bool:
    """Whether two fragments say the same: nearly equal words, and no number that only one of them has."""
    either = mine | theirs
    if not either:
        return True
    figures = any(any(map(str.isdigit, term)) for term in mine ^ theirs)
    return not figures and len(mine & theirs) >= share * len(either)


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """The product of two vectors: their cosine, since they have unit length."""
    return float(sum(map(float.__mul__, map(float, left), map(float, right))))


def plain(text: str) -> str:
    """Normalise a text for comparison: case and white space."""
    return " ".join(text.casefold().split())


def known(text: str, history: Sequence[str]) -> bool:
    """Whether an agent already has this text: literally, or nearly all its words in one of its messages (`plain`)."""
    whole = plain(text)
    wanted = set(terms(text))
    for read in history:
        if whole in read:
            return True
        if len(wanted) >= 4 and sum(term in read for term in wanted) >= 0.9 * len(wanted):
            return True
    return False


def wanted(ask: MemoryQuestion) -> str:
    """The text to search for: the agent's current input, with earlier ones if that alone says little."""
    if len(terms(ask.input)) >= _ENOUGH:
        return ask.input
    return "\n".join([ask.input, *ask.recent[-2:]])


def cost(one: Scored, ask: MemoryQuestion) -> int:
    """The tokens that a fragment takes where an agent reads it."""
    return tokens(line(one.fragment, ask.session, ask.now))


def pinned(goals: Sequence[Fragment], ask: MemoryQuestion) -> list[Scored]:
    """The goals that an agent does not know and that fit half its budget: they need not resemble its task."""
    chosen: list[Scored] = []
    room = ask.tokens // 2
    read = [plain(one) for one in (*ask.history, ask.input)]
    for goal in goals:
        shown = Scored(
            Candidate(replace(goal, text=shorten(goal.text, _GOAL)), 0.0), 0.0, 1.0, "goal of the whole"
        )
        if cost(shown, ask) <= room and not known(goal.text, read):
            room -= cost(shown, ask)
            chosen.append(shown)
    return chosen


def closed(task: str) -> bool:
    """Whether a task is complete in itself, so that no larger goal can help: `add 17 and 25`."""
    left = [term for term in terms(task) if not term.isdigit() and term not in _MECHANICAL]
    return not left


_MECHANICAL: Final = frozenset(
    terms(
        """add sum subtract multiply divide compute calculate count number numbers result value print echo return
        plus minus times square root convert round sort reverse total difference product average date time now
        today hello ping test say"""
    )
)


def age(at: datetime, now: datetime) -> str:
    """How long ago, in a few words."""
    days = (now - at) // timedelta(days=1)
    if days < 1:
        return "today" if at.date() == now.date() else "yesterday"
    if days == 1:
        return "yesterday"
    for length, unit in ((365, "year"), (30, "month"), (7, "week")):
        if days >= 2 * length:
            return f"{days // length} {unit}s ago"
    return f"{days} days ago"


def line(fragment: Fragment, session: str, now: datetime) -> str:
    """A fragment as an agent reads it: kind, age, origin, warnings, and its text in quotes that it can't close."""
    signs = [fragment.kind, age(fragment.when, now)]
    if fragment.session == session:
        signs.append(f"from {fragment.agent}")
    elif fragment.session:
        signs.append("earlier session")
    if fragment.untrusted:
        signs.append("UNTRUSTED, from " + ", ".join(fragment.untrusted))
    if fragment.contradicts:
        signs.append("contradicted by another memory")
    return f"[{', '.join(signs)}] {json.dumps(' '.join(fragment.text.split()), ensure_ascii=False)}"


def recalled(one: Scored, session: str, now: datetime) -> Recalled:
    """Convert a chosen candidate to the port's type."""
    fragment = one.fragment
    return Recalled(
        id=fragment.id,
        text=fragment.text,
        kind=fragment.kind,
        score=round(one.score, 4),
        at=fragment.at,
        session=fragment.session,
        agent=fragment.agent,
        line=line(fragment, session, now),
        why=one.why,
        untrusted=fragment.untrusted,
        contradicts=fragment.contradicts,
        current=not fragment.superseded_by,
    )


def tokens(text: str) -> int:
    """A cautious estimate of the number of tokens."""
    return -(-len(text.encode()) // CHARACTERS_PER_TOKEN) + 1
