"""Commands on a session that a running server holds, as a script uses them: exit status, output, journal."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from iact.commands.remote import Frame, WaitedAnswer, Wire, _wait
from iact.core.errors import IactError
from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.product import NO_MODULES, Product, Ran, Server, kill, until
from tests.endpoint import Endpoint, Gate, HttpError, Reply, Request

LONG = "A long reply. " * 4000


@dataclass
class Stage:
    """A server with one session, and a model whose replies are named by what the user says."""

    product: Product
    server: Server
    session: str
    gates: dict[str, Gate]

    def records(self) -> list[Record]:
        return read_journal(self.product.data / "sessions" / self.session).records

    def record(self, n: int) -> Record:
        return self.records()[n - 1]

    def number(self, command: str, *arguments: str) -> int:
        """Run a control on the session and give the number it prints."""
        ran = self.product.run(command, "--session", self.session, *arguments)
        assert (ran.status, ran.stderr) == (0, ""), ran
        return int(ran.stdout)


def answer(gates: dict[str, Gate], request: Request) -> Reply | str:
    """What the model says: chosen by the newest message."""
    for word, gate in gates.items():
        if word in request.last and not gate.released.done():
            return Reply("One, two, three, four.", gates={8: gate})
    if "Fail" in request.last:
        return Reply(error=HttpError(401, "no such key"))
    if "Be long" in request.last:
        return Reply(LONG, chunk=4000)
    return "Understood."


@contextmanager
def server_on(folder: Path) -> Iterator[Stage]:
    gates = {word: Gate(word) for word in ("alpha", "beta", "gamma", "delta")}
    with Endpoint(lambda request: answer(gates, request)) as endpoint:
        product = Product.at(folder / "data", endpoint, **NO_MODULES)
        session = product.ask("Hello.").session
        with product.serving() as server:
            yield Stage(product, server, session, gates)
            for gate in gates.values():
                gate.release()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with server_on(tmp_path_factory.mktemp("remote")) as made:
        yield made


def test_say_prints_the_number_of_its_record(stage: Stage) -> None:
    n = stage.number("say", "How are you?")
    assert (stage.record(n).kind, stage.record(n).body) == ("say", "How are you?")
    until(lambda: stage.records()[-1].kind == "reply", "the reply")


def test_say_wait_prints_the_reply(stage: Stage) -> None:
    ran = stage.product.run("say", "--session", stage.session, "--wait", "-", stdin="Hello\nagain.")
    assert (ran.status, ran.stdout) == (0, "Understood.\n")
    n = int(ran.stderr.removeprefix("record "))
    assert stage.record(n).body == "Hello\nagain."


def test_say_wait_prints_the_whole_of_a_reply_that_the_server_shortens(stage: Stage) -> None:
    ran = stage.product.run("say", "--session", stage.session, "--wait", "--json", "Be long.")
    report = json.loads(ran.stdout)
    assert report["reply"].strip() == LONG.strip()
    assert (report["status"], report["session"]) == ("done", stage.session)
    assert stage.record(report["n"]).body == "Be long."


def test_say_wait_fails_when_the_answer_is_a_failure(stage: Stage) -> None:
    session = stage.product.ask("Hello.").session
    ran = stage.product.run("say", "--session", session, "--wait", "Fail now.")
    assert (ran.status, ran.stdout) == (1, "")
    assert "no such key" in ran.stderr.splitlines()[-1]
    told = stage.product.run("say", "--session", session, "--wait", "--json", "Fail again.")
    assert (told.status, json.loads(told.stdout)["status"]) == (1, "failed")


def test_a_generation_is_paused_corrected_and_resumed(stage: Stage) -> None:
    said = stage.number("say", "alpha")
    assert stage.gates["alpha"].wait()
    paused = stage.number("pause", "--agent", "/")
    assert stage.record(paused).fields == {"op": "pause", "by": "user"}
    injected = stage.number("inject", "--agent", "/", "--mode", "queue", "In words, please.")
    assert stage.record(injected).text("mode") == "queue"
    assert stage.record(injected).body == "In words, please."
    resumed = stage.number("resume")
    stage.gates["alpha"].release()
    assert said < paused < injected < resumed
    until(lambda: stage.records()[-1].kind == "reply", "the reply")
    assert stage.records()[-1].fields["took"] == [said, injected]
    assert any(one.text("reason") == "pause" for one in stage.records() if one.kind == "discard")


def test_whoever_waits_for_a_paused_root_is_told_what_to_do(stage: Stage) -> None:
    stage.number("pause")
    errors = stage.product.data.parent / "data.stderr"
    with stage.product.started("say", "--session", stage.session, "--wait", "Are you there?") as process:
        assert process.stdout is not None
        until(lambda: "note: the root is paused" in errors.read_text(), "the note")
        assert f"iact resume --session {stage.session}" in errors.read_text()
        stage.number("resume")
        assert process.wait(300) == 0
        assert process.stdout.read() == "Understood.\n"


def test_a_cancelled_answer_ends_the_wait_of_whoever_said(stage: Stage) -> None:
    ended: list[tuple[int, str]] = []

    def wait() -> None:
        ran = stage.product.run("say", "--session", stage.session, "--wait", "beta")
        ended.append((ran.status, ran.sentence))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert stage.gates["beta"].wait()
    n = stage.number("cancel")
    waiting.join(300)
    stage.gates["beta"].release()
    assert stage.record(n).text("op") == "cancel"
    assert ended == [(1, "The user cancelled this work.")]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("say", "--session", "nobody", "Hello"), 2, "There is no session 'nobody'"),
        (("pause", "--agent", "/nobody"), 2, "There is no agent '/nobody'"),
        (("pause", "--agent", "nobody"), 2, "The field 'path' does not fit"),
        (("say", "  "), 2, "The message is empty."),
        (("clear", "12", "--allow"), 2, "No call waits for an answer to record 12."),
        (("answer", "12", "--no"), 2, "No call waits for an answer to record 12."),
        (("answer", "12", "--values", "[1]"), 2, "--values takes a JSON object"),
        (("declassify", "nothing"), 2, "The agent / has no variable $nothing."),
    ],
)
def test_what_the_server_refuses_is_one_sentence(
    stage: Stage, arguments: tuple[str, ...], status: int, said: str
) -> None:
    named = () if "--session" in arguments else ("--session", stage.session)
    before = told(stage)
    ran = stage.product.run(arguments[0], *named, *arguments[1:])
    assert (ran.status, ran.stdout) == (status, "")
    assert said in ran.sentence
    assert told(stage) == before


def told(stage: Stage) -> list[int]:
    """The records that somebody's request made; a notice may come of itself when a session is opened."""
    return [record.n for record in stage.records() if record.kind != "notice"]


