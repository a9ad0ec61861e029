"""The scenes of the tree, each against the running product: `iact serve`, spoken to from other processes.

The stage also checks the laws for every run here: the prefix law (scene 7), one outcome for each action, and
a journal that verifies. If another test shows a scene from inside the process, the test here shows it with
the means of a user: the command line, the journal, and kills.

| scene | what | shown by |
|---|---|---|
| 1 | three questions pending at three depths, answered in any order, over `kill -9` | here |
| 2 | two agents of one name, both waiting, over a restart | `test_tree.py::test_same_name_under_different_callers` |
| 4 | one subtree paused: the rest continues | `test_control.py::test_the_rest_runs_on_while_a_subtree_is_paused` |
| 4 | … its clocks stop, and resuming costs one record | here |
| 5 | a message at depth 5, in three ways, each with its receipt | here; also `test_control.py` |
| 6 | cancel in the middle of a tool | here; also `test_control.py::test_cancel_in_the_middle_of_a_tool` |
| 7 | every context is a prefix of the next | the stage, after every test of this folder |
| 8 | a tree at its budget still reports, and its totals are those of its agents | here |
| 13 | the same denied call repeated | here |
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, Server, acknowledged, kill, until
from tests.endpoint import Gate, Reply, Request

_LEAVES = ("a", "b", "c")
_WAIT = "while [ ! -e {go} ]; do sleep 0.02; done"


def call(name: str, message: str = "Do your part.") -> str:
    return f"I ask {name}.\n\n```CALL {name}\n{message}\n```"


def call_all(names: Sequence[str], wait: str = "WAIT") -> str:
    """Start several children at once, and wait for them."""
    started = "\n\n".join(f"```CALL_ASYNC {name}\nDo your part.\n```" for name in names)
    return f"I ask them all.\n\n{started}\n\n```{wait}\n```"


def shell(*commands: str) -> str:
    return "I act.\n\n" + "\n\n".join(f"```shell.run\n{command}\n```" for command in commands)


def held(requests: Sequence[Request], text: str) -> bool:
    return any(text in content for request in requests for _, content in request.messages)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A session that a server holds or held, as a person sees it: commands, and the journal on disk."""

    product: Product
    session: str

    @property
    def folder(self) -> Path:
        return self.product.data / "sessions" / self.session

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def records(self) -> list[Record]:
        return read_journal(self.folder).records

    def control(self, command: str, *arguments: str) -> Record:
        """Run a control from the command line; gives its record, whose number the command prints."""
        ran = self.product.run(command, "--session", self.session, *arguments)
        assert (ran.status, ran.stderr) == (0, ""), ran
        return self.records()[int(ran.stdout) - 1]

    def wait_for(self, kind: str, agent: str, since: int = 0, **fields: object) -> Record:
        """Wait for a durable record of this kind, about this agent, with these fields; gives the first."""
        found: list[Record] = []

        def there() -> bool:
            found[:] = [
                one
                for one in self.records()[since:]
                if (one.kind, one.agent) == (kind, agent) and fields.items() <= one.fields.items()
            ]
            return bool(found)

        until(there, f"a {kind} of {agent}")
        return found[0]

    def appears(self, name: str) -> None:
        """Wait for a file in the workspace: a tool says that it runs."""
        until((self.workspace / name).exists, f"the file {name}")

    def took(self, agent: str, n: int) -> Record:
        """The receipt: the turn or reply that was given message `n`."""
        given = [
            one
            for one in self.records()
            if one.agent == agent and isinstance(took := one.fields.get("took"), list) and n in took
        ]
        assert len(given) == 1, f"record {n} was given to {len(given)} turns of {agent}"
        return given[0]


def speak(product: Product, server: Server, text: str) -> Spoken:
    """Say the first word of a new session."""
    with server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": None, "since": 0})
        return Spoken(product, str(acknowledged(socket, {"type": "say", "text": text})["session"]))


def wake(spoken: Spoken, server: Server) -> None:
    """Open a stored session on a server that has just begun; what was under way goes on."""
    with server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})


@contextmanager
def served(product: Product) -> Iterator[Server]:
    """A server that ends as a person ends it, unless it was killed before; it leaves nothing behind."""
    with product.serving() as server:
        yield server
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(300) == 0


# --- scene 1 ------------------------------------------------------------------------------------------

_DEPTH = 6
_ANSWERS = {6: "sixfold", 2: "twofold", 4: "fourfold"}
"""Who asked, by depth, and what the user answers; in the order in which the user does."""


def _spine(depth: int) -> str:
    """The path of the agent at this depth that leads on to the next."""
    return "/" + "/".join(f"s{number}" for number in range(1, depth + 1))


def _questions(depth: int) -> str:
    """What the agent at this depth tells its caller: its own question, and those from below."""
    return " ".join(f"Question {one}?" for one in sorted(_ANSWERS) if one >= depth)


