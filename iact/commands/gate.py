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
from typing import Final, Literal

from core.errors import SandboxError, UsageError
from core.gate.gate import CallRequest, Denial, Question, Ticket, arguments_digest, consider
from core.gate.grant import Grant
from core.gate.impact import SCRIPTS
from core.gate.judge import judge_call
from core.gate.level import level
from core.gate.provenance import USER, Provenance
from core.journal import read_journal
from core.modules import approval
from core.modules.approval import Approvals
from core.modules.manifest import Manifest
from core.ports import JSON, CatalogueEntry
from core.records.record import Record
from iact.settings import Settings
from iact.wiring import read_policies
from sandbox import open_host

_ASKED: Final = ("to", "rule", "reason", "provenance", "read")
"""What `explain` repeats of a question."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the catalogue says of a function. `body`: the parameter that a block's lines bind to."""

    declared: int
    body: str
    believed: bool


def explain(path: Path, n: int, *, as_json: bool) -> int:
    """Print the decision behind record `n`: the newest about the call that a gate, clearance, call or result is of.

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
    if asked := gate.number("ask"):
        question = records[asked - 1].fields
        fields["asked"] = {name: question[name] for name in _ASKED if name in question}
    if as_json:
        print(json.dumps(fields, ensure_ascii=False, indent=2))
    else:
        verdict = "allowed" if allow else f"denied by {gate.text('by')}"
        print(
            f"record {gate.n}: {gate.text('function')} by {gate.agent} was {verdict}, impact {fields['impact']}."
        )
        if gate.text("reason"):
            print(gate.text("reason"))
        if asked:
            print(_origins(records[asked - 1]))
    return 0


def _origins(question: Record) -> str:
    """Where the arguments of a call that somebody was asked about came from."""
    origins = question.fields.get("provenance")
    named = [
        f"{name} from {', '.join(map(str, labels))}"
        for name, labels in (origins.items() if isinstance(origins, dict) else ())
        if isinstance(labels, list)
    ]
    asked = f"record {question.n}: the {question.text('to')} was asked"
    return f"{asked}; {'; '.join(named)}." if named else f"{asked}."


def _decision(records: Sequence[Record], at: Record) -> Record:
    if at.kind == "gate":
        return at
    key = (at.agent, at.fields.get("turn"), at.fields.get("action"))
    for record in reversed(records if at.kind == "clearance" else records[: at.n]):
        if (
            record.kind == "gate"
            and (record.agent, record.fields.get("turn"), record.fields.get("action")) == key
        ):
            return record
    if at.kind == "clearance":
        raise UsageError(f"The call that record {at.n} is about was not decided.")
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
    intent: float | str,
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
        Grant(policy.scope(), level(intent, dict(policy.levels))),
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
    entry = await _entry(settings, module)
    manifest = Manifest.from_proto(entry.manifest) if entry is not None and entry.manifest else None
    found = manifest.function(name) if manifest is not None else None
    if entry is not None and found is not None:
        approvals = Approvals.load(settings.data / approval.FILE)
        believed = entry.origin == "shipped" or approvals.approved(module, entry.digest, name)
        return _Known(found.impact, found.body, believed)
    if function in SCRIPTS:
        return _Known(1, SCRIPTS[function][0], believed=True)
    return _Known(2, "", believed=False)


async def _entry(settings: Settings, module: str) -> CatalogueEntry | None:
    """What the catalogue says of a module."""
    try:
        host = await open_host(settings.data, backend=settings.sandbox, runtime=settings.runtime)
    except SandboxError:
        return None
    try:
        return next((entry for entry in await host.catalogue() if entry.name == module), None)
    except SandboxError:
        return None
    finally:
        await host.close()
