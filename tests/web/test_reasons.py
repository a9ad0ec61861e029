"""Why something waits is told to a person without the numbers that the gate compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.gate.gate import CallRequest, Question, arguments_digest, consider
from iact.core.gate.grant import Grant, Scope
from iact.core.gate.policy import Policy, Require
from iact.core.gate.provenance import Provenance
from iact.core.records.calls import Held
from iact.web.reasons import in_words
from tests.core.session.test_additions import FETCH, do, held, turns


@pytest.mark.parametrize(
    ("why", "impact", "reason", "words"),
    [
        (
            "provenance",
            2,
            "The call has impact 2 and is touched by tool:web.fetch, user:ann.",
            "It destroys or sends data out, and text from tool:web.fetch, user:ann may be behind it.",
        ),
        (
            "provenance",
            1.5,
            "The call has impact 1.5 and is touched by tool:web.fetch.",
            "It changes something, and text from tool:web.fetch may be behind it.",
        ),
        (
            "provenance",
            2,
            "The changes have impact 2 and are touched by agent:/a, tool:b, tool:c and 1 more.",
            "The agents that made these changes have read agent:/a, tool:b, tool:c and 1 more, so they need your OK.",
        ),
        (
            "impact",
            2,
            "The changes have impact 2, and the intent of / is 1.",
            "Overwriting and deleting needs your OK.",
        ),
        (
            "impact",
            1,
            "The changes have impact 1, and the intent of /a is 0.",
            "Changing files needs your OK.",
        ),
        (
            "impact",
            2,
            "The changes have impact 2, and /a may do 1 with git.*.",
            "Overwriting and deleting needs your OK.",
        ),
        (
            "conflict",
            2,
            "Somebody changed a.txt in the directory meanwhile.",
            "Somebody changed a.txt in the directory meanwhile.",
        ),
    ],
)
def test_a_reason_is_told_in_words(why: Held, impact: float, reason: str, words: str) -> None:
    assert in_words(why, impact, reason) == words


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A directory of the user's."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    return folder


NAMES = (
    "changes have impact 1..2, and so.mk",
    "The changes have impact 1, and so.mk",
    "The changes have impact 2 and are touched by nobody.mk",
    "impact 1..2 and is touched by nobody.mk",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_an_agent_chooses_leaves_a_reason_as_it_is(tmp_path: Path, mine: Path, name: str) -> None:
    found = held(tmp_path, mine, turns(FETCH, do(f"ln notes.txt {name}")), intent=2)
    why, reason = found[name]
    assert why == "provenance"
    assert reason.startswith(f"{name}: `make` runs")
    assert in_words("provenance", 1, reason) == reason


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_that_an_agent_chooses_leaves_a_reason_as_it_is(name: str) -> None:
    """The gate quotes the argument that nobody named."""
    arguments = {"to": name}
    asked = consider(
        CallRequest("/a", "mail.send", arguments_digest(arguments, {})),
        1,
        Grant(Scope("s", (("mail.*",),)), 2),
        Policy(requires=frozenset({Require("mail.*", "to", ("book",))})),
        arguments=arguments,
        provenance=Provenance({"to": frozenset({"tool:b"})}),
    )
    assert isinstance(asked, Question)
    assert name in asked.reason
    assert in_words("provenance", asked.impact, asked.reason) == asked.reason