def _act(label: str) -> str:
    return shell(f"echo {label} >> effects")


def _tree_that_asks() -> dict[str, list[Reply | str]]:
    """Fan-out 4 on every level: three leaves that act, and one agent that goes deeper; three of those ask."""
    script: dict[str, list[Reply | str]] = {}
    for depth in range(_DEPTH + 1):
        path = _spine(depth)
        deepest = depth == _DEPTH
        start = _act(f"s{depth}") if deepest else call_all([*_LEAVES, f"s{depth + 1}"])
        script[path] = [start, _questions(depth)]
        for leaf in () if deepest else _LEAVES:
            script[f"{path.rstrip('/')}/{leaf}"] = [_act(f"s{depth}-{leaf}"), f"Leaf {leaf} is done."]
    for target, answer in _ANSWERS.items():
        for depth in range(target):
            script[_spine(depth)] += [call(f"s{depth + 1}", f"For s{target}: {answer}."), f"Told s{target}."]
        script[_spine(target)] += [_act(f"s{target}-{answer}"), f"I go on with {answer}."]
    return script


def test_scene_1_questions_from_three_depths_are_answered_in_any_order(stage: Stage) -> None:
    """The server is killed between the answers, and once while an answer is on its way down."""
    script = _tree_that_asks()
    gate = Gate()
    on_its_way = script[_spine(1)][4]  # it hands on the second answer
    assert isinstance(on_its_way, str)
    assert "twofold" in on_its_way
    script[_spine(1)][4] = Reply(on_its_way, gates={4: gate})
    endpoint = stage.endpoint(script, by_turn=True, crashes=True)
    product = stage.product(endpoint)

    with served(product) as server:
        spoken = speak(product, server, "Begin.")
        asked = spoken.wait_for("reply", "/")
        kill(server.process)
    assert asked.body == "Question 2? Question 4? Question 6?"
    before = _effects(spoken)
    assert set(before.values()) == {1}
    assert len(before) == len(_LEAVES) * _DEPTH + 1
    assert {node.count("/") for node in {one.agent for one in spoken.records()}} == {1, 2, 3, 4, 5, 6}

    for target, answer in _ANSWERS.items():
        with served(product) as server:
            said = spoken.control("say", f"For s{target}: {answer}.")
            if target == 2:
                assert gate.wait()
                kill(server.process)
                gate.release()
            else:
                assert spoken.wait_for("reply", "/", said.n).body == f"Told s{target}."
            if target == 6:
                kill(server.process)
        if target == 2:
            with served(product) as server:
                wake(spoken, server)
                assert spoken.wait_for("reply", "/", said.n).body == f"Told s{target}."
                kill(server.process)
        assert spoken.wait_for("reply", _spine(target), said.n).body == f"I go on with {answer}."

    after = _effects(spoken)
    assert after == before + Counter(f"s{target}-{answer}" for target, answer in _ANSWERS.items())
    for target, answer in _ANSWERS.items():
        heard = next(one for one in endpoint.of(_spine(target)) if f"For s{target}: {answer}." in one.last)
        assert ("assistant", _questions(target)) in heard.messages, (
            "it goes on in the dialogue in which it asked"
        )
        below = [one for one in endpoint.requests if one.agent.startswith(f"{_spine(target)}/")]
        aside = [one for one in endpoint.requests if one.agent.rsplit("/", 1)[1] in _LEAVES]
        assert not held(below + aside, answer), "an answer reached somebody whom it was not for"


def _effects(spoken: Spoken) -> Counter[str]:
    return Counter((spoken.workspace / "effects").read_text().split())


# --- scene 4 ------------------------------------------------------------------------------------------


