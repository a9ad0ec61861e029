"""The import arrows of the architecture, read from the source of every package.

Arrows point one way: `iact → web → core.session → core.stored → core.views → core.tree → the other rooms of core → core.records → core.ports → core.errors`,
with `sandbox` and `hippocampus` next to the core, behind its ports, and `ext_modules` on the other side of
the protocol. A new arrow is added to a table below with its reason, or the code is cut differently.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = (
    "core",
    "protos",
    "ext_modules",
    "sandbox",
    "hippocampus",
    "web",
    "iact",
    "examples",
    "cluster",
    "accounts",
    "faces",
)

ROOMS = ("core", "sandbox", "hippocampus", "web", "examples", "cluster", "accounts", "faces")
"""Folders at the top of the repository, each imported through the link with its name in `iact/`."""

INNER = ("context", "gate", "journal", "language", "models", "modules", "plan")
"""Rooms of the core on the same level, above `core.records` and below `core.tree`."""

BASE = {
    "core.ports",
    "core.errors",
    "core.blocking",
    "core.characters",
    "core.clock",
    "core.json_file",
    "core.whole_file",
    "core.objects",
    "core.path_names",
    "core.rates",
    "core.recent",
}
EVERY_ROOM = {"core.records", *(f"core.{room}" for room in INNER)}

DRIVEN = {"core.session", "core.stored", "core.views"}
"""The rooms above the tree: what drives sessions, works on stored ones, and shows both."""

OUTSIDE = BASE | DRIVEN | {"core.records"}
"""The parts of the core that an embedding program needs: sessions, the content of their journals, and the ports."""

PEOPLE = {"accounts.rights", "accounts.people"}
"""The pure parts of accounts: values and one table, which every server has."""

ALLOWED: dict[str, set[str]] = {
    "core.errors": set(),
    "core.blocking": set(),
    "core.characters": set(),
    "core.clock": set(),
    "core.path_names": set(),
    "core.rates": set(),
    "core.recent": set(),
    "core.ports": {"core.errors"},
    "core.whole_file": set(),
    "core.json_file": {"core.ports", "core.errors", "core.whole_file"},
    "core.objects": {"core.ports", "core.characters"},
    "core.records": BASE,
    **{f"core.{room}": BASE | {"core.records"} for room in INNER},
    "core.tree": BASE | EVERY_ROOM,
    "core.views": BASE | EVERY_ROOM | {"core.tree"},
    "core.stored": BASE | EVERY_ROOM | {"core.tree", "core.views"},
    "core.session": BASE | EVERY_ROOM | {"core.tree", "core.views", "core.stored"},
    "core": BASE | EVERY_ROOM | DRIVEN | {"core.tree"},
    "protos": set(),
    "ext_modules": {"protos"},
    "sandbox": BASE | {"protos"},
    "hippocampus": set(BASE),
    "cluster": OUTSIDE | PEOPLE | {"web"},
    "examples": set(),
    "examples.recording": OUTSIDE | {"examples", "ext_modules"},
    "accounts.rights": {"core.errors"},
    "accounts.people": {"accounts.rights", "core.errors"},
    "accounts": BASE | PEOPLE,
    "faces": OUTSIDE | PEOPLE,
    "web": OUTSIDE | PEOPLE,
    "iact": OUTSIDE
    | PEOPLE
    | {"web", "sandbox", "hippocampus", "examples", "cluster", "accounts", "faces", "iact.models"},
    "iact.setup": set(),
    # The model on board speaks to its own server through the core's client, and its examples in the language's terms.
    "iact.models": BASE | {"core.models", "core.language", "iact"},
}

SIBLINGS: dict[tuple[str, str], str] = {
    (
        "core.journal",
        "core.language",
    ): "a body that would swallow what follows is told by the block rules of Markdown",
    ("core.modules", "protos"): "it speaks the protocol",
    ("core.modules", "core.gate"): "the one function that calls modules takes a ticket of the gate",
    ("core.modules", "core.language"): "the registry tells the action grammar which names are functions",
    ("core.context", "core.language"): "a context is rendered from the language's terms",
    (
        "core.plan",
        "core.context",
    ): "a question about a plan is cut and counted as every text that a model reads",
    ("core.plan", "core.language"): "what somebody else wrote is fenced as in a context",
    ("core.models", "core.context"): "an endpoint that counts no tokens has them estimated as budgets are",
    ("core.models", "core.language"): "function calls are written back as action blocks, where one may begin",
}
"""Arrows between rooms of the same level, each with its reason."""

_IMPURE = {"asyncio", "time", "random", "secrets", "socket", "subprocess", "threading"}

KNOWS_NOT: dict[str, set[str]] = {
    "core": {"docker", "chromadb", "websockets"},
    "core.language": _IMPURE,
    "core.context": _IMPURE,
    "core.tree": _IMPURE | {"pathlib", "os", "grpc", "openai"},
    "core.records": _IMPURE | {"pathlib", "os"},
    "core.plan": _IMPURE,
    "accounts.rights": _IMPURE | {"pathlib", "os", "sqlalchemy"},
    "accounts.people": _IMPURE | {"pathlib", "os", "sqlalchemy"},
}
"""Libraries that a room and everything in it must not import: the borders of the core, and the pure rooms."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """One import: its `file` and `line`, and the dotted module names `source` and `target`."""

    file: Path
    line: int
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.source} → {self.target}"


def room_of(module: str) -> str:
    """The room that a module belongs to."""
    parts = module.split(".")
    if parts[0] == "core" and len(parts) > 1:
        return ".".join(parts[:2])
    apart = ".".join(parts[:2])
    return apart if apart in {"iact.setup", "iact.models", "examples.recording", *PEOPLE} else parts[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or place.is_dir()


def room_name(dotted: str) -> str:
    """The name of `dotted` in terms of the repository's folders: `iact.core.gate` is `core.gate`."""
    package, _, rest = dotted.partition(".")
    return rest if package == "iact" and rest.split(".")[0] in ROOMS else dotted


