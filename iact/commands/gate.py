"""Commands about the gate: `gate explain JOURNAL N` and `gate test FUNCTION …`, for administrators.

`test` reports what the gate would decide about one call by a person's own agent, without making it: no module is
started, and no clearance is requested.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from iact import signals
from iact.core.errors import SandboxError, UsageError
from iact.core.ports import JSON
from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Gate, Result, Select
from iact.core.records.record import Record
from iact.core.stored.catalogue import ModuleCatalogue
from iact.core.stored.journals import read_records
from iact.core.stored.policy import read_policies
from iact.core.views.known_modules import KnownModule
from iact.core.views.verdict import CallVerdict, module_of, verdict_on
from iact.doctor import live as overlays
from iact.sandbox import open_host
from iact.settings import Settings
from iact.wiring import layers_of

_ASKED: Final = ("to", "rule", "reason", "provenance", "read")
"""The fields of a question that `explain` repeats."""


def explain(path: Path, n: int, *, as_json: bool) -> int:
    """Print the newest decision about the call that record `n` (a gate, clearance, call or result) belongs to.

    Raises:
        UsageError: there is no such record, or it has no decision.
    """
    records = read_records(path)
    if not 1 <= n <= len(records):
        raise UsageError(f"There is no record {n}: the journal has records 1 to {len(records)}.")
    n, agent, gate = _decision(records, records[n - 1])
    fields: dict[str, JSON] = {
        "record": n, "agent": agent, "function": gate.function, "allow": gate.allow,
        "by": gate.by or None, "impact": gate.impact, "reason": gate.reason,
    }  # fmt: skip
    question = records[gate.ask - 1] if gate.ask else None
    if question is not None:
        fields["asked"] = {name: value for name, value in question.fields.items() if name in _ASKED}
    if as_json:
        print(json.dumps(fields, ensure_ascii=False, indent=2))
        return 0
    verdict = "allowed" if gate.allow else f"denied by {gate.by}"
    print(f"record {n}: {gate.function} by {agent} was {verdict}, impact {gate.impact:g}.")
    if gate.reason:
        print(gate.reason)
    if question is not None and isinstance(question.content, ClearanceAsk):
        print(_origins(question.n, question.content))
    return 0


def _origins(n: int, asked: ClearanceAsk) -> str:
    """The origins of the arguments of a call that a person or agent was asked about."""
    named = "; ".join(f"{name} from {', '.join(labels)}" for name, labels in asked.provenance.items())
    return f"record {n}: the {asked.to} was asked" + (f"; {named}." if named else ".")


def _decision(records: Sequence[Record], at: Record) -> tuple[int, str, Gate]:
    """The decision about the call that a record belongs to: its record number, the calling agent, and the decision."""
    if isinstance(at.content, Gate):
        return at.n, at.agent, at.content
    if not isinstance(at.content, Call | Result | Select | ClearanceAsk | ClearanceAnswer):
        raise UsageError(
            f"Record {at.n} is a {at.kind} without a decision. Give the number of a gate, call or result."
        )
    asked = isinstance(at.content, ClearanceAsk | ClearanceAnswer)
    key = (at.agent, at.content.turn, at.content.action)
    for record in reversed(records if asked else records[: at.n]):
        gate = record.content
        if isinstance(gate, Gate) and (record.agent, gate.turn, gate.action) == key:
            return record.n, record.agent, gate
    if asked:
        raise UsageError(f"There is no decision yet about the call of record {at.n}.")
    raise UsageError(
        f"Record {at.n} is a {at.kind} without a decision. Give the number of a gate, call or result."
    )


def test(
    settings: Settings,
    function: str,
    given: Sequence[str],
    *,
    body: str | None,
    workspace: Literal["scratch", "live"],
    scope: str,
    intent: float | str,
    as_json: bool,
) -> int:
    """Print what the gate would decide about a call. `given`: `key=value` words. Returns 0 for a denial as well.

    Raises:
        UsageError: an argument or the scope is invalid.
    """
    module, layers = signals.run(_known(settings, module_of(function)))
    live: Literal["", "mounted", "overlaid"] = ""
    if workspace == "live":
        live = "overlaid" if overlays(settings.data).ok else "mounted"
    verdict = verdict_on(
        function,
        _arguments(given),
        body=body,
        module=module,
        live=live,
        layers=layers,
        policies=read_policies(settings.data),
        scope=scope,
        intent=intent,
    )
    _print(verdict, as_json=as_json)
    return 0


def _print(verdict: CallVerdict, *, as_json: bool) -> None:
    level = int(verdict.impact) if verdict.impact == int(verdict.impact) else verdict.impact
    if as_json:
        fields = {"allow": verdict.allow, "by": verdict.by, "impact": level, "reason": verdict.reason}
        print(json.dumps(fields, ensure_ascii=False))
    else:
        said = "allowed" if verdict.allow else f"denied by {verdict.by}"
        print(f"{said}, impact {level}: {verdict.reason}")


def _arguments(given: Sequence[str]) -> dict[str, JSON]:
    """Parse `key=value` words. Values that are JSON (numbers, booleans, lists, objects) are decoded."""
    found: dict[str, JSON] = {}
    for word in given:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise UsageError(f"The argument {word!r} is not of the form key=value.")
        value: JSON = text
        with suppress(ValueError):
            value = json.loads(text)
        found[key] = value
    return found


async def _known(settings: Settings, module: str) -> tuple[KnownModule | None, bool]:
    """The catalogue's entry for a module, or None if no sandbox is available or there is no such module; and whether
    agents of intent 0 have a layer here that is thrown away."""
    try:
        host = await open_host(
            settings.data, backend=settings.sandbox, runtime=settings.runtime, kubernetes=settings.kubernetes
        )
    except SandboxError:
        return None, False
    layers = await asyncio.to_thread(layers_of, settings.data, host.backend) is not None
    try:
        modules = await ModuleCatalogue.of(host, settings.data).modules()
    except SandboxError:
        return None, layers
    finally:
        await host.close()
    return next((one for one in modules if one.entry.name == module), None), layers
