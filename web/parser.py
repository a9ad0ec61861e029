"""The Markdown parser, with limits that it lacks by default: the time for every text is proportional to its length.

markdown-it-py searches for the end of a link's or image's label from every bracket, and so again from each of the
brackets within it, up to a hundred deep: 90 kB of `![` took 5 to 16 seconds. Here a text has a budget of steps for that
search, several times what ordinary text needs; when it is spent, further brackets are text. All other rules were
measured to be linear (`benchmarks.rendering` verifies this).

It also silently leaves out whatever is nested more than a hundred deep. Here that is an error instead.

Linear is not free: the worst patterns take some 13 µs for each character. So a caller can limit the time as well, with
`bounded`, in a separate process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType
from markupsafe import Markup

from iact.web import formulas

_STEPS: Final = "label steps"
_STEPS_PER_CHARACTER: Final = 4
_NESTING: Final = 100
_LAST: Final = -1
"""The key in the parser's cache of a text, which is indexed by position, for the position of its last closing
bracket."""


class TooComplex(BaseException):
    """The time limit of a text has passed. Not an `Exception`: no rule of the parser may swallow it."""


class NoTimeToSpare(TooComplex):
    """Half of the time for a text has passed: optional decoration is left out."""


class TooDeep(ValueError):
    """A text is nested deeper than the parser follows; it would leave out the rest."""


def build(renderer: type[RendererHTML]) -> MarkdownIt:
    """A parser that runs in linear time and treats raw HTML as text."""
    parser = MarkdownIt(
        "js-default", {"html": False, "linkify": False, "maxNesting": _NESTING}, renderer_cls=renderer
    )
    # Every address passes, so that an address that isn't linked is still shown; the renderer decides which to link.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.helpers = SimpleNamespace(  # type: ignore[assignment]
        parseLinkLabel=_label_end, parseLinkDestination=parseLinkDestination, parseLinkTitle=parseLinkTitle
    )
    formulas.add_to(parser)
    return parser


def render(parser: MarkdownIt, text: str, env: EnvType) -> str:
    """The HTML of `text`.

    Raises:
        TooDeep: a part of it would be missing.
        TooComplex: the time limit of `bounded` has passed.
    """
    env[_STEPS] = _STEPS_PER_CHARACTER * len(text) + 1000
    if _clock.over:
        raise TooComplex
    try:
        _clock.parsing = True
        tokens = parser.parse(text, env)
        if any(token.level >= _NESTING - 1 for token in tokens):
            raise TooDeep(f"It is nested more than {_NESTING} levels deep.")
        return _written(parser, tokens, env)
    finally:
        _clock.parsing = False


def _written(parser: MarkdownIt, tokens: Sequence[Token], env: EnvType) -> str:
    html: str = parser.renderer.render(tokens, parser.options, env)
    return html


def _label_end(state: StateInline, start: int, disableNested: bool = False) -> int:
    """Where the label that begins at `start` ends, or -1 (`markdown_it.helpers.parseLinkLabel`, bounded)."""
    last = state.cache.get(_LAST)
    if last is None:
        last = state.cache[_LAST] = state.src.rfind("]")
    left = state.env[_STEPS]
    if start >= last or left <= 0:
        return -1
    begun, level, found, steps = state.pos, 1, -1, 0
    state.pos = start + 1
    while state.pos < state.posMax and steps < left:
        steps += 1
        marker, before = state.src[state.pos], state.pos
        if marker == "]":
            level -= 1
            if level == 0:
                found = before
                break
        state.md.inline.skipToken(state)
        if marker == "[":
            if before == state.pos - 1:
                level += 1
            elif disableNested:
                break
    state.pos = begun
    state.env[_STEPS] -= steps
    return found


# --- time -------------------------------------------------------------------------------------------


class _Clock:
    """The processor time that is left for parsing, in a process that has a timer for it."""

    def __init__(self) -> None:
        self.parsing = False
        self.over = False
        self.spare = self.adorning = False
        self._end = 0.0

    @contextmanager
    def running(self, seconds: float) -> Iterator[None]:
        """Limit the processor time for parsing within the context."""
        before = signal.signal(signal.SIGPROF, self._ring)
        self.spare, self._end = True, time.process_time() + seconds
        # Repeatedly: an exception that a garbage collector's callback swallows is raised again.
        signal.setitimer(signal.ITIMER_PROF, seconds / 2, 0.01)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
            self.over = self.parsing = self.spare = self.adorning = False

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self.spare = False
        if time.process_time() >= self._end:
            self.over = True
            if self.parsing:
                raise TooComplex
        if self.adorning:
            raise NoTimeToSpare


_clock: Final = _Clock()


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Limit all parsing within the context to `seconds` of processor time in total; beyond that it raises `TooComplex`.

    Only for the main thread of a process that does nothing else, since it uses the process's profiling timer.
    """
    with _clock.running(seconds):
        yield


def in_spare_time(make: Callable[[], Markup | None]) -> Markup | None:
    """The result of `make`, or None if there is no time to spare: everywhere except in the first half of `bounded`."""
    if not _clock.spare:
        return None
    try:
        _clock.adorning = True
        return make()
    except NoTimeToSpare:
        return None
    finally:
        _clock.adorning = False
