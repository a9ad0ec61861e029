"""HTML is made by templates that escape what is put into them, and nowhere else: the sources are read for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from markupsafe import Markup

from iact.web.markup import html, in_full, joined, legible, plain, trusted

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("accounts", "cluster", "core", "hippocampus", "iact", "sandbox", "web")

_TEMPLATES: Final = ("html", "_rule")
"""The functions whose first argument is a template."""

_APART: Final = "sandbox/app_page.py"
"""The page around an app. It is of another origin, and the sandbox may not import `web`; it escapes its only value itself."""

_TAG: Final = re.compile(
    r"</?(?:a|article|b|blockquote|body|br|button|code|dd|details|div|dl|dt|em|footer|form|h[1-6]|head|header|hr|html|i"
    r"|img|input|label|li|link|main|math|meta|nav|ol|p|pre|script|section|span|strong|style|summary|svg|table|tbody"
    r"|td|th|title|tr|ul)(?:[\s>/{]|$)|<!doctype",
    re.I,
)

_FOR_MODELS: Final = ("core/models/dialect.py", "iact/models/prompt.py")
"""What marks pieces of a prompt, or of a model's answer; and what a small model imitates."""

_TRUSTED: Final = {
    "iact/export.py": 3,  # a file of ours, base64, what the renderer's own process made
    "web/render.py": 1,  # markdown-it escapes
    "web/server.py": 1,  # a constant
}
"""Where HTML is believed that no template made, and how often. Another place needs as good a reason."""


def _sources() -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in _FOR_MODELS:
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _loose(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Pieces of HTML in a file that are no template, and where."""
    fine: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            fine.add(node.value)  # a docstring
        elif _called(node) in _TEMPLATES and isinstance(node, ast.Call):
            fine.update(node.args[:1])
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text), lineno=line) if node not in fine and _TAG.search(text):
                yield line, text


def _templates(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if _called(node) in _TEMPLATES and isinstance(node, ast.Call):
            yield node.args[0]


def test_no_html_is_made_but_by_a_template() -> None:
    sources = [(name, tree) for name, tree in _sources() if name != _APART]
    loose = [f"{name}:{line}: {text}" for name, tree in sources for line, text in _loose(tree)]
    assert loose == [], "Make it with html(…) of web/markup.py:\n" + "\n".join(loose)


@pytest.mark.parametrize(
    "source",
    [
        "f'<p>{text}</p>'",
        "'<b>' + text + '</b>'",
        "'<a href=\"%s\">' % text",
        "'<li>{}</li>'.format(text)",
        "html(f'<p>{text}</p>')",
        "html('{}', '<p>')",
    ],
)
def test_every_other_way_is_found(source: str) -> None:
    assert [*_loose(ast.parse(source))]


def test_templates_are_written_in_the_source() -> None:
    built = [
        f"{name}:{one.lineno}"
        for name, tree in _sources()
        for one in _templates(tree)
        if not (isinstance(one, ast.Constant) and isinstance(one.value, str))
    ]
    # A file of the package, and the function that only hands its own template on.
    assert [one.partition(":")[0] for one in built] == ["iact/export.py", "web/render.py"], built


def _unquoted(template: str) -> list[str]:
    """Places in tags that are not in double quotes."""
    return [
        place
        for tag in re.findall(r"<[^<>]*>?", template)
        for place in re.findall(r"\{[^}]*\}", re.sub(r'"[^"]*"', "", tag))
        if place != "{attributes}" and not re.match(r"</?\{tag\}", tag)
    ]


def test_places_in_tags_are_in_quotes() -> None:
    """Escaped text can't leave double quotes; anywhere else in a tag it could begin an attribute."""
    assert _unquoted("<p class={}>") == ["{}"]
    assert _unquoted("<p class='{}'>") == ["{}"]
    assert _unquoted('<p class="{}"{attributes}>{}</p>') == []
    found = [
        f"{name}:{one.lineno}"
        for name, tree in _sources()
        for one in _templates(tree)
        if isinstance(one, ast.Constant) and _unquoted(str(one.value))
    ]
    assert found == []


def test_html_is_believed_in_few_places() -> None:
    believed: dict[str, int] = {}
    for name, tree in _sources():
        for node in ast.walk(tree):
            if _called(node) in ("trusted", "Markup") and name != "web/markup.py":
                believed[name] = believed.get(name, 0) + 1
    assert believed == _TRUSTED


# --- templates --------------------------------------------------------------------------------------


def test_what_is_put_in_is_text() -> None:
    hostile = '<img src=x onerror="alert(1)">\x1b[31m‮'
    made = html('<p title="{}">{text}</p>', hostile, text=hostile)
    assert isinstance(made, Markup)
    assert made.count("<") == 2
    assert made.count('"') == 2
    assert "\x1b" not in made
    assert "‹U+202E›" in made


def test_html_is_put_in_as_it_is() -> None:
    inner = html("<b>{}</b>", "a & b")
    assert html("<p>{}</p>", inner) == "<p><b>a &amp; b</b></p>"
    assert html("<p{attributes}>{:,}</p>", 1234, attributes=html(' id="r{}"', 7)) == '<p id="r7">1,234</p>'
    assert joined([inner, plain("<")]) == "<b>a &amp; b</b>&lt;"


def test_a_brace_in_a_text_is_no_place() -> None:
    assert html("<p>{}{}</p>", "{text}", plain("{0.__class__}")) == "<p>{text}{0.__class__}</p>"


def test_who_decides_sees_everything() -> None:
    assert in_full("a\x1b[31mb\r") == "a␛[31mb␍"
    assert plain("a\x1b[31mb") == "ab"
    assert legible(trusted("<b>‮</b>")) == "<b>‹U+202E›</b>"
