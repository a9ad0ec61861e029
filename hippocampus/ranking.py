"""From candidates to the few lines that an agent reads. Pure, so that every choice can be tested and displayed.

A candidate's relevance is its similarity in meaning plus its share of the query's words, of which rare ones count more:
embeddings blur names, numbers and identifiers. Relevance below the embedder's floor is noise: an agent that needs nothing
gets nothing. Nearly identical candidates are removed, and the best are taken until the token budget is used up.

Who searches also gets what was stated just before or after a match: "We go to Oslo" and then "The hotel is the Bryggen".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from iact.core.ports import MemoryQuestion, Recalled
from iact.hippocampus.statement import Statement
from iact.hippocampus.words import terms

CHARACTERS_PER_TOKEN: Final = 4

_ENOUGH: Final = 4
"""Meaningful words that make an input understandable on its own."""

_TRIED: Final = 3
"""Candidates that are examined for each available place."""

_ALIKE: Final = 0.8
"""The share of common words from which two statements count as the same."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each sign counts. Chosen by `benchmarks.memory`."""

    lexical: float = 0.8
    """What is added to similarity at a full match of words."""
    wish: float = 0.7
    """The share of the floor that a preference needs: a wish resembles its occasions little."""
    neighbour: float = 0.7
    """How much of the difference to a better neighbour is added in a search."""


NEARBY: Final = 8
"""Records of a session within which a statement is beside another: two messages, each with its turn and its answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement with its signs."""

    statement: Statement
    similarity: float
    """The cosine of its text and the query's."""
    lexical: float = 0.0
    """The share of the query's words that it has, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its score."""

    candidate: Candidate
    score: float
    """The higher, the better."""
    why: str
    """The reasons for finding it."""

    @property
    def statement(self) -> Statement:
        return self.candidate.statement


def matched(query: str, hits: Mapping[str, tuple[Statement, float]]) -> list[Candidate]:
    """The candidates with their shares of the query's words. `hits`: statements with their similarity, by id."""
    words = {identity: frozenset(terms(statement.text)) for identity, (statement, _) in hits.items()}
    counts = Counter(word for its_words in words.values() for word in its_words)

    # A word counts the more, the fewer of the candidates have it.
    weights = {word: math.log(1 + len(hits) / (1 + counts[word])) for word in set(terms(query))}
    whole = sum(weights.values())

    candidates: list[Candidate] = []
    for identity, (statement, similarity) in hits.items():
        shared = sum(weight for word, weight in weights.items() if word in words[identity])
        lexical = shared / whole if whole else 0.0
        candidates.append(Candidate(statement, similarity, lexical))
    return candidates


def rank(candidates: Iterable[Candidate], weights: Weights) -> list[Scored]:
    """Every candidate with its score, best first; if equal, the newer one first."""
    scored = [_score(candidate, weights) for candidate in candidates]
    return sorted(scored, key=_best_first)


def rank_beside(candidates: Iterable[Candidate], weights: Weights) -> list[Scored]:
    """The same, with a share of the score of what was stated just before or after."""
    alone = rank(candidates, weights)
    sessions: dict[str, list[Scored]] = {}
    for hit in alone:
        sessions.setdefault(hit.statement.session, []).append(hit)

    scored = [_beside(hit, sessions[hit.statement.session], weights) for hit in alone]
    return sorted(scored, key=_best_first)


def _beside(hit: Scored, session: Sequence[Scored], weights: Weights) -> Scored:
    """The hit with a share of the best score beside it. `session`: the hits of its session."""
    scores = [other.score for other in session if are_beside(hit.statement, other.statement)]
    gain = weights.neighbour * (max(scores, default=0.0) - hit.score)
    if gain <= 0:
        return hit
    return replace(hit, score=hit.score + gain, why=f"{hit.why}, beside a match")


def are_beside(statement: Statement, other: Statement) -> bool:
    """Whether two statements were made just before or after each other in the same session."""
    in_one_session = bool(statement.session) and statement.session == other.session
    is_near = abs(statement.record - other.record) <= NEARBY
    return in_one_session and is_near and statement.id != other.id


def _best_first(hit: Scored) -> tuple[float, float, str]:
    return -hit.score, -hit.statement.when.timestamp(), hit.statement.id


def _score(candidate: Candidate, weights: Weights) -> Scored:
    score = max(0.0, candidate.similarity) + weights.lexical * candidate.lexical
    signs = [f"meaning {candidate.similarity:.2f}"]
    if candidate.lexical:
        signs.append(f"words {candidate.lexical:.2f}")
    return Scored(candidate, score, ", ".join(signs))


