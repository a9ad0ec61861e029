"""What planners, patchers, judges and agent steps are sent, and how the answers that real models give are handled.

Through the whole product: real containers, and an endpoint that answers as models do. The tests check the requests on
the wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tests.acceptance.conftest import Stage
from tests.acceptance.product import until
from tests.acceptance.test_plans import plan, replayed, shell, states
from tests.acceptance.test_scenes import served, speak
from tests.endpoint import Endpoint, Gate, Reply, Request

CONCLUDED = '{"decision": "conclude", "reason": "it is there"}'


def questions(endpoint: Endpoint) -> list[Request]:
    """What was asked about plans: requests that no agent makes."""
    return [one for one in endpoint.requests if not one.agent]


def goal(text: str, head: str = "PLAN look mode=reflect") -> str:
    return f"```{head}\n{text}\n```"


def judged(request: Request) -> str:
    """Goes on while something is planned."""
    return CONCLUDED if "Still planned:\n- nothing" in request.last else '{"decision": "continue"}'


def answers(*agent: str, about: Callable[[Request], Reply | str]) -> Callable[[Request], Reply | str]:
    """The root says `agent` in turn; questions about plans get what `about` says."""
    return lambda request: about(request) if not request.agent else agent[min(request.turn, len(agent) - 1)]


def test_a_planner_sees_signatures_the_day_the_constraints_and_what_is_known(stage: Stage) -> None:
    def about(request: Request) -> str:
        if request.last.startswith("Plan the steps"):
            return f"steps:\n  - {shell('a', 'echo one')}\n"
        return CONCLUDED if request.last.startswith("Judge") else "Es ist da."

    hosts = "```VAR hosts\nalpha, beta\n```\n\n```VAR log\n" + "many words " * 200 + "\n```\n\n"
    asked = "goal: Sieh nach $hosts und $log\nconstraints:\n  - Ändere nichts.\n  - Frag niemanden draußen."
    endpoint = stage.endpoint(answers(hosts + goal(asked), "Fertig.", about=about))
    done = stage.product(endpoint).ask("Sieh nach.")
    planner, judge, reporter = (one.last for one in questions(endpoint))
    assert "Goal: Sieh nach $hosts und $log" in planner
    assert "What the caller demands of it:\n- Ändere nichts.\n- Frag niemanden draußen." in planner
    assert "- $hosts (text/plain, 11 B): alpha, beta" in planner, "a short value is told in full"
    assert "- $log (text/plain, 2.2 kB" in planner, "a long one by its name"
    assert f"Today is {_weekday(done.records[0].at)}, {done.records[0].at[:10]}." in planner
    assert "- `shell.run <command> timeout=120 language=bash|python background=false" in planner
    assert "What the person wrote, word for word, the newest last." in planner
    for one in (planner, judge, reporter):
        assert "```\nSieh nach.\n```" in one, "everybody reads the person's own words"
    assert "`model` says which model does a step with `agent`: fast, smart; `simple: true` says" in planner
    assert "2 to 6 steps" in planner
    assert "in the language of the goal" in planner
    assert "Ändere nichts." in judge
    assert 'a: shell.run {"command": "echo one"}' in judge, "who judges sees what was called"
    assert reporter.startswith("Answer from the results, directly, in the language of the goal.")
    told = next(one.body for one in done.records if one.kind == "reply" and one.agent == "/look")
    assert "Result:\nEs ist da." in told


def _weekday(at: str) -> str:
    return datetime.fromisoformat(at).strftime("%A")


def test_wrong_parameters_are_corrected_from_the_schema_and_leave_the_correction_of_the_shape(
    stage: Stage,
) -> None:
    said = iter(
        [
            "Sure, here is the plan:\n\nsteps:\n"
            "  - {id: a, call: shell.run, params: {cmd: echo one}}\n"
            "  - {id: b, call: shell.run, params: {command: echo two}, after: [a]}\n\nI hope this helps!",
            "```yaml\nsteps:\n  - {id: a, call: shell.run, params: {command: [echo, one]}}\n```",
            "steps:\n  - {id: a, call: shell.run, params: {command: echo one}, after: [b]}\n",
        ]
    )

    def about(request: Request) -> str:
        return judged(request) if request.last.startswith("Judge") else next(said, "It is done.")

    endpoint = stage.endpoint(answers(goal("goal: Look"), "Done.", about=about))
    product = stage.product(endpoint)
    done = product.ask("Look.")
    assert states(replayed(product, done.journal)).items() >= {"a": "executed", "b": "executed"}.items()
    kinds = [one.text("question") for one in done.records if one.kind == "ask"]
    assert kinds == ["plan", "correct", "correct", "reflect", "reflect", "synthesize"]
    first, second = (one.last for one in questions(endpoint)[1:3])
    assert first.startswith("Some steps of a plan call functions with parameters that these don't take.")
    assert "Step 'a': shell.run needs the parameter 'command'; add it." in first
    assert '"required": ["command"]' in first, "the schema stands beside what is wrong"
    assert '"id": "b"' not in first, "what fits is not asked for again"
    assert "parameter 'command' of shell.run" in second


def test_a_shape_is_still_corrected_after_parameters_were(stage: Stage) -> None:
    said = iter(
        [
            "steps:\n  - {id: a, call: shell.run, params: {cmd: echo one}}\n",
            "I would rather not.",
            "steps:\n  - {id: a, call: shell.run, params: {command: echo one}}\n",
        ]
    )

    def about(request: Request) -> str:
        return judged(request) if request.last.startswith("Judge") else next(said, "It is done.")

    endpoint = stage.endpoint(answers(goal("goal: Look"), "Done.", about=about))
    product = stage.product(endpoint)
    done = product.ask("Look.")
    assert states(replayed(product, done.journal))["a"] == "executed"
    last = questions(endpoint)[2].last
    assert last.startswith("Plan the steps")
    assert "It can't be used:\n- Step 'a': shell.run needs the parameter 'command'; add it." in last


def test_a_patch_answers_with_a_diagnosis_which_is_in_the_journal(stage: Stage) -> None:
    found = {
        "failure": "The file is not there.", "cause": "Its name is wrong.", "action": "replace", "confidence": 0.9,
        "steps": [{"id": "again", "call": "shell.run", "params": {"command": "echo found"}}],
    }  # fmt: skip

    def about(request: Request) -> str:
        if "step failed" not in request.last:
            return CONCLUDED
        return f"Let me think.\n\nHere is what I found:\n```json\n{json.dumps(found)}\n```\nGood luck!"

    steps = [
        shell("side", "echo beside"),
        shell("bad", "cat nowhere", "side"),
        shell("last", "echo last", "bad"),
    ]
    endpoint = stage.endpoint(answers(plan(*steps, goal="Look\nconstraints: Be kind."), "Done.", about=about))
    product = stage.product(endpoint)
    done = product.ask("Look.")
    assert (
        states(replayed(product, done.journal)).items() >= {"again": "executed", "last": "executed"}.items()
    )
    asked = questions(endpoint)[0]
    assert asked.last.startswith("A step failed. Find out why, and replace it.")
    assert (
        'The step: {"id": "bad", "call": "shell.run", "params": {"command": "cat nowhere"}, "after": ["side"]}'
        in asked.last
    )
    assert 'side: shell.run {"command": "echo beside"}' in asked.last, (
        "results are told with their parameters"
    )
    assert "Be kind." in asked.last
    assert "- `shell.run <command> timeout=120" in asked.last
    assert "- others, of which nothing was needed so far: " in asked.last
    assert asked.body["response_format"] is not None, "the strictest form is asked for first"
    (patch,) = [one for one in done.records if one.kind == "node" and one.fields.get("diagnosis")]
    assert patch.fields["diagnosis"] == {
        name: found[name] for name in ("failure", "cause", "action", "confidence")
    }


def test_a_second_patch_sees_what_was_tried_before(stage: Stage) -> None:
    def about(request: Request) -> str:
        if "step failed" not in request.last:
            return CONCLUDED
        if "It is itself in the place of a." in request.last:
            return '{"cause": "nothing helps", "action": "give_up", "confidence": 0.7}'
        return json.dumps({"steps": [{"id": "b", "call": "shell.run", "params": {"command": "exit 5"}}]})

    endpoint = stage.endpoint(answers(plan(shell("a", "exit 4")), "Done.", about=about))
    done = stage.product(endpoint).ask("Look.")
    second = questions(endpoint)[1].last
    assert '## a: shell.run {"command": "exit 4"}\n(replaced by b)\nError: The exit status is 4' in second
    (given_up,) = [one for one in done.records if one.kind == "node" and one.fields.get("diagnosis")]
    assert given_up.fields["diagnosis"]["action"] == "give_up"  # type: ignore[index,call-overload]


def test_an_agent_step_is_told_in_whose_place_its_source_stands(stage: Stage) -> None:
    """It is to say how a number was obtained, and can only know what it is told."""
    steps = [
        shell("service", "echo cut off by $SHELL; exit 4"),
        "{id: tell, agent: writer, task: Say where it is from., after: [service]}",
    ]
    replacing = {"steps": [{"id": "dump", "call": "shell.run", "params": {"command": "echo 377"}}]}
    reply = answers(plan(*steps), "Done.", about=lambda request: json.dumps(replacing))
    endpoint = stage.endpoint(
        lambda request: "From the dump." if request.agent == "/audit/writer" else reply(request)
    )
    stage.product(endpoint).ask("Where is it from?")
    (opening,) = [one.last for one in endpoint.requests if one.agent == "/audit/writer"]
    assert (
        'from shell.run {"command": "echo 377"}, in the place of '
        'shell.run {"command": "echo cut off by $SHELL; exit 4"}, which failed'
    ) in opening
    assert "cut off by /bin" not in opening, "what a failed step printed is not an agent's task"


def test_a_call_with_a_mode_runs_as_a_plan_of_that_mode(stage: Stage) -> None:
    """What models write who think of a plan as of another child."""
    written = f"steps:\n  - {shell('a', 'echo one')}\n"

    def about(request: Request) -> str:
        if request.last.startswith("Plan the steps"):
            return written
        return judged(request) if request.last.startswith("Judge") else "It is one."

    endpoint = stage.endpoint(
        answers("```CALL look mode=reflect\nSay what echo says.\n```", "Done.", about=about)
    )
    product = stage.product(endpoint)
    done = product.ask("Look.")

    assert done.reply == "Done."
    assert states(replayed(product, done.journal))["a"] == "executed"
    planner, *judges = (one.last for one in questions(endpoint))
    assert "Goal: Say what echo says." in planner
    assert [one for one in judges if one.startswith("Judge the evidence")], "the mode is that of the CALL"
    told = next(one for one in done.records if one.kind == "reply" and one.agent == "/look")
    assert told.fields["verdict"]["by"] == "judge"  # type: ignore[index,call-overload]
    assert "Result:\nIt is one." in told.body


def test_an_endpoint_that_refuses_every_form_is_asked_in_text(stage: Stage) -> None:
    """As many local servers do; what they write around their answers changes nothing."""

    def about(request: Request) -> str:
        if request.last.startswith("Judge"):
            return "<think>conclude? yes</think> Well: {decision: 'conclude', reason: 'seen',}"
        return "All is well."

    endpoint = stage.endpoint(
        answers(plan(shell("a", "echo one"), head="PLAN look mode=reflect"), "Done.", about=about),
        reject=("response_format", "tools"),
    )
    done = stage.product(endpoint).ask("Look.")
    told = next(one.body for one in done.records if one.kind == "reply" and one.agent == "/look")
    assert "The plan concluded" in told
    assert "Result:\nAll is well." in told
    (verdict,) = [one for one in done.records if one.kind == "ask" and one.text("question") == "reflect"]
    assert json.loads(verdict.body) == {"decision": "conclude", "reason": "seen"}


def test_a_model_that_refuses_to_judge_stops_nothing(stage: Stage) -> None:
    def about(request: Request) -> str:
        return "I'm sorry, but I can't help with that."

    endpoint = stage.endpoint(
        answers(
            plan(shell("a", "echo one"), shell("b", "exit 3", "a"), head="PLAN look mode=nreflect n=1"),
            "Done.",
            about=about,
        )
    )
    product = stage.product(endpoint)
    done = product.ask("Look.")
    assert done.reply == "Done."
    became = states(replayed(product, done.journal))
    assert (became["a"], became["b"]) == ("executed", "failed")


def test_plans_are_documented_when_somebody_asks_for_one_and_not_before(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Hello.", "I see.", "Noted."]})
    product = stage.product(endpoint)
    first = product.ask("Guten Tag!")
    product.ask("Als Plan, bitte: 1. Lies a.txt\n2. Lies b.txt\n3. Vergleiche beide", session=first.session)
    product.ask("Und c.txt und d.txt, wieder als Plan.", session=first.session)
    said = [one.messages for one in endpoint.requests]
    assert not any("Documentation of `PLAN`" in text for _, text in said[0])
    told = [text for _, text in said[1] if "Documentation of `PLAN`" in text]
    assert len(told) == 1
    for word in (
        "any_of",
        "contract",
        "retries",
        "timeout",
        "model",
        "rounds=3",
        "n=4",
        "template",
        "orchestrator",
    ):
        assert word in told[0]
    assert sum(text.count("Documentation of `PLAN`") for _, text in said[2]) == 1, "it is told once"


def test_what_was_left_out_and_not_verified_stands_in_the_report(stage: Stage) -> None:
    endpoint = stage.endpoint(
        answers(
            plan(
                shell("a", "echo one"),
                shell("b", "echo two", "a"),
                head="PLAN look mode=reflect report=false",
            ),
            plan(shell("c", "echo three"), head="PLAN more"),
            plan(shell("d", "echo four"), shell("e", "exit 3"), head="PLAN last"),
            "Done.",
            about=lambda request: CONCLUDED,
        )
    )
    done = stage.product(endpoint).ask("Look.")
    first, second, third = (one.body for one in done.records if one.kind == "reply" and one.agent != "/")
    assert "Left out: b." in first
    assert "Nobody checked" not in first, "somebody judged it"
    assert "Its goal is reached." in second
    assert "Nobody checked" not in second, "every step did what it was to do"
    assert "Its goal is reached in part." in third
    assert "Nobody checked whether these results are right: d." in third
    questions = [one.text("question") for one in done.records if one.kind == "ask"]
    assert questions[0] == "reflect"
    assert "synthesize" not in questions, "no report was wanted"


def test_steps_begin_while_a_slow_planner_still_writes(stage: Stage) -> None:
    """The planner stands still behind its first step, which is carried out meanwhile; only looks begin that early."""
    first = f"steps:\n  - {shell('a', 'echo one')}\n  - "
    written = f"{first}{shell('b', 'echo two', 'a')}\n"
    stand = Gate()

    def about(request: Request) -> Reply | str:
        if request.last.startswith("Plan the steps"):
            return Reply(written, gates={len(first): stand})
        return "It is done." if request.last.startswith("Answer from") else judged(request)

    product = stage.product(stage.endpoint(answers(goal("goal: Look"), "Done.", about=about)))
    with served(product) as server:
        spoken = speak(product, server, "Look.")
        assert stand.wait(120)
        spoken.wait_for("node", "/look", node="a", to="executed")
        assert not [one for one in spoken.records() if one.kind == "ask"], "the planner has not answered yet"
        stand.release()
        spoken.wait_for("node", "/look", node="b", to="executed")
        until(lambda: any(one.kind == "reply" and one.agent == "/" for one in spoken.records()), "the answer")


def test_a_profile_is_asked_for_with_all_that_planners_are_told(stage: Stage) -> None:
    """Its form is asked for like any other answer's; prose around it and a missing part cost nothing."""
    profile = {
        "steps": [{"id": "a", "call": "shell.run", "params": {"command": "echo one"}}],
        "assumptions": ["the shell is there"],
    }

    def about(request: Request) -> str:
        if request.last.startswith("Write the whole workflow"):
            return f"Of course.\n```json\n{json.dumps(profile)}\n```\nShall I begin?"
        return "One. [a]"

    asked = goal("goal: Count\nconstraints: Change nothing.", "PLAN look mode=profile")
    endpoint = stage.endpoint(answers(asked, "Done.", about=about))
    product = stage.product(endpoint)
    done = product.ask("Count.")
    assert states(replayed(product, done.journal))["a"] == "executed"
    first, report = questions(endpoint)
    assert "What the caller demands of it:\n- Change nothing." in first.last
    assert "Today is " in first.last
    assert "- `shell.run <command>" in first.last
    assert "response_format" in first.body
    assert 'a: shell.run {"command": "echo one"}\nResult: one' in report.last
    told = next(one.body for one in done.records if one.kind == "reply" and one.agent == "/look")
    assert "Assumed, and not checked:\n- the shell is there" in told


