"""Which functions and actions a message is about, as far as its words say so: by name, by module, or by a phrase.

Only words count that a person or a caller wrote as prose. Code, addresses and paths name nothing: `docs/notes.sql` is
about neither `docs` nor `sql`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from iact.core.language.actions import PLAN, ActionSpec
from iact.core.language.phrases import A_MODULE, THE, actions_asked_for

_CODE: Final = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*.*", re.MULTILINE)
_TOKEN: Final = re.compile(r"[A-Za-z0-9_./\\$@~](?:[A-Za-z0-9_./\\$@~:-]*[A-Za-z0-9_/\\$@~])?")
"""A word, a dotted name, an address or a path, without the punctuation around it."""

_SAYS_MODULE: Final = re.compile(A_MODULE, re.IGNORECASE)
_BEHIND: Final = re.compile(rf"[`'\"*]*[ \t-]?{A_MODULE}", re.IGNORECASE)
_BEFORE: Final = re.compile(rf"(?<!\w){A_MODULE}[ \t]*[`'\"*]*\Z", re.IGNORECASE)
_MEANT: Final = re.compile(rf"{THE}[ \t]+[`'\"*]*\Z", re.IGNORECASE)
_REACH: Final = 24
"""How many characters before a module's name are looked at for a word such as "module"."""

_EVERYDAY: Final = frozenset({"app", "browser", "docs", "files", "python", "shell", "web"})
"""Modules whose names are ordinary words: they are named only where "module" or the like stands beside them."""

_LANGUAGES: Final = frozenset({"python"})
"""Modules with the name of a language, in which one can write a module: "the Python module" is named, not any one."""

_KEYWORDS: Final = 2
"""How many keywords of a module that nobody has approved make a message one about it."""

_BY_NAME, _BY_MODULE_AND_VERB, _BY_PHRASE, _BY_MODULE, _IN_PASSING = range(5)
"""How specific a match is, the most specific first."""


@dataclass(frozen=True, slots=True)
class _Named:
    """What a text names. `words`: its words and dotted names, in lower case."""

    words: AbstractSet[str]
    written: AbstractSet[str]
    """The same as they were written: actions of the core are named in capitals."""
    modules: AbstractSet[str]
    """Modules that are named as modules."""


def prose(text: str) -> str:
    """Return a text without its fenced code blocks and tracebacks."""
    if "```" in text or "~~~" in text:
        text = _CODE.sub("", text)
    return _TRACEBACK.sub("", text) if "Traceback (" in text else text


def named(
    text: str,
    specs: Sequence[ActionSpec],
    met: AbstractSet[str] = frozenset(),
    kept_plans: Iterable[str] = (),
) -> list[str]:
    """Return the functions and actions among `specs` that a text is about, the most specific match first.

    `met`: modules whose mere names are not reason enough, since the reader knows them. `kept_plans`: the plans that the
    user keeps, each with its name first; a message that names one is about PLAN.
    """
    said = prose(text)
    modules = frozenset(spec.module for spec in specs if spec.module is not None)
    found = _words(said, modules)
    asked_for = set(actions_asked_for(said))
    if any(_names(plan.partition(" ")[0], said) for plan in kept_plans):
        asked_for.add(PLAN.name)

    ranked = list[tuple[int, str]]()
    first_of_module = dict[str, str]()
    for spec in specs:
        if spec.module is not None:
            first_of_module.setdefault(spec.module, spec.name)
        rank = _rank_of_action(spec, found, asked_for) if spec.core else _rank(spec, found)
        if rank is not None:
            ranked.append((rank, spec.name))

    in_order = sorted(ranked, key=lambda match: match[0])
    detailed = {_module(name) for rank, name in in_order if rank != _IN_PASSING}
    chosen = list[str]()
    for rank, name in in_order:
        module = _module(name)
        if rank >= _BY_MODULE and module in met:
            continue
        # A module that is only mentioned brings what its author put first, and no more.
        if rank == _IN_PASSING and (module in detailed or name != first_of_module[module]):
            continue
        chosen.append(name)
    return chosen


def _words(said: str, modules: AbstractSet[str]) -> _Named:
    written = frozenset(_TOKEN.findall(said))
    words = frozenset(_TOKEN.findall(said.lower()))
    return _Named(words, written, _named_as_modules(said, modules))


def _named_as_modules(said: str, modules: AbstractSet[str]) -> AbstractSet[str]:
    """The modules beside whose names a word such as "module" stands."""
    if _SAYS_MODULE.search(said) is None:
        return frozenset()

    found = set[str]()
    for match in _TOKEN.finditer(said):
        word = match.group().lower()
        module = word.split("-", 1)[0]
        if module not in modules:
            continue
        end = match.start() + len(module)
        before = said[max(0, match.start() - _REACH) : match.start()]
        behind = _BEHIND.match(said, end) is not None
        if module in _LANGUAGES:
            behind = behind and _MEANT.search(before) is not None
        if behind or (word == module and _BEFORE.search(before)):
            found.add(module)
    return found


def _rank_of_action(spec: ActionSpec, found: _Named, asked_for: AbstractSet[str]) -> int | None:
    if spec.name in found.written:
        return _BY_NAME
    return _BY_PHRASE if spec.name in asked_for else None


def _rank(spec: ActionSpec, found: _Named) -> int | None:
    module = spec.module or ""
    if spec.name.lower() in found.words:
        return _BY_NAME
    if spec.alias is not None and spec.alias.lower() in found.words:
        return _BY_NAME

    as_module = module in found.modules
    mentioned = module in found.words and module not in _EVERYDAY
    if not spec.vouched:
        # What it is for stands in no list until a person approves it, so nobody could ask for it by its name.
        mentioned = mentioned or len(found.words & set(spec.keywords)) >= _KEYWORDS
    if not as_module and not mentioned:
        return None
    if spec.name.rsplit(".", 1)[-1] in found.words:
        return _BY_MODULE_AND_VERB
    return _BY_MODULE if as_module else _IN_PASSING


def _names(kept: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(kept)}(?![\w-])", text, re.IGNORECASE) is not None


def _module(function: str) -> str:
    return function.split(".", 1)[0]
