"""Prepares an endpoint's text before anything else sees it: makes it storable, and separates the model's reasoning.

An endpoint may send half of a surrogate pair, which JSON can hold and a journal can't: halves are joined if both
arrive, even in separate pieces, and a single half becomes a replacement character. It may also leave a model's
reasoning in the text, in one of the marks of `MARKS`, or in the channels of the harmony format. Reasoning is only a
draft: nothing in it acts, and no other agent reads it. Some models omit the opening mark, because it was in their
prompt: then only the closing mark on its own line shows that everything before it was reasoning.

Pure: pieces in, pieces out, no matter how they were cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.characters import paired
from iact.core.language.scanner import Block, Opened, Scanner

_HIGH: Final = re.compile("[\ud800-\udbff]\\Z")


class Pairs:
    """Joins surrogate pairs, so that each piece of text can be stored."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Take the next piece; returns the text that is now certain."""
        if text.isascii() and not self._half:
            return text

        text = self._half + text
        half = _HIGH.search(text)
        self._half = half.group() if half else ""
        return paired(text[: len(text) - len(self._half)])

    def end(self) -> str:
        """End the text; returns what was held back."""
        half = self._half
        self._half = ""
        return paired(half)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a reply, or of the reasoning before it."""

    text: str
    thought: bool
    """Whether it is reasoning."""
    recast: bool = False
    """Whether everything before is void, and is sent again."""


@dataclass(frozen=True, slots=True)
class ThoughtMark:
    """How one family of models marks its reasoning. Letters match in any case."""

    opening: str
    closing: str


MARKS: Final = (
    ThoughtMark("<think>", "</think>"),
    ThoughtMark("<thinking>", "</thinking>"),
    ThoughtMark("<thought>", "</thought>"),
    ThoughtMark("<thoughts>", "</thoughts>"),
    ThoughtMark("<reasoning>", "</reasoning>"),
    ThoughtMark("<seed:think>", "</seed:think>"),
    ThoughtMark("<|think|>", "<|/think|>"),
    ThoughtMark("<|begin_of_thought|>", "<|end_of_thought|>"),
    ThoughtMark("<|start_thinking|>", "<|end_thinking|>"),
    ThoughtMark("<start_of_thought>", "<end_of_thought>"),
    ThoughtMark("<|channel>thought", "<channel|>"),
    ThoughtMark("<unused94>thought", "<unused95>"),
    ThoughtMark("[THINK]", "[/THINK]"),
    ThoughtMark("◁think▷", "◁/think▷"),
)
"""The marks in use."""

_HEADS: Final = ("<|start|>", "<|channel|>")
"""What begins the header of a message in the harmony format."""

_CONTENT: Final = "<|message|>"
"""What ends such a header; the message's content follows."""

_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>")
"""What ends such a message."""

_HEADER: Final = 300
"""The most characters of a header. What is longer is none, and counts as reasoning that never ends."""

_SAID_IN: Final = ("final", "commentary")
"""The channels of what is said to somebody. All others are reasoning."""

_CHANNEL_NAME: Final = re.compile(r"<\|channel\|>\s*(\w+)", re.ASCII)
_ROLE: Final = re.compile(r"<\|start\|>\s*([\w.]*)", re.ASCII)
_RECIPIENT: Final = re.compile(r"\bto=functions\.([\w.-]+)", re.ASCII)

_SIGN: Final = re.compile(r"[<\[◁]")
"""What any mark begins with. A piece of a reply without these is not searched."""

_QUOTES: Final = "`\"'"
"""A mark in reasoning between two of the same is quoted, and neither ends nor begins it."""

_LONGEST: Final = max(len(mark) for pair in MARKS for mark in (pair.opening, pair.closing))
_MARGINS: Final = ("", " ")
_BARE: Final = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*")


