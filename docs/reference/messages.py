"""Generate `messages.md` in this folder: every sentence that people read, in one list.

    python -m docs.reference.messages

Values in sentences are shown as names in braces. `docs/reference/sentences.py` finds the sentences in the sources. The
list is for reviewing the wording, and for finding where a sentence comes from.
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
    """The list as Markdown: the sentences of the page, of the server and of the command line."""
    shown = {**dict.fromkeys(sentences.of_the_page(), "index.html"), **sentences.of_scripts()}
    intro = (
        "Every sentence and label that people read, with the names of values in braces. The [glossary](../glossary.md) "
        "defines the words. Texts of the page and the server are translated line by line in `web/static/languages/`. "
        "The help of the commands is in [commands](commands.md)."
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
    """The text as code, so that nothing in it is read as Markdown."""
    fence = "``" if "`" in text else "`"
    room = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{room}{text}{room}{fence}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
