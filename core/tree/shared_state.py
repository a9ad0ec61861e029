"""What agents share without a message, as data: the files of the workspace, and what modules keep.

`core.tree.apply_shared_state` has the rules that change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from iact.core.gate.provenance import NOTHING, Labels

Holder = tuple[str, str]
"""What keeps data: a module, and the agent that the data belongs to (empty: all agents)."""


@dataclass(slots=True)
class SharedState:
    """Shared state and its labels. `files`: labels of the workspace's content. `version`: its latest kept version;
    empty if unknown.

    `writing`: calls in progress that may write there, by record, each with the labels of what it writes. `since`: these
    calls, and those that have ended without a version since the last one. `held`: labels of everything ever passed to a
    module that may keep it. `busy`: holders in a state other than the initial one, so that they may have something
    running, with the names used (`core.modules.state_names`). `left_by`: for each of them, the function that left
    something running. `named`: labels of the agents that named each module.
    """

    files: Labels = NOTHING
    version: str = ""
    writing: dict[int, Labels] = field(default_factory=dict)
    since: set[int] = field(default_factory=set)
    held: dict[Holder, Labels] = field(default_factory=dict)
    busy: dict[Holder, set[str]] = field(default_factory=dict)
    left_by: dict[Holder, str] = field(default_factory=dict)
    named: dict[str, Labels] = field(default_factory=dict)