def imported(node: ast.AST, place: Path) -> Iterator[str]:
    """Dotted names that one statement of the file `place` imports; `from a import b` counts as `a.b` where that is a module."""
    if isinstance(node, ast.Import):
        yield from (room_name(alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = place.relative_to(ROOT).parts[: -node.level] if node.level else ()
        base = ".".join((*above, *((node.module,) if node.module else ())))
        for alias in node.names:
            inner, base = room_name(f"{base}.{alias.name}"), room_name(base)
            yield inner if base.split(".")[0] in OURS and is_module(inner) else base


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    """Every source file, parsed."""
    paths = [path for package in OURS for path in sorted((ROOT / package).rglob("*.py"))]
    paths = [path for path in paths if path.relative_to(ROOT).parts[1] not in ROOMS]  # through a link
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"), str(path))) for path in paths)


@cache
def arrows() -> tuple[Arrow, ...]:
    """Every import of one of our modules."""
    return tuple(
        Arrow(path, getattr(node, "lineno", 0), module_name(path), target)
        for path, tree in trees()
        for node in ast.walk(tree)
        for target in imported(node, path)
    )


def relative_imports() -> Iterator[str]:
    """The places of relative imports. An ext-module's files may use them, as they are loaded from any folder."""
    for path, tree in trees():
        place = path.relative_to(ROOT)
        if place.parts[0] == "ext_modules" and place.parts[1] != "sdk":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                yield f"{place}:{node.lineno}"


def permitted(source: str, target: str) -> bool:
    """Whether an arrow from room `source` to room `target` is in the tables."""
    return source == target or target in ALLOWED[source] or (source, target) in SIBLINGS


def first_party() -> list[Arrow]:
    return [arrow for arrow in arrows() if arrow.target.split(".")[0] in OURS]


def test_every_import_follows_the_arrows() -> None:
    wrong = [
        str(arrow) for arrow in first_party() if not permitted(room_of(arrow.source), room_of(arrow.target))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_source_is_really_read() -> None:
    """Guards the test above: it must have seen rooms and arrows at all."""
    seen = {(room_of(arrow.source), room_of(arrow.target)) for arrow in first_party()}
    assert {
        ("sandbox", "core.ports"),
        ("core.journal", "core.errors"),
        ("core.session", "core.journal"),
    } <= seen


def test_rooms_do_without_what_they_must_not_know() -> None:
    wrong = [
        str(arrow)
        for arrow in arrows()
        for room, banned in KNOWS_NOT.items()
        if (arrow.source == room or arrow.source.startswith(f"{room}."))
        and arrow.target.split(".")[0] in banned
    ]
    assert not wrong, "\n".join(wrong)


def test_setup_needs_the_standard_library_only() -> None:
    """Because it runs before anything is installed."""
    wrong = [
        str(arrow)
        for arrow in arrows()
        if room_of(arrow.source) == "iact.setup"
        and arrow.target.split(".")[0] not in sys.stdlib_module_names
        and room_of(arrow.target) != "iact.setup"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_files_import_each_other_in_a_circle() -> None:
    """Not even for type checking, and not through other files, so each file can be read with only its imports."""
    below: dict[str, set[str]] = {}
    for arrow in first_party():
        if arrow.source != arrow.target:
            below.setdefault(arrow.source, set()).add(arrow.target)
    rooms = {source.split(".")[0] for source in below}
    assert {"core", "web", "iact", "sandbox", "hippocampus", "ext_modules"} <= rooms
    assert not circle(below), " → ".join(circle(below))


def circle(below: Mapping[str, Set[str]]) -> list[str]:
    """Some files that import each other in a circle, with the first one repeated at the end. Empty if there is none."""
    rest = dict(below)
    while lowest := [one for one, targets in rest.items() if not targets & rest.keys()]:
        for one in lowest:
            del rest[one]
    way = [min(rest)] if rest else []  # every remaining file imports another remaining file
    while way and way[-1] not in way[:-1]:
        way.append(min(rest[way[-1]] & rest.keys()))
    return way[way.index(way[-1]) :] if way else []


def test_a_circle_is_found() -> None:
    assert circle({"top": {"a"}, "a": {"b", "low"}, "b": {"c"}, "c": {"a"}, "low": {"os"}}) == [
        "a",
        "b",
        "c",
        "a",
    ]
    assert circle({"top": {"a"}, "a": {"b", "low"}, "b": {"low"}}) == []


def test_no_room_is_imported_past_the_package() -> None:
    """Otherwise its modules would be loaded twice under two names, with different classes."""
    past = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        )
        if name.split(".")[0] in ROOMS
    ]
    assert not past, "\n".join(past)
    assert all((ROOT / "iact" / room).resolve() == ROOT / room for room in ROOMS)


def test_no_relative_imports() -> None:
    assert not list(relative_imports())


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("core.session", "sandbox"),
        ("core.stored", "core.session"),
        ("core.views", "core.session"),
        ("core.views", "core.stored"),
        ("core.tree", "core.views"),
        ("core.modules", "ext_modules"),
        ("core.journal", "core.session"),
        ("core.gate", "core.modules"),
        ("ext_modules", "core.errors"),
        ("sandbox", "core.session"),
        ("sandbox", "ext_modules"),
        ("web", "iact"),
        ("web", "sandbox"),
        ("web", "core.tree"),
        ("web", "core.language"),
        ("iact", "core.tree"),
        ("iact", "core.gate"),
        ("iact", "core.modules"),
        ("iact", "core.models"),
        ("iact", "core.plan"),
        ("iact", "ext_modules"),
        ("iact.setup", "core"),
    ],
)
def test_the_tables_forbid_what_the_design_forbids(source: str, target: str) -> None:
    assert not permitted(source, target)


