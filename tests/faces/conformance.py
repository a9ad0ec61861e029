"""The parts of a protocol that a face supports, of all parts in third-party software: rows of a page's table.

The protocol's parts are counted in the third-party package, and ours where they are handled. A page can therefore not
claim unsupported parts, and a new version of a package makes its test fail until its new parts are classified.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.node import FOLDER

GUIDES: Final = Path(__file__).parents[2] / "docs" / "how-to"


@dataclass(frozen=True)
class Row:
    """Of a kind of thing. `missing`: why some are not there, with their names in the protocol."""

    what: str
    theirs: frozenset[str]
    ours: frozenset[str]
    missing: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        told = [one for names in self.missing.values() for one in names]
        assert len(told) == len(set(told)), f"{self.what}: said twice in {sorted(told)}"
        assert self.ours <= self.theirs, f"{self.what}: unknown to them: {sorted(self.ours - self.theirs)}"
        assert set(told) == self.theirs - self.ours, (
            f"{self.what}: there and said to be missing: {sorted(set(told) - (self.theirs - self.ours))}; "
            f"missing, and not said why: {sorted(self.theirs - self.ours - set(told))}"
        )

    def lines(self) -> Iterator[str]:
        """As it stands in the page: how many, and a line for each reason."""
        yield f"| **{self.what}: {len(self.ours)} of {len(self.theirs)}** | | |"
        for reason, names in self.missing.items():
            yield f"| | {', '.join(f'`{one}`' for one in names)} | {reason} |"


def row(what: str, theirs: Iterable[str], ours: Iterable[str], missing: Mapping[str, Sequence[str]]) -> Row:
    """A row; fails where it is not so."""
    return Row(what, frozenset(theirs), frozenset(ours), missing)


def assert_told(page: str, *rows: Row) -> None:
    """The page has this table."""
    lines = (line for one in rows for line in one.lines())
    table = "\n".join(["| supported | not supported | why |", "|---|---|---|", *lines])
    assert_has(page, table)


def assert_has(page: str, table: str) -> None:
    """The page has it, word for word."""
    assert table in (GUIDES / page).read_text(encoding="utf-8"), f"{page} has to say:\n\n{table}\n"


def assert_names(page: str, *packages: str) -> None:
    """The page says by which version of whose packages it is held."""
    told = (GUIDES / page).read_text(encoding="utf-8")
    of_node = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for one in packages:
        newest = of_node[one] if one in of_node else version(one)
        assert f"`{one}` {newest}" in told, f"{page}: {one} is {newest} now"
