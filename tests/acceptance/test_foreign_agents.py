"""Third-party agents, asked from a session: real servers of the official SDK, reached through the real proxy.

A question to them leaves the system, so it needs an intent that allows this and a host that a person allowed. Their
answers are untrusted.
"""

from __future__ import annotations

import re

import pytest

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, acknowledged, kill
from tests.acceptance.test_clearance import comes, records, serving, tell
from tests.acceptance.test_hosts import hosts, question
from tests.endpoint import Request
from tests.foreign_agents import AGENT, FLOOD, HOSTS, LIAR, MOVED, PLAIN, Server, foreign_agents

TRUSTING = '[scope.default]\nfunctions = ["*"]\ntrusted = ["tool:a2a.*"]\n'
"""Lets one agent ask several times although it has read answers: the wire is looked at here, not the gate."""


def leads(product: Product, server: Server, policy: str = "") -> Product:
    """Lets the names of the foreign agents lead to their server."""
    rows = "\n".join(f'"{name}:80" = "{server.address}"' for name in HOSTS)
    (product.data / "iact.toml").write_text(f"[inside]\n{rows}\n", encoding="utf-8")
    if policy:
        (product.data / "policy.toml").write_text(policy, encoding="utf-8")
    return product


def ask(text: str, host: str = AGENT, more: str = "") -> str:
    return f"```a2a.ask at=http://{host} {more}\n{text}\n```"


def call(text: str, name: str = "trains", more: str = "") -> str:
    return f"```CALL {name} {more}\n{text}\n```"


def at(host: str = AGENT) -> str:
    return f"at=http://{host}"


def results(found: list[Record]) -> list[Record]:
    return [one for one in found if one.kind == "result"]


def told(request: Request, pattern: str) -> str:
    """What the newest of the messages to the model has that matches."""
    return str(re.findall(pattern, "\n".join(text for _, text in request.messages))[-1])


class Caller:
    """A model that asks one thing after another, and answers what it is asked."""

    def __init__(self, *calls: str) -> None:
        self._calls = list(calls)

    def __call__(self, request: Request) -> str:
        call = self._calls[request.turn] if request.turn < len(self._calls) else "Over."
        if "{task}" in call:
            call = call.replace("{task}", told(request, r"task=([0-9a-f-]{36})"))
        if "{context}" in call:
            call = call.replace("{context}", told(request, r"context=([0-9a-f-]{36})"))
        return call


def test_agents_elsewhere_are_asked_answered_and_believed_nothing(stage: Stage) -> None:
    """Messages, streams, questions, agents without streams, and servers that lie, in one session."""
    calls = [
        f"```a2a.card at=http://{AGENT}\n```",
        ask("greet"),
        ask("count"),
        ask("count", PLAIN),
        ask("book a train"),
        f"```a2a.answer at=http://{AGENT} task={{task}}\nMonday\n```",
        ask("book another", more="context={context}"),
        ask("fail"),
        ask("hang", more="timeout=2"),
        ask("hang", PLAIN, more="timeout=2"),
        ask("talk on and on"),
        ask("greet", MOVED),
        ask("greet", LIAR),
        ask("greet", FLOOD),
        f"```a2a.answer at=http://{AGENT} task=unknown\nMonday\n```",
    ]
    with foreign_agents() as server:
        product = leads(stage.product(stage.endpoint(Caller(*calls))), server, TRUSTING)
        assert product.run("secret", "set", "A2A_TOKENS", stdin=f"{AGENT} not-for-the-wire").status == 0
        assert product.run("module", "allow", "a2a", *HOSTS).status == 0
        answer = product.ask("Ask around", "--intent", "2")
        found = results(answer.records)
        said = [one.body for one in found]
        assert [one.text("status") for one in found] == ["ok"] * 7 + ["error"] * 8, said
        (card, greeted, counted, plain, asked, booked, again, failed, *rest) = said
        assert "Timetable" in card
        assert "Books a train." in card
        assert "Hello from afar." in greeted
        assert "One, two, three." in counted
        assert "One, two, three." in plain
        assert "For which day?" in asked
        assert "a2a.answer at=http://agent.test task=" in asked
        assert "Booked for Monday." in booked
        assert "For which day?" in again
        assert "There are no trains." in failed
        hung, waited, flooded, moved, lied, endless, unknown = rest
        assert "not done within 2 s; its task was cancelled" in hung
        assert "not done within 2 s; its task was cancelled" in waited
        assert "sent more than 8 MiB" in flooded
        assert len(flooded) < 10_000
        assert "redirects to 'http://127.0.0.1" in moved
        assert "names http://agent.test/rpc" in lied
        assert "sent more than 8 MiB" in endless
        assert "refuses" in unknown
        assert server.led_here == []
        assert set(server.tokens) == {""}, "a token is for encrypted connections alone"
        assert len(server.stopped) == 3, "both that hung, and the one that talked on"
        assert server.heard.count("greet") == 1
    assert product.run("replay", str(answer.journal), "--verify").status == 0
    assert not any("not-for-the-wire" in one.read_text() for one in product.journals())


