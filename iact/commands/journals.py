"""Commands that read a journal: `replay`, `context`, and all of `journal`."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import examples
from core.errors import JournalCorrupt, JournalError, UsageError
from core.journal.file import FILE, read_blob
from core.journal.reader import Reader
from core.journal.seal import NOBODY, open_sealer, read_sealer
from core.records.record import Record, blobs_of
from core.session import fork as forking
from core.session import replay as replaying
from core.tree.agent import Agent
from core.tree.plan_report import plan_json
from core.tree.plan_run import PlanRun
from core.tree.tree import Tree
from iact.settings import Settings
from web.visible import visible, without_escapes

_WIDTH: Final = 160
"""Characters of what a record says, in a line about it."""

_LOOK: Final = 0.1
"""Seconds between two looks at a journal that is followed."""


def find(settings: Settings, name: str) -> Path:
    """A journal by its file, its session's directory, its session's id, or the name of an example.

    Raises:
        UsageError: there is none.
    """
    for path in (Path(name), settings.data / "sessions" / name):
        if path.is_file() or (path / "journal.md").is_file():
            return path
    if (example := examples.find(name)) is not None:
        return example.folder
    raise UsageError(f"There is no journal {name}: give its file, or the id of a session in {settings.data}.")


def replay(settings: Settings, path: Path, *, at: int | None, verify: bool, tree: bool, as_json: bool) -> int:
    """Rebuild a session; print what was asked for."""
    found = replaying.replay(path, at=at, verify=verify, sealer=read_sealer(settings.data) or NOBODY)
    if as_json:
        report = {
            "session": found.tree.session,
            "records": found.at,
            "foreign": bool(found.contents.foreign),
            "agents": [_agent(found.tree, one) for one in found.tree.agents.values() if one.plan is None],
            "plans": [plan_json(found.tree, one) for one in found.tree.agents.values() if one.plan],
        }
        if verify:
            report |= {"verified": True, "verified_from": found.verified_from}
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return 0
    if found.contents.torn and at is None:
        print(f"note: an unfinished append of {found.contents.torn} bytes at the end was left out.")
    verified = ", verified: every context and call is what the core makes of it" if verify else ""
    count = sum(agent.plan is None for agent in found.tree.agents.values())
    print(
        f"session {found.tree.session}: {found.at} records, {count} agent{'s' if count != 1 else ''}{verified}"
    )
    if verify and found.verified_from > 1:
        print(
            f"note: records 1 to {found.verified_from - 1} were written by another version and were only read."
        )
    if found.contents.foreign:
        print(f"note: this session is foreign: {found.contents.foreign}.")
    if tree or not verify:
        for agent in found.tree.agents.values():
            used, lead = agent.usage, "  " * agent.depth
            if agent.plan is not None:
                print(f"{lead}{_plan_line(found.tree, agent, agent.plan)}")
                continue
            print(
                f"{lead}{agent.path}  {found.tree.state(agent)}, {agent.all_turns} turns, "
                f"{used.prompt_tokens} + {used.completion_tokens} tokens ({used.cached_tokens} cached)"
            )
    return 0


def _plan_line(tree: Tree, agent: Agent, run: PlanRun) -> str:
    """A plan in the call tree: what became of its steps."""
    counts = Counter(record.state for record in run.work())
    steps = ", ".join(f"{count} {state}" for state, count in counts.items()) or "no steps"
    versions = f", version {run.state.plan.version}" if run.state.versions else ""
    return f"{agent.path}  plan ({run.mode}) {tree.state(agent)}{versions}: {steps}"


def _agent(tree: Tree, agent: Agent) -> dict[str, object]:
    return {
        "path": agent.path,
        "caller": agent.caller,
        "state": tree.state(agent),
        "turns": agent.all_turns,
        "usage": agent.usage.to_json(),
    }


def context(path: Path, agent: str, *, at: int | None, as_json: bool) -> int:
    """Print the message list that a model saw."""
    seen = replaying.context(path, agent, at=at)
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
    print(f"# what {seen.agent} saw at record {seen.record}; = marks what it had seen before, + what is new")
    for one in seen.messages:
        mark = "=" if one.reused else "+"
        print(f"\n{mark} [{one.role}]")
        print("\n".join(f"{mark} {line}" for line in one.content.split("\n")))
        for name, media, digest in one.parts:
            print(f"{mark} [${name}: {media}, SHA-256 {digest}]")
    return 0


def check(path: Path, *, as_json: bool) -> int:
    """Check a journal's form, its chain, and the blobs that it names; 0 if all of it is there as it was written.

    Raises:
        JournalError: something is not, unless a report as JSON is wanted.
    """
    reader, blobs = Reader(path), set[str]()
    try:
        for record in reader.read():
            blobs |= blobs_of(record)
        for digest in sorted(blobs):
            read_blob(reader.file.parent, digest)
        if not reader.last:
            raise JournalError(f"The journal {reader.file} holds no record.")
    except JournalError as error:
        if not as_json:
            raise
        print(json.dumps(_checked(reader, len(blobs), error), ensure_ascii=False))
        return 1
    if as_json:
        print(json.dumps(_checked(reader, len(blobs), None), ensure_ascii=False))
        return 0
    torn = f"; {reader.pending} bytes of an unfinished append stand behind them" if reader.pending else ""
    kept = f", {len(blobs)} blob{'s' if len(blobs) != 1 else ''}" if blobs else ""
    print(f"{reader.file}: {reader.last} records{kept}, unbroken{torn}.")
    return 0


def _checked(reader: Reader, blobs: int, error: JournalError | None) -> dict[str, object]:
    bad = error if isinstance(error, JournalCorrupt) else None
    return {
        "journal": str(reader.file),
        "ok": error is None,
        "records": reader.last,
        "blobs": blobs,
        "torn": reader.pending,
        "error": str(error) if error is not None else None,
        "record": bad.n if bad else None,
        "offset": bad.offset if bad else None,
    }


def tail(path: Path, *, follow: bool, last: int | None) -> int:
    """Print one line for each record, or for the `last` ones only; then, with `follow`, for each as it comes.

    Following ends when the session is closed for good, or by an interrupt.
    """
    reader = Reader(path)
    try:
        ended = _show(deque(reader.read(), maxlen=last))
        while follow and not ended:
            time.sleep(_LOOK)
            ended = _show(reader.read())
    except KeyboardInterrupt:
        if not follow:
            raise
        return 0
    if reader.pending:
        print(f"note: {reader.pending} bytes of an unfinished append stand behind.", file=sys.stderr)
    return 0


def _show(records: Iterable[Record]) -> bool:
    """Print records; whether the last of them ends the session."""
    ended = False
    for record in records:
        print(line(record), flush=True)
        ended = record.kind == "close"
    return ended


def line(record: Record) -> str:
    """A record as one line for a terminal, whatever it holds."""
    when = record.at[:19].replace("T", " ")
    body = "" if record.kind == "module" else record.body[: 4 * _WIDTH]
    said = " ".join(filter(None, [*_facts(record), body]))
    said = " ".join(visible(without_escapes(said)).split())
    said = said if len(said) <= _WIDTH else said[: _WIDTH - 1] + "…"
    agent = visible(without_escapes(record.agent))
    return f"{record.n:>5}  {when}  {agent:<14} {record.kind:<8} {said}".rstrip()


def _facts(record: Record) -> Iterator[str]:
    match record.kind:
        case "call" | "result" | "select":
            yield record.text("function")
            yield record.text("to")
        case "gate":
            yield record.text("function")
            yield "allowed" if record.fields.get("allow") is True else f"denied by {record.text('by')}:"
            yield record.text("reason")
        case "control":
            yield record.text("op")
            yield record.text("mode") or str(record.fields.get("value", ""))
        case "spawn":
            yield f"by {record.text('caller')}"
        case "plan":
            yield f"version {record.number('version')}: {record.text('reason')}"
        case "node":
            yield f"{record.text('node')} {record.text('from')} → {record.text('to')}"
            yield record.text("detail")
        case "fire":
            yield f"{record.text('node')}: {record.text('function')} {record.text('to')}"
        case "ask":
            yield f"{record.text('question')} {record.text('node')}:"
        case "draw":
            yield f"{record.number('tokens')} tokens"
        case "discard":
            yield f"({record.text('reason')})"
        case "module":
            yield f"{record.text('name')} {record.text('digest')[:12]}"
        case "fork":
            yield f"of {record.text('from')} at record {record.number('after')}"
        case "open":
            yield f"session {record.text('session')}, format {record.text('format')}"
    if record.text("status") not in ("", "ok"):
        yield f"[{record.text('status')}]"


def fork(settings: Settings, path: Path, *, at: int | None, text: str | None, as_json: bool) -> int:
    """Make a new session from the first records of a journal; with `text`, say that in it and wait for the reply."""
    if text is not None and not text.strip():
        raise UsageError("The message is empty.")
    from iact.wiring import open_versions  # loads the sandbox, which readers of journals do without

    now = datetime.now(UTC)
    made = forking.fork(
        settings.data / "sessions",
        path,
        at,
        session=forking.new_session(now),
        now=now,
        versions=open_versions(),
        sealer=open_sealer(settings.data),
    )
    if made.left_out:
        print(f"note: {made.left_out} files of the workspace could not be copied.", file=sys.stderr)
    if text is not None:
        print(f"forked session {made.session}", file=sys.stderr, flush=True)
        return _go_on(settings, made.session, text, as_json)
    if as_json:
        report = {
            "session": made.session,
            "journal": str(made.directory / FILE),
            "from": made.source,
            "at": made.at,
            "workspace": made.workspace,
        }
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(made.session)
    return 0


def _go_on(settings: Settings, session: str, text: str, as_json: bool) -> int:
    from iact.commands import run  # loaded only where something runs

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


def html(path: Path, *, at: int | None, out: str | None) -> int:
    """Write a journal as one page, to a file or to standard output."""
    from iact import export  # loaded only where it is used: it brings the renderer

    page = export.page(path, at=at)
    if out is None:
        sys.stdout.write(page)
        return 0
    try:
        Path(out).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The page can't be written to {out}: {error.strerror}.") from error
    return 0
