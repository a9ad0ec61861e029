"""Commands about the gate: `gate explain JOURNAL N` and `gate test FUNCTION …`, for administrators.

`test` answers what the gate would say to one call by a person's own agent, without making it: no module is
started, and no clearance is asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.errors import SandboxError, UsageError
from core.gate.gate import CallRequest, Denial, Question, Ticket, arguments_digest, consider
from core.gate.grant import Grant
from core.gate.impact import SCRIPTS
from core.gate.judge import judge_call
from core.gate.provenance import USER, Provenance
from core.journal import read_journal
from core.journal.record import Record
from core.modules.manifest import Manifest
from core.ports import JSON
from iact.settings import Settings
from iact.wiring import read_policies
from sandbox import open_host


@dataclass(frozen=True, slots=True)
class _Known:
    """What the catalogue says of a function. `body`: the parameter that a block's lines bind to."""

    declared: int
    body: str
    believed: bool


def explain(path: Path, n: int, *, as_json: bool) -> int:
    """Print the decision behind record `n`: the `gate` record itself, or the one of the call or result at `n`.

    Raises:
        UsageError: there is no such record, or it has no decision.
    """
    records = read_journal(path).records
    if not 1 <= n <= len(records):
        raise UsageError(f"The journal has records 1 to {len(records)}, and no record {n}.")
    gate = _decision(records, records[n - 1])
    allow = gate.fields.get("allow") is True
    fields: dict[str, JSON] = {
        "record": gate.n, "agent": gate.agent, "function": gate.text("function"), "allow": allow,
        "by": gate.text("by") or None, "impact": gate.fields.get("impact"), "reason": gate.text("reason"),
    }  # fmt: skip
    if as_json:
        print(json.dumps(fields, ensure_ascii=False, indent=2))
    else:
        verdict = "allowed" if allow else f"denied by {gate.text('by')}"
        print(
            f"record {gate.n}: {gate.text('function')} by {gate.agent} was {verdict}, impact {fields['impact']}."
        )
        if gate.text("reason"):
            print(gate.text("reason"))
    return 0


def _decision(records: Sequence[Record], at: Record) -> Record:
    if at.kind == "gate":
        return at
    key = (at.agent, at.fields.get("turn"), at.fields.get("action"))
    for record in reversed(records[: at.n]):
        if (
            record.kind == "gate"
            and (record.agent, record.fields.get("turn"), record.fields.get("action")) == key
        ):
            return record
    raise UsageError(
        f"Record {at.n} is a {at.kind} without a decision; give the number of a gate, call or result."
    )


def test(
    settings: Settings,
    function: str,
    given: Sequence[str],
    *,
    body: str | None,
    workspace: Literal["scratch", "live"],
    scope: str,
    intent: int,
    as_json: bool,
) -> int:
    """Print what the gate would say to a call. `given`: `key=value` words. Exit status 0 also for a denial.

    Raises:
        UsageError: the arguments or the scope can't be; says which.
    """
    known = asyncio.run(_look_up(settings, function))
    arguments = _arguments(given)
    if body is not None:
        arguments[known.body or "body"] = body
    policy = read_policies(settings.data).chosen(scope)
    impact = judge_call(
        function, known.declared, arguments, live=workspace == "live", believed=known.believed, policy=policy
    )
    decision = consider(
        CallRequest("/", function, arguments_digest(arguments, {})),
        impact.level,
        Grant(policy.scope(), intent),
        policy,
        arguments=arguments,
        provenance=Provenance(dict.fromkeys(arguments, frozenset({USER}))),
    )
    _print(decision, impact.level, impact.why, as_json=as_json)
    return 0


def _print(decision: Ticket | Denial | Question, impact: float, why: str, *, as_json: bool) -> None:
    level = int(impact) if impact == int(impact) else impact
    match decision:
        case Ticket():
            answer: dict[str, JSON] = {"allow": True, "by": "impact", "impact": level, "reason": why}
        case Denial():
            answer = {
                "allow": False,
                "by": decision.by,
                "impact": level,
                "reason": f"{decision.reason} {why}",
            }
        case Question():
            reason = f"A person would be asked. {decision.reason} {why}"
            answer = {"allow": False, "by": decision.by, "impact": level, "reason": reason}
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print(
            f"{'allowed' if answer['allow'] else 'denied by ' + str(answer['by'])}, impact {level}: {answer['reason']}"
        )


def _arguments(given: Sequence[str]) -> dict[str, JSON]:
    """`key=value` words; a value that is JSON of a number, truth value, list or object is taken as that."""
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


async def _look_up(settings: Settings, function: str) -> _Known:
    """What is known of a function. Without a sandbox, or before its module ran once, only the shell is."""
    module, dot, name = function.partition(".")
    if not dot or not name:
        raise UsageError(f"{function!r} is not the name of a function; write it as module.function.")
    manifest, origin = await _manifest(settings, module)
    found = manifest.function(name) if manifest is not None else None
    if found is not None:
        return _Known(found.impact, found.body, origin == "shipped")
    if function in SCRIPTS:
        return _Known(1, SCRIPTS[function][0], believed=True)
    return _Known(2, "", believed=False)


async def _manifest(settings: Settings, module: str) -> tuple[Manifest | None, str]:
    try:
        host = await open_host(settings.data, backend=settings.sandbox)
    except SandboxError:
        return None, ""
    try:
        for entry in await host.catalogue():
            if entry.name == module and entry.manifest is not None:
                return Manifest.from_proto(entry.manifest), entry.origin
    except SandboxError:
        return None, ""
    finally:
        await host.close()
    return None, ""
