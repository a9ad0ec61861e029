"""The door looks at what is really about to be sent: a ticket for other arguments, another agent or function is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from iact.core.gate.gate import Denial, Ticket, TicketError, decide
from iact.core.gate.grant import DEFAULT_SCOPE, Grant
from iact.core.language.variables import text_value
from iact.core.modules.client import ArtifactChunk
from iact.core.modules.invoker import FunctionCall, Invoker
from tests.core.session.fakes import FakeHost

GOOD = FunctionCall("/", "t.read", 1, {"text": "a"}, {"more": text_value("b")}, 60)


def ticket_for(call: FunctionCall) -> Ticket:
    ticket = decide(call.request, 0, Grant(DEFAULT_SCOPE, 1))
    assert not isinstance(ticket, Denial)
    return ticket


async def _drop(chunk: ArtifactChunk) -> None:
    return None


@pytest.mark.parametrize(
    "other",
    [
        replace(GOOD, arguments={"text": "evil"}),
        replace(GOOD, arguments={"text": "a", "count": 1}),
        replace(GOOD, attached={"more": text_value("evil")}),
        replace(GOOD, attached={}),
        replace(GOOD, agent="/child"),
        replace(GOOD, function="t.write"),
    ],
)
async def test_a_call_that_is_not_the_tickets_is_refused(tmp_path: Path, other: FunctionCall) -> None:
    invoker = Invoker(FakeHost(), "s", tmp_path)
    try:
        with pytest.raises(TicketError, match="another call"):
            await invoker.call(
                ticket_for(GOOD), other, on_output=print, on_artifact=_drop, report=lambda _: None
            )
    finally:
        await invoker.close()


@pytest.mark.parametrize(("impact", "layer"), [(0, True), (1, False)])
async def test_a_ticket_for_the_layer_is_good_nowhere_else_and_no_other_is_good_there(
    tmp_path: Path, impact: int, layer: bool
) -> None:
    ticket = decide(GOOD.request, impact, Grant(DEFAULT_SCOPE, impact), layer=layer)
    assert isinstance(ticket, Ticket)
    placed = GOOD if layer else replace(GOOD, layer=tmp_path)
    invoker = Invoker(FakeHost(), "s", tmp_path)
    try:
        with pytest.raises(TicketError, match="layer that is thrown away"):
            await invoker.call(ticket, placed, on_output=print, on_artifact=_drop, report=lambda _: None)
    finally:
        await invoker.close()


def test_the_digest_is_long_enough_that_nobody_finds_two_calls_for_one_yes() -> None:
    assert len(GOOD.request.arguments) == 64


def test_a_ticket_fits_its_call(tmp_path: Path) -> None:
    calls: Sequence[FunctionCall] = (GOOD, replace(GOOD, call=2, timeout=1))
    for call in calls:
        ticket_for(GOOD).redeem(call.request)
