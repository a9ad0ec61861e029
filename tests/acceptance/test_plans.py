"""Plans in the running product: real modules in containers, a scripted endpoint, the journal on disk, and kills."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from iact.core.records.ways import PLAN_MODES
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, acknowledged, kill, until
from tests.acceptance.test_scenes import Spoken, served, speak
from tests.core.session.test_plan_control import JUDGING
from tests.endpoint import Gate, Reply, Request

Json = dict[str, object]

_LONG = 300.0
"""Seconds of patience where a container must start first."""


def plan(*steps: str, head: str = "PLAN audit", goal: str = "Look around") -> str:
    body = "\n".join([f"goal: {goal}", "steps:", *(f"  - {step}" for step in steps)])
    return f"I have a plan.\n\n```{head}\n{body}\n```"


def shell(identity: str, command: str, *after: str) -> str:
    params = json.dumps({"command": command})
    behind = f", after: {json.dumps(list(after))}" if after else ""
    return f"{{id: {identity}, call: shell.run, params: {params}{behind}}}"


def replayed(product: Product, journal: Path) -> Json:
    ran = product.run("replay", str(journal), "--verify", "--json")
    assert ran.status == 0, ran
    found: Json = json.loads(ran.stdout)
    assert found["verified"] is True
    return found


def states(found: Json) -> dict[str, str]:
    """What became of the steps of the only plan."""
    plans = found["plans"]
    assert isinstance(plans, list)
    assert len(plans) == 1
    return {one: node["state"] for one, node in plans[0]["nodes"].items()}


def test_one_step_of_eight_fails(stage: Stage) -> None:
    """Scene 3: seven results are kept, what depended on the failed one says so, the caller gets one summary."""
    steps = [shell(f"s{n}", f"echo result {n}") for n in range(1, 8)]
    steps += [shell("bad", "echo no such host >&2; exit 4"), shell("last", "echo never", "bad", "s1")]

    def answer(request: Request) -> str:
        if not request.agent:
            return (
                '{"skip": false, "reason": "it can not be repaired"}'
                if "step failed" in request.last
                else "no"
            )
        return plan(*steps) if request.turn == 0 else "Seven of eight."

    product = stage.product(stage.endpoint(answer))
    done = product.ask("Look around.")
    assert done.reply == "Seven of eight."
    found = replayed(product, done.journal)
    became = states(found)
    assert [became[f"s{n}"] for n in range(1, 8)] == ["executed"] * 7
    assert (became["bad"], became["last"]) == ("failed", "skipped")
    summaries = [one for one in done.records if one.kind == "reply" and one.agent == "/audit"]
    assert len(summaries) == 1
    told = summaries[0].body
    assert "The plan came back partial: 7 of 9 steps executed" in told
    assert "The exit status is 4, not 0. Its output: no such host" in told
    assert "- last (shell.run): skipped: It waited for what did not succeed: bad is failed." in told
    assert "$s1" in told
    ran = product.run("replay", str(done.journal), "--tree")
    assert "/audit  plan (static) done" in ran.stdout
    assert "7 executed, 1 failed, 1 skipped" in ran.stdout


def test_an_agent_step_knows_why_and_gets_short_values_in_full(stage: Stage) -> None:
    steps = [
        shell("kernel", "echo 6.1.0"),
        shell("log", "seq 1 900"),
        "{id: cves, agent: researcher, task: Find CVEs., after: [log], refs: {version: {step: kernel, field: stdout}}}",
        "{id: kept, call: shell.run, refs: {command: {step: cves, template: 'echo {} > found'}}}",
    ]
    endpoint = stage.endpoint(
        {
            "/": [plan(*steps, goal="Is our kernel safe?\nconstraints: Change nothing."), "Done."],
            "/audit/researcher": ["```shell.run\necho known to $((40+2))\n```", "CVE-1"],
        }
    )
    product = stage.product(endpoint)
    done = product.ask("Is our kernel safe?")
    opening = next(one.last for one in endpoint.requests if one.agent == "/audit/researcher")
    assert "You are agent /audit/researcher, called by /audit." in opening
    assert "Message from your caller /audit, with $version (text/plain, 6 B)" in opening
    assert "Find CVEs.\n\nThis is one step of a plan. The goal of the plan: Is our kernel safe?" in opening
    assert "What the caller demands of it:\n- Change nothing." in opening
    assert "$version:\n```\n6.1.0\n```" in opening, "a short value is told in full"
    assert "$log (" in opening, "a long one by its name"
    assert "899" not in opening
    assert (done.workspace / "found").read_text() == "CVE-1\n"
    assert states(replayed(product, done.journal)) == dict.fromkeys(
        ("kernel", "log", "cves", "kept"), "executed"
    )


def test_a_plan_inside_a_child_agent_with_a_planner(stage: Stage) -> None:
    """The child gives a goal only; a planner writes the steps, a reflection concludes; both count as model calls."""
    written = f"steps:\n  - {shell('a', 'echo one')}\n  - {shell('b', 'echo two', 'a')}\n"
    endpoint = stage.endpoint(
        {
            "/": ["```CALL coder\nLook.\n```", "Done."],
            "/coder": ["```PLAN mode=nreflect n=2\ngoal: Look around\n```", "All is well."],
            "*": [written, '{"decision": "conclude", "answer": "one and two"}'],
        }
    )
    product = stage.product(endpoint)
    done = product.ask("Look.")
    found = replayed(product, done.journal)
    assert found["plans"][0]["path"] == "/coder/plan"  # type: ignore[index]
    assert found["plans"][0]["mode"] == "nreflect"  # type: ignore[index]
    assert {"a": "executed", "b": "executed"}.items() <= states(found).items()
    assert done.usage["model_calls"] == 6
    assert [one.text("question") for one in done.records if one.kind == "ask"] == ["plan", "reflect"]
    assert "Result:\none and two" in next(one.last for one in endpoint.requests if "your plan" in one.last)


WAITS = "echo {name} >> began; while [ ! -e go ]; do echo . >> beat; sleep 0.02; done; echo {name} >> effects"


def answered(spoken: Spoken) -> None:
    """Wait for the root's answer."""
    until(
        lambda: any(one.kind == "reply" and one.agent == "/" for one in spoken.records()),
        "the root's answer",
        within=_LONG,
    )


