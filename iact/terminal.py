"""Cleans everything that commands print, so that untrusted text can't control the terminal or deceive its reader.

Agent names, replies, messages from endpoints and modules, progress lines, logs and tracebacks can all contain text
that a model or a foreign journal chose. No command needs to take care of that: while a command runs, `clean` puts
itself between `print` and the two standard streams. Terminal sequences are removed, and characters that
`core.characters` calls deceptive are escaped. With `--json` they are escaped as in JSON, so a program reads the exact
text.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from iact.core.characters import DECEPTIVE, HIDDEN, escaped, replaced, without_sequences


def readable(text: str) -> str:
    """Return `text` made safe for a terminal: it may have several lines, but no sequences and nothing hidden."""
    return escaped(without_sequences(text).replace("\r\n", "\n"))


def as_json(text: str) -> str:
    """Return JSON text with the same meaning and nothing hidden. Hidden characters can only be in its strings."""
    if not HIDDEN.search(text):
        return text
    return replaced(DECEPTIVE, text, _escape)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class Screen:
    """A text stream that cleans what is written to it. Everything else is passed to the wrapped stream.

    A terminal that was closed takes nothing any more. That is no failure of who writes: a server that ends with its
    terminal would stop ending in order at the first line that it prints about it.
    """

    def __init__(self, stream: TextIO, *, json: bool = False) -> None:
        self._stream = stream
        self._clean = as_json if json else readable
        self._is_terminal = stream.isatty()  # asked now: one that was closed is no terminal any more

    def write(self, text: str) -> int:
        """Write `text`, cleaned. Returns the length of the original text."""
        with self._closed_is_no_failure():
            self._stream.write(self._clean(text))
        return len(text)

    def flush(self) -> None:
        """Write out what is buffered."""
        with self._closed_is_no_failure():
            self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def exact(self, text: str) -> None:
        """Write `text` unchanged if the stream is a file or a program; clean it if the stream is a terminal."""
        if self._stream.isatty():
            self.write(text)
        else:
            self._stream.write(text)

    @contextmanager
    def _closed_is_no_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not (self._is_terminal and error.errno == errno.EIO):
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def clean(*, json: bool = False) -> Iterator[None]:
    """Clean standard output and standard error inside this context. `json`: standard output is JSON."""
    output, errors = sys.stdout, sys.stderr
    sys.stdout = cast(TextIO, Screen(output, json=json))
    sys.stderr = cast(TextIO, Screen(errors))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, errors


def print_exactly(text: str) -> None:
    """Print text that a program may read byte for byte, such as a patch."""
    if isinstance(sys.stdout, Screen):
        sys.stdout.exact(text)
    else:
        sys.stdout.write(text)