def test_what_an_agent_elsewhere_said_makes_no_effect_and_low_intents_ask_nobody(stage: Stage) -> None:
    """Under the policy that everybody has: the second question would pass on what the first was told."""
    with foreign_agents() as server:
        script = stage.endpoint(Caller(ask("greet"), ask("book it")))
        product = leads(stage.product(script, IACT_CLEARANCE_SECONDS="0.05"), server)
        product.run("module", "allow", "a2a", AGENT)
        answer = product.ask("Ask around", "--intent", "2")
        first, second = results(answer.records)
        assert "Hello from afar." in first.body
        assert second.text("status") == "incomplete"
        assert server.heard == ["greet"]
        (gate,) = [one for one in answer.records if one.kind == "gate" and not one.fields["allow"]]
        why = product.run("gate", "explain", answer.session, str(gate.n)).stdout
        assert "tool:a2a.ask" in why

        low = leads(stage.product(stage.endpoint(Caller(ask("greet")))), server)
        low.run("module", "allow", "a2a", AGENT)
        (denied,) = results(low.ask("Ask around", "--intent", "1").records)
        assert denied.text("status") == "incomplete"
        assert server.heard == ["greet"]


@pytest.mark.parametrize("hang", [ask("hang", PLAIN), call("hang", more=at(PLAIN))])
def test_a_person_allows_an_agents_host_in_place_and_a_cancelled_call_cancels_its_task(
    stage: Stage, hang: str
) -> None:
    calls = Caller(ask("greet"), hang, "Over.")
    with foreign_agents() as server:
        product = leads(stage.product(stage.endpoint(calls)), server, TRUSTING)
        with serving(product) as served, served.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "intent", "value": 2})
            tell(socket, {"type": "say", "text": "Ask around"})
            asked = question(socket)
            assert (server.heard, server.tokens) == ([], []), "nothing is reached before somebody says yes"
            tell(socket, {"type": "clear", "call": asked, "allow": False})
            tell(socket, {"type": "clear", "call": question(socket), "allow": True, "for": "session"})
            assert server.hanging.wait(300)
            tell(socket, {"type": "cancel", "path": "/"})
            comes(lambda: len(server.stopped) == 1, "the task is cancelled")
        refused = results(records(product))[0]
        assert "can't be reached from here." in refused.body
        assert server.heard == ["hang"]
        assert [one.text("host") for one in hosts(product, "reach")] == [PLAIN]
    (journal,) = product.journals()
    assert product.run("replay", str(journal), "--verify").status == 0


def test_a_call_opens_a_dialogue_with_an_agent_elsewhere_that_asks_and_is_answered(stage: Stage) -> None:
    """As with a child: a question is a message, the next CALL answers it, and the one after that goes on."""
    calls = [
        call("book a train", more=at()),
        call("Monday"),
        call("book another"),
        call("Tuesday", more=at()),
        call("greet", name="other", more=at(PLAIN)),
        call("fail", name="other"),
        call("echo ```python\nprint(1)\n```", name="other").replace("```CALL", "````CALL") + "`",
    ]
    with foreign_agents() as server:
        endpoint = stage.endpoint(Caller(*calls))
        product = leads(stage.product(endpoint), server, TRUSTING)
        assert product.run("module", "allow", "a2a", AGENT, PLAIN).status == 0
        answer = product.ask("Ask a partner elsewhere with a2a.ask", "--intent", "2")
        found = results(answer.records)
        assert [one.text("status") for one in found] == ["ok"] * 5 + ["error", "ok"], [
            one.body for one in found
        ]
        functions = ["ask", "answer", "ask", "answer", "ask", "ask", "ask"]
        assert [one.text("function") for one in found] == [f"a2a.{one}" for one in functions]
        assert server.heard[:5] == ["book a train", "Monday", "book another", "Tuesday", "greet"]
        assert len({*server.contexts[:4]}) == 1, "one conversation"
        assert server.contexts[4] not in server.contexts[:4]
    turns = {one.turn: one for one in endpoint.requests}
    first = turns[0].messages[-1][1]
    assert "CALL trains at=https://agents.example.org" in first, (
        "the documentation that fits the task tells of it"
    )
    question = turns[1].messages[-1][1]
    assert "Message from trains, an agent elsewhere at http://agent.test, kept as $trains_1:" in question
    assert "For which day?" in question
    assert "It waits for your answer: CALL trains" in question
    assert "a2a.answer" not in question
    booked = turns[2].messages[-1][1]
    assert "kept as $trains_2" in booked
    assert "Booked for Monday." in booked
    assert "It waits" not in booked
    assert "Error of `CALL`" in turns[6].messages[-1][1]
    assert "$code_1" in "".join(text for _, text in turns[7].messages), (
        "code in a message is kept, as a child's is"
    )
    assert {one.agent for one in answer.records} == {"/"}, "no child of ours"
    assert product.run("replay", str(answer.journal), "--verify").status == 0


