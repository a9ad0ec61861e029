"""What the page is served: its files, and of its scripts all but the comments."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pygments.lexers import JavascriptLexer
from pygments.token import Comment

from iact.web.assets import load, uncommented

STATIC: Final = Path(__file__).parents[2] / "web" / "static"
SCRIPTS: Final = [file.relative_to(STATIC).as_posix() for file in sorted(STATIC.rglob("*.js"))]


def tokens(script: str) -> list[tuple[str, str]]:
    """All of a script that does something."""
    found = JavascriptLexer().get_tokens(script)
    return [(str(kind), text) for kind, text in found if kind not in Comment and text.strip()]


def test_scripts_are_served_without_comments_and_are_the_same_scripts() -> None:
    assets = load(STATIC)
    assert len(SCRIPTS) > 50
    for name in SCRIPTS:
        source, served = (
            (STATIC / name).read_text(encoding="utf-8"),
            assets[f"/static/{name}"].content.decode(),
        )
        assert tokens(served) == tokens(source), name
        assert served.count("\n") == source.count("\n"), name
        assert "@param" not in served, name


@pytest.mark.parametrize(
    ("script", "served"),
    [
        ("// Why.\nlet a = 1;\n", "\nlet a = 1;\n"),
        ("/** @type {string} */ #a;\n", " #a;\n"),
        ("/**\n * One.\n * @param {string} b\n */\nf(b);\n", "\n\n\n\nf(b);\n"),
        ("f();  // now\n", "f();\n"),
        ('g("https://x.test"); h(`a // b`);\n', 'g("https://x.test"); h(`a // b`);\n'),
    ],
)
def test_only_comments_go(script: str, served: str) -> None:
    assert uncommented(script) == served
