"""The sentences that people read, found where the sources say them.

Two places speak. The page's own scripts and markup say everything through `t` and `plural`, or in index.html. Python
says the rest: what the server sends to the page, and what the command line prints. There a sentence is a literal that
reads like one: words that begin with a capital or a value and end with a mark. What only models, logs or developers
read is left out by file, each for a reason.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
STATIC: Final = ROOT / "web" / "static"
SCRIPTS: Final = tuple(
    path
    for folder in ("js", "sign-in")
    for path in sorted((STATIC / folder).rglob("*.js"))
    # What records say is no script but types.
    if path.name != "records.js"
)

# --- the page ---------------------------------------------------------------------------------------

_LITERAL: Final = r'"((?:[^"\\\n]|\\.)*)"'
_SAID: Final = re.compile(rf"\bt\(\s*{_LITERAL}")
_PLURAL: Final = re.compile(rf"\bplural\([^;\"]*?{_LITERAL},\s*{_LITERAL}")


def of_scripts() -> Mapping[str, str]:
    """Every text that scripts say through `t` or `plural`, and where."""
    found: dict[str, str] = {}
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        for text in _SAID.findall(source):
            found.setdefault(str(json.loads(f'"{text}"')), script.name)
        for _, text in _PLURAL.findall(source):
            found.setdefault(str(json.loads(f'"{text}"')), script.name)
    return found


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        self.texts += [
            value
            for name, value in attrs
            if name in ("title", "placeholder", "aria-label") and value and re.search(r"[a-z]{2}", value)
        ]

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"head", "kbd", "noscript"} & set(self._inside):
            return
        if re.search(r"[A-Za-z]{2}", data):
            self.texts.append(data.strip())


def of_the_page() -> Sequence[str]:
    """Every text of index.html that a person meets."""
    page = _Page()
    page.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    return tuple(dict.fromkeys(page.texts))


# --- what Python says -------------------------------------------------------------------------------

SERVER: Final = ("accounts", "core", "hippocampus", "iact", "sandbox", "web")
"""Rooms whose sentences may come to the page."""

TERMINAL: Final = (
    "accounts/database.py",
    "core/session/progress.py",
    "iact/__main__.py",
    "iact/address.py",
    "iact/backup.py",
    "iact/cli",
    "iact/commands",
    "iact/evaluation",
    "iact/export.py",
    "iact/inspect_solver.py",
    "iact/login.py",
    "iact/people.py",
    "iact/settings.py",
    "iact/setup",
    "iact/terminal.py",
    "iact/wiring.py",
    "sandbox/__main__.py",
)
"""What only the command line says."""

_FOR_OTHERS: Final = (
    # What models read: prompts, feedback, questions, answers that they shall give.
    "core/context",
    "core/language",
    "core/models/dialect.py",
    # What whoever writes a module reads.
    "core/records/form_fields.py",
    # What whoever writes a skill reads: an agent that offers one, or a person at a terminal.
    "core/session/skill.py",
    "core/session/skill_offers.py",
    # What agents hear of the front end's tools.
    "core/session/front_end.py",
    "core/models/small_model.py",
    "core/plan/answers.py",
    "core/plan/briefing.py",
    "core/plan/modes/profile.py",
    "core/plan/planner.py",
    "core/plan/questions.py",
    "core/plan/validate.py",
    "core/tree/adoption.py",
    "core/tree/plan_request.py",
    "core/tree/contexts.py",
    "core/tree/interpret.py",
    "core/tree/plan_briefing.py",
    "iact/distiller.py",
    # Steps of the program that a bug in it would end, and what only its log has.
    "core/modules/background.py",
    "core/session/watch.py",
    # What modules hear of the network.
    "sandbox/egress.py",
)

_PHRASES: Final = ("web/audit.py", "web/records.py", "web/render.py")
"""What turns records into HTML: what it says are mostly no whole sentences."""

_SENTENCE: Final = re.compile(r"(?=[^\n]*[a-z]{2,} [a-z'{]+)[A-Z{'“][^\n]*[.?!:…]")
_PHRASE: Final = re.compile(r"[A-Za-z{][^<>=/\n]*[a-z}][ ,][^<>=/\n]*")
_VALUE: Final = re.compile(r"\{\w*\}")
_FORMAT: Final = re.compile(r"\{(\w+):[^{}]*\}")
"""A value of a template, and how it is written."""
_WORD: Final = re.compile(r"[A-Za-z]{3}")
_LIST: Final = 8
"""So many literals beside each other are data, such as what an embedding is tried with."""
_LOGGED: Final = re.compile(r"%[srd]\b|^Give the answer\.$")
"""What the log has, and what a model is asked."""


def of_server() -> Mapping[str, str]:
    """Every sentence that the page may be sent, and the folder that says it."""
    rooms = [path for room in SERVER for path in sorted((ROOT / room).rglob("*.py"))]
    return _python(path for path in rooms if not _among(path, TERMINAL))


def of_terminal() -> Mapping[str, str]:
    """Every sentence that the command line alone says, and the folder that says it."""
    return _python(
        path for room in SERVER for path in sorted((ROOT / room).rglob("*.py")) if _among(path, TERMINAL)
    )


def _among(path: Path, places: Sequence[str]) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return any(name == one or name.startswith(f"{one}/") for one in places)


def _python(paths: Iterator[Path]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        if _among(path, _FOR_OTHERS):
            continue
        phrases = _among(path, _PHRASES)
        commands = _among(path, ("iact/cli",))
        for text in _literals(ast.parse(path.read_text(encoding="utf-8")), commands=commands):
            for one in _texts_of(text) if "<" in text and phrases else (text,):
                said = one.strip()
                if not _WORD.search(_VALUE.sub("", said)):
                    continue
                fits = _SENTENCE.fullmatch(said) or (phrases and _PHRASE.fullmatch(said))
                if fits and said.count(" ") >= (1 if phrases else 2) and not _LOGGED.search(said):
                    found.setdefault(said, path.parent.relative_to(ROOT).as_posix())
    return found


def _literals(tree: ast.Module, *, commands: bool = False) -> Iterator[str]:
    """Every text that a file says; values in it have a name in braces. Docstrings, logs and long lists are none.

    `commands`: the docstring of a decorated function is the help of a command.
    """
    unsaid: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(decorator_list=[_, *_], body=[ast.Expr(), *_]) if commands:
                yield " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            case ast.Expr(value=value):
                unsaid.add(value)
            case ast.JoinedStr(values=values):
                unsaid.update(values)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "_LOG")), args=args):
                unsaid.update(args)
            case ast.Tuple(elts=many) | ast.List(elts=many) if len(many) >= _LIST:
                unsaid.update(many)
    for node in ast.walk(tree):
        if node in unsaid:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _FORMAT.sub("{\\1}", node.value.replace("{}", "{what}"))
        elif isinstance(node, ast.JoinedStr):
            yield _template(node)


def _template(text: ast.JoinedStr) -> str:
    parts: list[str] = []
    names: list[str] = []
    for one in text.values:
        if isinstance(one, ast.Constant):
            parts.append(str(one.value))
        elif isinstance(one, ast.FormattedValue):
            name = _name(one.value)
            names.append(name)
            unique = f"{name}{names.count(name)}" if names.count(name) > 1 else name
            parts.append(f"'{{{unique}}}'" if one.conversion == ord("r") else f"{{{unique}}}")
    return "".join(parts)


def _name(value: ast.expr) -> str:
    """A short name of an expression: the last word of what it reads."""
    while True:
        match value:
            case ast.Call(func=ast.Name(id="plain" | "_plain" | "repr" | "str"), args=[first, *_]):
                value = first
            case ast.Call(func=func):
                value = func
            case ast.Subscript(value=of) | ast.Await(value=of) | ast.BoolOp(values=[of, *_]):
                value = of
            case ast.BinOp(left=left):
                value = left
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return name.strip("_").lower() or "value"
            case _:
                return "value"


class _Pieces(HTMLParser):
    """The texts between the tags of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _texts_of(html: str) -> Sequence[str]:
    pieces = _Pieces()
    pieces.feed(html)
    pieces.close()
    return pieces.texts
