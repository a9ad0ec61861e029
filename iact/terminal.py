"""Everything that a command prints passes here, so that nothing from outside can steer a terminal or deceive its reader.

Names of agents, replies, sentences of endpoints and modules, progress lines, logs and tracebacks can all hold text
that a model or a foreign journal chose. No command has to remember that: `clean` stands between `print` and the two
standard streams for as long as a command runs. Terminal sequences are taken out, and what `core.characters` calls
deceptive is escaped. With `--json` it is escaped as JSON does it, so that what a program reads is what was there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from iact.core.characters import DECEPTIVE, HIDDEN, escaped, without_sequences


def readable(text: str) -> str:
    """`text` as a terminal may be given it: several lines, no sequences, nothing hidden."""
    return escaped(without_sequences(text).replace("\r\n", "\n"))


def as_json(text: str) -> str:
    """JSON text with the same meaning in which nothing is hidden: such can be in its strings only."""
    if not HIDDEN.search(text):
        return text
    return DECEPTIVE.sub(lambda match: match["flag"] or _escape(match.group()), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class Screen:
    """A text stream that cleans what is written to it; all else is the stream's own."""

    def __init__(self, stream: TextIO, *, json: bool = False) -> None:
        self._stream = stream
        self._clean = as_json if json else readable

    def write(self, text: str) -> int:
        """Write `text`, cleaned; its own length."""
        self._stream.write(self._clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def exact(self, text: str) -> None:
        """Write `text` as it is, where no person reads it: into a file or a program, but not to a terminal."""
        if self._stream.isatty():
            self.write(text)
        else:
            self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def clean(*, json: bool = False) -> Iterator[None]:
    """Let standard output and standard error be clean meanwhile. `json`: standard output is JSON."""
    output, errors = sys.stdout, sys.stderr
    sys.stdout = cast(TextIO, Screen(output, json=json))
    sys.stderr = cast(TextIO, Screen(errors))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, errors


def print_exactly(text: str) -> None:
    """Print what a program may read byte for byte, such as a patch."""
    if isinstance(sys.stdout, Screen):
        sys.stdout.exact(text)
    else:
        sys.stdout.write(text)