RULES = """
[scope.default]
functions = ["*"]
[[scope.default.plan]]
function = "shell.run"
error = "no such file"
set = { command = "echo from the copy" }
"""


def test_a_policy_says_how_a_call_that_fails_is_tried_again(stage: Stage) -> None:
    """The profile has no rule of its own, and no model is asked about what failed."""
    profile = {
        "steps": [{"id": "a", "call": "shell.run", "params": {"command": "cat gone.txt"}}],
        "confidence": 1.0,
    }
    endpoint = stage.endpoint(
        answers(
            about=lambda request: (
                json.dumps(profile)
                if request.last.startswith("Write the whole workflow")
                else "reached: yes\n\nIt is from the copy [a]."
            )
        )
    )
    product = stage.product(endpoint)
    (product.data / "policy.toml").write_text(RULES)

    done = product.run("run", "--mode", "profile", "--json", "Read gone.txt.")

    report = json.loads(done.stdout)
    assert (done.status, report["verdict"]["reached"]) == (0, "yes"), done
    first, _ = questions(endpoint)
    assert "- shell.run fails with 'no such file': it is tried again with command = 'echo from" in first.last
    assert states(replayed(product, Path(report["journal"])))["a"] == "executed"

    (product.data / "policy.toml").write_text(RULES.replace("error =", "when ="))
    refused = product.run("run", "Read gone.txt.")
    assert refused.status == 2
    assert "A rule of 'shell.run' for plans can't be used" in refused.sentence


