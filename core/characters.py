"""The one table of characters that make text look different from what it is, and how each place shows them.

Text from a model, a tool, a module, a page or a file can contain invisible characters: controls that move a terminal's
cursor, marks that reorder a line, letters without a shape, tags that spell out hidden instructions. Only this table
decides which characters these are. Contexts, journals, the page, the terminal, manifests and questions to people all
use it, and differ only in what they do with these characters:

    contexts (`core.language.labels`)       escaped as \\x1b, \\u202e, \\U000e0001
    terminal (`iact.terminal`)              sequences removed, the rest escaped in the same way
    page (`web.safe_text`)                  sequences removed, the rest by name: ␛, ‹U+202E›
    questions to a person                   nothing removed; blanks and private letters are named, too
    apps (`sandbox.app_shares`)             removed; blanks and private letters become spaces
    headings of a journal                   replaced by �
    manifests (`core.modules.schema`)       refused

Joiners and variation selectors shape letters and emoji, and several scripts can't be written without them. They are
kept where they can do that (and count as hidden everywhere else), except in questions to a person and at apps.

The rows follow the Unicode Character Database: general categories Cc, Cf, Cs, Zl and Zp, the property
Default_Ignorable_Code_Point, and noncharacters; a test derives the table from that again. The prepended marks of
Arabic, Syriac and Kaithi numbers are of category Cf, too, but they are visible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, Literal

Kind = Literal["control", "line", "order", "invisible", "shaping", "broken", "late", "blank", "private"]

TABLE: Final[tuple[tuple[int, int, Kind], ...]] = (
    (0x0000, 0x0008, "control"),  # all except tab and newline
    (0x000B, 0x001F, "control"),
    (0x007F, 0x009F, "control"),
    (0x00A0, 0x00A0, "blank"),
    (0x00AD, 0x00AD, "invisible"),  # soft hyphen
    (0x034F, 0x034F, "invisible"),  # combining grapheme joiner
    (0x061C, 0x061C, "order"),
    (0x115F, 0x1160, "invisible"),  # Hangul fillers
    (0x1680, 0x1680, "blank"),
    (0x17B4, 0x17B5, "invisible"),  # Khmer inherent vowels
    (0x180B, 0x180F, "invisible"),  # Mongolian selectors
    (0x2000, 0x200A, "blank"),
    (0x200B, 0x200B, "invisible"),
    (0x200C, 0x200D, "shaping"),
    (0x200E, 0x200F, "order"),
    (0x2028, 0x2029, "line"),
    (0x202A, 0x202E, "order"),
    (0x202F, 0x202F, "blank"),
    (0x205F, 0x205F, "blank"),
    (0x2060, 0x2065, "invisible"),
    (0x2066, 0x2069, "order"),
    (0x206A, 0x206F, "invisible"),
    (0x2800, 0x2800, "blank"),  # Braille without dots
    (0x3000, 0x3000, "blank"),
    (0x3164, 0x3164, "invisible"),  # Hangul filler
    (0xD800, 0xDFFF, "broken"),  # lone surrogates
    (0xE000, 0xF8FF, "private"),
    (0xFDD0, 0xFDEF, "late"),  # noncharacters, here and at each plane's end
    (0xFE00, 0xFE0F, "shaping"),
    (0xFEFF, 0xFEFF, "invisible"),
    (0xFFA0, 0xFFA0, "invisible"),
    (0xFFF0, 0xFFF8, "late"),
    (0xFFF9, 0xFFFB, "invisible"),
    (0x13430, 0x1343F, "late"),  # Egyptian quadrats
    (0x1BCA0, 0x1BCA3, "late"),  # shorthand
    (0x1D159, 0x1D159, "blank"),  # a note without a head
    (0x1D173, 0x1D17A, "late"),  # beams and slurs
    (0xE0000, 0xE007F, "invisible"),  # tags
    (0xE0080, 0xE00FF, "late"),
    (0xE0100, 0xE01EF, "shaping"),
    (0xE01F0, 0xE0FFF, "late"),
    (0xF0000, 0xFFFFD, "private"),
    (0x100000, 0x10FFFD, "private"),
    *((plane + 0xFFFE, plane + 0xFFFF, "late") for plane in range(0, 0x110000, 0x10000)),
)
"""First and last code point of each row. Two groups of kinds are treated specially:

- "late": hidden like the others, but contexts keep them unchanged, because a context that was recorded before this
  table contained them must be derived again byte for byte;