def _pattern(marks: Iterable[str]) -> re.Pattern[str]:
    """Matches any of these marks."""
    return re.compile("|".join(map(re.escape, marks)), re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A kind of reasoning, by what ends it."""

    opens: str
    """What begins it once more inside itself; empty if nothing does."""
    inside: tuple[str, ...]
    """What opens and what closes it, in lower case."""
    pattern: re.Pattern[str]
    """Matches any of `inside`."""


def _draft(opens: str, closings: Iterable[str]) -> _Draft:
    inside = tuple(word.lower() for word in (opens, *closings) if word)
    return _Draft(opens.lower(), inside, _pattern(inside))


_DRAFTS: Final = {mark.opening.lower(): _draft(mark.opening, [mark.closing]) for mark in MARKS}
_CLOSINGS: Final = frozenset(mark.closing.lower() for mark in MARKS)
_UNMARKED: Final = _draft("", sorted(_CLOSINGS))
_CHANNEL: Final = _draft("", (*_HEADS, *_ENDS))

_OPENINGS: Final = (*_DRAFTS, *_HEADS)
_FIRST: Final = _pattern(_OPENINGS)
_WORDS: Final = (*_OPENINGS, *_CLOSINGS, *_ENDS)
_ANY: Final = _pattern(_WORDS)


class _Fences:
    """Follows a reply to know whether a place in it is in a fenced block, where a mark is quoted."""

    def __init__(self) -> None:
        self._scanner = Scanner(lambda name: False)
        self._open = False
        self._line = ""

    def take(self, text: str) -> None:
        """Take the next piece of the reply."""
        for event in self._scanner.feed(text):
            match event:
                case Opened():
                    self._open = True
                case Block():
                    self._open = False
                case _:
                    pass
        self._line = (self._line + text).replace("\r", "\n").rpartition("\n")[2]

    @property
    def begins_line(self) -> bool:
        """Whether a line outside of fenced blocks begins here. What is indented may be in a block of a list item."""
        return not self._open and self._line in _MARGINS

    @property
    def outside(self) -> bool:
        """Whether this is outside of fenced blocks, if the line ended here."""
        return not self._open or _BARE.fullmatch(self._line) is not None


_Place = Literal["before", "reply", "thought", "header"]
"""Where a text is: before a reply or between its parts, in it, in reasoning, in the header of a message."""


class Thoughts:
    """Separates a reply from the reasoning before it and between its parts.

    Inside a reply a mark counts only where it stands at the beginning of a line, outside of fenced blocks: elsewhere
    it is quoted. A closing mark that stands so shows that the reply's beginning was reasoning that nothing marked.

    `unmarked`: unmarked reasoning is expected of this model, so everything counts as reasoning until it ends.
    `closed_alone`: the reply did contain unmarked reasoning.
    """

    def __init__(self, *, unmarked: bool = False) -> None:
        self.closed_alone = False

        # Where the text is.
        self._place: _Place = "thought" if unmarked else "before"
        self._held = ""
        """The text that came and is not passed on yet, because it may contain a mark."""
        self._ended = False
        """Whether all text came."""

        # The reasoning that is read now.
        self._unmarked = unmarked
        """Whether it is only expected to be reasoning, because nothing marked its beginning."""
        self._draft = _UNMARKED
        self._depth = 1
        """How often it was begun and not ended."""
        self._behind = ""
        """Its last character so far."""
        self._fresh = True
        """Whether only blanks followed since it began, or began once more."""

        # The reply as a whole.
        self._marked = False
        """Whether reasoning is marked in this reply, so that its beginning can't have been reasoning without a mark."""
        self._harmony = False
        """Whether it is in the harmony format."""
        self._calls = False
        """Whether the message of the harmony format that is read now is a function call."""
        self._said: list[str] = []
        """The text so far: said, or reasoning whose beginning was not marked."""
        self._read = 0
        """How many pieces of it `_fences` has taken."""
        self._fences = _Fences()

    def feed(self, text: str) -> Iterator[Piece]:
        """Take the next piece; yields what is now certain."""
        if self._place == "reply" and not self._held and not _SIGN.search(text):
            # True for nearly every piece of a reply: it can't contain a mark.
            yield from self._say(text)
            return

        self._held += text
        goes_on = True
        while goes_on and self._held:
            match self._place:
                case "before":
                    goes_on = self._before()
                case "reply":
                    goes_on = yield from self._reply()
                case "thought":
                    goes_on = yield from self._thought()
                case "header":
                    goes_on = yield from self._header()

    def end(self, *, whole: bool = True) -> Iterator[Piece]:
        """End the text; yields what was held back. Reasoning without an end stays reasoning.

        `whole`: the model finished on its own; then text that was only expected to be reasoning was the reply.
        """
        self._ended = True
        if self._place == "thought" and not self._unmarked:
            yield from self._thought()

        rest = self._held
        self._held = ""
        was_the_reply = self._unmarked and whole
        if was_the_reply and (self._said or rest):
            yield Piece("", False, recast=True)
            yield Piece("".join(self._said) + rest, False)
        elif rest:
            yield Piece(rest, self._place in ("thought", "header"))

        if whole:
            yield from self._end_call()

    def marked(self) -> Iterator[Piece]:
        """Note that the endpoint marks reasoning itself, so that the text's beginning is not taken for it."""
        was_expected = self._unmarked
        self._unmarked = False
        self._marked = True
        if not was_expected:
            return

        # What was taken for reasoning so far is the reply.
        text = "".join(self._said) + self._held
        self._held = ""
        self._said = []
        self._place = "before"
        if text:
            self._place = "reply"
            yield Piece("", False, recast=True)
            yield from self._say(text)

    # --- before a reply, and between its parts ----------------------------------------------------

    def _before(self) -> bool:
        """Look for the beginning of reasoning, or of the reply. Returns whether there is more to search."""
        text = self._held.lstrip()
        opening = _FIRST.match(text)
        if opening is not None:
            self._held = text[opening.end() :]
            self._open(opening.group())
            return True

        if not text or _begins(text, _OPENINGS):
            return False
        self._place = "reply"
        return True

    def _open(self, opening: str) -> None:
        """Begin reasoning, or a header."""
        self._marked = True
        if opening.lower() not in _HEADS:
            self._think(_DRAFTS[opening.lower()])
            return

        self._harmony = True
        self._place = "header"
        self._held = opening + self._held

    def _think(self, draft: _Draft) -> None:
        self._place = "thought"
        self._draft = draft
        self._depth = 1
        self._fresh = True
        self._behind = ""

    # --- a reply ----------------------------------------------------------------------------------

    def _reply(self) -> Generator[Piece, None, bool]:
        """Continue the reply up to the next mark that counts. Returns whether there is more to search."""
        if not _SIGN.search(self._held):
            # The fences take it when the first sign comes.
            text = self._held
            self._held = ""
            yield from self._say(text)
            return False

        for piece in self._said[self._read :]:
            self._fences.take(piece)

        seen = 0
        for mark in _ANY.finditer(self._held):
            self._fences.take(self._held[seen : mark.start()])
            seen = mark.start()
            if self._counts(mark.group().lower()):
                yield from self._until(mark)
                return True

        # The end may be the beginning of a mark; the next piece tells.
        upto = len(self._held) - _unfinished(self._held, _WORDS)
        self._fences.take(self._held[seen:upto])
        yield from self._say(self._held[:upto])
        self._read = len(self._said)
        self._held = self._held[upto:]
        return False

    def _counts(self, word: str) -> bool:
        """Whether a mark that stands here in the reply is one, and not quoted."""
        if self._harmony and word in _CHANNEL.inside:
            return self._fences.outside

        # Nothing is open that these could end.
        if word in _ENDS:
            return False
        if word in _CLOSINGS and self._marked:
            return False
        return self._fences.begins_line

    def _until(self, mark: re.Match[str]) -> Iterator[Piece]:
        """End the reply, or a part of it, at this mark."""
        before = self._held[: mark.start()]
        self._held = self._held[mark.end() :]
        word = mark.group().lower()
        if word in _CLOSINGS:
            yield from self._was_thought(before)
            return

        yield from self._say(before)
        self._read = len(self._said)
        if word in _DRAFTS:
            self._open(word)
            return

        yield from self._end_call()
        if word in _HEADS:
            self._open(word)
        else:
            self._place = "before"

    def _say(self, text: str) -> Iterator[Piece]:
        if text:
            self._said.append(text)
            yield Piece(text, False)

    def _was_thought(self, before: str) -> Iterator[Piece]:
        """Take the text so far, which ends in `before`, as reasoning whose beginning was not marked."""
        thought = "".join(self._said) + before
        self.closed_alone = True
        self._marked = True
        self._said = []
        self._read = 0
        self._fences = _Fences()
        self._place = "before"
        yield Piece("", True, recast=True)
        if thought:
            yield Piece(thought, True)

    # --- reasoning --------------------------------------------------------------------------------

    def _thought(self) -> Generator[Piece, None, bool]:
        """Look for the end of the reasoning. Returns whether there is more to search."""
        if self._unmarked and not self._said:
            text = self._held.lstrip()
            if _FIRST.match(text):
                self._place = "before"
                self._unmarked = False  # it is marked after all
                return True
            if _begins(text, _OPENINGS):
                return False

        at = 0
        while (mark := self._draft.pattern.search(self._held, at)) is not None:
            before = self._held[mark.start() - 1] if mark.start() else self._behind
            after = self._held[mark.end() : mark.end() + 1]

            # Between two of the same quotes it is quoted: only the next character tells. Before nothing it waits, too.
            is_last = not after and not self._ended
            if before in _QUOTES and is_last:
                yield from self._think_on(mark.start())
                return False
            is_quoted = bool(before) and before in _QUOTES and after == before
            if is_quoted:
                at = mark.end()
                continue

            if self._passes(mark):
                yield from self._think_on(mark.end())
                at = 0
                continue

            yield from self._think_on(mark.start())
            self._close(mark.group())
            return True

        upto = len(self._held) - _unfinished(self._held, self._draft.inside)
        yield from self._think_on(max(at, upto))
        return False

    def _passes(self, mark: re.Match[str]) -> bool:
        """Count a mark inside the reasoning. Returns whether the reasoning goes on behind it."""
        if mark.group().lower() != self._draft.opens:
            self._depth -= 1
            return self._depth > 0

        # Where a prompt ends in the opening mark, a model may write it once more: that is one beginning.
        doubled = self._fresh and not self._held[: mark.start()].strip()
        if not doubled:
            self._depth += 1
        return True

    def _think_on(self, upto: int) -> Iterator[Piece]:
        """Pass on this much of what is held, as reasoning."""
        thought = self._held[:upto]
        self._held = self._held[upto:]
        if not thought:
            return

        self._behind = thought[-1]
        has_begun_again = bool(self._draft.opens) and thought.lower().endswith(self._draft.opens)
        stays_fresh = self._fresh and not thought.strip()
        self._fresh = has_begun_again or stays_fresh

        if self._unmarked:
            self._said.append(thought)
        yield Piece(thought, True)

    def _close(self, mark: str) -> None:
        """End the reasoning at this mark, which is the first of what is held."""
        if self._unmarked:
            self.closed_alone = True
            self._said = []
        self._unmarked = False
        self._marked = True

        # A header's mark is a part of it, and stays.
        if mark.lower() in _HEADS:
            self._place = "header"
            return
        self._held = self._held[len(mark) :]
        self._place = "before"

    # --- messages of the harmony format -----------------------------------------------------------

    def _header(self) -> Generator[Piece, None, bool]:
        """Read the header of a message. Returns whether there is more to search."""
        header, content, rest = self._held.partition(_CONTENT)
        if not content:
            if len(self._held) <= _HEADER:
                return False
            self._held = self._held.partition("|>")[2]
            self._think(_CHANNEL)
            return True

        self._held = rest
        channel = [*_CHANNEL_NAME.findall(header), "final"][0]
        role = [*_ROLE.findall(header), "assistant"][0]
        is_said = role in ("", "assistant") and channel in _SAID_IN
        if not is_said:
            self._think(_CHANNEL)
            return True

        self._place = "before"
        if self._said and not self._said[-1].endswith("\n"):
            yield from self._say("\n\n")  # a block of this message must begin on a line of its own

        recipient = _RECIPIENT.search(header)
        if recipient is not None:
            self._calls = True
            self._place = "reply"
            name = json.dumps(recipient[1])
            yield from self._say(f'<tool_call>\n{{"name": {name}, "arguments": ')
        return True

    def _end_call(self) -> Iterator[Piece]:
        """End a function call of the harmony format, which is written in the form that most models use."""
        if self._calls:
            self._calls = False
            yield from self._say("}\n</tool_call>\n")


def _begins(text: str, marks: Iterable[str]) -> bool:
    """Whether `text` is the beginning of one of the marks."""
    lowered = text[:_LONGEST].lower()
    return len(text) < _LONGEST and any(mark.startswith(lowered) for mark in marks)


def _unfinished(text: str, marks: Iterable[str]) -> int:
    """How many characters at the end of `text` are the beginning of one of the marks."""
    for at in range(max(0, len(text) - _LONGEST), len(text)):
        if _SIGN.match(text, at) and _begins(text[at:], marks):
            return len(text) - at
    return 0