def test_wrong_parameters_of_a_profile_leave_its_correction_and_its_repair(stage: Stage) -> None:
    """The first guess misses a parameter, the second is no profile at all, the third is right."""
    right = {"steps": [{"id": "a", "call": "shell.run", "params": {"command": "echo one"}}]}
    wrong = {"steps": [{"id": "a", "call": "shell.run", "params": {"cmd": "echo one"}}]}
    tries = iter([json.dumps(wrong), json.dumps({"steps": []}), json.dumps(right)])

    def about(request: Request) -> str:
        return next(tries) if request.last.startswith("Write the whole workflow") else "One. [a]"

    asked = goal("goal: Count", "PLAN look mode=profile")
    endpoint = stage.endpoint(answers(asked, "Done.", about=about))
    product = stage.product(endpoint)
    done = product.ask("Count.")
    assert states(replayed(product, done.journal))["a"] == "executed"
    assert [one.text("question") for one in done.records if one.kind == "ask"] == [
        "profile",
        "correct",
        "correct",
        "reason",
    ]
    _, fitted, corrected, _ = questions(endpoint)
    assert "JSON Schema of their parameters" in fitted.last
    assert '"command"' in fitted.last
    assert "JSON Schema of their parameters" not in corrected.last


def test_agents_know_which_plans_were_kept(stage: Stage) -> None:
    product = stage.product(
        endpoint := stage.endpoint(
            answers(
                "Hello.",
                "I look.\n\n```PLAN from=morning-round\ngoal: See what is new\n```",
                "Here it is.",
                about=lambda request: CONCLUDED,
            )
        )
    )
    kept = product.data / "plans"
    kept.mkdir(parents=True)
    first = product.ask("Good morning!")
    (kept / "morning-round.yaml").write_text(f"goal: See what is new\nsteps:\n  - {shell('a', 'echo new')}\n")
    done = product.ask("Do the morning-round, please.", session=first.session)
    said = [text for _, text in endpoint.requests[1].messages if "Documentation of `PLAN`" in text]
    assert len(said) == 1, "its name brings the documentation"
    assert "Kept are: morning-round." in said[0]
    assert states(replayed(product, done.journal))["a"] == "executed"
    assert [one.kind for one in done.records if "kept" in one.fields] == ["say"], "it is told when it changed"
