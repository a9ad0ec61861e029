"""Writes `messages.md` beside itself: every sentence that people read, so that they can be read in one go.

    python -m docs.reference.messages

What a value stands for is in braces. The sentences are found in the sources (`docs/reference/sentences.py`); the list is
for whoever looks after the words, and for whoever searches where one comes from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from docs.reference import sentences

PAGE: Final = Path(__file__).with_name("messages.md")

_NOTE: Final = (
    "<!-- Written by docs/reference/messages.py from the sources; run: python -m docs.reference.messages -->"
)


def page() -> str:
    """The list: what the page says, what the server says, what the command line says."""
    shown = {**dict.fromkeys(sentences.of_the_page(), "index.html"), **sentences.of_scripts()}
    intro = (
        "Every sentence and label that people read, with its values in braces; how they are worded is in the glossary. "
        "What the page and the server say is translated line by line in `web/static/languages/`. The help of the "
        "commands is in [commands](commands.md)."
    )
    parts = ["# Messages", _NOTE, intro, "## The page", _list(shown)]
    parts += ["## The server, to the page", *_by_folder(sentences.of_server())]
    parts += ["## The command line", *_by_folder(sentences.of_terminal())]
    return "\n\n".join(parts) + "\n"


def _by_folder(found: Mapping[str, str]) -> Iterable[str]:
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for text, folder in found.items():
        folders[folder].append(text)
    for folder in sorted(folders):
        yield f"### {folder}"
        yield _list(folders[folder])


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_quoted(text)}" for text in sorted(texts, key=str.lower))


def _quoted(text: str) -> str:
    """As code, so that nothing in it is read as Markdown."""
    fence = "``" if "`" in text else "`"
    room = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{room}{text}{room}{fence}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