def test_a_killed_plan_goes_on_and_repeats_no_effect(stage: Stage) -> None:
    steps = [
        shell("first", "echo first >> began; echo first >> effects"),
        shell("held", WAITS.format(name="held"), "first"),
        "{id: child, agent: worker, task: Do your part., after: [first]}",
        shell("other", "echo other >> began; echo other >> effects", "child"),
    ]

    def answer(request: Request) -> Reply | str:
        match request.agent, request.turn:
            case "/", 0:
                return plan(*steps)
            case "/audit/worker", 0:
                return Reply(
                    "I work.\n\n```shell.run\necho worker >> began; echo worker >> effects\n```",
                    gates={4: stand},
                )
            case "/audit/worker", _:
                return "Done my part."
            case "", _:
                return '{"skip": false}' if "step failed" in request.last else "no"
            case _:
                return "It is over."

    stand = Gate()
    product = stage.product(stage.endpoint(answer, crashes=True))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        began = spoken.workspace / "began"
        until(lambda: began.exists() and "held" in began.read_text(), "the step that is held", within=_LONG)
        spoken.wait_for("node", "/audit", node="first", to="executed")
        assert stand.wait(_LONG)
        assert kill(server.process)
    stand.release()
    (spoken.workspace / "go").touch()
    with served(product) as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
        answered(spoken)
    lines = (spoken.workspace / "began").read_text().split()
    assert sorted(lines) == ["first", "held", "other", "worker"], "nothing began twice"
    became = states(replayed(product, spoken.folder))
    assert became["first"] == became["child"] == became["other"] == "executed"
    assert became["held"] == "failed", "what had an effect and was cut off is not made again"


