"""What agents share without a message: the files of the workspace, and what modules keep. As data.

`core.tree.apply_shared_state` has the rules by which it changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from iact.core.gate.provenance import NOTHING, Labels

Holder = tuple[str, str]
"""What keeps what it is given: a module, and the agent whose alone that is (empty: all agents')."""


@dataclass(slots=True)
class SharedState:
    """`files`: labels of what the workspace holds. `version`: of its files, as kept last; empty: nobody knows.

    `writing`: calls under way that may write there, by record, each with the labels of what it writes; `since`: they,
    and those that have ended without a version since the last one.
    `held`: labels of all that was ever given to a module that may keep it. `busy`: holders that are in another state
    than the initial one, so that something of theirs may run, with the names under which they are (`core.modules.state_names`).
    `named`: labels of those who gave a module its name.
    """

    files: Labels = NOTHING
    version: str = ""
    writing: dict[int, Labels] = field(default_factory=dict)
    since: set[int] = field(default_factory=set)
    held: dict[Holder, Labels] = field(default_factory=dict)
    busy: dict[Holder, set[str]] = field(default_factory=dict)
    named: dict[str, Labels] = field(default_factory=dict)
