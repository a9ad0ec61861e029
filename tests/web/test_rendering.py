"""Rendering is linear, bounded, and outside of the server's loop; no text takes anything but its own formatting."""

from __future__ import annotations

import asyncio
import hashlib
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt, helpers
from markdown_it.renderer import RendererHTML

from benchmarks.rendering.pathological import PATTERNS, pathological
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.views.text import looks_like_action
from iact.web import parser, render
from iact.web.records import content_fields, record_message
from iact.web.render import UNFORMATTED, markdown
from iact.web.render_pool import RenderPool
from iact.web.render_process import RenderProcess
from iact.web.render_tasks import SHORT, DraftQuestion, RenderQuestion, answer, is_short, question
from iact.web.server import WebServer
from tests.records import least, raw_record
from tests.web.dialling import dial, numbers, run, send, until
from tests.web.fake import FakeRuntime, FakeSession

HERE = Path("/nonexistent")
TURN = """\
First $run_1, then a table.

| a | b |
|---|--:|
| 1 | $other |

```CALL analyst role="careful"
Look at **this**.
```
```t.destroy
all
```
```python
print("no action")
```
"""


def turn(body: str) -> Record:
    return raw_record(3, "2026-01-01T00:00:00Z", "turn", "/", 2, body, least("turn"))


def asked(record: Record) -> RenderQuestion:
    return question(record, HERE, looks_like_action, {})