@pytest.mark.parametrize("mode", [mode for mode in PLAN_MODES if mode != "profile"])
def test_a_plan_of_every_mode_goes_on_after_a_kill(stage: Stage, mode: str) -> None:
    """While an agent of its writes, after a step that had an effect."""
    effect = {"id": "a", "call": "shell.run", "params": {"command": "echo first >> effects"}}
    ask = {"id": "b", "agent": "worker", "task": "Do your part.", "after": ["a"]}
    written = json.dumps({"steps": [effect, ask], "confidence": 0.9, "branches": []})
    answers = {**JUDGING, "Plan the": written, "Write the whole": written}

    def answer(request: Request) -> Reply | str:
        match request.agent:
            case "/":
                return "It is over." if request.turn else plan_of(mode)
            case "":
                return next(str(text) for start, text in answers.items() if request.last.startswith(start))
            case _:
                return Reply("My part is done.", gates={4: stand})

    stand = Gate()
    product = stage.product(stage.endpoint(answer, crashes=True))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        assert stand.wait(_LONG)
        assert kill(server.process)
    stand.release()
    with served(product) as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
        answered(spoken)
    assert (spoken.workspace / "effects").read_text() == "first\n"
    became = states(replayed(product, spoken.folder))
    assert (became["a"], became["b"]) == ("executed", "executed")


def test_a_plan_of_the_mode_profile_goes_on_after_a_kill(stage: Stage) -> None:
    """While its second question is answered: which steps it has follows from what the answers are."""
    questions: list[str] = []

    def answer(request: Request) -> Reply | str:
        if request.agent == "/":
            return "It is over." if request.turn else plan_of("profile")
        questions.append(request.last)
        text = next((str(text) for start, text in JUDGING.items() if request.last.startswith(start)), "{}")
        return Reply(text, gates={4: stand}) if len(questions) == 2 else text

    stand = Gate()
    product = stage.product(stage.endpoint(answer, crashes=True), **NO_MODULES)
    with product.serving() as server:
        spoken = speak(product, server, "Go.")
        assert stand.wait(_LONG)
        # The next question is asked while the answer to the first is still on its way to the disk.
        until(
            lambda: b'"kind":"ask"' in (spoken.folder / "journal.md").read_bytes(), "the first answer on disk"
        )
        assert kill(server.process)
    stand.release()
    with product.serving() as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
        answered(spoken)
    assert questions[2] == questions[1], "what was being answered is asked again"
    assert replayed(product, spoken.folder)["plans"]


def plan_of(mode: str) -> str:
    return f"I have a plan.\n\n```PLAN audit mode={mode}\ngoal: Find out\n```"


def test_a_plan_is_paused_corrected_and_cancelled(stage: Stage) -> None:
    steps = [shell("held", WAITS.format(name="held")), shell("after", "echo after >> effects", "held")]

    def answer(request: Request) -> str:
        if not request.agent:
            return '{"decision": "continue", "reason": "it is on its way"}'
        return plan(*steps) if request.turn == 0 else "It is over."

    product = stage.product(stage.endpoint(answer))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        until((spoken.workspace / "beat").exists, "the step that is held", within=_LONG)
        spoken.control("pause", "--agent", "/audit")
        spoken.control("inject", "--agent", "/audit", "Be careful.")
        spoken.wait_for("extend", "/audit", version=1)
        spoken.control("resume", "--agent", "/audit")
        spoken.control("cancel", "--agent", "/audit")
        answered(spoken)
        ended = [one for one in spoken.records() if one.kind == "reply" and one.agent == "/audit"]
        assert [one.text("status") for one in ended] == ["cancelled"]
        until(lambda: not _beats(spoken), "the end of the tool")
    assert not (spoken.workspace / "effects").exists()
    found = replayed(product, spoken.folder)
    assert states(found) == dict.fromkeys(("held", "after", "interjection-1"), "cancelled")


