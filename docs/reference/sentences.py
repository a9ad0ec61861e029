"""Finds in the sources the sentences that people read.

They come from two places. The page's own scripts pass every text to `t` and `plural`, and its markup is index.html.
Python code contains the rest: what the server sends to the page, and what the command line prints. In Python, a literal
counts as a sentence if it looks like one: words that begin with a capital or a value and end with a punctuation mark.
Files whose sentences only models, logs or developers read are excluded, each with a reason.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from iact.examples import EXAMPLES
from iact.web.stored_session import EXAMPLE_MODEL

ROOT: Final = Path(__file__).parents[2]
STATIC: Final = ROOT / "web" / "static"
SCRIPTS: Final = tuple(
    path
    for folder in ("js", "sign-in")
    for path in sorted((STATIC / folder).rglob("*.js"))
    # Contains only types.
    if path.name != "records.js"
)

# --- the page ---------------------------------------------------------------------------------------

_LITERAL: Final = r'"((?:[^"\\\n]|\\.)*)"'
_SAID: Final = re.compile(rf"\bt\(\s*{_LITERAL}")
_PLURAL: Final = re.compile(rf"\bplural\([^;\"]*?{_LITERAL},\s*{_LITERAL}")


def of_scripts() -> Mapping[str, str]:
    """Every text that scripts pass to `t` or `plural`, with the name of the script."""
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
    """Every text of index.html that a person can read."""
    page = _Page()
    page.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    return tuple(dict.fromkeys(page.texts))


# --- Python -------------------------------------------------------------------------------

SERVER: Final = ("accounts", "core", "hippocampus", "iact", "sandbox", "web")
"""Folders whose sentences may reach the page."""

TERMINAL: Final = (
    "accounts/database.py",
    "core/views/progress.py",
    "iact/__main__.py",
    "iact/address.py",
    "iact/backup.py",
    "iact/cli",
    "iact/commands",
    "iact/evaluation",
    "iact/export.py",
    "iact/inspect_solver.py",
    "iact/login.py",
    "iact/models/gguf.py",
    "iact/models/hub.py",
    "iact/people.py",
    "iact/settings.py",
    "iact/setup",
    "iact/terminal.py",
    "iact/wiring.py",
    "sandbox/__main__.py",
)
"""Files and folders whose sentences only the command line prints."""

_FOR_OTHERS: Final = (
    # Models read these: prompts, feedback, questions, the answers that they are asked to give.
    "core/context",
    "core/language",
    "core/models/dialect.py",
    # Endpoints say these.
    "core/models/stated_limits.py",
    # Authors of modules read these.
    "core/records/form_fields.py",
    # Authors of skills read these: an agent that offers one, or a person at a terminal.
    "core/stored/skill.py",
    "core/session/skill_offers.py",
    # Agents read these about the tools of the front end.
    "core/session/front_end.py",
    # Models read what an answer must look like.
    "core/session/answer_form.py",
    "iact/models/prompt.py",
    "iact/models/giving_up.py",
    "core/plan/answers.py",
    "core/plan/briefing.py",
    "core/plan/prompt.py",
    "core/plan/modes/auto.py",
    "core/plan/modes/profile.py",
    "core/plan/planner.py",
    "core/plan/questions.py",
    "core/plan/validate.py",
    "core/tree/adoption.py",
    "core/tree/plan_request.py",
    "core/tree/chronicle.py",
    "core/tree/compression.py",
    "core/tree/contexts.py",
    "core/tree/distilling.py",
    "core/tree/help_pages.py",
    "core/tree/interpret.py",
    "core/tree/plan_answer.py",  # has its own languages
    "core/tree/plan_answer_reasons.py",  # so have these
    "core/tree/plan_briefing.py",
    "core/tree/uploads.py",
    # Errors that only a bug in the program causes, and texts that only its log has.
    "core/modules/background.py",
    "core/session/watch.py",
    # Modules receive these about the network.
    "sandbox/egress.py",
)

_PHRASES: Final = ("web/audit.py", "web/records.py", "web/render.py")
"""Files that turn records into HTML. Most of their texts are not whole sentences."""

_SENTENCE: Final = re.compile(r"(?=[^\n]*[a-z]{2,} [a-z'{]+)[A-Z{'“][^\n]*[.?!:…]")
_PHRASE: Final = re.compile(r"[A-Za-z{][^<>=/\n]*[a-z}][ ,][^<>=/\n]*")
_VALUE: Final = re.compile(r"\{\w*\}")
_FORMAT: Final = re.compile(r"\{(\w+):[^{}]*\}")
"""A value in a template, with its format."""
_WORD: Final = re.compile(r"[A-Za-z]{3}")
_LIST: Final = 8
"""A list with at least this many literals is data, such as texts to test an embedding with."""
_LOGGED: Final = re.compile(r"%[srd]\b|^Give the answer\.$")
"""Texts of the log, and questions to a model."""


def of_server() -> Mapping[str, str]:
    """Every sentence that may be sent to the page, with the folder that contains it."""
    rooms = [path for room in SERVER for path in sorted((ROOT / room).rglob("*.py"))]
    return {**_python(path for path in rooms if not _among(path, TERMINAL)), **_of_examples()}


def _of_examples() -> Mapping[str, str]:
    """What the list of recorded sessions says of each, and the page of the model of all."""
    texts = [text for example in EXAMPLES for text in (example.title, example.about)]
    return dict.fromkeys([*texts, EXAMPLE_MODEL], "examples")


def of_terminal() -> Mapping[str, str]:
    """Every sentence that only the command line prints, with the folder that contains it."""
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
    """Every text in a file, with the names of its values in braces. Skips docstrings, log messages and long lists.

    `commands`: the docstring of a decorated function counts, because it is the help of a command.
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
    """A short name for an expression: the last name in it."""
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
    """Collects the texts between the tags of a piece of HTML."""

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