def test_scene_4_the_clocks_of_a_paused_part_stand_still(stage: Stage) -> None:
    """A WAIT of two seconds does not run out while its agent is paused for longer; resuming is one record."""
    limit, gate, rested = 2, Gate(), [f"child{number}" for number in range(6)]
    endpoint = stage.endpoint({
        "/": [call_all(["a", "b"]), "Done."],
        "/a": [call_all(rested), call_all(["slow"], f"WAIT timeout={limit}"), "A is done."],
        **{f"/a/{name}": ["Here."] for name in rested},
        "/a/slow": [Reply("I think, NEVERMIND", chunk=4, gates={8: gate}), "I am slow."],
        "/b": [Reply("B is done.", gates={4: (other := Gate())})],
    })  # fmt: skip
    product = stage.product(endpoint, **NO_MODULES)
    with served(product) as server, server.connect() as socket:
        spoken = speak(product, server, "Go.")
        acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
        assert gate.wait()
        acknowledged(socket, {"type": "pause", "path": "/a"})
        paused = spoken.wait_for("control", "/a", op="pause")
        other.release()
        assert spoken.wait_for("reply", "/b").n > paused.n, "the rest runs on"
        time.sleep(limit + 0.5)  # the time that must not count
        asked = len(endpoint.requests)
        quiet = [one for one in spoken.records()[paused.n :] if one.agent.startswith("/a")]
        assert [one.kind for one in quiet] == ["discard"]

        resumed = spoken.control("resume", "--agent", "/a")
        assert resumed.n == quiet[0].n + 2, "one record for the reply of /b, one for all of the resuming"
        assert spoken.wait_for("reply", "/", resumed.n).body == "Done."
    select = next(one for one in spoken.records()[resumed.n :] if (one.kind, one.agent) == ("select", "/a"))
    assert "timed_out" not in select.fields
    again = [one.agent for one in endpoint.requests[asked:]]
    assert again == ["/a/slow", "/a", "/"], "nobody but the one that was stopped begins anew"
    assert sum(one.text("op") == "resume" for one in spoken.records()) == 1
    assert not held(endpoint.requests, "NEVERMIND")


# --- scene 5 ------------------------------------------------------------------------------------------


def test_scene_5_a_message_at_depth_five_in_three_ways(stage: Stage) -> None:
    """In the middle of a tool call and of a reply; the receipt names the message by the number it was given."""
    names, deepest, gate = ("a", "b", "c", "d", "e"), "/a/b/c/d/e", Gate()
    above = {"/" + "/".join(names[:depth]): name for depth, name in enumerate(names)}
    endpoint = stage.endpoint({
        **{path: [call(name), "It is done."] for path, name in above.items()},
        deepest: [
            shell(f"touch one; {_WAIT.format(go='go1')}", "touch skipped"),
            shell(f"touch two; {_WAIT.format(go='go2')}", "touch kept"),
            Reply("I write and write, NEVERMIND", chunk=4, gates={12: gate}),
            "I heard all three.",
        ],
    })  # fmt: skip
    product = stage.product(endpoint)
    with served(product) as server:
        spoken = speak(product, server, "Go.")

        def inject(mode: str) -> Record:
            return spoken.control(
                "inject", "--agent", deepest, "--mode", mode, f"This is to be heard: {mode}."
            )

        spoken.appears("one")
        deliver = inject("deliver")
        (spoken.workspace / "go1").touch()
        spoken.appears("two")
        queue = inject("queue")
        (spoken.workspace / "go2").touch()
        assert gate.wait()
        interrupt = inject("interrupt")
        assert spoken.wait_for("reply", "/").body == "It is done."

    assert (spoken.workspace / "kept").exists()
    assert not (spoken.workspace / "skipped").exists()
    outcomes = [one for one in spoken.records() if one.kind == "result"]
    assert [one.text("status") for one in outcomes] == ["ok", "skipped", "ok", "ok"]
    first = spoken.took(deepest, deliver.n)
    assert outcomes[1].n < first.n < outcomes[2].n, "deliver: before the next call"
    last = spoken.wait_for("reply", deepest)
    assert spoken.took(deepest, queue.n) == spoken.took(deepest, interrupt.n) == last
    assert queue.n < outcomes[3].n, "queue: the turn went on as it was"
    stopped = spoken.wait_for("discard", deepest)
    assert (stopped.text("reason"), stopped.n) == ("interrupt", interrupt.n - 1), "interrupt: at once"
    heard = [one.last for one in endpoint.of(deepest)]
    for turn, mode in ((1, "deliver"), (2, "queue"), (3, "interrupt")):
        assert [f"heard: {mode}." in text for text in heard[1:]].index(True) == turn - 1
    others = [one for one in endpoint.requests if one.agent != deepest]
    assert not held(others, "to be heard")
    assert not held(endpoint.requests, "NEVERMIND")


# --- scene 6 ------------------------------------------------------------------------------------------


def test_scene_6_cancel_in_the_middle_of_a_tool(stage: Stage) -> None:
    """Nothing of the call, however stubborn, does anything two seconds later."""
    beat = "trap '' TERM INT HUP; while true; do date +%s.%N >> beats; sleep 0.05; done"
    endpoint = stage.endpoint({
        "/": [call("a"), "Done."],
        "/a": [call("b"), call("b", "Try again."), "A is done."],
        "/a/b": [shell(f"setsid sh -c \"{beat}\" & ({beat}) & {beat}", "touch never"), "I can go on."],
    })  # fmt: skip
    product = stage.product(endpoint)
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        spoken.appears("beats")
        cancelled = spoken.control("cancel", "--agent", "/a/b")
        at = datetime.fromisoformat(cancelled.at).timestamp()
        assert spoken.wait_for("reply", "/").body == "Done."
        until(lambda: time.time() > at + 2.5, "the time after which nothing may beat")
        beats = (spoken.workspace / "beats").read_text().split()
    assert len(beats) > 1
    assert float(beats[-1]) < at + 2, "processes of a cancelled call live on"
    assert not (spoken.workspace / "never").exists()
    after = [one for one in spoken.records()[cancelled.n :] if one.agent == "/a/b"][:3]
    assert [(one.kind, one.text("status")) for one in after] == [
        ("result", "cancelled"), ("result", "cancelled"), ("reply", "cancelled"),
    ]  # fmt: skip
    assert "did not finish (cancelled)" in endpoint.of("/a")[1].last
    again = endpoint.of("/a/b")[1]
    assert [role for role, _ in again.messages] == ["system", "user", "assistant", "user"]
    assert again.last.count("was cancelled before it ended") == 2
    assert "Try again." in again.last