def test_a_long_message_is_sent_as_a_file(stage: Stage) -> None:
    ran = stage.product.run("say", "--session", stage.session, "-", stdin="x" * 300_000)
    assert ran.status == 0, ran
    records = stage.records()
    said = [record for record in records if record.kind == "say"][-1]
    assert len(said.body) < 100_000
    uploaded = [record for record in records if record.kind == "upload"]
    assert [record.text("file") for record in uploaded] == ["message.md"]


def test_a_message_that_is_too_long_is_refused_before_it_is_sent(stage: Stage) -> None:
    before = told(stage)
    ran = stage.product.run("say", "--session", stage.session, "-", stdin="x" * (33 << 20))
    assert ran.status != 0
    assert "33,554,432" in ran.sentence
    assert told(stage) == before


def test_clear_needs_a_verdict(stage: Stage) -> None:
    ran = stage.product.run("clear", "--session", stage.session, "12")
    assert ran.status == 2
    assert "--allow" in ran.stderr


def test_a_session_of_a_run_is_controlled_there_although_a_server_runs(stage: Stage) -> None:
    endpoint_gate = stage.gates["gamma"]
    with stage.product.started("run", "--json", "gamma") as process:
        assert endpoint_gate.wait()
        # The model is asked a moment before the message is on the disk.
        until(lambda: bool(_journals_with(stage, "gamma")), "the message in its journal")
        (held,) = _journals_with(stage, "gamma")
        session = held.parent.name
        until(lambda: (stage.product.data / f"run.{session}.json").exists(), "the address of the run")
        for command in ("pause", "resume"):
            assert stage.product.run(command, "--session", session).status == 0
        endpoint_gate.release()
        assert process.wait(300) == 0
    assert {one.kind for one in read_journal(held).records} >= {"control", "reply"}


