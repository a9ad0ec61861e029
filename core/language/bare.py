"""Actions that are written as one line without a fence: `WAIT any`, `HELP docs`, ```` ```SHOW run_1``` ````.

The fixed prompt names actions in that way, so models write them in that way. A line is an action if it is nothing but
the name of one that needs no body, with arguments that name what exists. Everything else that only looks like an action
stays text, of which `left` tells: its author must not wait for what was never begun.

Pure. What is read as an action is rewritten before a reply is recorded (`core.language.rewriting`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from iact.core.language import unread
from iact.core.language.actions import (
    ANSWER,
    CALL,
    CALL_ASYNC,
    COMPRESS,
    DEPLOY,
    FUNCTION,
    HELP,
    LOAD,
    PLAN,
    QUERY,
    RECALL,
    REMEMBER,
    SHOW,
    SKILL,
    VAR,
    WAIT,
    ActionSpec,
    Registry,
)
from iact.core.language.containers import IN_LIST
from iact.core.language.grammar import Bound
from iact.core.language.lenient import read_action
from iact.core.language.scanner import Block
from iact.core.language.variables import Value

_ALONE: Final = frozenset({spec.name for spec in (ANSWER, HELP, LOAD, QUERY, RECALL, SHOW, SKILL, WAIT)})
"""Core actions that need no body."""

_WITH_BODY: Final = frozenset(
    {spec.name for spec in (CALL, CALL_ASYNC, COMPRESS, DEPLOY, PLAN, REMEMBER, VAR)}
)
"""Core actions whose line alone is never what was meant."""

_NAMES: Final = "|".join(sorted(_ALONE | _WITH_BODY, key=len, reverse=True))
_MARKER: Final = re.compile(IN_LIST)
_MARKS: Final = re.compile(r"(?P<mark>`{1,6}|\*\*|__)(?P<inside>.+)(?P=mark)")
_CORE: Final = re.compile(rf"(?P<name>{_NAMES})(?:[ \t]+(?P<rest>\S.*))?")
_FUNCTION: Final = re.compile(rf"(?P<name>{FUNCTION})(?:[ \t]+(?P<rest>\S.*))?")
_SMALL: Final = "|".join(f"[{name[0]}{name[0].lower()}]{name[1:].lower()}" for name in _NAMES.split("|"))
ANYWHERE: Final = re.compile(
    rf"^{IN_LIST}"
    rf"(?:(?:[*_]{{0,4}}`{{0,2}}|[*_]{{0,4}}`{{3,6}}(?=[^`\n]+`))(?:{_NAMES})(?![\w.:])|`+[a-z]\w*\.[a-z][^`\n]*`)",
    re.MULTILINE,
)
"""How such a line begins."""
_LEFT: Final = re.compile(
    rf"{ANYWHERE.pattern}|^[ \t]*(?:`{{3,}}|~{{3,}})[ \t]*(?:{_SMALL})\b"
    r"|\A\s*(?:`{3,}\w*\s+)?[a-z]\w*\.[a-z]\w*",
    re.MULTILINE,
)
_ENDS_SENTENCE: Final = re.compile(r".*[.!?…:;,]")
_PLAIN_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_FOLDER: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_NUMBERED: Final = re.compile(r"\$?[A-Za-z_]\w*_\d+|\$[A-Za-z_]\w*")
_PLAN_BELOW: Final = re.compile(r"\s*(?:goal|steps)[ \t]*:")
_CALLED: Final = re.compile(r"\bCALL(?:_ASYNC)?[ \t]+(?:name=)?[\"']?([A-Za-z][\w-]*)")

_NAMED: Final = re.compile(
    r"(?P<owner>[A-Za-z]\w*)(?:[ \t]*[.:/][ \t]*|[ \t]+)(?P<tail>[A-Za-z]\w*)(?:[ \t(]+(?P<rest>\S.*))?"
)
_UNKNOWN: Final = re.compile(r"(?P<name>[A-Z][A-Z_]{2,}|[A-Za-z]\w*\.[A-Za-z]\w*)[ \t]+\w+=\S.*")

_LONGEST: Final = 300
"""The most characters of a line that is read as an action."""

_WORDS: Final = 12
"""The most words that a line without a fence searches memory for; more are a sentence."""

_FEW: Final = 2
"""The most words behind a name that are no sentence, whatever they end with."""

_MEANT: Final = 6
"""The most words of a line that looks like an action although it is none."""

_MOST_LINES: Final = 256
"""The most lines and blocks of which it is tried whether they are actions: trying takes time, and few are named."""

_NOT_BLANK: Final = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Known:
    """What the arguments of a line may name."""

    children: Collection[str] = ()
    """The names of its author's children."""
    variables: Mapping[str, Value] = field(default_factory=dict)
    """Its author's variables."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is nothing but a name and what stands behind it."""

    name: str
    rest: str
    code: bool
    """Whether it is in inline code, or in a fence that is closed on the same line."""
    bold: bool
    listed: bool
    """Whether it is a list item."""

    @property
    def info(self) -> str:
        """The line without its marks."""
        return f"{self.name} {self.rest}".strip()


