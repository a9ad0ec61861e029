"""Which calls of a reader run in a layer that is thrown away, and so have no effect at all.

A reader, an agent whose intent is below 1, may look and not change. What it computes, tests or writes down while it looks changes nothing
either, if it runs where nothing of it stays: over the workspace lies a layer that only this agent sees, that has no way
out, and that is thrown away when the agent's task ends. A call that runs there has impact 0 by where it runs, whatever
its text could do elsewhere.

That holds for functions that run code on the workspace and reach nothing else. A function that does nothing but write
(`files.write`, `git.commit`) is denied as before: what it wrote would be lost, and its agent would believe otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iact.core.gate.grant import Grant
from iact.core.gate.impact import RUNS_ON
from iact.core.gate.judge import Impact
from iact.core.gate.policy import Policy
from iact.core.ports import JSON

COMPUTES: Final = frozenset({"shell.run", "python.run", "python.restart"})
"""Functions of shipped modules that run code on the workspace, and reach nothing else where they have no network."""


def in_layer(impact: Impact) -> Impact:
    """The impact of a call in the layer. `impact`: what it would have elsewhere."""
    return Impact(0, f"It runs in a layer that is thrown away, without a network. Elsewhere: {impact.why}")


def runs_in_layer(
    function: str, arguments: Mapping[str, JSON], grant: Grant, policy: Policy, *, believed: bool
) -> bool:
    """Whether a call is made in the layer, where there is one.

    `believed`: the function's manifest ships with the product, or a person approved it. A rule of the policy about the
    function's impact or its effect on others stands: anyone who wrote it means more than files.
    """
    if function not in COMPUTES or not believed or grant.intent >= 1:
        return False

    if arguments.get(RUNS_ON.get(function, ""), False) is not False:
        return False

    return not policy.impacts_of(function) and not policy.meets_others(function)
