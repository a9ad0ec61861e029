"""Clearance in the running product: by a person over the websocket, the command line and a terminal, and by an HTTP
endpoint that answers, or misbehaves in every possible way.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server, acknowledged, kill, until
from tests.command import Command

PATIENCE = 300.0
ASKS = '[scope.default]\nfunctions = ["*"]\nclearance = ["shell.*"]\n'
MAKE = "I make it.\n\n```shell.run\ntouch made\n```"


def asking(product: Product) -> Product:
    """With a policy under which every command needs clearance."""
    (product.data / "policy.toml").write_text(ASKS, encoding="utf-8")
    return product


def records(product: Product) -> list[Record]:
    """The records of the only session."""
    (journal,) = product.journals()
    return read_journal(journal).records


def comes(condition: Callable[[], bool], what: str) -> None:
    """Wait for something outside this process; a container may have to start, on a busy machine."""
    until(condition, what, within=PATIENCE)


def tell(socket: ClientConnection, message: dict[str, object]) -> None:
    """Send a message and wait for its `ok`."""
    acknowledged(socket, message, within=PATIENCE)


@contextmanager
def serving(product: Product) -> Iterator[Server]:
    """`iact serve`, which is ended as a person ends it unless it was killed."""
    with product.serving() as server:
        yield server
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE) == 0


def clearances(found: Sequence[Record], op: str) -> list[Record]:
    return [one for one in found if one.kind == "clearance" and one.text("op") == op]


def question(socket: ClientConnection, within: float = PATIENCE) -> dict[str, object]:
    """The next question to a person, as the page gets it."""
    end = time.monotonic() + within
    while True:
        frame = json.loads(socket.recv(timeout=max(0.0, end - time.monotonic())))
        if (frame.get("type"), frame.get("kind"), frame.get("op")) == ("record", "clearance", "ask"):
            return dict(frame)


def replied(product: Product) -> list[Record]:
    """The replies to the person."""
    return [record for record in records(product) if record.kind == "reply" and record.agent == "/"]


def answered(product: Product) -> Callable[[], bool]:
    return lambda: bool(replied(product))


def made(product: Product) -> bool:
    (journal,) = product.journals()
    return (journal.parent / "workspace" / "made").exists()


def files(product: Product) -> list[Path]:
    """What lies in the workspace of the only session."""
    (journal,) = product.journals()
    return list((journal.parent / "workspace").iterdir())


@pytest.mark.parametrize("allow", [True, False])
def test_a_person_at_the_page_answers(stage: Stage, allow: bool) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        socket.send(json.dumps({"type": "say", "text": "Make it."}))
        asked = question(socket)
        assert asked["function"] == "shell.run"
        assert asked["params"] == {"command": "touch made"}
        assert asked["provenance"] == {"command": ["model"]}
        assert asked["impact"] == 1
        assert "touch made" in str(asked["html"])
        comes(lambda: records(product)[-1].n >= int(str(asked["n"])), "the question on disk")
        assert not made(product)
        tell(socket, {"type": "clear", "call": asked["n"], "allow": allow})
        comes(answered(product), "the reply")
    assert made(product) == allow
    shown = product.run("gate", "explain", str(next(iter(product.journals()))), str(records(product)[-3].n))
    assert shown.status == 0
    assert ("allowed" if allow else "denied by clearance") in shown.stdout


def test_a_person_is_asked_once_for_a_command_in_other_clothes(stage: Stage) -> None:
    clothes = ["touch made", "touch  made  # please", "touch \\\n  made;"]
    commands = [f"```shell.run\n{command}\n```" for command in clothes]
    endpoint = stage.endpoint({"/": [*commands, "It can't be made.", MAKE, "Made."]})
    product = asking(stage.product(endpoint))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        socket.send(json.dumps({"type": "say", "text": "Make it."}))
        tell(socket, {"type": "clear", "call": question(socket)["n"], "allow": False})
        comes(answered(product), "the reply")
        assert len(clearances(records(product), "ask")) == 1
        assert not made(product)

        socket.send(json.dumps({"type": "say", "text": "I changed my mind: make it."}))
        tell(socket, {"type": "clear", "call": question(socket)["n"], "allow": True})
        comes(lambda: len(replied(product)) == 2, "the second reply")

    decided = [record for record in records(product) if record.kind == "gate"]
    assert [record.fields["allow"] for record in decided] == [False, False, True]
    assert decided[1].text("reason").endswith("You said no to this in this task.")
    first, *told = [request.last for request in endpoint.requests][:4]
    assert "did not complete" not in first
    assert all("shell.run did not complete." in text for text in told)
    assert not any("said no" in text for text in told)


def test_a_question_outlives_kills_and_an_answer_is_not_asked_for_again(stage: Stage) -> None:
    """Killed while the question stands open, and again right behind the answer."""
    endpoint = stage.endpoint({"/": [MAKE, "Over."]}, by_turn=True, crashes=True)
    product = asking(stage.product(endpoint))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        tell(socket, {"type": "say", "text": "Make it."})
        comes(lambda: bool(clearances(records(product), "ask")), "the question")
        kill(server.process)
    session = next(iter(product.journals())).parent.name
    (asked,) = clearances(records(product), "ask")
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": session})
        tell(socket, {"type": "clear", "call": asked.n, "allow": True})
        kill(server.process)
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": session})
        comes(answered(product), "the reply")
    found = records(product)
    assert len(clearances(found, "ask")) == len(clearances(found, "answer")) == 1
    statuses = [one.text("status") for one in found if one.kind == "result"]
    assert statuses in (["ok"], ["interrupted"])
    assert made(product) or statuses == ["interrupted"]


THREE = "\n".join(f"```shell.run\ntouch {name}\n```" for name in ("one", "two", "three"))


def test_many_calls_are_one_question_that_outlives_a_kill_and_is_answered_once(stage: Stage) -> None:
    """Through the product: three calls of a reply, a server that is killed while they wait, one answer, one by one too."""
    script = {"/": [THREE, "Over.", THREE.replace("touch ", "touch more-"), "Again."]}
    product = asking(stage.product(stage.endpoint(script, by_turn=True, crashes=True)))
    with serving(product) as server:
        with server.connect() as socket:
            tell(socket, {"type": "hello", "session": None})
            tell(socket, {"type": "say", "text": "Make them."})
            comes(lambda: len(clearances(records(product), "ask")) == 3, "three questions")
        kill(server.process)
    session = next(iter(product.journals())).parent.name
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": session})
        first, *also = (one.n for one in clearances(records(product), "ask"))
        tell(socket, {"type": "clear", "call": first, "also": also, "allow": True})
        comes(answered(product), "the reply")
        assert sorted(one.name for one in files(product)) == ["one", "three", "two"]
        assert len(clearances(records(product), "ask")) == 3
        said = [(one.number("ask"), one.text("by")) for one in clearances(records(product), "answer")]
        assert said == [(n, "user") for n in (first, *also)]
        # What comes later was not shown, so it is asked about; from the command line, two of three.
        tell(socket, {"type": "say", "text": "And more."})
        comes(lambda: len(clearances(records(product), "ask")) == 6, "three more")
        four, five, six = (str(one.n) for one in clearances(records(product), "ask")[3:])
        refused = product.agree("clear", "--session", session, four, str(first), "--allow")
        assert (refused.status, "are answered together" in refused.sentence) == (2, True)
        assert product.run("clear", "--session", session, five, "--deny").status == 0
        assert product.agree("clear", "--session", session, four, six, "--allow").status == 0
        comes(lambda: any(one.body == "Again." for one in records(product)), "the second reply")
    made_now = sorted(one.name for one in files(product))
    assert made_now == ["more-one", "more-three", "one", "three", "two"]
    assert product.run("replay", str(next(iter(product.journals()))), "--verify").status == 0


@pytest.mark.parametrize(
    ("typed", "names"),
    [(["y"], ["one", "three", "two"]), ([""], []), (["o", "y", "n", "y"], ["one", "three"])],
)
def test_a_person_at_the_terminal_answers_many_at_once(
    stage: Stage, typed: Sequence[str], names: Sequence[str]
) -> None:
    product = asking(stage.product(stage.endpoint({"/": [THREE, "Over."]})))
    shown, stdout = typing(product, typed, "Make them.")
    assert stdout == "Over.\n"
    assert [one.name for one in sorted(files(product))] == names
    assert "Allow them? [y]es to all 3, [o]ne by one, [N]o to all: " in shown
    assert all(f"command (from model): touch {name}" in shown for name in ("one", "two", "three"))


def typing(product: Product, typed: Sequence[str], *arguments: str) -> tuple[str, str]:
    """What `iact run` shows and prints for a person who reads all that is asked before each line that they type."""
    master, slave = pty.openpty()
    try:
        with Command(
            ["run", *arguments],
            env=product.environment, cwd=product.data.parent, stdin=slave, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                assert process.stderr is not None
                shown, number = "", process.stderr.fileno()
                for line in typed:
                    asked = ""
                    while not ("[N]o: " in asked or "to all: " in asked) or readable(number):
                        piece = os.read(number, 4096).decode()
                        assert piece, f"it ended without a question: {shown}{asked}"
                        asked += piece
                    shown += asked
                    os.write(master, f"{line}\n".encode())
                stdout, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
    finally:
        os.close(master)
        os.close(slave)
    return shown, stdout


def readable(descriptor: int) -> bool:
    """Whether more comes within a second: a person reads to the end before they answer."""
    return bool(select.select([descriptor], [], [], 1.0)[0])


def test_the_command_line_answers_and_locks_down(stage: Stage) -> None:
    script = {"/": [MAKE, "Over.", MAKE.replace("made", "more"), "Nothing."]}
    product = asking(stage.product(stage.endpoint(script)))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        tell(socket, {"type": "say", "text": "Make it."})
        comes(lambda: bool(clearances(records(product), "ask")), "the question")
        session = next(iter(product.journals())).parent.name
        (asked,) = clearances(records(product), "ask")
        ran = product.agree("clear", "--session", session, str(asked.n), "--allow", "--remember", "--json")
        assert ran.status == 0, ran
        assert json.loads(ran.stdout)["n"] > asked.n
        comes(answered(product), "the reply")
        again = product.run("clear", "--session", session, str(asked.n), "--deny")
        assert again.status == 2
        assert again.sentence == f"No call waits for an answer to record {asked.n}."
        assert product.run("lockdown", "--session", session).status == 0
        assert product.run("say", "--session", session, "--wait", "And more.").stdout == "Nothing.\n"
        gates = [one.text("by") for one in records(product) if one.kind == "gate"]
        assert gates == ["clearance", "lockdown"]
        assert product.run("lockdown", "--session", session, "--off").status == 0


@pytest.mark.parametrize(("typed", "allow"), [("y\n", True), ("\n", False)])
def test_a_person_at_the_terminal_answers(stage: Stage, typed: str, allow: bool) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    assert at_a_terminal(product, typed, "Make it.") == "Over.\n"
    assert made(product) == allow


def at_a_terminal(product: Product, typed: str, *arguments: str) -> str:
    """What `iact run` prints for a person who types an answer when asked about the call."""
    master, slave = pty.openpty()
    try:
        with Command(
            ["run", *arguments],
            env=product.environment, cwd=product.data.parent, stdin=slave, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                assert process.stderr is not None
                shown = ""
                while "[N]o: " not in shown:
                    piece = os.read(process.stderr.fileno(), 4096).decode()
                    assert piece, f"it ended without a question: {shown}"
                    shown += piece
                assert "command (from model): touch made" in shown
                os.write(master, typed.encode())
                stdout, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
    finally:
        os.close(master)
        os.close(slave)
    return stdout


def test_a_question_of_an_earlier_run_is_put_to_the_person_at_the_terminal(stage: Stage) -> None:
    """What was under way is finished and answered first; then comes the message, with an answer of its own."""
    endpoint = stage.endpoint({"/": [MAKE, "Over.", "Nothing more."]}, by_turn=True, crashes=True)
    product = asking(stage.product(endpoint))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        tell(socket, {"type": "say", "text": "Make it."})
        comes(lambda: bool(clearances(records(product), "ask")), "the question")
        kill(server.process)
    session = next(iter(product.journals())).parent.name
    stdout = at_a_terminal(product, "y\n", "--session", session, "And now?")
    assert stdout == "Nothing more.\n"
    assert made(product)


def test_if_no_person_answers_the_time_runs_out(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]}), IACT_CLEARANCE_SECONDS="0.1"))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None})
        tell(socket, {"type": "say", "text": "Make it."})
        comes(answered(product), "the reply")
    (late,) = clearances(records(product), "answer")
    assert (late.fields["allow"], late.text("by")) == (False, "time")
    assert not made(product)


NOBODY = """
[[scope.default.nobody]]
function = "shell.run"
then = "allow"
parameter = "timeout"
below = 300.0
otherwise = "hold"
[[scope.default.nobody]]
function = "shell.jobs"
then = "deny"
"""


def test_with_nobody_to_ask_the_policy_denies_allows_a_little_and_holds_the_rest(stage: Stage) -> None:
    """In a pipe: what is denied ends at once as any failure does, what is held survives the process."""
    small, large = (
        f"```shell.run timeout={seconds}\ntouch {name}\n```"
        for seconds, name in ((200, "small"), (100, "made"))
    )
    script = {"/": ["```shell.jobs\n```", small, large, "Over."]}
    endpoint = stage.endpoint(script, by_turn=True, crashes=True)
    product = asking(stage.product(endpoint))
    (product.data / "policy.toml").write_text(ASKS + NOBODY, encoding="utf-8")
    ran = product.run("run", "--json", "Make it.")
    assert ran.status == 3, ran
    report = json.loads(ran.stdout)
    (held,) = report["held"]
    assert (report["status"], held["arguments"]["command"]) == ("held", "touch made")
    found = records(product)
    said = [(one.text("function"), one.fields["allow"]) for one in clearances(found, "answer")]
    assert said == [("shell.jobs", False), ("shell.run", True)]
    seen = [str(one.messages) for one in endpoint.requests]
    assert "shell.jobs did not complete." in seen[1]
    assert not any("nobody is there" in one.lower() for one in seen)
    assert not made(product)
    (row,) = json.loads(product.run("session", "list", "--json").stdout)
    assert (row["state"], row["what"]) == ("waits", "shell.run")
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": report["session"]})
        cleared = product.agree("clear", "--session", report["session"], str(held["record"]), "--allow")
        assert cleared.status == 0, cleared
        comes(answered(product), "the reply")
    assert made(product)


# --- an endpoint --------------------------------------------------------------------------------------


@dataclass
class Authority:
    """An HTTP endpoint that answers with `body` and notes what it was asked. `redirect`: to where instead."""

    body: str = '{"allow": true}'
    status: int = 200
    redirect: str = ""
    hold: threading.Event | None = None
    asked: list[object] = field(default_factory=list)
    url: str = ""

    @contextmanager
    def serving(self) -> Iterator[Authority]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                outer.asked.append(json.loads(self.rfile.read(length)))
                if outer.hold is not None:
                    outer.hold.wait(300)
                try:
                    self.send_response(307 if outer.redirect else outer.status)
                    if outer.redirect:
                        self.send_header("Location", outer.redirect)
                    self.send_header("Content-Length", str(len(outer.body)))
                    self.end_headers()
                    self.wfile.write(outer.body.encode())
                except OSError:
                    return  # who asked has given up

            def log_message(self, format: str, *args: object) -> None:
                return None

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/clear"
        try:
            yield self
        finally:
            if self.hold is not None:
                self.hold.set()
            server.shutdown()
            thread.join()
            server.server_close()


def at(url: str) -> dict[str, str]:
    """Settings for an endpoint that may take its time, however busy the machine is."""
    return {"IACT_CLEARANCE_URL": url, "IACT_CLEARANCE_URL_SECONDS": "120"}


def test_an_endpoint_says_yes(stage: Stage) -> None:
    with Authority().serving() as authority:
        product = stage.product(stage.endpoint({"/": [MAKE, "Over."]}), **at(authority.url))
        answer = product.ask("Make it.")
    assert made(product)
    assert authority.asked == [
        {"function": "shell.run", "params": {"command": "touch made"}, "user": "local", "session": answer.session,
         "agent": "/"}
    ]  # fmt: skip
    assert [one.text("by") for one in clearances(answer.records, "answer")] == ["endpoint"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ('{"allow": false, "reason": "not on a Sunday"}', 200, "not on a Sunday"),
        ('{"allow": "true"}', 200, "no `allow`"),
        ('{"allow": false, "allow": true}', 200, "not JSON"),
        ("yes", 200, "not JSON"),
        ('{"allow": true}', 500, "status 500"),
        ('{"allow": true, "x": "%s"}' % ("x" * 70_000), 200, "longer than"),
    ],
)
def test_an_endpoint_that_says_no_or_nonsense(stage: Stage, body: str, status: int, said: str) -> None:
    with Authority(body, status).serving() as authority:
        product = stage.product(stage.endpoint({"/": [MAKE, "Over."]}), **at(authority.url))
        assert said in denial(product)


def test_an_endpoint_that_redirects_is_not_followed(stage: Stage) -> None:
    with Authority().serving() as other, Authority(redirect=other.url).serving() as authority:
        product = stage.product(stage.endpoint({"/": [MAKE, "Over."]}), **at(authority.url))
        assert "status 307" in denial(product)
        assert other.asked == []


def test_an_endpoint_that_is_slow(stage: Stage) -> None:
    with Authority(hold=threading.Event()).serving() as authority:
        product = stage.product(stage.endpoint({"/": [MAKE, "Over."]}), IACT_CLEARANCE_URL=authority.url)
        assert "did not answer within 2 s" in denial(product)


def test_an_endpoint_that_is_not_there(stage: Stage) -> None:
    with Authority().serving() as authority:
        gone = authority.url
    product = stage.product(stage.endpoint({"/": [MAKE, "Over."]}), **at(gone))
    assert "can't be reached" in denial(product)


def denial(product: Product) -> str:
    """Ask for a call that is denied; why, as only the journal says."""
    answer = product.ask("Make it.")
    assert not made(product)
    (gate,) = [one for one in answer.records if one.kind == "gate"]
    assert (gate.fields["allow"], gate.text("by")) == (False, "clearance")
    assert [one.text("status") for one in answer.records if one.kind == "result"] == ["incomplete"]
    return gate.text("reason")


def test_a_scope_that_is_not_there_is_refused_at_once(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({})))
    for command in (["run", "--scope", "office", "Go."], ["serve", "--scope", "office"]):
        ran = product.run(*command)
        assert ran.status == 2
        assert ran.sentence == "There is no scope 'office'; there are default."


def test_a_policy_file_that_is_wrong_is_refused_with_its_place(stage: Stage) -> None:
    product = stage.product(stage.endpoint({}))
    (product.data / "policy.toml").write_text("[scope.default]\nfunctions = 1\n")
    ran = product.run("run", "Go.")
    assert ran.status == 2
    assert "scope.default.functions" in ran.sentence
