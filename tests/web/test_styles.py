"""The page's styles: no class of one part can hit an element of another, and every value that a style names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

from iact.core.records.calls import ResultStatus
from iact.core.views.view import NodeState

STATIC: Final = Path(__file__).parents[2] / "web" / "static"
SHEETS: Final = sorted((STATIC / "css").glob("*.css"))

SAME_EVERYWHERE: Final = {"bad"}
"""Classes that have a look of their own and also narrow other classes, because they mean the same wherever they are."""

WORDS_OF_RECORDS: Final = {
    *get_args(NodeState), *get_args(ResultStatus), "bound", "result", "gate", "select", "add", "modify", "delete",
}  # fmt: skip
"""What scripts and the server write into a `class` beside the class of the element: states, statuses and kinds."""


def selectors() -> Iterator[tuple[str, str]]:
    """Every selector of the page's styles, with the name of its sheet."""
    for sheet in SHEETS:
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
        for listed in re.findall(r"([^{}]+)\{", text):
            if listed.strip().startswith("@"):
                continue
            for selector in re.split(r",(?![^()]*\))", listed):
                yield sheet.name, selector.strip()


def compounds(selector: str) -> list[str]:
    """The parts of a selector that each match one element, without their pseudo-classes."""
    plain = re.sub(r"::?[\w-]+(\([^()]*\))?", "", selector)
    return re.split(r"\s*[>+~]\s*|\s+", plain)


def styled_by_themselves() -> dict[str, str]:
    """The classes that have a look wherever they are, each with its sheet."""
    found: dict[str, str] = {}
    for sheet, selector in selectors():
        alone = re.fullmatch(r"\.([\w-]+)(\[[^]]*\])*", " ".join(compounds(selector)))
        if alone:
            found[alone[1]] = sheet
    return found


def test_a_class_that_narrows_another_has_no_look_of_its_own() -> None:
    """`.bar.model` of the timeline was hidden on phones by the rule for the page's own `.model`."""
    by_themselves = styled_by_themselves()
    assert len(by_themselves) > 100

    hit = {
        f"{selector} ({sheet}) is hit by .{name} ({by_themselves[name]})"
        for sheet, selector in selectors()
        for compound in compounds(selector)
        for name in re.findall(r"\.([\w-]+)", compound)[1:]
        if name in by_themselves and name not in SAME_EVERYWHERE
    }
    assert hit == set()


def test_states_and_kinds_of_records_have_no_look_of_their_own() -> None:
    assert WORDS_OF_RECORDS & styled_by_themselves().keys() == set()


def test_the_kinds_of_the_timeline_s_bars_are_no_classes() -> None:
    script = (STATIC / "js" / "agents" / "timeline.js").read_text(encoding="utf-8")
    assert re.findall(r"className: `[^`]*\$\{kind\}", script) == []
    assert script.count('"data-kind": kind') == 2


def test_every_value_that_a_style_names_is_set_somewhere() -> None:
    styles = "\n".join(sheet.read_text(encoding="utf-8") for sheet in SHEETS)
    scripts = "\n".join(file.read_text(encoding="utf-8") for file in (STATIC / "js").rglob("*.js"))
    set_by_styles = set(re.findall(r"(?<![\w(-])(--[\w-]+)\s*:", styles))
    set_by_scripts = set(re.findall(r'setProperty\("(--[\w-]+)"', scripts))
    assert set(re.findall(r"var\((--[\w-]+)", styles)) - set_by_styles - set_by_scripts == set()
