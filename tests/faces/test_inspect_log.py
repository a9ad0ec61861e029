"""A journal as a log of Inspect, as Inspect's own reader and command line read it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from inspect_ai.event import ModelEvent, SpanBeginEvent, SpanEndEvent, ToolEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from iact.commands.inspect_log import write
from iact.core.errors import UsageError
from iact.core.journal import read_journal
from iact.core.records.calls import ClearanceAnswer, Gate
from iact.core.stored.replay import context, replay
from iact.settings import load
from tests.acceptance.product import NO_MODULES, ROOT, Product
from tests.endpoint import Endpoint
from tests.rounds import short

JOURNALS: Final = sorted(
    [*(ROOT / "tests" / "journals").rglob("journal.md"), *(ROOT / "examples").rglob("journal.md")]
)
NEWEST: Final = [one for one in JOURNALS if one.parts[-3] not in {"1.0", "1.1"}]
INSPECT: Final = str(Path(sys.executable).with_name("inspect"))


def logged(journal: Path, out: Path, at: int | None = None) -> EvalLog:
    """The log of a journal, as Inspect reads it."""
    assert write(load(data=str(out.parent / "data")), str(journal), at=at, out=str(out)) == 0
    return read_eval_log(str(out), resolve_attachments=True)


def sample_of(log: EvalLog) -> EvalSample:
    assert log.samples is not None
    [sample] = log.samples
    return sample


@pytest.mark.parametrize(
    "journal", short(NEWEST, of=JOURNALS), ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}"
)
def test_every_journal_is_a_log(journal: Path, tmp_path: Path) -> None:
    found, log = replay(journal), logged(journal, tmp_path / "session.eval")
    sample = sample_of(log)
    assert (log.version, log.status, log.eval.solver) == (2, "success", "iact/agent")

    # All tokens, once each.
    used = sample.model_usage.values()
    read = sum(one.input_tokens + (one.input_tokens_cache_read or 0) for one in used)
    assert (read, sum(one.output_tokens for one in used)) == (
        found.view.usage.prompt_tokens,
        found.view.usage.completion_tokens,
    )
    assert log.stats.model_usage == sample.model_usage

    # A dialogue is a span within its caller's, and nothing stands in one that is not open.
    open_spans: dict[str, str] = {}
    for event in sample.events:
        match event:
            case SpanBeginEvent(id=identity, parent_id=parent, name=name):
                assert parent in open_spans or name == "iact/agent"
                open_spans[identity] = name
            case SpanEndEvent(id=identity):
                open_spans.pop(identity)
            case _ if event.event != "sample_init":
                assert event.span_id in open_spans
    assert not open_spans
    spoke = {node.path for node in found.view.nodes() if node.turns}
    assert spoke <= {one.name for one in sample.events if isinstance(one, SpanBeginEvent)}

    # What each model saw is what `iact context` prints.
    written = {
        one.metadata["record"]: one for one in sample.events if isinstance(one, ModelEvent) and one.metadata
    }
    for path in [node.path for node in found.view.nodes() if node.kind == "agent" and node.turns]:
        seen = context(journal, path)
        given = written[seen.record].input
        assert [one.role for one in given] == [one.role for one in seen.messages]
        assert all(one.content in message.text for one, message in zip(seen.messages, given, strict=True))

    # Every decision of the gate stands with its call, and none with another.
    tools = [one for one in sample.events if isinstance(one, ToolEvent)]
    verdicts = Counter(
        (verdict["record"], one.function, verdict["allow"])
        for one in tools
        for verdict in (one.metadata or {}).get("gate", [])
    )
    assert verdicts == Counter(
        (one.n, one.content.function, one.content.allow)
        for one in found.records
        if isinstance(one.content, Gate)
    )
    answers = [one for one in found.records if isinstance(one.content, ClearanceAnswer)]
    assert len(answers) == sum(one.event == "approval" for one in sample.events)
    assert not [one.function for one in tools if one.pending]


def test_a_journal_has_one_log(tmp_path: Path) -> None:
    journal = ROOT / "examples" / "research"
    first, second = (sample_of(logged(journal, tmp_path / name)) for name in ("a.json", "b.json"))
    assert first == second
    ids = [one.uuid for one in first.events]
    assert len(set(ids)) == len(ids)


def test_an_unfinished_session_has_started(tmp_path: Path) -> None:
    journal = ROOT / "examples" / "bugfix"
    within = next(one.n for one in read_journal(journal).records if one.kind == "call" and one.agent != "/")
    log = logged(journal, tmp_path / "part.eval", at=within)
    assert log.status == "started"
    tools = [one for one in sample_of(log).events if isinstance(one, ToolEvent)]
    pending = [one.function for one in tools if one.pending]
    assert len(pending) == 2
    assert pending[0] == "CALL"


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    journal = str(ROOT / "examples" / "bugfix")
    with pytest.raises(UsageError, match=r"\.eval or \.json"):
        write(load(data=str(tmp_path)), journal, at=None, out=str(tmp_path / "log.txt"))
    with pytest.raises(UsageError, match="Nothing was said"):
        write(load(data=str(tmp_path)), journal, at=1, out=None)


def test_inspects_own_tools_open_a_session(tmp_path: Path) -> None:
    """A session through the product; the log through Inspect's command line, and its viewer's bundle."""
    logs, bundle = tmp_path / "logs", tmp_path / "bundle"
    logs.mkdir()
    with Endpoint({"/": ["The answer is 42."]}, by_turn=False) as endpoint:
        product = Product.at(tmp_path / "data", endpoint, **NO_MODULES)
        answer = product.ask("What is it?")
        # By its name it is written to a file; without one, to standard output.
        ran = product.run("journal", "inspect", answer.session, "-o", str(logs / "session.eval"))
        assert (ran.status, ran.stdout, ran.stderr) == (0, "", "")
        printed = json.loads(product.run("journal", "inspect", answer.session).stdout)

    dumped = json.loads(inspect("log", "dump", str(logs / "session.eval")))
    assert dumped["samples"][0]["output"]["completion"] == "The answer is 42."
    assert dumped["eval"] == printed["eval"]
    [listed] = json.loads(inspect("log", "list", "--json", "--log-dir", str(logs)))
    assert listed["task_id"] == answer.session
    inspect("view", "bundle", "--log-dir", str(logs), "--output-dir", str(bundle))
    assert (bundle / "index.html").is_file()
    assert list((bundle / "logs").glob("*.eval"))


def inspect(*arguments: str) -> str:
    """What a command of Inspect's prints; it must succeed."""
    ran = subprocess.run([INSPECT, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran
    return ran.stdout
