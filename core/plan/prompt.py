"""Builds every question about a plan out of parts, within the window of the model that answers it.

A question is a list of `QuestionPart`s: the person's words, what ran, which functions there are, in which form to answer. If they
all fit, they stand there whole. Otherwise each part gets a share of the room, what a part doesn't need goes to the others,
and a part that is too long is shortened: each of its items by the one cut that there is (`core.context.excerpt`), then the
items in the middle to their short forms. What would lose most of itself can be put into fewer words by a model first
(`overlong`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from iact.core.context.excerpt import excerpt
from iact.core.context.tokens import estimate
from iact.core.language.labels import fenced

PartName = Literal[
    "words", "task", "goal", "conversation", "known", "files", "memory", "functions", "steps", "ran", "running",
    "planned", "attempts", "subject", "issues", "rules", "ways", "form",
]  # fmt: skip

UNLIMITED: Final = 1 << 20
"""The window of a model of which none is known."""

_MOST: Final = 60_000
"""The most tokens of a question in any window: what is longer costs more than it helps."""

_LEAST: Final = 160
"""The fewest characters that are kept of an item, before whole items are shortened to their short forms."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a part, such as one result."""

    text: str
    """The entry as it is read if there is room."""
    short: str = ""
    """What is said of it if there is no room for more; empty: nothing."""
    id: str = ""
    """The step that it is about, if a model may put it into fewer words."""


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """One part of a question."""

    name: PartName
    head: str
    """What stands before its items."""
    items: tuple[Item, ...] = ()
    share: float = 0.0
    """Its share of the room, as a weight among the parts that can be shortened; 0: it always stands whole."""
    between: str = "\n"
    """What stands between two items."""
    compacts: bool = False
    """Whether a model may put its items into fewer words."""

    @property
    def whole(self) -> str:
        """The part as it stands if there is room."""
        return self._written([item.text for item in self.items])

    def within(self, tokens: int) -> str:
        """The part in about this many tokens."""
        shown = [item.text for item in self.items]
        limit = max(map(len, shown), default=0)
        while limit > _LEAST and estimate(self._written(shown)) > tokens:
            limit = max(_LEAST, limit * 3 // 4)
            shown = [excerpt(item.text, limit) for item in self.items]

        # The first and the last items say most: where it began, and where it is now.
        for place in _from_the_middle(len(shown)):
            if estimate(self._written(shown)) <= tokens:
                break
            shown[place] = self.items[place].short

        left = [text for text in shown if text]
        if len(left) < len(shown):
            left.insert((len(left) + 1) // 2, f"[… {len(shown) - len(left)} more are left out …]")
        return self._written(left)

    def _written(self, items: Sequence[str]) -> str:
        return "\n".join(one for one in (self.head, self.between.join(items)) if one)


def text_part(name: PartName, text: str, share: float = 0.0) -> QuestionPart:
    """A part that is one text."""
    return QuestionPart(name, "", (Item(text),), share)


def build(parts: Iterable[QuestionPart], window: int = UNLIMITED) -> str:
    """Build the question for a model whose window has this many tokens."""
    shown = [part for part in parts if part.items or part.head]
    allotted = _allotted(shown, window)
    texts = [
        part.within(allotted[place]) if place in allotted else part.whole for place, part in enumerate(shown)
    ]
    return "\n\n".join(text for text in texts if text)


def overlong(parts: Iterable[QuestionPart], window: int) -> list[tuple[QuestionPart, int]]:
    """The parts that a model should put into fewer words, each with the tokens that there are for it.

    Those are the ones that would lose more than half of themselves.
    """
    shown = [part for part in parts if part.items or part.head]
    return [
        (shown[place], tokens)
        for place, tokens in _allotted(shown, window).items()
        if shown[place].compacts and estimate(shown[place].whole) > 2 * tokens
    ]


def replaced(part: QuestionPart, shorter: Mapping[str, str]) -> QuestionPart:
    """The part with items in fewer words. `shorter`: by the ids of the items."""
    items = (
        replace(item, text=f"{item.short}\nIn fewer words:\n{fenced(shorter[item.id])}")
        if item.id in shorter
        else item
        for item in part.items
    )
    return replace(part, items=tuple(items))


def room_in(window: int) -> int:
    """The most tokens of a question: the rest of the window is for the form of the answer, and for the answer."""
    return min(_MOST, window * 5 // 8)


def window_for(tokens: int) -> int:
    """The window in which a question has this much room."""
    return tokens * 8 // 5


def _allotted(parts: Sequence[QuestionPart], window: int) -> dict[int, int]:
    """How many tokens each part gets that must be shortened, by its place. Empty if everything fits."""
    sizes = [estimate(part.whole) for part in parts]
    room = room_in(window)
    if sum(sizes) <= room:
        return {}

    open_ = {place: part.share for place, part in enumerate(parts) if part.share}
    fixed = sum(size for place, size in enumerate(sizes) if place not in open_)
    left = max(room - fixed, room // 4)

    # What one part doesn't need of its share is for the others, until only parts are left that need more than theirs.
    while open_:
        weight = sum(open_.values())
        content = [place for place, share in open_.items() if sizes[place] <= left * share / weight]
        if not content:
            return {place: int(left * share / weight) for place, share in open_.items()}
        for place in content:
            left -= sizes[place]
            del open_[place]
    return {}


def _from_the_middle(count: int) -> list[int]:
    """The places of `count` items, from the middle outwards."""
    return sorted(range(count), key=lambda place: abs(2 * place - (count - 1)))