def test_nothing_of_ext_modules_is_loaded_into_the_trusted_process() -> None:
    """Checks the tables in a process that has loaded every room and read the catalogue."""
    script = (
        "import sys, pathlib, iact.core.ports, iact.sandbox.catalogue;"
        "iact.sandbox.catalogue.Catalogue(pathlib.Path('/nonexistent')).modules();"
        "bad = [name for name in sys.modules if name.split('.')[0] == 'ext_modules'];"
        "sys.exit(' '.join(bad) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_one_function_alone_invokes_modules() -> None:
    """A module's functions are invoked in `core.modules.invoker`, which redeems a ticket first, and nowhere else."""
    users = {
        module_name(path)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("invoke", "Invoke")
    }
    inside = {name for name in users if not name.startswith(("ext_modules.", "protos."))}
    assert inside == {"core.modules.invoker"}


def test_commands_run_where_a_signal_ends_them_in_order() -> None:
    """`asyncio.run` would let the first signal cancel every task at once; `iact.signals.run` cancels the command's."""
    runners = {
        module_name(path)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "asyncio.run"
    }
    assert {name for name in runners if name.startswith("iact.commands")} == set()
    assert "iact.signals" in runners


def test_tickets_are_made_by_the_gate_alone() -> None:
    makers = {
        module_name(path)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Ticket"
    }
    assert makers == {"core.gate.gate"}


def test_the_gate_is_asked_in_one_place() -> None:
    """The same two functions decide about a call, whether live, on replay or for administrators."""
    askers = {
        module_name(path)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "iact.core.gate.gate"
        and {"consider", "settle", "decide"} & {alias.name for alias in node.names}
    }
    assert askers == {"core.gate", "core.tree.decision", "core.views.verdict"}
