"""The text of a PDF, page by page, read in a separate process that can be killed: a PDF comes from anywhere."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Final

MOST_PAGES: Final = 500
_SECONDS: Final = 40
_MEMORY: Final = 700 << 20


class NoText(Exception):
    """The PDF can't be read; the message says why."""


def text_of(body: bytes) -> str:
    """Return the text of a PDF, each page under its number. Blocks.

    Raises:
        NoText: it can't be read, or not in time.
    """
    try:
        done = subprocess.run(
            [sys.executable, __file__], input=body, capture_output=True, timeout=_SECONDS, preexec_fn=_bound
        )
    except subprocess.TimeoutExpired as error:
        raise NoText(f"The PDF was not read within {_SECONDS} s.") from error

    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NoText(f"The PDF can't be read ({''.join(last)[:200] or 'its reader ended'}).")
    return done.stdout.decode("utf-8", "replace")


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _main() -> None:
    import pypdfium2

    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    for number, page in enumerate(document, start=1):
        if number > MOST_PAGES:
            print(f"\n[{len(document) - MOST_PAGES} more pages]")
            break
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip()
        print(f"## Page {number}\n\n{text or '[This page has no text.]'}\n")


if __name__ == "__main__":
    _main()