def test_a_call_that_no_agent_elsewhere_can_get_says_why_and_reaches_nobody(stage: Stage) -> None:
    calls = [
        "```VAR report\nAll is well.\n```\n\n" + call("Read $report", more=at()),
        call("greet", more=f'{at()} role="a clerk"'),
        "```CALL_ASYNC trains at=http://agent.test\ngreet\n```",
        call("Do your part.", name="helper"),
        call("greet", name="helper", more=at()),
        call("greet", more="at=http://agent.test/" + "x" * 2000),
        call("greet", more=at()),
        "```CALL_ASYNC trains\ngreet\n```",
    ]
    caller = Caller(*calls)
    with foreign_agents() as server:
        endpoint = stage.endpoint(lambda request: "Done." if request.agent == "/helper" else caller(request))
        product = leads(stage.product(endpoint), server, TRUSTING)
        assert product.run("module", "allow", "a2a", AGENT).status == 0
        ran = product.run("run", "--json", "--intent", "2", "Ask the agents elsewhere")
        assert "secret" not in ran.stderr, (
            "it works without the tokens, and nobody is told that there are none"
        )
        assert server.heard == ["greet"]
    told = {one.turn: one.messages[-1][1] for one in endpoint.requests if one.agent == "/"}
    assert "gets no variables, and your message names $report" in told[1]
    assert "an agent elsewhere takes no `role`" in told[2]
    assert "`CALL_ASYNC trains` was not run: it has no parameter `at`" in told[3]
    assert "helper is a child of yours already" in told[5]
    assert "an address has at most 2,000 characters" in told[6]
    assert "Hello from afar." in told[7]
    assert "`CALL_ASYNC` was not run: trains is an agent elsewhere; use CALL for it." in told[8]


def test_the_gate_decides_about_a_dialogue_elsewhere_as_about_any_call(stage: Stage) -> None:
    """The intent, the scope, and what the agent has read; denied ends as unreachable does."""
    asks = Caller(call("greet", more=at()), call("greet", more=at()))
    with foreign_agents() as server:
        low = leads(stage.product(stage.endpoint(asks)), server)
        low.run("module", "allow", "a2a", AGENT)
        answer = low.ask("Ask the agents elsewhere", "--intent", "1")
        tried = results(answer.records)
        assert [(one.text("status"), one.text("function")) for one in tried] == [
            ("incomplete", "a2a.ask")
        ] * 2
        assert low.run("replay", str(answer.journal), "--verify").status == 0

        outside = stage.endpoint(Caller(call("greet", more=at())))
        narrow = leads(stage.product(outside), server, '[scope.default]\nfunctions = ["shell.*"]\n')
        assert results(narrow.ask("Ask the agents elsewhere", "--intent", "2").records) == []
        shown = "".join(text for one in outside.requests for _, text in one.messages)
        assert "it has no parameter `at`" in shown
        assert "agents.example.org" not in shown, "documented to nobody whose scope it is not in"
        assert server.heard == []

        twice = Caller(call("greet", more=at()), call("book it"))
        product = leads(stage.product(stage.endpoint(twice), IACT_CLEARANCE_SECONDS="0.05"), server)
        product.run("module", "allow", "a2a", AGENT)
        answer = product.ask("Ask the agents elsewhere", "--intent", "2")
        assert [one.text("status") for one in results(answer.records)] == ["ok", "incomplete"]
        (gate,) = [one for one in answer.records if one.kind == "gate" and not one.fields["allow"]]
        assert "tool:a2a.ask" in product.run("gate", "explain", answer.session, str(gate.n)).stdout
        assert server.heard == ["greet"]


def test_a_dialogue_elsewhere_goes_on_after_a_crash_and_nothing_is_said_twice(stage: Stage) -> None:
    calls = Caller(call("book a train", more=at()), call("hang", name="slow", more=at(PLAIN)), call("Monday"))
    with foreign_agents() as server:
        product = leads(stage.product(stage.endpoint(calls, crashes=True)), server, TRUSTING)
        product.run("module", "allow", "a2a", AGENT, PLAIN)
        with product.serving() as served, served.connect() as socket:
            hello = acknowledged(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "intent", "value": 2})
            tell(socket, {"type": "say", "text": "Ask the agents elsewhere"})
            assert server.hanging.wait(300)
            assert kill(served.process), hello
        session = records(product)[0].text("session")
        answer = product.ask("Go on", session=session)
        found = [(one.text("function"), one.text("status")) for one in results(answer.records)]
        assert found == [("a2a.ask", "ok"), ("a2a.ask", "interrupted"), ("a2a.answer", "ok")]
        assert server.heard == ["book a train", "hang", "Monday"]
        assert "Booked for Monday." in results(answer.records)[2].body
    assert product.run("replay", str(answer.journal), "--verify").status == 0