def stands_out(candidate: Candidate, floor: float, weights: Weights) -> bool:
    """Whether a candidate is more than noise. Matched words count only a quarter as much here."""
    needed = floor
    if candidate.statement.kind == "preference":
        needed *= weights.wish

    # Words alone are not enough: a rare one matches by chance.
    relevance = candidate.similarity + weights.lexical / 4 * candidate.lexical
    return relevance >= needed and candidate.similarity >= needed / 2


def choose(scored: Iterable[Scored], *, fits: Callable[[Scored], bool], limit: int) -> list[Scored]:
    """The best that `fits` accepts, at most `limit`, without those that say the same as a better one."""
    chosen: list[Scored] = []
    words_of_chosen: list[frozenset[str]] = []
    for hit in islice(scored, _TRIED * limit):
        if len(chosen) == limit:
            break

        words = frozenset(terms(hit.statement.text))
        is_repetition = any(_alike(words, theirs) for theirs in words_of_chosen)
        if not is_repetition and fits(hit):
            chosen.append(hit)
            words_of_chosen.append(words)
    return chosen


def _alike(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether two statements say the same: nearly equal words, and no number that only one of them has."""
    either = mine | theirs
    if not either:
        return True

    differ_in_number = any(any(map(str.isdigit, term)) for term in mine ^ theirs)
    if differ_in_number:
        return False
    return len(mine & theirs) >= _ALIKE * len(either)


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """The product of two vectors: their cosine, since they have unit length."""
    return float(sum(map(float.__mul__, map(float, left), map(float, right))))


def plain(text: str) -> str:
    """Normalise a text for comparison: case and white space."""
    return " ".join(text.casefold().split())


def known(text: str, history: Sequence[str]) -> bool:
    """Whether an agent already has this text: literally, or nearly all its words in one of its messages (`plain`)."""
    whole = plain(text)
    words = set(terms(text))
    for read in history:
        if whole in read:
            return True
        if len(words) >= 4 and sum(term in read for term in words) >= 0.9 * len(words):
            return True
    return False


def wanted(ask: MemoryQuestion) -> str:
    """The text to search for: the agent's current input, with earlier ones if that alone says little."""
    if len(terms(ask.input)) >= _ENOUGH:
        return ask.input
    return "\n".join([ask.input, *ask.recent[-2:]])


def cost(hit: Scored, ask: MemoryQuestion) -> int:
    """The tokens that a statement takes where an agent reads it."""
    return tokens(line(hit.statement, ask.session, ask.now))


def age(at: datetime, now: datetime) -> str:
    """How long ago, in a few words."""
    days = (now - at) // timedelta(days=1)
    if days < 1:
        return "today" if at.date() == now.date() else "yesterday"
    if days == 1:
        return "yesterday"

    # From two of a unit on: "1 years ago" is nobody's English.
    for length, unit in ((365, "year"), (30, "month"), (7, "week")):
        if days >= 2 * length:
            return f"{days // length} {unit}s ago"
    return f"{days} days ago"


def line(statement: Statement, session: str, now: datetime) -> str:
    """A statement as an agent reads it: kind, age, origin, warnings, and its text in quotes that it can't close."""
    signs = [statement.kind, age(statement.when, now)]
    if statement.session == session:
        signs.append(f"from {statement.agent}")
    elif statement.session:
        signs.append("earlier session")

    if statement.untrusted:
        signs.append("UNTRUSTED, from " + ", ".join(statement.untrusted))
    if statement.contradicts:
        signs.append("contradicted by another memory")

    return f"[{', '.join(signs)}] {quoted(statement.text)}"


def quoted(text: str) -> str:
    """A text in quotes that it can't close, in one line."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def recalled(hit: Scored, session: str, now: datetime) -> Recalled:
    """Convert a chosen candidate to the port's type."""
    return told(hit.statement, line(hit.statement, session, now), score=hit.score, why=hit.why)


def told(statement: Statement, as_read: str, *, score: float, why: str) -> Recalled:
    """A statement as the port's type. `as_read`: as an agent reads it."""
    return Recalled(
        id=statement.id,
        text=statement.text,
        kind=statement.kind,
        score=round(score, 4),
        at=statement.at,
        session=statement.session,
        agent=statement.agent,
        line=as_read,
        why=why,
        untrusted=statement.untrusted,
        contradicts=statement.contradicts,
        current=statement.holds,
        subject=statement.subject,
        scope=statement.scope.kind,
    )


def tokens(text: str) -> int:
    """A cautious estimate of the number of tokens."""
    return -(-len(text.encode()) // CHARACTERS_PER_TOKEN) + 1