def may_stand_in(text: str) -> bool:
    """Whether a text may hold such a line."""
    return ANYWHERE.search(text) is not None


def may_be_left(text: str) -> bool:
    """Whether `left` may find something in a reply, as it does in few."""
    return _LEFT.search(text) is not None


def line_of(text: str) -> Line | None:
    """Read one line; None if it is anything else than a name with arguments."""
    if len(text) > _LONGEST:
        return None
    marker = _MARKER.match(text)
    assert marker is not None
    inside = text[marker.end() :].strip()

    code = False
    bold = False
    while (marks := _MARKS.fullmatch(inside)) is not None:
        inside = marks["inside"].strip()
        code = code or marks["mark"][0] == "`"
        bold = bold or marks["mark"][0] != "`"
    if "`" in inside:
        return None

    match = _CORE.fullmatch(inside)
    if match is None and code:
        match = _FUNCTION.fullmatch(inside)
    if match is None:
        return None

    rest = (match["rest"] or "").strip()
    return Line(match["name"], rest, code, bold, listed=bool(marker.group().strip()))


def called_in(text: str) -> frozenset[str]:
    """The names of the children that a reply itself may create."""
    return frozenset(match.group(1) for match in _CALLED.finditer(text))


def runs(line: Line, registry: Registry, known: Known) -> bool:
    """Whether a line of a reply is an action."""
    spec = registry.find(line.name)
    if not isinstance(spec, ActionSpec) or line.name in _WITH_BODY:
        return False
    if not spec.core and line.listed and not line.rest:
        return False  # a list of what there is

    bound = read_action(spec, line.info, None, known.variables)
    if not isinstance(bound, Bound):
        return False
    return not spec.core or _names_what_exists(line, registry, known, bound)


def _names_what_exists(line: Line, registry: Registry, known: Known, bound: Bound) -> bool:
    """Whether what an action's arguments name is there; what names nothing is rather a sentence."""
    arguments = bound.arguments
    names = str(arguments.get("names", arguments.get("name", ""))).replace(",", " ").split()
    match line.name:
        case ANSWER.name:
            return not line.rest
        case HELP.name:
            return all(name.lower() in registry.helped for name in names)
        case WAIT.name | QUERY.name:
            return all(name in {"any", "all"} or name in known.children for name in names)
        case SHOW.name:
            if {"lines", "chars"} & arguments.keys():
                return True
            return all(_may_be_variable(name, known) for name in names)
        case RECALL.name:
            is_short = len(line.rest.split()) <= _WORDS
            return is_short and (line.code or not _ENDS_SENTENCE.fullmatch(line.rest))
        case LOAD.name:
            return all(_PLAIN_WORD.fullmatch(name) for name in names)
        case SKILL.name:
            return _FOLDER.fullmatch(line.rest) is not None
        case _:
            return False


def _may_be_variable(name: str, known: Known) -> bool:
    """Whether a word is a variable's name, or looks like one that there may be later in the same reply."""
    return name.lstrip("$") in known.variables or _NUMBERED.fullmatch(name) is not None


def is_heading(line: Line, text: str, end: int) -> bool:
    """Whether a line that ends at `end` is rather the heading of what stands behind it: it is bold, or has a text right
    below it."""
    if line.rest or line.code:
        return False

    below = _NOT_BLANK.search(text, end)
    if below is None or not _is_text(_line_at(text, below.start())):
        return False
    return line.bold or not text.startswith("\n", end)


def is_in_paragraph(line: Line, text: str, start: int, end: int) -> bool:
    """Whether the line `text[start:end]` stands among the lines of a sentence."""
    if line.code or line.listed:
        return False

    above_ends = start
    if start > 0 and text.startswith("\n", start - 1):
        above_ends = start - 1
    above = text[text.rfind("\n", 0, above_ends) + 1 : above_ends]
    return _is_text(above) and _is_text(_line_at(text, end))


