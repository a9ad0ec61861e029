"""Remote agents as children: `CALL name at=ADDRESS` opens a dialogue with one, `CALL name` continues it.

Such a CALL is carried out as a call of the module `a2a`, so gate, journal, cancellation and recovery work as for any
call. Kept here are the other side's identifiers of the dialogue, so that the next CALL answers its question or
continues the conversation. They are kept once the CALL is read, whether or not the gate allows it (law 7).
"""

from __future__ import annotations

from typing import Final

from iact.core.gate.provenance import NOTHING
from iact.core.language import labels
from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.variables import mentions
from iact.core.ports import JSON
from iact.core.records.calls import Result
from iact.core.tree.agent import Agent, Pending, RemoteDialogue
from iact.core.tree.tree import Tree

_ASK: Final = "a2a.ask"
_ANSWER: Final = "a2a.answer"
_LONGEST: Final = 2_000
"""The most characters of an address, and of the identifiers from the other side."""
_ALLOWED: Final = frozenset({"name", "message", "at"})


def is_remote(agent: Agent, name: str, at: str) -> bool:
    """Whether a CALL is for a remote agent."""
    return bool(at) or name in agent.remote


def aim(tree: Tree, agent: Agent, pending: Pending, *, name: str, at: str, text: str) -> str | None:
    """Turn a CALL for a remote agent into the call of a function. Returns a sentence if it can't be made.

    `name`, `at`, `text`: its arguments; `text` is the message.
    """
    bound, action = pending.bound, pending.written
    assert bound is not None
    if action != "CALL":
        return f"`{action}` was not run: {name} is an agent elsewhere; use CALL for it."
    if name in agent.children:
        return (
            f"`CALL` was not run: {name} is a child of yours already; give the agent elsewhere another name."
        )
    more = sorted({*bound.arguments, *bound.attached} - _ALLOWED)
    if more:
        return f"`CALL` was not run: an agent elsewhere takes no `{more[0]}`; leave it out."
    if len(at) > _LONGEST:
        return f"`CALL` was not run: an address has at most {_LONGEST:,} characters."
    handed = mentions(text, agent.table) if "message" in bound.arguments else {}
    if handed:
        return (
            f"`CALL` was not run: an agent elsewhere gets no variables, and your message names ${next(iter(handed))}."
            " Write what it needs into the message."
        )
    known = agent.remote.get(name)
    if known is None or (at and at != known.at):
        attached = bound.attached.get("at")
        known = agent.remote[name] = RemoteDialogue(at, attached.labels if attached else NOTHING)
    spec = _function(tree, agent, _ANSWER if known.task else _ASK)
    if spec is None:
        return "`CALL` was not run: agents elsewhere can't be reached from here now."
    pending.spec, pending.remote = spec, name
    pending.bound = _bound(bound, known, name)
    agent.context.known.add(spec.name)
    return None


def _function(tree: Tree, agent: Agent, name: str) -> ActionSpec | None:
    found = tree.registry(agent.path).find(name)
    return found if isinstance(found, ActionSpec) else None


def _bound(bound: Bound, known: RemoteDialogue, name: str) -> Bound:
    """The arguments of the function. They keep the labels of the CALL's arguments."""
    arguments: dict[str, JSON] = {"at": known.at, "dialogue": name}
    arguments |= {"message": bound.arguments["message"]} if "message" in bound.arguments else {}
    if known.task:
        arguments["task"] = known.task
    if known.context:
        arguments["context"] = known.context
    attached = {"message": bound.attached["message"]} if "message" in bound.attached else {}
    origins = {"at": known.labels} if known.labels else {}
    if "name" in bound.labels:
        origins["dialogue"] = bound.labels["name"]
    return Bound(arguments, attached, origins)


def hear(agent: Agent, pending: Pending, result: Result) -> None:
    """Read from an outcome how the dialogue goes on: the question to answer next, or the conversation to continue."""
    known = agent.remote.get(pending.remote)
    if known is None or not pending.call:
        return
    match result.status:
        case "ok":
            data = result.data or {}
            known.task = _name(data, "task") if data.get("state") != "completed" else ""
            known.context = _name(data, "context") or known.context
        case "error" | "cancelled" | "interrupted":
            known.task = ""  # it failed, or was cancelled on the other side


def _name(data: object, key: str) -> str:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) and len(value) <= _LONGEST else ""


def source(known: RemoteDialogue, name: str) -> str:
    """How its messages are labelled."""
    return f"{name}, an agent elsewhere at {labels.inline(known.at)}"