# --- scene 8 ------------------------------------------------------------------------------------------


def test_scene_8_a_tree_at_its_budget_still_reports(stage: Stage) -> None:
    """The one that is cut off writes its report, those above it answer, and nothing is counted twice."""
    bound = 60_000

    def counting(request: Request) -> str:
        match request.agent:
            case "/" | "/a" if request.turn == 0:
                return call("a" if request.agent == "/" else "b", "Count to infinity.")
            case "/" | "/a":
                return "It said: I counted." if "I counted" in request.last else "It said nothing."
            case _ if "answer now, with what you have" in request.last:
                return f"I counted to {request.turn}."
            case _:
                return f"```VAR count\n{request.turn} {'and on ' * 300}\n```"

    endpoint = stage.endpoint(counting)
    product = stage.product(endpoint, IACT_CONTEXT="200000", **NO_MODULES)
    (product.data / "iact.toml").write_text(f"[bounds]\ntokens = {bound}\nturns = 1000\n", encoding="utf-8")
    answer = product.ask("Count.")

    assert answer.reply == "It said: I counted."
    replies = [one for one in answer.records if one.kind == "reply"]
    assert [one.agent for one in replies] == ["/a/b", "/a", "/"]
    turns = len(endpoint.of("/a/b"))
    assert turns > 5
    assert replies[0].body == f"I counted to {turns - 1}."
    assert replies[0].text("last") == "tokens"
    report = json.loads(product.run("replay", str(answer.journal), "--json").stdout)
    used = Counter[str]()
    for agent in report["agents"]:
        used.update({name: agent["usage"][name] for name in ("prompt_tokens", "completion_tokens")})
    assert used == {name: answer.usage[name] for name in ("prompt_tokens", "completion_tokens")}
    assert bound / 2 < used.total() <= bound
    sent = sum(one.prompt_tokens for one in endpoint.requests)
    assert used["prompt_tokens"] == sent, "every request is counted, and counted once"


# --- scene 13 -----------------------------------------------------------------------------------------


def test_scene_13_the_same_denied_call_repeated(stage: Stage) -> None:
    """Made once more, then refused without asking the gate again, then the work ends; only the journal says why."""
    clothes = ("touch made", "touch  made # please", " touch made", "touch made")
    endpoint = stage.endpoint({"/": [shell(command) for command in clothes]})
    product = stage.product(endpoint)
    cap = '[scope.default]\nfunctions = ["*"]\ncaps = { "shell.run" = 0 }\n'
    (product.data / "policy.toml").write_text(cap, encoding="utf-8")
    ran = product.run("run", "--json", "Make a file.")
    assert "Traceback" not in ran.stderr, ran
    answer = ran.answer()

    gates = [one for one in answer.records if one.kind == "gate"]
    assert [(one.fields["allow"], one.text("by")) for one in gates] == [(False, "impact")] * 2
    reason = gates[0].text("reason")
    assert reason.endswith("."), "a sentence for the person"
    shown = product.run("journal", "tail", str(answer.journal))
    assert shown.status == 0
    assert any("gate" in line and "impact" in line for line in shown.stdout.splitlines()), shown.stdout
    end = next(one for one in reversed(answer.records) if one.kind == "reply")
    assert (end.kind, end.text("status"), end.text("bound")) == ("reply", "bound", "loop")
    assert not list(answer.workspace.iterdir())

    first, *others, last = endpoint.requests
    assert ["shell.run did not complete." in request.last for request in others] == [True, True]
    assert "was not tried again unchanged" in last.last
    told = _what_contexts_told(endpoint.requests)
    for secret in (reason.lower(), "denied", "intent", "impact", "permission", "clearance", "gate"):
        assert secret not in told, secret
    assert {request.messages[0] for request in endpoint.requests} == {first.messages[0]}


def _what_contexts_told(requests: Sequence[Request]) -> str:
    """All that the agent was told after its first turn, in small letters."""
    return "\n".join(request.last for request in requests[1:]).lower()