def _journals_with(stage: Stage, words: str) -> list[Path]:
    return [path for path in stage.product.journals() if words in path.read_text()]


# --- the server's address ---------------------------------------------------------------------------


def test_the_address_is_private_and_says_where_the_server_is(stage: Stage) -> None:
    entry = stage.product.data / "server.json"
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    told = json.loads(entry.read_text())
    assert told["url"] == f"http://127.0.0.1:{stage.server.port}/?token={stage.server.token}"
    assert told["pid"] == stage.server.process.pid
    assert told["started"].startswith("20")


def test_a_second_server_on_the_same_data_is_refused_and_the_first_not_disturbed(stage: Stage) -> None:
    before = (stage.product.data / "server.json").read_bytes()
    ran = stage.product.run("serve")
    assert (ran.status, ran.stdout) == (2, "")
    assert f"(process {stage.server.process.pid}, http://127.0.0.1:{stage.server.port}/)" in ran.sentence
    assert stage.server.token not in ran.stderr
    assert (stage.product.data / "server.json").read_bytes() == before
    stage.number("resume")


def test_without_a_server_commands_say_how_to_start_one(tmp_path: Path) -> None:
    product = Product.at(tmp_path / "data", **NO_MODULES)
    ran = product.run("pause", "--session", "x")
    assert ran.status == 1
    assert (
        ran.sentence == f"No server runs on {product.data}. Start it with: iact serve --data {product.data}."
    )


def test_a_server_that_ends_takes_its_address_away(tmp_path: Path) -> None:
    product = Product.at(tmp_path / "data", **NO_MODULES)
    for ending in (signal.SIGTERM, signal.SIGINT):
        with product.serving() as server:
            assert (product.data / "server.json").exists()
            server.process.send_signal(ending)
            assert server.process.wait(300) == 0
        assert not (product.data / "server.json").exists()


def test_the_address_of_a_killed_server_is_nobodys(tmp_path: Path) -> None:
    product = Product.at(tmp_path / "data", **NO_MODULES)
    with product.serving() as server:
        kill(server.process)
    assert (product.data / "server.json").exists()
    ran = product.run("pause", "--session", "x")
    assert ran.status == 1
    assert f"the last one (process {server.process.pid}) was killed" in ran.sentence
    with product.serving() as second:
        told = json.loads((product.data / "server.json").read_text())
        assert told["pid"] == second.process.pid
    errors = (product.data.parent / "data.stderr").read_text()
    assert f"an earlier server (process {server.process.pid}) that was killed" in errors


def test_an_address_whose_number_belongs_to_another_process_leads_nowhere(tmp_path: Path) -> None:
    product = Product.at(tmp_path / "data", **NO_MODULES)
    product.data.mkdir()
    entry = {"url": "http://127.0.0.1:9/?token=x", "pid": os.getpid(), "started": "2026-01-01"}
    (product.data / "server.json").write_text(json.dumps(entry))
    ran = product.run("pause", "--session", "x")
    assert ran.status == 1
    assert "The server at http://127.0.0.1:9/" in ran.sentence
    assert "can't be reached" in ran.sentence


