"""What a page has and its main part has not: counted and said in a line, with the links that lead on. No I/O."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

LANDMARKS: Final = frozenset(("main", "article", "nav", "header", "footer", "aside"))
"""Elements that say what a part of a page is."""
_NAMES: Final = {
    "nav": ("navigation", "navigations"),
    "header": ("a header", "headers"),
    "article": ("an article", "articles"),
    "aside": ("an aside", "asides"),
    "footer": ("a footer", "footers"),
}
_ENOUGH_LINKS: Final = 3
"""The links of a main part that make those of a navigation superfluous."""
_MOST_LINKS: Final = 25
_LONGEST_LINKS: Final = 1500
_MOST_FRAMES: Final = 5


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a page."""

    kind: str
    """The element that it is, or "page"."""
    start: int
    """Its first line."""
    end: int
    """The line behind its last one."""

    def has_text(self, lines: Sequence[str]) -> bool:
        """Whether there is text in this part."""
        return any(lines[line] for line in range(self.start, self.end))


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a page."""

    text: str
    address: str
    line: int
    """The line that has it."""


@dataclass(slots=True)
class LeftOut:
    """What never becomes text, wherever it stands."""

    fields: int = 0
    """How many fields of forms there are."""
    frames: list[str] = field(default_factory=list)
    """The addresses of other pages that are shown in it."""


def outermost(spans: Iterable[Span], kind: str) -> list[Span]:
    """Return the spans of a kind that are not within another one of it, in order."""
    of_kind = [span for span in spans if span.kind == kind]
    outer: list[Span] = []
    for span in sorted(of_kind, key=lambda span: (span.start, -span.end)):
        is_within = bool(outer) and span.start < outer[-1].end
        if not is_within:
            outer.append(span)
    return outer


def counted(
    left: LeftOut, lines: Sequence[str], kept: Sequence[Span], spans: Sequence[Span], links: Sequence[Link]
) -> str:
    """Say in one line what is not in the parts `kept` of a page with these lines, spans and links.

    The links of its navigation follow in a second line if the parts have hardly any, and those are few: they may be the
    only way to other pages. Else they would be read again with every page of a site. A navigation whose links follow is
    not left out, and so the first line is empty if there is nothing else.
    """
    covered = _Covered(lines)
    covered.add(kept)
    leads_on = sum(covered.has(link.line) for link in links) >= _ENOUGH_LINKS
    navigations = [span for span in outermost(spans, "nav") if covered.characters_left(span)]
    in_navigation = [link for link in links if covered.in_one_of(navigations, link.line)]
    shown = "" if leads_on else _shown(in_navigation)
    named = list[str]()
    if not shown:
        with_links = f" with {_number(len(in_navigation), 'link')}" if in_navigation else ""
        named.append(f"{_in_words('nav', len(navigations))}{with_links}")

    # A header that holds nothing but a navigation is named once.
    covered.add(navigations)
    others = [kind for kind in _NAMES if kind != "nav"]
    parts = {
        kind: [span for span in outermost(spans, kind) if covered.characters_left(span)] for kind in others
    }
    named += [_in_words(kind, len(parts[kind])) for kind in others]

    for kind in others:
        covered.add(parts[kind])
    if rest := covered.characters_left(Span("page", 0, len(lines))):
        named.append(f"{rest:,} characters of other text")
    if left.fields:
        named.append(f"{_number(left.fields, 'field')} of a form")
    if left.frames:
        named.append(f"{_number(len(left.frames), 'frame')} ({', '.join(left.frames[:_MOST_FRAMES])})")

    return f"{', '.join(name for name in named if name)}{shown}"


class _Covered:
    """Which lines of a page have been accounted for."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._covered = bytearray(len(lines))
        self._sums: list[int] = []

    def add(self, spans: Iterable[Span]) -> None:
        """Account for the lines of spans."""
        for span in spans:
            self._covered[span.start : span.end] = b"\1" * (span.end - span.start)

        lengths = [len(line) for line in self._lines]
        for line, is_covered in enumerate(self._covered):
            if is_covered:
                lengths[line] = 0
        self._sums = [0, *itertools.accumulate(lengths)]

    def has(self, line: int) -> bool:
        """Whether a line is accounted for."""
        return line < len(self._covered) and bool(self._covered[line])

    def characters_left(self, span: Span) -> int:
        """How many characters of a span are not accounted for."""
        return self._sums[span.end] - self._sums[span.start]

    def in_one_of(self, spans: Sequence[Span], line: int) -> bool:
        """Whether a line is in one of the spans, which are in order, and not accounted for."""
        at = bisect.bisect_right(spans, line, key=lambda span: span.start) - 1
        return at >= 0 and line < spans[at].end and not self._covered[line]


def _in_words(kind: str, count: int) -> str:
    if not count:
        return ""
    singular, plural = _NAMES[kind]
    return singular if count == 1 else f"{count} {plural}"


def _number(count: int, name: str) -> str:
    return f"{count} {name}s" if count > 1 else f"{count} {name}"


def _shown(links: Sequence[Link]) -> str:
    """The different links of a navigation, if they are few."""
    by_address: dict[str, str] = {}
    for link in links:
        by_address[link.address] = by_address.get(link.address) or link.text
    if not by_address or len(by_address) > _MOST_LINKS:
        return ""

    shown = [f"[{text}]({address})" if text else address for address, text in by_address.items()]
    listed = ", ".join(shown)
    return f"\nNavigation: {listed}" if len(listed) <= _LONGEST_LINKS else ""