- "blank" and "private": characters that look like a space but are none, and characters that any font may draw as it
  likes. Text may contain them; a question to a person names them.
"""


def _class(kinds: Iterable[Kind]) -> str:
    """The inside of a regular expression's character class for these kinds."""
    wanted = frozenset(kinds)
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last, kind in TABLE if kind in wanted)


_IN_CONTEXTS: Final = _class(("control", "line", "order", "invisible", "broken"))
_HIDDEN: Final = _class(("control", "line", "order", "invisible", "broken", "late"))

HIDDEN: Final = re.compile(f"[{_HIDDEN}{_class(('shaping',))}]")
"""One hidden character, including those that shape others."""

ODD: Final = re.compile(f"[{_HIDDEN}{_class(('shaping', 'blank', 'private'))}]")
"""One hidden character, or one that looks like another."""

_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_NOT_JOINED: Final = "\x00-\xad\u200b-\u200f\u2028-\u206f"
"""What a joiner has nothing to do beside."""
_NOT_SELECTED: Final = f"\x00-\x22\x24-\x29\x2b-\x2f\x3a-\x9f\u200b-\u200f{_SELECTORS}"
"""What a selector has nothing to do behind."""


def _deceptive(hidden: str) -> re.Pattern[str]:
    """A pattern of one character of the class `hidden`, or of one that shapes others and is out of place.

    The character comes first and its conditions follow, so that a search skips everything else at once: in the usual
    order a text of 16 MB took more than a second.
    """
    joiner = f"(?<=[{_JOINERS}])(?:(?<![^{_NOT_JOINED}][{_JOINERS}])|(?![^{_NOT_JOINED}]))"
    selector = f"(?<=[{_SELECTORS}])(?<![^{_NOT_SELECTED}][{_SELECTORS}])"
    flag = "(?P<flag>(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f)"
    first = f"[{hidden}{_JOINERS}{_SELECTORS}\U0001f3f4]"
    return re.compile(f"{first}(?:{flag}|(?<=[{hidden}])|{joiner}|{selector})")


DECEPTIVE_IN_CONTEXTS: Final = _deceptive(_IN_CONTEXTS)
"""What contexts escape; the group "flag" is set for a flag of tags, which is kept. Changing it changes recorded contexts."""

DECEPTIVE: Final = _deceptive(_HIDDEN)
"""The same for everything that people see."""


def replaced(pattern: re.Pattern[str], text: str, shown: Callable[[str], str]) -> str:
    """Return `text` with `shown` of each deceptive character in its place; `pattern`: which are."""
    return pattern.sub(lambda match: match.group() if match["flag"] else shown(match.group()), text)


# No part of a sequence can begin another, so that many beginnings are read only once. 9B, 9D and so on begin one, too.
_SEQUENCES: Final = re.compile(
    r"""
    (?:\x1b\[|\x9b) [0-?]*+ [ -/]*+ [@-~]                                # CSI … final byte
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])                               # OSC, DCS, … string
      [^\x07\x1b\x90\x98\x9c-\x9f]*+ (?:\x07|\x1b\\|\x9c)
    | \x1b [ -/]*+ [0-~]                                                 # two-character sequences
    """,
    re.VERBOSE,
)


_HALF: Final = re.compile("[\ud800-\udfff]")


def paired(text: str) -> str:
    """Return `text` in storable form: surrogate halves are paired, and a lone half becomes a replacement sign."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_sequences(text: str) -> str:
    """Return `text` without terminal sequences. An incomplete sequence is kept, for the table to name."""
    return _SEQUENCES.sub("", text)


def escape(character: str) -> str:
    """Return one character as an escape: `\\x1b`, `\\u202e`, `\\U000e0001`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def name(character: str) -> str:
    """Return the name of one character: a picture of a control, or ‹U+202E›."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"‹U+{code:04X}›"


def escaped(text: str, *, every: bool = False) -> str:
    """Return `text` with deceptive characters as escapes; `every`: also those that shape others, and odd blanks."""
    if text.isascii() and text.isprintable():
        return text
    if every:
        return ODD.sub(lambda match: escape(match.group()), text)
    if not HIDDEN.search(text):
        return text
    return replaced(DECEPTIVE, text, escape)


def named(text: str, *, every: bool = False) -> str:
    """Return `text` with every deceptive character replaced by its name; `every` as for `escaped`."""
    if text.isascii() and text.isprintable():
        return text
    if every:
        return ODD.sub(lambda match: name(match.group()), text)
    if not HIDDEN.search(text):
        return text
    return replaced(DECEPTIVE, text, name)
