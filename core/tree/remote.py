"""Remote agents as children: `CALL name at=ADDRESS` opens a dialogue with one, `CALL name` continues it.

Such a CALL is carried out as a call of the module `a2a`, so gate, journal, cancellation and recovery work as for any
call. Kept here are the other side's identifiers of the dialogue, so that the next CALL answers its question or
continues the conversation. They are kept once the CALL is read, whether or not the gate allows it (law 7).
"""

from __future__ import annotations

from typing import Final

from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language import labels
from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.variables import Value, mentions
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
    bound = pending.bound
    assert bound is not None
    if pending.written != "CALL":
        return f"`{pending.written}` was not run: {name} is an agent elsewhere; use CALL for it."
    if name in agent.children:
        return (
            f"`CALL` was not run: {name} is a child of yours already; give the agent elsewhere another name."
        )
    not_taken = sorted({*bound.arguments, *bound.attached} - _ALLOWED)
    if not_taken:
        return f"`CALL` was not run: an agent elsewhere takes no `{not_taken[0]}`; leave it out."
    if len(at) > _LONGEST:
        return f"`CALL` was not run: an address has at most {_LONGEST:,} characters."

    # A message that is a variable as a whole is passed as it is, whatever stands in it.
    is_written = "message" in bound.arguments
    variables = mentions(text, agent.table) if is_written else {}
    if variables:
        first = next(iter(variables))
        return (
            f"`CALL` was not run: an agent elsewhere gets no variables, and your message names ${first}."
            " Write what it needs into the message."
        )

    dialogue = agent.remote.get(name)
    if dialogue is None or (at and at != dialogue.at):
        address = bound.attached.get("at")
        dialogue = RemoteDialogue(at, NOTHING if address is None else address.labels)
        agent.remote[name] = dialogue
    spec = _function(tree, agent, _ANSWER if dialogue.task else _ASK)
    if spec is None:
        return "`CALL` was not run: agents elsewhere can't be reached from here now."

    pending.spec = spec
    pending.remote = name
    pending.bound = _bound(bound, dialogue, name)
    agent.context.known.add(spec.name)
    return None


def _function(tree: Tree, agent: Agent, name: str) -> ActionSpec | None:
    spec = tree.registry(agent.path).find(name)
    return spec if isinstance(spec, ActionSpec) else None


def _bound(bound: Bound, dialogue: RemoteDialogue, name: str) -> Bound:
    """The arguments of the function. They keep the labels of the CALL's arguments."""
    arguments: dict[str, JSON] = {"at": dialogue.at, "dialogue": name}
    if "message" in bound.arguments:
        arguments["message"] = bound.arguments["message"]
    if dialogue.task:
        arguments["task"] = dialogue.task
    if dialogue.context:
        arguments["context"] = dialogue.context

    attached: dict[str, Value] = {}
    if "message" in bound.attached:
        attached["message"] = bound.attached["message"]

    origins: dict[str, Labels] = {}
    if dialogue.labels:
        origins["at"] = dialogue.labels
    if "name" in bound.labels:
        origins["dialogue"] = bound.labels["name"]
    return Bound(arguments, attached, origins)


def hear(agent: Agent, pending: Pending, result: Result) -> None:
    """Read from an outcome how the dialogue goes on: the question to answer next, or the conversation to continue."""
    dialogue = agent.remote.get(pending.remote)
    if dialogue is None or not pending.call:
        return

    match result.status:
        case "ok":
            data = result.data or {}
            is_over = data.get("state") == "completed"
            dialogue.task = "" if is_over else _name(data, "task")
            dialogue.context = _name(data, "context") or dialogue.context
        case "error" | "cancelled" | "interrupted":
            # It failed, or was cancelled on the other side.
            dialogue.task = ""


def _name(data: object, key: str) -> str:
    """An identifier from the other side; empty if there is none that can be kept."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) and len(value) <= _LONGEST else ""


def source(dialogue: RemoteDialogue, name: str) -> str:
    """How its messages are labelled."""
    return f"{name}, an agent elsewhere at {labels.inline(dialogue.at)}"