def test_a_step_is_paused_from_the_command_line_and_stop_said_to_the_root_holds(stage: Stage) -> None:
    steps = [
        shell("held", WAITS.format(name="held")),
        shell("later", "echo later >> effects", "held"),
        shell("other", "echo other >> effects", "held"),
    ]

    def answer(request: Request) -> str:
        if not request.agent:
            return '{"decision": "conclude", "reason": "The user said stop."}'
        return plan(*steps) if request.turn == 0 else "It is over."

    product = stage.product(stage.endpoint(answer))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        until((spoken.workspace / "beat").exists, "the step that is held", within=_LONG)
        spoken.control("pause", "--agent", "/audit", "--step", "later")
        (spoken.workspace / "go").touch()
        spoken.wait_for("node", "/audit", node="other", to="executed")
        spoken.control("say", "Stop!")
        answered(spoken)
        reply = next(one for one in spoken.records() if one.kind == "reply" and one.agent == "/audit")
    assert (spoken.workspace / "effects").read_text() == "held\nother\n"
    assert (reply.text("plan"), reply.text("shortfall")) == ("stopped", "The user said stop.")
    assert states(replayed(product, spoken.folder))["later"] == "skipped"


def _beats(spoken: Spoken) -> bool:
    """Whether the held step is still at work, which leaves a mark all the time."""
    beat = spoken.workspace / "beat"
    before = beat.stat().st_size
    time.sleep(0.5)
    return beat.stat().st_size > before


FILE = """\
goal: Look at this host
steps:
  - {id: kernel, call: shell.run, params: {command: "uname -s"}}
  - {id: shown, call: shell.run, refs: {command: {step: kernel, field: stdout, template: "echo It is {}"}}}
  - {id: lost, call: shell.run, params: {command: "exit 3"}}
"""


def test_plan_commands(stage: Stage) -> None:
    def answer(request: Request) -> str:
        if "A step failed" in request.last:
            return '{"action": "give_up"}'
        if "Why other steps are needed" in request.last:
            return "There is no other way."
        return f"steps:\n  - {shell('a', 'echo planned')}"

    product = stage.product(stage.endpoint(answer))
    file = stage.folder / "plan.yaml"
    file.write_text(FILE)

    ran = product.run("plan", "run", str(file), "--json")
    assert ran.status == 3, f"a partial result has a status of its own: {ran}"
    report = json.loads(ran.stdout)
    assert (report["status"], report["achieved"]) == ("partial", False)
    assert report["result"] == "It is Linux\n"
    assert [(one["version"], one["parent"]) for one in report["versions"]] == [(1, None)]
    assert report["versions"][0]["nodes"] == ["kernel", "shown", "lost", "micro_planner-1"]
    kernel = report["nodes"]["kernel"]
    assert (kernel["kind"], kernel["state"], kernel["version"], kernel["attempts"]) == (
        "tool",
        "executed",
        1,
        1,
    )
    assert 0 <= kernel["started"] <= kernel["ended"] <= report["nodes"]["shown"]["started"]
    assert (kernel["output"], kernel["error"]) == ("Linux\n", None)
    assert report["nodes"]["lost"]["error"].startswith("The exit status is 3")
    assert report["usage"]["model_calls"] == 3, report["usage"]
    replayed(product, Path(report["journal"]))

    drawn = product.run("plan", "graph", report["session"])
    assert "✓ shown  shell.run  ← kernel" in drawn.stdout
    assert "✗ lost" in drawn.stdout
    graph = json.loads(product.run("plan", "graph", str(file), "--json").stdout)
    assert graph[0]["layers"] == [["kernel", "lost"], ["shown"]]
    assert graph[0]["edges"] == [["kernel", "shown"]]

    words = product.run("plan", "explain", str(file)).stdout
    assert "At once: kernel (shell.run)" in words
    assert "its command is the field stdout of the result of kernel" in words
    assert "If kernel fails, shown can't run." in words

    assert product.run("plan", "check", str(file)).status == 0
    file.write_text(FILE.replace("shell.run, params", "shell.walk, params"))
    checked = product.run("plan", "check", str(file), "--json")
    assert checked.status == 1
    assert "did you mean 'shell.run'?" in json.loads(checked.stdout)["problems"][0]
    refused = product.run("plan", "run", str(file))
    assert refused.status == 2
    assert "calls 'shell.walk', which is not a function that you have" in refused.stderr
    file.write_text("goal: Nothing but a goal")
    planned = product.run("plan", "run", str(file), "--json")
    assert planned.status == 0, f"a planner writes the steps of a bare goal: {planned}"
    assert json.loads(planned.stdout)["result"] == "planned\n"