def gone(pid: int) -> None:
    """Wait until a process is no more."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([descriptor], [], [], 60)[0], f"process {pid} lives on"
    os.close(descriptor)


# --- linear -----------------------------------------------------------------------------------------


def work(text: str) -> int:
    """How many steps of Python the parser takes, which the load of a machine does not change."""
    count: Counter[str] = Counter()

    def note(frame: object, event: str, argument: object) -> None:
        count["calls"] += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        markdown(text)
    finally:
        sys.setprofile(before)
    return count["calls"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_twice_the_text_is_twice_the_work(pattern: str) -> None:
    once, twice = (work(pathological(pattern, length)) for length in (4_000, 8_000))
    assert twice <= 2.6 * once + 500


def test_without_our_bound_it_is_many_times_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pathological("images that open", 2_000)
    ours = work(text)
    monkeypatch.setattr(render._PARSER, "helpers", helpers)
    assert work(text) > 20 * ours


@given(st.text(st.sampled_from('ab ![]()*_`<>"\\\n#-&;$')))
def test_ordinary_text_reads_as_the_parser_alone_reads_it(text: str) -> None:
    stock = MarkdownIt("js-default", {"html": False, "linkify": False})
    ours = parser.build(RendererHTML).disable("formula")
    stock.validateLink = lambda url: True  # type: ignore[method-assign]
    assert parser.render(ours, text, {}) == stock.render(text)


def test_what_is_too_deep_is_shown_not_left_out() -> None:
    for text in (">" * 300 + " the end", "- " * 300 + "the end"):
        html = markdown(text)
        assert "the end" in html
        assert UNFORMATTED in html


# --- bounded ----------------------------------------------------------------------------------------


def test_a_text_whose_time_is_over_is_shown_as_it_was_written() -> None:
    body = "**before**\n\n" + pathological("a table of small cells", 100_000) + "\n```CALL a\nDo *it*.\n```\n"
    with RenderProcess(patience=60) as process:
        fields = process.render(RenderQuestion(turn(body), str(HERE), words=("CALL",), seconds=0.02))
        after = process.render(asked(turn("**after**")))  # it has its own time
    assert fields is not None
    html = str(fields["html"])
    assert UNFORMATTED in html
    assert "**before**" in html
    assert '<section class="card call">' in html  # what is no Markdown keeps its form
    assert after is not None
    assert "<strong>" in str(after["html"])


def test_a_process_that_hangs_is_ended_and_the_next_question_has_another() -> None:
    with RenderProcess(patience=5) as process:
        assert process.render(asked(turn("*one*"))) is not None
    with RenderProcess(patience=0.2) as process:
        process.start()
        stuck = process.pid
        assert stuck is not None
        os.kill(stuck, signal.SIGSTOP)
        assert process.render(asked(turn("*two*"))) is None
        gone(stuck)
        process._patience = 60
        made = process.render(asked(turn("*three*")))
        assert made is not None
        assert "<em>three</em>" in str(made["html"])


def test_a_process_that_died_costs_nothing() -> None:
    with RenderProcess(patience=60) as process:
        assert process.render(asked(turn("*one*"))) is not None
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        gone(process.pid)
        assert process.render(asked(turn("*two*"))) is not None


def test_a_blob_is_read_by_the_process(tmp_path: Path) -> None:
    content = b"the **whole** of it " * 5_000
    digest = hashlib.sha256(content).hexdigest()
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / digest).write_bytes(content)
    blob: JSON = {"sha256": digest, "size": len(content)}
    fields = least("result", function="t.read", media="text/plain", blob=blob)
    record = raw_record(9, "", "result", "/", 4, "", fields)
    assert not is_short(record)
    with RenderProcess(patience=60) as process:
        made = process.render(question(record, tmp_path, looks_like_action, {}))
        assert made is not None
        assert "characters hidden" in str(made["html"])
        (tmp_path / "blobs" / digest).unlink()
        made = process.render(question(record, tmp_path, looks_like_action, {}))
        assert made is not None
        assert "stored next to the journal" in str(made["html"])


@pytest.mark.parametrize(
    "kind", ["turn", "say", "reply", "result", "control", "spawn", "plan", "discard", "ask"]
)
def test_a_process_answers_what_the_server_itself_would(kind: str) -> None:
    table = {"run_1": object(), "other": object()}
    more: dict[str, JSON] = {"var": "run_1"} if kind == "discard" else {"var": "run_1", "reason": "*$other*"}
    fields = least(kind, "inject" if kind == "control" else "", **more)
    record = raw_record(3, "", kind, "/", 2, TURN * 20, fields)
    with parser.bounded(60):  # in which formulas are drawn and code is coloured
        expected = content_fields(record, None, looks_like_action, table)
    got = answer(RenderQuestion.from_json(question(record, HERE, looks_like_action, table, 60.0).to_json()))
    assert {name: got[name] for name in expected} == expected


@given(
    st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
)
def test_the_words_that_begin_actions_are_found_in_any_text(text: str) -> None:
    body = "```" + text + "\n~~~ t.run\nx\n~~~\n"
    record = turn(body)
    got = answer(question(record, HERE, looks_like_action, {}, 60.0))
    with parser.bounded(60):
        assert got["html"] == record_message(record)["html"]


def test_nothing_is_left_behind() -> None:
    script = (
        "import signal\n"
        "from iact.web.render_pool import RenderPool\n"
        "pool = RenderPool()\n"
        "[one.start() for one in pool._all]\n"
        "print(*pool.pids, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as running:
        assert running.stdout is not None
        pids = [int(word) for word in running.stdout.readline().split()]
        assert len(pids) == 2
        running.kill()
    for pid in pids:
        gone(pid)


# --- over the wire ----------------------------------------------------------------------------------


LONG = "A *long* text. " * (SHORT // 10)


def test_records_keep_their_order_and_come_once_whatever_they_cost() -> None:
    async def test() -> None:
        session = FakeSession("s")
        for number in range(20):
            body = (LONG, "*short*", pathological("a table of small cells", 100_000))[number % 3]
            session.append("reply", body=f"{number} {body}", to="user", status="ok")
        async with WebServer(FakeRuntime(session)) as server:
            async with dial(server) as client:
                await send(client, type="hello", session="s")
                first = await until(client, type="record", n=8)
                assert numbers(first) == list(range(1, 9))
            async with dial(server) as client:
                await send(client, type="hello", session="s", since=8)
                rest = await until(client, type="record", n=20)
                assert numbers(rest) == list(range(9, 21))
                for message in rest:
                    if message["type"] == "record":
                        assert message["html"]

    run(test)


def test_many_who_want_one_text_cost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[int] = []

    class Counting(RenderPool):
        async def render(self, question: RenderQuestion | DraftQuestion) -> Any:
            assert isinstance(question, RenderQuestion)
            questions.append(question.record.n)
            return await super().render(question)

    monkeypatch.setattr("iact.web.render_cache.RenderPool", Counting)

    async def test() -> None:
        session = FakeSession("s")
        session.append("reply", body=LONG, to="user", status="ok")
        async with WebServer(FakeRuntime(session)) as server:
            clients = [await dial(server) for _ in range(5)]
            for client in clients:
                await send(client, type="hello", session="s")
            for client in clients:
                await until(client, type="record", n=1)
                await client.close()
        assert questions == [1]

    run(test)


def one_is_taken(pool: RenderPool) -> None:
    while pool._free.qsize() == len(pool._all):
        time.sleep(0.01)


def test_while_a_text_takes_for_ever_others_get_their_answers_and_their_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools: list[RenderPool] = []

    def pool() -> RenderPool:
        pools.append(RenderPool(patience=60))
        return pools[-1]

    monkeypatch.setattr("iact.web.render_cache.RenderPool", pool)

    async def test() -> None:
        one, other = FakeSession("one"), FakeSession("other")
        for _ in range(20):
            one.append("reply", body=LONG, to="user", status="ok")
        other.append("reply", body=LONG, to="user", status="ok")
        async with (
            WebServer(FakeRuntime(one, other)) as server,
            dial(server) as first,
            dial(server) as second,
        ):
            (pool,) = pools
            for process in pool._all:
                process.start()
                assert process.pid is not None
                os.kill(process.pid, signal.SIGSTOP)
            await send(first, type="hello", session="one")
            await asyncio.to_thread(one_is_taken, pool)  # whichever it is, that one hangs
            free = pool._free.get()
            assert free.pid is not None
            (hangs,) = pool.pids - {free.pid}
            os.kill(free.pid, signal.SIGCONT)
            pool._free.put(free)
            await until(first, type="tree")
            await send(first, type="render", numbers=[*range(1, 21)], id=1)
            # The first client's text hangs, and it has no second one under way; the second client is served.
            await send(second, type="sessions", id=2)
            await until(second, type="ok", id=2)
            await send(second, type="hello", session="other")
            assert "<em>long</em>" in (await until(second, type="record", n=1))[-1]["html"]
            os.kill(hangs, signal.SIGCONT)
            seen = await until(first, type="record", n=20)
            assert numbers(seen) == list(range(1, 21))

    run(test)


def test_a_long_answer_comes_whole_and_others_come_between_its_rows() -> None:
    async def test() -> None:
        session = FakeSession("s")
        bodies = [f"{number} " + "ü‹\U0001f600› " * 5_000 for number in range(8)]
        for body in bodies:
            session.append("say", body=body)
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            await until(client, type="record", n=8)
            await send(client, type="render", numbers=[*range(1, 9)], id=1)
            answer = (await until(client, id=1))[-1]
            assert [one["n"] for one in answer["list"]] == [*range(1, 9)]
            assert all(one["html"].count("\U0001f600") == 5_000 for one in answer["list"])

    run(test)
