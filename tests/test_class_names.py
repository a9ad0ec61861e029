"""No two classes of the product have the same name, so that a name leads a reader to one class.

Three kinds of pairs are the same concept seen from two sides, and are excluded: a wire message and its record, a port
of the page and its implementation, and classes of the SDK for modules, which is another program. Names with an
underscore are private to their file.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
ROOMS: Final = ("core", "sandbox", "hippocampus", "web", "iact", "cluster", "examples", "accounts", "faces")
SIDES: Final = ("web/wire/", "web/ports.py")


def classes() -> dict[str, list[str]]:
    """The names of all public classes of the product, with the files that define them."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        # The rooms are also links inside the package.
        if name.startswith(SIDES) or any(name.startswith(f"iact/{room}/") for room in ROOMS):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def test_no_two_classes_have_one_name() -> None:
    twice = {name: files for name, files in classes().items() if len(files) > 1}
    assert twice == {}