def test_whoever_waits_is_told_when_the_server_goes(tmp_path: Path) -> None:
    with server_on(tmp_path) as stage:
        ended: list[tuple[int, str]] = []

        def wait() -> None:
            ran = stage.product.run("say", "--session", stage.session, "--wait", "alpha")
            ended.append((ran.status, ran.sentence))

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert stage.gates["alpha"].wait()
        kill(stage.server.process)
        waiting.join(300)
        assert ended
        assert ended[0][0] == 1
        assert "The server closed the connection" in ended[0][1]


# --- the pure half ----------------------------------------------------------------------------------


def reply(n: int, body: str = "Done.") -> dict[str, object]:
    return {"type": "record", "kind": "reply", "agent": "/", "n": n, "body": body, "status": "ok"}


def tree(state: str, record: int) -> dict[str, object]:
    return {"type": "tree", "nodes": [{"path": "/", "state": state, "record": record}, {"path": "/a"}]}


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ([tree("done", 4)], None),
        ([reply(9)], None),
        ([tree("done", 4), reply(9)], None),
        ([reply(9), tree("thinking", 9)], None),
        ([reply(9), tree("done", 9)], 9),
        ([tree("done", 9), reply(9)], 9),
        ([reply(4), tree("done", 4)], None),
        ([reply(9), reply(12), tree("done", 12)], 12),
        ([reply(9), tree("paused", 11)], None),
        ([reply(9) | {"agent": "/a"}, tree("done", 12)], None),
        ([{"type": "notice"}, {"type": "tree", "nodes": []}, reply(9), tree("failed", 10)], 9),
    ],
)
def test_an_answer_is_the_last_reply_with_which_the_root_rests(
    frames: list[dict[str, object]], found: int | None
) -> None:
    answer = WaitedAnswer()
    for frame in frames:
        answer.take(frame)  # type: ignore[arg-type]
    taken = answer.to(5)
    assert (taken.n if taken else None) == found


def test_whoever_waits_is_told_when_the_session_has_stopped() -> None:
    class Stopped(Wire):
        def __init__(self) -> None:
            pass

        def receive(self, seconds: float | None) -> Frame:
            return {"type": "notice", "level": "error", "text": "The journal can't be written."}

    with pytest.raises(IactError, match=r"The journal can't be written\."):
        _wait(Stopped(), WaitedAnswer(), 5, "s")


def test_what_waits_is_listed_said_otherwise_taken_back_and_sent(stage: Stage) -> None:
    def queue(*arguments: str) -> Ran:
        return stage.product.run("queue", "--session", stage.session, *arguments)

    stage.number("say", "delta")
    assert stage.gates["delta"].wait()
    away, worded, sent = (stage.number("say", text) for text in ("one", "two", "three"))
    listed = json.loads(queue("--json").stdout)
    assert listed == [{"n": away, "text": "one"}, {"n": worded, "text": "two"}, {"n": sent, "text": "three"}]
    stage.number("queue", "--edit", "two,\nin words", str(worded))
    stage.number("queue", "--remove", str(away))
    assert queue().stdout == f"{worded}: two, in words\n{sent}: three\n"
    undecided = queue(str(sent))
    assert (undecided.status, "--send, --edit TEXT or --remove" in undecided.sentence) == (2, True)

    now = stage.number("queue", "--send", str(sent))
    stage.gates["delta"].release()
    until(lambda: stage.records()[-1].kind == "reply", "the reply")
    assert [one.kind for one in stage.records()[now - 2 : now]] == ["discard", "control"]
    read = [one for one in stage.records()[now:] if sent in numbers(one.fields.get("took"))]
    assert len(read) == 1
    until(lambda: queue().stdout == "", "that nothing waits")
    late = queue("--remove", str(sent))
    assert (late.status, "it was read" in late.sentence) == (2, True)
    nobody = queue("--agent", "/nobody")
    assert (nobody.status, "There is no agent '/nobody'" in nobody.sentence) == (2, True)
    asked = [one.body for one in stage.records() if one.kind == "control" and one.text("op") == "reword"]
    assert asked == ["two,\nin words"]


def numbers(value: object) -> list[object]:
    return value if isinstance(value, list) else []
