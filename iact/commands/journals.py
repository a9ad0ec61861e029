"""Commands that read a journal: `replay`, `context`, and `journal …`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from iact import examples
from iact.core.errors import UsageError
from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Gate, Result, Select
from iact.core.records.control import Inject, Lockdown, SetIntent, SwitchMemory
from iact.core.records.dialogue import Discard, Draw, Reply, Spawn
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach, rule_of
from iact.core.records.person import PersonContent
from iact.core.records.plans import Ask, Extend, Fire, Node, Plan
from iact.core.records.record import Record
from iact.core.records.session import Epoch, Fork, Module, Open
from iact.core.stored.journals import Integrity, Tail, check_integrity, journal_file, read_bytes
from iact.core.stored.replay import context as read_context
from iact.core.stored.replay import replay as read_replay
from iact.core.stored.store import SessionStore
from iact.core.views.plans import PlanView
from iact.core.views.view import NodeView
from iact.core.views.waterfall import waterfall
from iact.settings import Settings
from iact.web.safe_text import visible, without_escapes
from iact.web.timeline import timeline_fields
from iact.wiring import shared_of

_FORM_DECISIONS: Final = {"accept": "answered", "decline": "refused", "cancel": "not answered"}
_WIDTH: Final = 160
"""The maximum number of characters in a line about a record."""


def find(settings: Settings, name: str) -> Path:
    """Find a journal by its file, its session's directory, its session's id, or the name of an example.

    Raises:
        UsageError: there is no such journal.
    """
    for path in (Path(name), settings.data / "sessions" / name):
        if journal_file(path) is not None:
            return path
    if (example := examples.find(name)) is not None:
        return example.folder
    raise UsageError(f"There is no journal {name}. Give its file, or the id of a session in {settings.data}.")


def replay(settings: Settings, path: Path, *, at: int | None, verify: bool, tree: bool, as_json: bool) -> int:
    """Rebuild a session and print the requested report."""
    found = SessionStore(settings.data).read(path, at=at, verify=verify)
    view, plans = found.view, found.view.plans()
    agents = [node for node in view.nodes() if node.kind == "agent"]
    if as_json:
        report: dict[str, object] = {
            "session": view.id,
            "records": found.at,
            "foreign": bool(found.foreign),
            "agents": [_agent(node) for node in agents],
            "plans": [dict(plan.facts) for plan in plans.values()],
        }
        if verify:
            report |= {"verified": True, "verified_from": found.verified_from}
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return 0
    if found.torn and at is None:
        print(f"note: an unfinished append of {found.torn} bytes at the end was left out.")
    verified = ", verified: every context and call was computed again and is the same" if verify else ""
    print(
        f"session {view.id}: {found.at} records, {len(agents)} agent{'s' if len(agents) != 1 else ''}{verified}"
    )
    if verify and found.verified_from > 1:
        print(
            f"note: records 1 to {found.verified_from - 1} were written by another version; they were read but not verified."
        )
    if found.foreign:
        print(f"note: this session is foreign: {found.foreign}.")
    if tree or not verify:
        for node in view.nodes():
            line = _plan_line(plans[node.path]) if node.kind == "plan" else _agent_line(node)
            print(f"{'  ' * node.depth}{line}")
    return 0


def _agent_line(node: NodeView) -> str:
    """An agent in the call tree."""
    return (
        f"{node.path}  {node.state}, {node.turns} turns, "
        f"{node.prompt_tokens} + {node.completion_tokens} tokens ({node.cached_tokens} cached)"
    )


def _plan_line(plan: PlanView) -> str:
    """A plan in the call tree, with the states of its steps."""
    counts = Counter(step.state for step in plan.steps.values())
    steps = ", ".join(f"{count} {state}" for state, count in counts.items()) or "no steps"
    version = f", version {plan.version}" if plan.version else ""
    return f"{plan.path}  plan ({plan.mode}) {plan.state}{version}: {steps}"


def _agent(node: NodeView) -> dict[str, object]:
    return {
        "path": node.path,
        "caller": node.caller,
        "state": node.state,
        "turns": node.turns,
        "usage": node.usage.to_json(),
    }


def context(path: Path, agent: str, *, at: int | None, as_json: bool) -> int:
    """Print the list of messages that a model was sent."""
    seen = read_context(path, agent, at=at)
    if as_json:
        messages = [
            {"role": one.role, "content": one.content, "reused": one.reused}
            | ({"parts": [list(part) for part in one.parts]} if one.parts else {})
            for one in seen.messages
        ]
        print(
            json.dumps(
                {"agent": seen.agent, "record": seen.record, "messages": messages},
                ensure_ascii=False,
                indent=2,
            )
        )
        return 0
    print(
        f"# context of {seen.agent} at record {seen.record}; = marks what it had seen before, + what is new"
    )
    for one in seen.messages:
        mark = "=" if one.reused else "+"
        print(f"\n{mark} [{one.role}]")
        print("\n".join(f"{mark} {line}" for line in one.content.split("\n")))
        for name, media, digest in one.parts:
            print(f"{mark} [${name}: {media}, SHA-256 {digest}]")
    return 0


def check(path: Path, *, as_json: bool) -> int:
    """Check a journal's format, its chain, and the blobs it refers to. Returns 0 if all of it is intact.

    Raises:
        JournalError: it is damaged, unless the report is JSON.
    """
    found = check_integrity(path)
    if found.error is not None and not as_json:
        raise found.error
    if as_json:
        print(json.dumps(_checked(found), ensure_ascii=False))
        return 0 if found.error is None else 1
    torn = f"; {found.torn} bytes of an unfinished append follow them" if found.torn else ""
    kept = f", {found.blobs} blob{'s' if found.blobs != 1 else ''}" if found.blobs else ""
    print(f"{found.journal}: {found.records} records{kept}, unbroken{torn}.")
    return 0


def _checked(found: Integrity) -> dict[str, object]:
    return {
        "journal": str(found.journal),
        "ok": found.error is None,
        "records": found.records,
        "blobs": found.blobs,
        "torn": found.torn,
        "error": str(found.error) if found.error is not None else None,
        "record": found.record,
        "offset": found.offset,
    }


def export(settings: Settings, session: str, *, out: str | None) -> int:
    """Write a session's journal, byte for byte as a single machine would have written it.

    Raises:
        UsageError: there is no such session.
        JournalError: the journal is damaged, or the store does not answer.
    """
    data = _stored(settings, session)
    if data is None:
        data = read_bytes(find(settings, session))
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        Path(out).write_bytes(data)
    return 0


def _stored(settings: Settings, session: str) -> bytes | None:
    """The journal in the shared store, or None if it is not there or there is no shared store."""
    shared = shared_of(settings)
    journals = shared.journals(settings.data) if shared is not None else None
    return journals.export(session) if journals is not None and journals.has(session) else None


def tail(path: Path, *, follow: bool, last: int | None) -> int:
    """Print one line for each record, or only for the `last` ones. With `follow`, also print each new record.

    Following ends when the session is closed permanently, or by an interrupt.
    """
    records = Tail(path, follow=follow, last=last)
    try:
        for record in records:
            print(line(record), flush=True)
    except KeyboardInterrupt:
        if not follow:
            raise
        return 0
    if records.torn:
        print(f"note: {records.torn} bytes of an unfinished append follow these records.", file=sys.stderr)
    return 0


def line(record: Record) -> str:
    """A record as one line that is safe for a terminal."""
    when = record.at[:19].replace("T", " ")
    shown_before = isinstance(record.content, Reply) and record.content.of > 0
    shows_body = not shown_before and not isinstance(record.content, Module)
    body = record.body[: 4 * _WIDTH] if shows_body else ""
    who = record.content.who if isinstance(record.content, PersonContent) else ""
    said = " ".join(filter(None, [f"{who}:" if who else "", *_facts(record), body]))
    said = " ".join(visible(without_escapes(said)).split())
    said = said if len(said) <= _WIDTH else said[: _WIDTH - 1] + "…"
    agent = visible(without_escapes(record.agent))
    return f"{record.n:>5}  {when}  {agent:<14} {record.kind:<8} {said}".rstrip()


def _facts(record: Record) -> Iterator[str]:
    match record.content:
        case Call(function=function, to=to):
            yield from (function, to)
        case Result(function=function, status=status):
            yield function
            yield f"[{status}]" if status != "ok" else ""
        case Select(function=function):
            yield function
        case ClearanceAsk(function=function, to=to):
            yield f"{function} asks the {to}"
        case ClearanceAnswer(function=function, allow=allow, by=by):
            yield f"{function} {'approved' if allow else 'denied'} by {by}"
        case HostAsk(module=module, host=host, port=port):
            yield f"{module} asks for {rule_of(host, port)}"
        case HostAnswer(allow=allow, by=by, lasts=lasts):
            yield f"{f'allowed: {lasts}' if allow else 'not allowed'}, by {by}"
        case FormAsk(function=function, message=message):
            yield f"{function} asks: {' '.join(message.split())}"
        case FormAnswer(decision=decision, by=by, values=values):
            yield f"{_FORM_DECISIONS[decision]}, by {by}"
            yield f"({', '.join(values)})" if values else ""
        case HostReach(module=module, host=host, port=port, by=by):
            yield f"{module} reaches {rule_of(host, port)}, allowed by {by}"
        case Gate() as gate:
            yield gate.function
            yield "allowed" if gate.allow else f"denied by {gate.by}:"
            yield gate.reason
        case Inject(mode=mode):
            yield from ("inject", mode)
        case SetIntent(value=value) | Lockdown(value=value) | SwitchMemory(value=value):
            yield from (record.content.OP, str(value))
        case Spawn(caller=caller):
            yield f"by {caller}"
        case Plan(version=version, reason=reason):
            yield f"version {version}: {reason}"
        case Extend(version=version, reason=reason):
            yield f"version {version} gets more: {reason}"
        case Node() as node:
            yield f"{node.node} {node.from_} → {node.to}"
            yield node.detail
        case Fire(node=step, function=function, to=to):
            yield f"{step}: {function} {to}"
        case Ask(question=question, node=step):
            yield f"{question} {step}:"
        case Draw(tokens=tokens):
            yield f"{tokens} tokens"
        case Discard(reason=why):
            yield f"({why})"
        case Reply(of=turn) if turn:
            yield f"(what it wrote in record {turn})"
        case Reply(status=how) if how != "ok":
            yield f"[{how}]"
        case Module(name=name, digest=digest):
            yield f"{name} {digest[:12]}"
        case Fork(from_=source, after=after):
            yield f"of {source} at record {after}"
        case Epoch(host=host, epoch=number):
            yield f"epoch {number}, on {host}"
        case Open(session=session, format=format):
            yield f"session {session}, format {format}"
        case content:
            yield content.OP


def fork(
    settings: Settings, path: Path, *, at: int | None, text: str | None, as_json: bool, run: bool = False
) -> int:
    """Make a new session from the first records of a journal. With `text`, send it that message and wait for the reply.

    `run`: finish the work that was in progress; otherwise it is dropped.
    """
    if text is not None and not text.strip():
        raise UsageError("The message is empty.")

    from iact.wiring import open_store  # loads the sandbox, which commands that only read journals don't need

    made = open_store(settings).fork(path, at, run=run)
    if made.left_out:
        print(f"note: {made.left_out} files of the workspace could not be copied.", file=sys.stderr)
    if text is not None:
        print(f"forked session {made.session}", file=sys.stderr, flush=True)
        return _go_on(settings, made.session, text, as_json)
    if as_json:
        report = {
            "session": made.session,
            "journal": str(made.journal),
            "from": made.source,
            "at": made.at,
            "workspace": made.workspace,
        }
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(made.session)
    return 0


def _go_on(settings: Settings, session: str, text: str, as_json: bool) -> int:
    from iact.commands import run  # loaded only when something runs

    return run.run(
        settings,
        text,
        session=session,
        workspace=None,
        intent=None,
        scope="default",
        as_json=as_json,
        release=True,
    )


def timeline(path: Path, *, at: int | None, as_json: bool) -> int:
    """Print what each agent did and when, with a star before the work that the answers waited for."""
    told = waterfall(read_replay(path, at=at).records)
    if as_json:
        print(json.dumps(timeline_fields(told), ensure_ascii=False, indent=2))
        return 0
    for one in sorted(told.spans, key=lambda span: (span.begin, span.n)):
        end = told.seconds if one.end is None else one.end
        star = "*" if one.critical else " "
        lasts = f"{end - one.begin:9.2f} s{' so far' if one.end is None else ''}"
        line = f"{star} {one.begin:9.2f} {lasts}  {one.kind:8}  {one.agent}  {one.label}"
        print(visible(without_escapes(line)))
    print(f"{told.seconds:.2f} s in total; the answers waited for {told.critical:.2f} s of work (*).")
    return 0


def html(path: Path, *, at: int | None, out: str | None) -> int:
    """Write a journal as one HTML page, to a file or to standard output."""
    from iact import export  # loaded only when used: it imports the renderer

    page = export.page(path, at=at)
    if out is None:
        sys.stdout.write(page)
        return 0
    try:
        Path(out).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The page can't be written to {out}: {error.strerror}.") from error
    return 0
