"""Which calls are the same to a person, and to anyone who counts repetitions, although they are written differently.

The digest of a call's arguments changes with a blank or a comment. Its *kind* does not: scripts are compared without
what changes nothing in them (blanks between words, comments, empty lines, time limits), other texts without blanks at
their ends. The order of arguments never matters. Where a script holds something in which blanks or "#" may count, it is
compared as it is: calls that differ must never be taken for the same.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Mapping
from typing import Final

from iact.core.gate.gate import arguments_digest
from iact.core.gate.impact import SCRIPTS
from iact.core.ports import JSON

_LONGEST: Final = 20_000
"""The most characters of a script that is compared by what it does; a longer one is compared as it is."""

_PYTHON: Final[Mapping[str, str]] = {"python.run": "code"}
"""Functions of shipped modules that run Python, with the parameter of the code."""

_LIMITS: Final = frozenset({"timeout"})
"""Parameters of functions that run scripts, which say only how long they may take."""

_OPAQUE: Final = re.compile(r"(?<!<)<<(?!<)|`|\$'")
"""What a script may hold in which blanks, quotes or "#" mean something else: it is compared as it is."""

_UNTIDY: Final = re.compile(r"  |[\t\n\\;|&<>#]")
"""What a script must hold so that it can be written in another way; most are one simple command."""

_SLEEPS: Final = re.compile(r"(?:^|[\s;&|(])(?:sleep|wait|inotifywait)(?:[\s;&|)]|$)")

_PARTS: Final = re.compile(
    r"""(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*"|\\[^\n])"""
    r"""|(?P<blank>(?:[ \t]|\\\n)+)"""
    r"""|(?P<end>\n|;(?!;))"""
    r"""|(?P<joint>[|&]+|;;)"""
    r"""|(?P<redirection>[<>]+)"""
    r"""|(?P<comment>\#[^\n]*)"""
    r"""|(?P<plain>[^\s'"\\;|&<>\#]+|.)""",
    re.DOTALL | re.VERBOSE,
)

_NO_BLANK_AFTER: Final = frozenset("\n|&;<>")

_LAYOUT: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
)


def kind_of(function: str, arguments: Mapping[str, JSON]) -> str:
    """Return the digest of a call's kind. `arguments`: all of them, those passed by value as well."""
    return arguments_digest({"function": function, **_comparable(function, arguments)}, {})


def waits(function: str, arguments: Mapping[str, JSON]) -> bool:
    """Whether a call waits for something by itself, so that it may bring the same again and again."""
    seconds = arguments.get("wait")
    if isinstance(seconds, int | float) and seconds > 0:
        return True

    if function not in SCRIPTS:
        return False
    script_name, _ = SCRIPTS[function]
    script = arguments.get(script_name)
    return isinstance(script, str) and _SLEEPS.search(script) is not None


def _comparable(function: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """The arguments of a call, without what changes nothing about it."""
    comparable: dict[str, JSON] = {}
    for name, value in arguments.items():
        comparable[f"argument {name}"] = value.strip() if isinstance(value, str) else value

    if function in SCRIPTS:
        script_name, language_name = SCRIPTS[function]
        language = arguments.get(language_name, "bash")
        read = _python if language == "python" else _shell
        _replace(comparable, script_name, read)
    if function in _PYTHON:
        _replace(comparable, _PYTHON[function], _python)

    if function in SCRIPTS or function in _PYTHON:
        for name in _LIMITS:
            comparable.pop(f"argument {name}", None)
    return comparable


def _replace(comparable: dict[str, JSON], name: str, read: Callable[[str], str]) -> None:
    """Put a script in the form in which it is compared."""
    script = comparable.get(f"argument {name}")
    if isinstance(script, str) and len(script) <= _LONGEST:
        comparable[f"argument {name}"] = read(script)


def _shell(script: str) -> str:
    """A shell script without blanks and comments that change nothing; as it is where that can't be told."""
    if not _UNTIDY.search(script) or _OPAQUE.search(script):
        return script

    tidy = ""
    apart = True  # whether a blank, or nothing, is before the next part
    for part in _PARTS.finditer(script):
        text = part.group()
        match part.lastgroup:
            case "blank":
                apart = True
                continue

            # Where nothing is kept yet, the part before was an end, after which a comment may begin at once.
            case "comment" if apart or not tidy or tidy[-1] in _NO_BLANK_AFTER:
                continue
            case "comment":
                return script  # it belongs to a word

            case "quoted" if text.startswith('"') and "$(" in text:
                return script  # commands in a quote have quotes of their own

            case "end" if not tidy or tidy[-1] in "\n|&":
                pass
            case "end":
                tidy += "\n"
            case "joint":
                tidy += text

            case "redirection":
                # A blank here is never left out: `x & > f` is not `x &> f`.
                tidy += f" {text}" if apart and tidy else text

            case _:
                needs_blank = apart and tidy and tidy[-1] not in _NO_BLANK_AFTER
                tidy += f" {text}" if needs_blank else text
        apart = False
    return tidy.strip("\n")


def _python(script: str) -> str:
    """A Python program without comments, empty lines and blanks that change nothing; as it is if it is none."""
    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(script).readline):
            if token.type not in _LAYOUT:
                words.append(token.string)
            elif token.type not in (tokenize.COMMENT, tokenize.NL):
                # Of where a line ends and a block begins, that it does; not how it was written.
                words.append(tokenize.tok_name[token.type])
    except (tokenize.TokenError, SyntaxError):
        return script
    return "\n".join(words)
