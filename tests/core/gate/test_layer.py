"""Which calls of a reader run in the layer that is thrown away: those that run code, and nothing else."""

from __future__ import annotations

import pytest

from iact.core.gate.gate import (
    Answer,
    CallRequest,
    Question,
    Ticket,
    arguments_digest,
    consider,
    decide,
    settle,
)
from iact.core.gate.grant import Grant, Scope
from iact.core.gate.layer import runs_in_layer
from iact.core.gate.policy import ImpactRule, Policy
from iact.core.gate.provenance import Provenance
from iact.core.ports import JSON

SCOPE = Scope("all", (("*",),))


@pytest.mark.parametrize(
    ("function", "arguments", "intent", "believed", "policy", "layered"),
    [
        ("shell.run", {"command": "rm -rf ."}, 0, True, Policy(), True),
        ("python.run", {"code": "1"}, 0, True, Policy(), True),
        ("shell.run", {"command": "x"}, 1, True, Policy(), False),
        ("shell.run", {"command": "x"}, 0.5, True, Policy(), True),
        ("shell.run", {"command": "x", "background": True}, 0, True, Policy(), False),
        ("shell.run", {"command": "x"}, 0, False, Policy(), False),
        ("files.write", {"path": "a"}, 0, True, Policy(), False),
        ("git.commit", {}, 0, True, Policy(), False),
        ("app.serve", {}, 0, True, Policy(), False),
        ("a2a.send", {}, 0, True, Policy(), False),
        ("shell.run", {"command": "x"}, 0, True, Policy(others=frozenset({"shell.*"})), False),
        (
            "shell.run", {"command": "x"}, 0, True,
            Policy(impacts=frozenset({ImpactRule("shell.*", "command", "equals", ("x",))})), False,
        ),
    ],
)  # fmt: skip
def test_what_runs_in_the_layer(
    function: str, arguments: dict[str, JSON], intent: float, believed: bool, policy: Policy, layered: bool
) -> None:
    assert runs_in_layer(function, arguments, Grant(SCOPE, intent), policy, believed=believed) is layered


def test_the_ticket_says_that_the_call_is_for_the_layer_and_still_only_looks() -> None:
    request = CallRequest("/", "shell.run", arguments_digest({}, {}))
    ticket = decide(request, 0, Grant(SCOPE, 0), layer=True)
    assert isinstance(ticket, Ticket)
    assert (ticket.right, ticket.layer, ticket.impact) == ("look", True, 0)

    asked = consider(
        request, 0, Grant(SCOPE, 0), Policy(clearance=frozenset({"shell.*"})), arguments={}, provenance=Provenance({}),
        layer=True,
    )  # fmt: skip
    assert isinstance(asked, Question)
    cleared = settle(asked, Answer(True, ""))
    assert isinstance(cleared, Ticket)
    assert cleared.layer, "what a person allowed is what they were asked about"
