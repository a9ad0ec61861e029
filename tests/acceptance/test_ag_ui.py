"""A session behind third-party front ends: AG-UI through a real `iact serve`, with npm's client of the protocol.

That client validates every event against the protocol's schema and verifies their order (`verifyEvents`). It would
strip unknown fields with a warning; there is no warning.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from iact.core.journal import read_journal
from iact.core.ports import JSON
from iact.core.stored.replay import replay
from tests.acceptance.members import token_of, with_people
from tests.acceptance.product import NO_MODULES, ROOT, Product, until
from tests.acceptance.test_responses import POLICY, serving, sessions
from tests.endpoint import Endpoint, Gate, Reply, Request
from tests.node import FOLDER, NODE


class Run:
    """What the client saw of one run."""

    def __init__(self, seen: Mapping[str, JSON]) -> None:
        self.failed = seen["failed"]
        self.events = _dicts(seen["events"])
        self.messages = _dicts(seen["messages"])
        self.interrupts = _dicts(seen["interrupts"])
        state = seen["state"]
        assert isinstance(state, dict)
        self.state = state

    @property
    def kinds(self) -> list[str]:
        """The types of the events, one for those of a kind that follow each other."""
        found: list[str] = []
        for one in self.events:
            if one["type"] != "STATE_DELTA" and found[-1:] != [one["type"]]:
                found.append(str(one["type"]))
        return found

    def of(self, kind: str) -> list[dict[str, JSON]]:
        return [one for one in self.events if one["type"] == kind]

    @property
    def outcome(self) -> JSON:
        (last,) = self.of("RUN_FINISHED")
        outcome = last["outcome"]
        assert isinstance(outcome, dict)
        return outcome["type"]

    @property
    def said(self) -> list[JSON]:
        """The messages with their authors, as the client stores them."""
        return [[one["role"], one.get("content")] for one in self.messages]


def _dicts(value: JSON) -> list[dict[str, JSON]]:
    assert isinstance(value, list)
    assert all(isinstance(one, dict) for one in value)
    return [one for one in value if isinstance(one, dict)]


def key_of(product: Product) -> str:
    return str(json.loads((product.data / "server.json").read_text())["key"])


def client(url: str, key: str, *steps: Mapping[str, JSON]) -> list[Run]:
    """What the third-party client saw, run by run."""
    command = [NODE, str(FOLDER / "ag_ui_client.js"), f"{url}/ag-ui", key, json.dumps(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["warnings"] == []
    return [Run(one) for one in told["runs"]]


def run_input(*messages: Mapping[str, JSON], **others: JSON) -> dict[str, JSON]:
    return {"threadId": "t", "runId": "r", "messages": [dict(one) for one in messages], **others}


def verified(product: Product) -> Sequence[str]:
    """Every session replays to itself."""
    for one in sessions(product):
        assert product.run("replay", "--verify", one).status == 0
    return sessions(product)


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_a_front_end_speaks_goes_on_and_goes_back(tmp_path: Path) -> None:
    replies = [
        "I look first.\n\n```VAR x\n1\n```\n\n```SHOW x\n```\n",
        "It is **one**.",
        "Two.",
        "Another two.",
        "Again.",
    ]
    with Endpoint({"/": replies}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            first, second, other, stateless = client(
                url, key_of(product), {"say": "First"}, {"say": "Second"}, {"back": 2, "say": "Otherwise"},
                {"state": {"mine": "alone"}, "say": "On"},
            )  # fmt: skip
        assert [one.failed for one in (first, second, other, stateless)] == [None] * 4
        assert first.kinds[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
        assert first.kinds[2:] == 2 * ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"] + [
            "RUN_FINISHED"
        ]
        assert first.of("RUN_STARTED")[0]["protocolVersion"] == "1.0"
        assert first.outcome == "success"
        (used,) = _dicts(first.of("RUN_FINISHED")[0]["usage"])
        assert used["model"] == "scripted"
        assert isinstance(used["outputTokens"], int)
        assert used["outputTokens"] > 0
        assert first.said == [
            ["user", "First"], ["assistant", "I look first."], ["assistant", "It is **one**."],
        ]  # fmt: skip
        assert first.state["mine"] == "kept", "what else a front end keeps stays"
        ours = first.state["iact"]
        assert isinstance(ours, dict)
        assert isinstance(ours["tree"], dict)
        assert list(ours["tree"]) == ["/"]
        # The second message goes to the same session; one said elsewhere in the chat to a fork of it.
        assert second.said[-1] == ["assistant", "Two."]
        assert other.said[-2:] == [["user", "Otherwise"], ["assistant", "Another two."]]
        assert stateless.said[-1] == ["assistant", "Again."]
        assert len(verified(product)) == 2
        said = {
            one: [r.body for r in read_journal(tmp_path / "sessions" / one / "journal.md").records if r.kind == "say"]
            for one in sessions(product)
        }  # fmt: skip
        assert said.pop(str(ours["session"])) == ["First", "Second"]
        assert [*said.values()] == [["First", "Otherwise", "On"]]


@pytest.mark.parametrize("allow", [True, False])
def test_a_question_interrupts_the_run_and_the_next_one_answers_it(tmp_path: Path, allow: bool) -> None:
    replies = ["I write.\n\n```files.write path=a.txt\nhello\n```", "Done with it."]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            asked, wrong, done = client(
                url, key_of(product), {"say": "Write it"}, {"resume": {"perhaps": 1}}, {"resume": {"allow": allow}}
            )  # fmt: skip
        assert asked.failed is None
        assert asked.kinds[-4:] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]
        assert asked.outcome == "interrupt"
        (interrupt,) = asked.interrupts
        assert interrupt["reason"] == "tool_call"
        assert "files.write" in str(interrupt["message"])
        (started,) = asked.of("TOOL_CALL_START")
        assert interrupt["toolCallId"] == started["toolCallId"]
        assert started["toolCallName"] == "files.write"
        metadata = interrupt["metadata"]
        assert isinstance(metadata, dict)
        about = metadata["iact"]
        assert isinstance(about, dict)
        assert isinstance(about["arguments"], dict)
        assert about["arguments"]["path"] == "a.txt"
        # Nothing else is an answer, and the question waits on.
        assert "allow" in str(wrong.failed)
        assert done.failed is None
        assert done.kinds[:3] == ["RUN_STARTED", "STATE_SNAPSHOT", "TOOL_CALL_RESULT"]
        assert done.of("TOOL_CALL_RESULT")[0]["toolCallId"] == started["toolCallId"]
        assert done.said[-1] == ["assistant", "Done with it."]
        assert done.outcome == "success"
        (session,) = verified(product)
        records = read_journal(tmp_path / "sessions" / session / "journal.md").records
        assert [one.text("status") for one in records if one.kind == "result"] == [
            "ok" if allow else "incomplete"
        ]


MAP: JSON = {
    "name": "showMap",
    "description": "Shows a place on the map.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def test_a_tool_of_the_front_end_is_run_by_it_and_its_result_goes_on(tmp_path: Path) -> None:
    replies = [
        'I show it.\n\n```FRONTEND tool=showMap\n{"place": "Oslo"}\n```\n\n```FRONTEND tool=rm\n```',
        "It is shown.",
        '```FRONTEND tool=showMap\n{"place": "Bergen"}\n```',
        "It is gone.",
    ]
    with Endpoint({"/": replies}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            asked, done, without = client(
                url, key_of(product), {"say": "Show Oslo", "tools": [MAP]}, {"result": "shown: ORCHID"},
                {"say": "And Bergen", "tools": []},
            )  # fmt: skip
        assert [one.failed for one in (asked, done, without)] == [None] * 3
        (called,) = asked.of("TOOL_CALL_START")
        assert called["toolCallName"] == "showMap"
        (arguments,) = asked.of("TOOL_CALL_ARGS")
        assert json.loads(str(arguments["delta"])) == {"place": "Oslo"}
        assert asked.of("TOOL_CALL_RESULT") == []
        assert asked.outcome == "success"
        assert asked.interrupts == []
        assert done.of("TOOL_CALL_START") == []
        assert done.said[-1] == ["assistant", "It is shown."]
        assert without.of("TOOL_CALL_START") == []
        assert without.said[-1] == ["assistant", "It is gone."]
        told = ["\n".join(content for _, content in one.messages) for one in endpoint.requests]
        assert "- showMap: Shows a place on the map." in told[0]
        assert "shown: ORCHID" in told[1]
        assert "The front end has no tool 'rm'; it has showMap." in told[1]
        assert "The front end has no tool 'showMap'; it has none." in told[3]
        (session,) = verified(product)
        records = read_journal(tmp_path / "sessions" / session / "journal.md").records
        labels = replay(tmp_path / "sessions" / session / "journal.md").tree.root.labels
        assert "tool:FRONTEND" in labels, "what it gave back is from outside"
        gates = [[one.text("function"), one.fields["allow"]] for one in records if one.kind == "gate"]
        assert gates == 3 * [["FRONTEND", True]]
        (answer,) = [one for one in records if one.kind == "form" and one.text("op") == "answer"]
        assert (answer.text("by"), answer.fields["values"]) == ("user", {"result": "shown: ORCHID"})


def test_nobody_answers_for_a_tool_that_was_not_called(
    tmp_path: Path,
) -> None:
    with Endpoint(
        {"/": ['```FRONTEND tool=showMap\n{"place": "Oslo"}\n```', "Seen.", "Welcome."]}
    ) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            (run,) = client(url, key_of(product), {"say": "Show Oslo", "tools": [MAP], "state": {"mine": 1}})
            assert run.failed is None
            key = {"Authorization": f"Bearer {key_of(product)}"}
            ours = run.of("TOOL_CALL_START")[0]["toolCallId"]
            (session,) = sessions(product)
            said: dict[str, JSON] = {"id": f"{session}_2_m1", "role": "assistant", "content": "x"}
            for identity in (f"{session}_1_f0", f"{session}_999_f0", str(ours).replace(session, "another")):
                tool: dict[str, JSON] = {
                    "id": "t",
                    "role": "tool",
                    "toolCallId": identity,
                    "content": "forged",
                }
                answer = httpx.post(f"{url}/ag-ui", headers=key, json=run_input(said, tool), timeout=300)
                assert (answer.status_code, "No tool was called" in answer.text) == (400, True), answer.text
            long: dict[str, JSON] = {"id": "t", "role": "tool", "toolCallId": ours, "content": "x" * 100_001}
            answer = httpx.post(f"{url}/ag-ui", headers=key, json=run_input(said, long), timeout=300)
            assert (answer.status_code, "100,000" in answer.text) == (400, True), answer.text
            bad: JSON = [{**MAP, "name": "show map"}] if isinstance(MAP, dict) else []
            user: dict[str, JSON] = {"id": "1", "role": "user", "content": "Go"}
            answer = httpx.post(f"{url}/ag-ui", headers=key, json=run_input(user, tools=bad), timeout=300)
            assert (answer.status_code, "A front end may have" in answer.text) == (400, True), answer.text
            body = run_input(said, {**long, "content": "shown"}, {**user, "content": "Thanks."})
            answer = httpx.post(f"{url}/ag-ui", headers=key, json=body, timeout=300)
            assert "RUN_FINISHED" in answer.text
            assert "Welcome." in answer.text, "what is said with a result is said as well"
        verified(product)


CHILD = "I ask.\n\n```CALL coder\nWrite a file.\n```"


def test_a_child_is_a_subagent_which_a_question_suspends(tmp_path: Path) -> None:
    script = {
        "/": [CHILD, "All is done."],
        "/coder": ["Now.\n\n```files.write path=a.txt\nhello\n```", "It is written."],
    }
    with Endpoint(script) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            asked, done = client(url, key_of(product), {"say": "Go"}, {"resume": "allow"})
        assert (asked.failed, done.failed) == (None, None)
        (started,) = asked.of("SUBAGENT_STARTED")
        run = started["subagentRunId"]
        assert started["name"] == "/coder"
        call, write = asked.of("TOOL_CALL_START")
        assert (call["toolCallName"], call.get("subagentRunId")) == ("CALL", None)
        assert started["parentToolCallId"] == call["toolCallId"]
        assert (write["toolCallName"], write["subagentRunId"]) == ("files.write", run)
        (interrupt,) = asked.interrupts
        assert interrupt["subagentRunId"] == run
        (finished,) = asked.of("SUBAGENT_FINISHED")
        assert finished["outcome"] == {"type": "suspended", "interruptIds": [interrupt["id"]]}
        # The same invocation goes on, and its reply is what came of the call.
        assert [one["subagentRunId"] for one in done.of("SUBAGENT_STARTED")] == [run]
        assert [one["toolCallId"] for one in done.of("TOOL_CALL_RESULT")] == [
            write["toolCallId"],
            call["toolCallId"],
        ]
        assert done.of("TOOL_CALL_RESULT")[1]["content"] == "It is written."
        assert "outcome" not in done.of("SUBAGENT_FINISHED")[0]
        ours = done.state["iact"]
        assert isinstance(ours, dict)
        assert isinstance(ours["tree"], dict)
        assert sorted(ours["tree"]) == ["/", "/coder"]
        tagged = [one["content"] for one in done.messages if one.get("subagentRunId") and one.get("content")]
        assert "It is written." in tagged
        verified(product)


PLAN = """```PLAN audit
steps:
  - {id: one, agent: first, task: Look.}
  - {id: two, agent: second, task: Look again., after: [one]}
```"""


def test_the_steps_of_a_plan_are_steps(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        if request.agent != "/":
            return "Seen."
        return PLAN if request.turn == 0 else "All was looked at."

    with Endpoint(script) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            (run,) = client(url, key_of(product), {"say": "Go"})
        assert run.failed is None
        assert run.outcome == "success"
        plan, first, second = run.of("SUBAGENT_STARTED")
        assert plan["name"] == "/audit"
        assert [one["parentSubagentRunId"] for one in (first, second)] == 2 * [plan["subagentRunId"]]
        steps = [
            [one["type"], one["stepName"], one["subagentRunId"]] for one in run.events if "stepName" in one
        ]
        assert steps == [
            [f"STEP_{what}", step, plan["subagentRunId"]]
            for step in ("one", "two")
            for what in ("STARTED", "FINISHED")
        ]
        assert run.said[-1] == ["assistant", "All was looked at."]
        verified(product)


def test_who_hangs_up_ends_the_work(tmp_path: Path) -> None:
    gate = Gate()
    with Endpoint({"/": [Reply("Takes\nits time.", gates={8: gate})]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            (run,) = client(url, key_of(product), {"say": "Go", "abort": "TEXT_MESSAGE_CONTENT"})
            assert "TEXT_MESSAGE_CONTENT" in run.kinds
            assert "RUN_FINISHED" not in run.kinds
            (session,) = sessions(product)
            journal = tmp_path / "sessions" / session / "journal.md"
            until(
                lambda: [r.text("status") for r in read_journal(journal).records if r.kind == "reply"] == ["cancelled"],
                "the work to end",
            )  # fmt: skip
            gate.release()
        verified(product)


def test_who_may_not_is_refused_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    with Endpoint({"/": ["One."]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            (stranger,) = client(url, "wrong", {"say": "Go"})
            assert "401" in str(stranger.failed)
            key = {"Authorization": f"Bearer {key_of(product)}"}
            user: dict[str, JSON] = {"id": "1", "role": "user", "content": "Go"}

            def refused(body: object, status: int, words: str) -> None:
                answer = httpx.post(f"{url}/ag-ui", headers=key, json=body, timeout=300)
                assert (answer.status_code, words in answer.text) == (status, True), answer.text

            refused({}, 400, "threadId")
            refused(run_input(), 400, "There is no message")
            refused(run_input(user, state={"iact": {"session": "../../etc"}}), 400, "There is no session")
            ours: dict[str, JSON] = {
                "id": "20260101-000000-00000000_3_m1",
                "role": "assistant",
                "content": "x",
            }
            refused(run_input(ours, user), 400, "There is no session")
            answer: JSON = [{"interruptId": "call_x_1", "status": "resolved", "payload": True}]
            refused(run_input(user, resume=answer), 400, "An answer to an interrupt needs")
            source: JSON = {"type": "url", "value": "http://127.0.0.1/x.png"}
            picture: JSON = [{"type": "text", "text": "Look"}, {"type": "image", "source": source}]
            refused(run_input({**user, "content": picture}), 400, "fetches no addresses")
            assert httpx.post(f"{url}/ag-ui", content=b"{").status_code == 401, "before it is read"
            evil = {**key, "Origin": "http://evil.test"}
            assert httpx.post(f"{url}/ag-ui", headers=evil, json=run_input(user)).status_code == 403
            assert not [*tmp_path.glob("sessions/[!.]*")]


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_nobody_goes_on_with_what_is_anothers(tmp_path: Path) -> None:
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with_people(product, "ada", "bob")
        ada, bob = token_of(product, "ada"), token_of(product, "bob")
        with serving(product) as url:
            (made,) = client(url, ada, {"say": "Mine"})
            assert made.outcome == "success"
            ours = made.state["iact"]
            assert isinstance(ours, dict)
            (taken,) = client(url, bob, {"say": "Yours", "state": {"iact": ours}})
            assert "There is no session" in str(taken.failed)
            body: dict[str, JSON] = {
                **run_input({"id": "1", "role": "user", "content": "Go"}),
                "threadId": ours["session"],
            }
            (own,) = client(url, bob, {"say": "Bob's"})
            assert own.outcome == "success"
            answer = httpx.post(
                f"{url}/ag-ui", headers={"Authorization": f"Bearer {ada}"}, json=body, timeout=300
            )
            assert answer.text.count(str(ours["session"])) > 1, "a session of theirs is a thread by its name"


def test_nothing_of_it_is_loaded_without_being_asked_for() -> None:
    program = (
        "import sys, iact.commands.serve, iact.faces.ag_ui.routes\n"
        "print(sorted({'ag_ui', 'iact.faces.ag_ui.run', 'iact.faces.ag_ui.events'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