def _line_at(text: str, start: int) -> str:
    """The line of a text from `start` on, without its end."""
    end = text.find("\n", start)
    return text[start:] if end < 0 else text[start:end]


def _is_text(line: str) -> bool:
    """Whether a line is neither empty nor a fence nor an action."""
    written = line.strip()
    return bool(written) and not written.startswith(("```", "~~~")) and line_of(written) is None


def left(text: str, blocks: Sequence[Block], registry: Registry) -> tuple[str, ...]:
    """Lines of a recorded reply that look like actions and were not read as such.

    If the reply does nothing else, only those at its end count, and those with what would be their body below them:
    what stands before another text is a part of it.
    """
    acts = any(block.action for block in blocks)
    if not acts:
        whole_reply = _only_lines(_without_plain_fences(text, blocks), registry)
        if whole_reply:
            return whole_reply

    in_small_letters = (block for block in blocks if _is_named_in_small_letters(block, registry))
    sure = [block.info for block in islice(in_small_letters, _MOST_LINES) if _can_be_bound(block, registry)]
    if not may_stand_in(text):
        return tuple(dict.fromkeys(sure))

    # Lines that count unless text follows them.
    likely: list[str] = []
    text_begins = text.lstrip()[:_LONGEST]
    without_body = 0
    for piece in unread.outside(text, blocks):
        for written, end, line in _lines_of(piece):
            if line is None:
                if written.strip() and not acts:
                    likely.clear()
                continue

            without_body += line.name in _WITH_BODY
            is_tried = without_body <= _MOST_LINES
            is_first = text_begins.startswith(written.lstrip())
            if is_tried and _has_its_body_below(line, registry, piece, end, is_first=is_first):
                sure.append(line.info)
            elif _looks_meant(line, registry, piece, end):
                likely.append(line.info)
            elif not acts:
                likely.clear()
    return tuple(dict.fromkeys([*sure, *likely]))


def _lines_of(piece: str) -> Iterator[tuple[str, int, Line | None]]:
    """The lines of a piece of text: as each is written, where the next one begins, and how it is read.

    In a quote and in indented code, no line is read as an action.
    """
    quoted = False
    in_list = False
    end = 0
    for written in piece.split("\n"):
        end = min(end + len(written) + 1, len(piece))

        # A quote goes on until an empty line, also without its mark.
        is_marked = written.lstrip().startswith(">")
        quoted = is_marked or (quoted and bool(written.strip()))

        in_list = _goes_on(in_list, written)
        is_code = written.startswith(("    ", "\t")) and not in_list
        if quoted or is_code:
            yield written, end, None
        else:
            yield written, end, line_of(written)


@dataclass(frozen=True, slots=True)
class Almost:
    """A line that names a function almost, and was not run."""

    line: str
    name: str
    """The function that was meant; or the name as it is written, if there is no such function."""
    exists: bool


def almost(text: str, blocks: Sequence[Block], registry: Registry) -> Almost | None:
    """The last line of a reply without actions if it is one but for the spelling of its function: `GIT STATUS`.

    In small letters it only counts as the whole reply, because two words may be anything else. The first line of a block
    counts as well.
    """
    for block in blocks:
        name = _named_almost(block.info, registry)
        if name:
            return Almost(block.info, name, exists=True)

    behind_blocks = text[blocks[-1].end :] if blocks else text
    written = behind_blocks.rstrip().rpartition("\n")[2]
    is_code = written.startswith(("    ", "\t"))
    if not written.strip() or len(written) > _LONGEST or is_code:
        return None

    line = _without_marks(written)
    is_whole = written.strip() == text.strip()
    name = _named_almost(line, registry)
    if name and (is_whole or _is_in_capitals(line)):
        return Almost(line, name, exists=True)

    # A name that is like none counts only if the reply is nothing else.
    if not is_whole:
        return None
    unknown = _UNKNOWN.fullmatch(line)
    if unknown is None or unknown["name"] in registry:
        return None
    return Almost(line, unknown["name"], exists=False)


def _named_almost(line: str, registry: Registry) -> str:
    """The function that a line begins with, in other letters or with a blank for its dot; empty if there is none."""
    match = _NAMED.fullmatch(line)
    if match is None:
        return ""

    words = (match["rest"] or "").split()
    ends_as_sentence = len(words) > _FEW and _ENDS_SENTENCE.fullmatch(line) is not None
    if len(words) > _MEANT or ends_as_sentence:
        return ""

    name = f"{match['owner']}.{match['tail']}".lower()
    return name if name in registry else ""


