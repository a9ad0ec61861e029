"""What HELP answers: how a function, a module, an action or the language is used; without a name, what there is.

Only what the asking agent may use is told. What else a session has does not exist for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from iact.core.context.first_message import READS_ONLY
from iact.core.context.prompt import LANGUAGE
from iact.core.context.signature import line, lines
from iact.core.language import labels
from iact.core.language.actions import FRONTEND, ActionSpec
from iact.core.tree import notes, origin
from iact.core.tree.agent import Agent
from iact.core.tree.opening import is_listed, is_usable
from iact.core.tree.tree import Tree

_LANGUAGE: Final = "language"
_MOST: Final = 5
"""The most names that one HELP answers."""
_NEAREST: Final = 3


def answer(tree: Tree, agent: Agent, wanted: str) -> str:
    """Return what an agent reads for `HELP wanted`, and note that it knows what it has read.

    `wanted`: names, separated by blanks or commas; none: everything that exists, a line each.
    """
    names = list(dict.fromkeys(name.strip("`'\".") for name in wanted.replace(",", " ").split()))
    if not names:
        return _everything(tree, agent)

    told = [_about(tree, agent, name) for name in names[:_MOST]]
    if names[_MOST:]:
        told.append(labels.more_help(names[_MOST:]))
    return "\n\n".join(told)


def _everything(tree: Tree, agent: Agent) -> str:
    specs = _usable(tree, agent)
    origin.hear_names(tree, agent, specs)
    return "\n".join(
        [
            "Actions that you always have:",
            *lines(_actions(tree, agent)),
            "Functions:",
            *(lines(specs) or ["- none"]),
            f"`HELP name` tells more about one of them, or about a module; `HELP {_LANGUAGE}` about how blocks are read.",
        ]
    )


def _about(tree: Tree, agent: Agent, name: str) -> str:
    if name.lower() == _LANGUAGE:
        return labels.documentation(_LANGUAGE, None, LANGUAGE)

    specs = _usable(tree, agent)
    for spec in (*_actions(tree, agent), *specs):
        if _is_called(spec, name):
            return _page(tree, agent, spec)

    of_module = [spec for spec in specs if spec.module == name.lower()]
    if of_module:
        return _module(tree, agent, name.lower(), of_module)

    hidden = [spec for spec in tree.registry(agent.path).functions() if _is_called(spec, name)]
    if hidden:
        return f"`{hidden[0].name}` changes things. {READS_ONLY}"
    return _unknown(tree, agent, name, specs)


def _page(tree: Tree, agent: Agent, spec: ActionSpec) -> str:
    """All about one function: how it is called, and its documentation, even if the agent has read it before."""
    origin.hear_names(tree, agent, [spec])
    if not spec.documentation:
        return line(spec)

    origin.document(agent, [spec])
    agent.context.known.add(spec.name)
    head = f"{line(spec)}\n" if is_listed(tree, spec) and not spec.core else ""
    return f"{head}{notes.note(tree, spec)}"


def _module(tree: Tree, agent: Agent, module: str, specs: Sequence[ActionSpec]) -> str:
    """All about a module: what it is for, and its functions."""
    origin.hear_names(tree, agent, specs)
    loaded = tree.modules.get(module)
    purpose = labels.inline(loaded.manifest.purpose, 300) if loaded is not None and loaded.whole else ""
    head = f"The module `{module}`{f': {purpose}' if purpose else ''}"
    return "\n".join([head, *lines(specs), "`HELP name` with a function's name tells how it is used."])


def _unknown(tree: Tree, agent: Agent, name: str, specs: Sequence[ActionSpec]) -> str:
    origin.hear_names(tree, agent, specs)
    modules = (spec.module for spec in specs if spec.module is not None)
    there = [*(spec.name for spec in (*_actions(tree, agent), *specs)), *modules, _LANGUAGE]
    nearest = _nearest(name, there)
    near = f" The nearest: {', '.join(f'`{one}`' for one in nearest)}." if nearest else ""
    return f"There is no function, module or action `{labels.inline(name, 80)}`.{near} `HELP` alone lists what there is."


def _nearest(name: str, there: Iterable[str]) -> list[str]:
    """Return the names closest to `name`, in whatever case it is written: whole names, or the ends of dotted ones."""
    by_form = dict[str, str]()
    for one in there:
        by_form.setdefault(one.lower(), one)
        by_form.setdefault(one.rsplit(".", 1)[-1].lower(), one)
    close = difflib.get_close_matches(name.lower(), list(by_form), n=_NEAREST * 2, cutoff=0.6)
    return list(dict.fromkeys(by_form[form] for form in close))[:_NEAREST]


def _usable(tree: Tree, agent: Agent) -> list[ActionSpec]:
    return [spec for spec in tree.registry(agent.path).functions() if is_usable(tree, agent, spec)]


def _actions(tree: Tree, agent: Agent) -> list[ActionSpec]:
    """The actions of the core. FRONTEND is told with the message of a program that has tools, and is nothing without."""
    return [spec for spec in tree.registry(agent.path).actions() if spec.name != FRONTEND.name or tree.tools]


def _is_called(spec: ActionSpec, name: str) -> bool:
    if name.lower() == spec.name.lower():
        return True
    return spec.alias is not None and name.lower() == spec.alias.lower()
