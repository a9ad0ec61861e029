"""The documentation: links have targets, commands exist, and the reference matches the program."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.reference import failures, generated, journal, messages, states, ways, wire
from docs.screenshots import __main__ as screenshots
from docs.screenshots import moving
from iact.cli import parse
from tests.acceptance import clients, matrix, refusals, tutorial
from tests.web.browser import SHARED

ROOT = Path(__file__).parents[2]
TOP = [ROOT / name for name in ("README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = sorted([*TOP, *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^(`{3,}|~{3,})(\w*)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> Iterator[str]:
    """The contents of a page's code blocks in one language."""
    for _, found, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if found == language:
            yield body


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]+`", "", _BLOCK.sub("", page.read_text(encoding="utf-8")))
    for target in _LINK.findall(text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_commands(page: Path) -> None:
    """Every line of a console block that begins with our command is taken by its parser."""
    for block in blocks(page, "console"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            words = words[words.index("|") + 1 :] if "|" in words else words
            if words and words[0] in ("iact", ".venv/bin/iact"):
                parse(words[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_are_well_formed(page: Path) -> None:
    for block in blocks(page, "python"):
        ast.parse(block)
    for block in blocks(page, "toml"):
        tomllib.loads(block)
    for block in blocks(page, "json"):
        json.loads(block)


def test_the_reference_is_what_the_program_says() -> None:
    """If this fails: python -m docs.reference.generated; python -m docs.reference.states; python -m docs.reference.journal; python -m docs.reference.messages"""
    for name, write in generated.PAGES.items():
        assert (generated.HERE / name).read_text(encoding="utf-8") == write(), name
    assert wire.TYPES.read_text(encoding="utf-8") == wire.typescript()
    assert ways.LIST.read_text(encoding="utf-8") == ways.javascript()
    assert states.PAGE.read_text(encoding="utf-8") == states.page()
    assert journal.PAGE.read_text(encoding="utf-8") == journal.page()
    assert journal.TYPES.read_text(encoding="utf-8") == journal.javascript()
    assert messages.PAGE.read_text(encoding="utf-8") == messages.page()
    for guide in failures.FORMS:
        assert (failures.GUIDES / guide).read_text(encoding="utf-8") == failures.page(guide), guide


def test_every_setting_is_described() -> None:
    rows = [line.split(" | ") for line in generated.settings().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert [row[0] for row in rows if len(row[-1].strip(" |")) < 8] == []


def test_every_page_can_be_found() -> None:
    """Each page is in the map, or in the page that has its folder's name."""
    docs = ROOT / "docs"
    told = (docs / "README.md").read_text(encoding="utf-8")
    for page in docs.rglob("*.md"):
        name = str(page.relative_to(docs))
        above = page.parent.with_suffix(".md")
        in_page_above = above.is_file() and f"({page.relative_to(above.parent)})" in above.read_text("utf-8")
        assert name == "README.md" or f"({name})" in told or in_page_above, name


def test_the_site_builds(tmp_path: Path) -> None:
    """A link or anchor that leads nowhere ends the build."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "The one idea" in (tmp_path / "architecture" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "contributing" / "index.html").is_file()


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_PATH = re.compile(r"(?:[a-z_]+/)+(?:\w+\.\w+)?|[a-z_]+\.py")


@pytest.mark.parametrize(
    "path", sorted({one for one in re.findall(r"`([^`\n]+)`", ARCHITECTURE) if _PATH.fullmatch(one)})
)
def test_the_architecture_names_places_that_are_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("name", "place"), re.findall(r"`(\w+)`(?: of `\w+`)? (?:in|of) `([\w/]+\.\w+)`", ARCHITECTURE)
)
def test_the_architecture_names_things_that_are_there(name: str, place: str) -> None:
    assert re.search(rf"\b{name}\b", (ROOT / place).read_text(encoding="utf-8")), f"{place} has no {name}"


def test_how_to_add_something_is_short_and_names_where() -> None:
    """Each in under ten lines that name real places; the two tests above see to their being there."""
    _, _, told = ARCHITECTURE.partition("## How to add")
    ways = [part.strip().splitlines() for part in told.split("### ")[1:]]
    assert [lines[0] for lines in ways] == [
        "A kind of record",
        "An action",
        "A mode of plans",
        "A wire message",
        "A text of the page",
    ]
    for lines in ways:
        assert len([line for line in lines[1:] if line]) < 10, lines[0]
        assert len(_PATH.findall(" ".join(lines))) >= 3, lines[0]


def test_the_drawing_shows_every_room() -> None:
    drawing = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    shown = set(re.findall(r'<text class="n"[^>]*>([^<]+)</text>', drawing))
    core = {f"core/{path.name}" for path in (ROOT / "core").iterdir() if (path / "__init__.py").exists()}
    assert shown == core | {"core/ports.py", "iact", "web", "sandbox", "hippocampus", "ext_modules"}
    assert {f"`{room}/`" for room in core} <= set(re.findall(r"`[^`]+`", ARCHITECTURE))


def test_the_matrix_of_provenance_is_what_is_tested() -> None:
    assert matrix.table() in (ROOT / "docs" / "topics" / "gate.md").read_text(encoding="utf-8")


def test_the_matrix_of_faces_and_refusals_is_what_is_tested() -> None:
    assert refusals.table() in (ROOT / "docs" / "topics" / "rights.md").read_text(encoding="utf-8")


def test_the_moving_picture_is_small_and_moves() -> None:
    picture = (ROOT / "docs" / "screenshots" / moving.NAME).read_bytes()
    assert len(picture) < moving.LARGEST
    assert moving.NAME in (ROOT / "README.md").read_text(encoding="utf-8")

    chunks = [*moving.chunks_of(picture)]
    frames = [data for name, data in chunks if name == b"ANMF"]
    assert [name for name, _ in chunks[:2]] == [b"VP8X", b"ANIM"]
    assert len({*frames}) == len(frames) == moving.FRAMES


def test_the_matrix_of_clients_is_what_is_tested() -> None:
    assert clients.table() in (ROOT / "docs" / "measurements" / "faces.md").read_text(encoding="utf-8")


def test_every_picture_of_the_page_is_taken_by_one_command(tmp_path: Path) -> None:
    shown = {file.name for file in (ROOT / "docs" / "screenshots").glob("*.png")}
    assert shown == {*screenshots.PICTURES, *tutorial.PICTURES}

    async def test() -> None:
        await screenshots.take("approval.png", tmp_path)

    SHARED.run(test)
    assert (tmp_path / "approval.png").read_bytes().startswith(b"\x89PNG")