def _is_in_capitals(line: str) -> bool:
    match = _NAMED.fullmatch(line)
    return match is not None and match["owner"].isupper() and match["tail"].isupper()


def _without_marks(line: str) -> str:
    """A line without the marks of a list, of code and of bold type around it."""
    marker = _MARKER.match(line)
    assert marker is not None
    inside = line[marker.end() :].strip()
    while (marks := _MARKS.fullmatch(inside)) is not None:
        inside = marks["inside"].strip()
    return inside


def _is_named_in_small_letters(block: Block, registry: Registry) -> bool:
    """Whether a block has the name of an action of the core, but not in capitals."""
    name = block.info.split(None, 1)[0] if block.info else ""
    spec = registry.find(name.upper())
    return not block.action and isinstance(spec, ActionSpec) and spec.name in _ALONE | _WITH_BODY


def _can_be_bound(block: Block, registry: Registry) -> bool:
    """Whether such a block is an action but for its name."""
    spec = registry.find(block.info.split(None, 1)[0].upper())
    if spec is PLAN:
        return _PLAN_BELOW.match(block.body) is not None
    if not isinstance(spec, ActionSpec):
        return False
    return isinstance(read_action(spec, block.info, block.body or None, {}), Bound)


def _without_plain_fences(text: str, blocks: Sequence[Block]) -> str:
    """A reply without the fences of blocks that name no language; empty if it holds text or other blocks beside them."""
    if not blocks:
        return text

    names_a_language = any(block.info for block in blocks)
    has_text = any(piece.strip() for piece in unread.outside(text, blocks))
    if names_a_language or has_text:
        return ""
    return "\n".join(block.body for block in blocks)


def _only_lines(text: str, registry: Registry) -> tuple[str, ...]:
    """The lines of a reply without blocks that is nothing but what looks like actions; empty if it is anything else.

    Here a function counts without the marks of code, too, and whatever a line ends with: it would be the whole answer.
    """
    first, _, below = text.strip().partition("\n")
    name = first.split(None, 1)[0] if first else ""
    spec = registry.find(name)
    is_function = isinstance(spec, ActionSpec) and not spec.core and "." in name
    if isinstance(spec, ActionSpec) and is_function and len(first) <= _LONGEST:
        has_body = bool(below.strip()) and spec.body is not None
        bound = read_action(spec, first, "x" if has_body else None, {})
        if not isinstance(bound, Bound) or _ENDS_SENTENCE.fullmatch(first):
            return ()
        return (first,)

    # Each line once, in order.
    infos = dict[str, None]()
    for written in text.split("\n"):
        if not written.strip():
            continue
        line = line_of(written)
        if line is None or not isinstance(registry.find(line.name), ActionSpec):
            return ()
        infos[line.info] = None
    return tuple(infos)


def _has_its_body_below(line: Line, registry: Registry, piece: str, end: int, *, is_first: bool) -> bool:
    """Whether a line that ends at `end` is the first of an action with a body, and only the fences are missing."""
    spec = registry.find(line.name)
    if line.name not in _WITH_BODY or not isinstance(spec, ActionSpec):
        return False
    if _NOT_BLANK.search(piece, end) is None:
        return False

    if line.name == PLAN.name:
        return _PLAN_BELOW.match(piece, end) is not None

    # Within a text, a name with words behind it may be a sentence; one with `key=value` is none.
    if not is_first and "=" not in line.rest:
        return False
    return isinstance(read_action(spec, line.info, "x", {}), Bound)


def _goes_on(in_list: bool, line: str) -> bool:
    """Whether a list goes on in a line, or begins there."""
    marker = _MARKER.match(line)
    if marker is not None and marker.group().strip():
        return True
    return in_list and (not line.strip() or line[0] in " \t")


def _looks_meant(line: Line, registry: Registry, piece: str, end: int) -> bool:
    """Whether a line that ends at `end` was rather meant as an action than as a sentence, or as the name of one."""
    spec = registry.find(line.name)
    if not isinstance(spec, ActionSpec) or is_heading(line, piece, end):
        return False

    if line.code:
        # The name alone of a function, and of anything in a list, is only mentioned.
        return bool(line.rest) or (spec.core and not line.listed)

    words = len(line.rest.split())
    return words <= _FEW or (words <= _MEANT and not _ENDS_SENTENCE.fullmatch(line.rest))
