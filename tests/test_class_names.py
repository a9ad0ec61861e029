"""No two classes of one name in the product: a reader who finds a name should have found the thing.

Three kinds of pairs are one thing seen from two sides, and are left out: a wire message and the record that it becomes,
a port of the page and what implements it, and the kit with which modules are written, which is another program. Names
with an underscore are known in their file alone.
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
    """Every public class of the product, and the files that have one of its name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        # The rooms are links inside of the package, too.
        if name.startswith(SIDES) or any(name.startswith(f"iact/{room}/") for room in ROOMS):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def test_no_two_classes_have_one_name() -> None:
    twice = {name: files for name, files in classes().items() if len(files) > 1}
    assert twice == {}
