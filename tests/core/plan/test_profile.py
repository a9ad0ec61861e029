"""Profile-then-reason: a whole plan between two model calls, what is admissible, and the expressions of its rules."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from iact.core.plan.expression import Expression, StepOutputs
from iact.core.plan.forms import read_plan
from iact.core.plan.model import PlanError
from iact.core.plan.modes import profile as ptr
from iact.core.plan.modes.profile import Profile, read_profile
from iact.core.plan.modes.profile_rules import DomainRule, fault_of
from iact.core.plan.protocol import Firing, FunctionInfo, Outcome, StepFailure, StepSuccess
from iact.core.plan.result import PlanResult
from tests.core.plan.engine import PlanEngine, Waiting
from tests.core.plan.fakes import (
    Functions,
    ScriptedAsker,
    ScriptedRunner,
    VirtualClock,
    run,
)
from tests.core.plan.mode_scenes import Script

PTR = {
    "steps": [
        {"id": "list", "call": "f"},
        {"id": "read", "call": "f", "params": {"n": 1}, "auto": {"path": "list.files.0"}},
        {"id": "extra", "call": "f", "after": ["read"]},
    ],
    "confidence": 0.2,
    "assumptions": ["there is a file", "it is text"],
    "fragile": ["list"],
    "branches": [
        {"step": "read", "when": "len(list.files) > 1", "set": {"n": 9}},
        {"step": "extra", "when": "read.path == 'a'", "skip": True},
    ],
    "recoveries": [{"step": "read", "error": "too large", "set": {"n": 0}}],
    "replan_when": ["empty(list.files)"],
}
HISTORY = {"f": 1.0}


def profiled(
    profile: object, runner: ScriptedRunner, *, domain: Sequence[DomainRule] = (), **replies: str
) -> tuple[PlanResult, ScriptedAsker, Profile]:
    asker = ScriptedAsker(
        {
            "profile": [json.dumps(profile)],
            "reason": ["reached: yes\n\nThe file says x [read]."],
            **{k: [v] for k, v in replies.items()},
        }
    )
    mode = Profile(HISTORY, domain=domain)
    functions = Functions.of(FunctionInfo("f"), FunctionInfo("web.list"))
    engine = PlanEngine(
        read_plan("goal: Read it.", id="p"),
        runner=runner,
        clock=VirtualClock(),
        asker=asker,
        mode=mode,
        catalogue=functions,
    )
    return run(engine.run()), asker, mode


def test_a_profile_runs_on_rules_alone_between_its_two_calls() -> None:
    runner = ScriptedRunner({"list": StepSuccess({"files": ["a", "b"]})})
    result, asker, mode = profiled(PTR, runner)
    assert asker.kinds == ["profile", "reason"]
    assert mode.route == "guarded"
    assert {f.node.id: f.arguments for f in runner.firings} == {"list": {}, "read": {"path": "a", "n": 9}}
    assert result.nodes["extra"].validation == "left_out"
    assert result.result == "The file says x."
    assert mode.verification is not None
    assert mode.verification.trust == pytest.approx(1 - 2 * 0.02)


@pytest.mark.parametrize(
    ("reason", "shown", "caveat"),
    [
        ("The file says x [read] and more [list].", "The file says x and more.", ""),
        (
            "The file says x [read, list]. All of it [alle].",
            "The file says x. All of it.",
            "Cited without a result behind it: [alle].",
        ),
        (
            "The file says x.",
            "The file says x.",
            "No claim in this report names the step that it rests on.",
        ),
        (
            "See [read](https://example.com), or x[0] and - [x].",
            "See [read](https://example.com), or x[0] and - [x].",
            "No claim in this report names the step that it rests on.",
        ),
    ],
)
def test_a_person_reads_no_ids_and_programs_read_what_is_unsupported(
    reason: str, shown: str, caveat: str
) -> None:
    runner = ScriptedRunner({"list": StepSuccess({"files": ["a", "b"]})})
    result, _, mode = profiled(PTR, runner, reason=reason)
    assert result.result == shown
    facts = mode.facts()["profile"]
    assert isinstance(facts, dict)
    assert facts["unsupported"] == ([caveat] if caveat else [])


def test_a_pure_route_evaluates_no_branch_rules() -> None:
    sure = PTR | {
        "confidence": 1.0,
        "assumptions": [],
        "fragile": [],
        "steps": [
            {"id": "list", "call": "f"},
            {"id": "read", "call": "f", "params": {"n": 1}},
            {"id": "extra", "call": "f"},
        ],
    }
    runner = ScriptedRunner({"list": StepSuccess({"files": ["a", "b"]})})
    _, _, mode = profiled(sure, runner)
    assert mode.route == "pure"
    assert {f.node.id: f.arguments for f in runner.firings}["read"] == {"n": 1}


def test_a_recovery_rule_tries_once_more_without_a_model() -> None:
    runner = ScriptedRunner({"list": StepSuccess({"files": ["q", "r"]})})
    tries = []

    async def read(firing: Firing, waiting: Waiting) -> Outcome:
        tries.append(dict(firing.arguments))
        return StepSuccess("x") if firing.arguments["n"] == 0 else StepFailure("raised", "It is TOO LARGE.")

    runner.script = {**runner.script, "read": read}
    result, asker, _ = profiled(PTR, runner)
    assert asker.kinds == ["profile", "reason"]
    assert tries == [{"path": "q", "n": 9}, {"path": "q", "n": 0}]
    assert result.status == "concluded"


PLAIN = {
    "steps": [
        {"id": "list", "call": "web.list"},
        {"id": "read", "call": "f", "params": {"path": "auto"}, "after": ["list"]},
        {"id": "extra", "call": "f", "params": {"path": "x"}, "after": ["read"]},
    ],
    "confidence": 1.0,
}


def test_rules_of_the_domain_hold_on_every_route_and_beside_those_of_the_profile() -> None:
    """PTR, section 2.2: what is known of a function before any profile is written."""
    tries: list[dict[str, object]] = []

    async def read(firing: Firing, waiting: Waiting) -> Outcome:
        tries.append(dict(firing.arguments))
        return StepFailure("raised", "It timed out.") if len(tries) == 1 else StepSuccess("")

    domain = (
        DomainRule("f", auto={"path": "before.files.0"}),
        DomainRule("f", error="timed out", change={"timeout": 60}),
        DomainRule("f", when="before == ''", skip=True),
        DomainRule("web.*", when="true", change={"most": 5}),
        DomainRule("mail.*", when="true", skip=True),
    )
    runner = ScriptedRunner({"list": StepSuccess({"files": ["a", "b"]}), "read": read})
    result, asker, mode = profiled(PLAIN, runner, domain=domain)

    assert mode.route == "pure"
    assert asker.kinds == ["profile", "reason"]
    assert next(one.arguments for one in runner.firings if one.node.id == "list") == {"most": 5}
    assert tries == [{"path": "a"}, {"path": "a", "timeout": 60}]
    assert result.nodes["extra"].validation == "left_out"
    question = asker.asked[0].text
    assert "- f fails with 'timed out': it is tried again with timeout = 60" in question
    assert "- f, if before == '': it is left out" in question
    assert '- f, a parameter that is "auto": path = before.files.0' in question
    assert "mail.*" not in question, "no function that it has is of this pattern"


def test_a_profile_s_own_rules_come_before_those_of_the_domain() -> None:
    profile = PLAIN | {"recoveries": [{"step": "read", "error": "timed out", "set": {"timeout": 5}}]}
    failing = StepFailure("raised", "It timed out.")
    runner = ScriptedRunner({"list": StepSuccess({"files": ["a"]}), "read": [failing, StepSuccess("x")]})
    domain = (
        DomainRule("f", auto={"path": "before.files.0"}),
        DomainRule("f", error="timed out", change={"timeout": 60}),
    )
    profiled(profile, runner, domain=domain)
    assert [one.arguments for one in runner.firings if one.node.id == "read"] == [
        {"path": "a"},
        {"path": "a", "timeout": 5},
    ]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (DomainRule("f", when="empty(before)", skip=True), ""),
        (DomainRule("f", when="empty(", skip=True), "can't be used"),
        (DomainRule("f", auto={"url": "hits.0.url"}), "reads 'hits'; it can read `before` alone"),
    ],
)
def test_a_rule_of_the_domain_that_can_not_be_used_is_told(rule: DomainRule, says: str) -> None:
    assert says in fault_of(rule)
    assert bool(says) == bool(fault_of(rule))


def test_one_repair_at_most_and_the_caveats_are_carried() -> None:
    repair = json.dumps(
        {"steps": [{"id": "other", "call": "f", "refs": {"x": {"step": "list"}}}], "confidence": 0.9}
    )
    broken: Script = {
        "list": StepSuccess({"files": ["a"]}),
        "read": StepFailure("raised", "gone"),
        "extra": StepFailure("raised", "gone"),
    }
    result, asker, mode = profiled(PTR, ScriptedRunner(broken), repair=repair)
    assert asker.kinds == ["profile", "repair", "reason"]
    assert result.nodes["other"].state == "executed"
    assert result.status == "concluded"
    worse = ScriptedRunner({**broken, "other": StepFailure("raised", "gone")})
    again, asker, mode = profiled(PTR, worse, repair=repair)
    assert asker.kinds == ["profile", "repair", "reason"]
    assert mode.verification is not None
    assert mode.verification.repair
    facts = mode.facts()["profile"]
    assert isinstance(facts, dict)
    assert facts["issues"] == ["other gave no result"]
    before = facts["before_repair"]
    assert isinstance(before, dict)
    assert "read gave no result" in str(before["issues"])
    report = asker.asked[-1].text
    assert "- read gave no result" in report, "what did not go well in the first workflow is not forgotten"
    assert "- other gave no result" in report
    assert str(again.result) == "The file says x."


def test_an_inadmissible_profile_is_corrected_once_and_can_still_be_repaired() -> None:
    bad = PTR | {
        "steps": [{"id": "list", "call": "nothing"}],
        "branches": [],
        "recoveries": [],
        "replan_when": [],
    }
    broken = ScriptedRunner({"list": StepFailure("raised", "gone")})
    _, asker, _ = profiled(bad, broken, correct=json.dumps(PTR))
    assert asker.kinds == ["profile", "correct", "repair", "reason"]
    assert "'nothing', which is not a function" in asker.asked[1].text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"branches": [{"step": "zzz", "when": "true"}]}, "'zzz', which does not exist"),
        ({"branches": [{"step": "read", "when": "import os"}]}, "is not expected here"),
        ({"branches": [{"step": "read", "when": "zzz.a > 1"}]}, "reads 'zzz'"),
        ({"replan_when": ["eval('1')"]}, "no function 'eval'"),
        ({"steps": [{"id": "list", "call": "f", "contract": {"judgement": "ok?"}}]}, "judged contract"),
        ({"steps": [{"id": "list", "agent": "f", "task": "t"}]}, "calls an agent"),
        ({"steps": [{"id": "list", "call": "f", "auto": {"x": "read.a"}}, {"id": "read", "call": "f", "auto": {"x": "list.a"}}]}, "wait for each other"),
        ({"confidence": 3}, "confidence"),
        ({"steps": []}, "steps"),
    ],
)  # fmt: skip
def test_what_is_not_admissible_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_profile(json.dumps(PTR | change), Functions.of(FunctionInfo("f")))
    assert says in str(caught.value)


def test_the_bounds_of_profile_then_reason_over_random_profiles() -> None:
    """Two or three model calls, and at most (L + L#)(1 + N) tool calls (PTR, proposition 2.1)."""
    thrice = 0
    for seed in range(300):
        rng = random.Random(seed)

        def some(prefix: str, rng: random.Random = rng) -> dict[str, object]:
            ids = [f"{prefix}{i}" for i in range(rng.randint(1, 8))]
            return {
                "steps": [
                    {"id": one, "call": "f", "params": {"n": 1}, "retries": 2, "after": rng.sample(ids[:i], min(i, rng.randint(0, 2)))}
                    for i, one in enumerate(ids)
                ],
                "confidence": rng.random(),
                "branches": [{"step": rng.choice(ids), "when": f"exists({ids[0]}.n)", "skip": rng.random() < 0.3}]
                if len(ids) > 1 else [],
                "recoveries": [{"error": "no", "set": {"n": rng.randint(0, 3)}}],
                "replan_when": [f"empty({ids[0]})"],
            }  # fmt: skip

        first, second = some("a"), some("b")
        for profile in (first, second):
            rules = profile["branches"]
            assert isinstance(rules, list)
            profile["branches"] = [
                one for one in rules if not one["when"].startswith(f"exists({one['step']}.")
            ]
        faults: list[Outcome] = [
            StepFailure("raised", "no"),
            StepFailure("unavailable", "no"),
            StepSuccess(""),
            StepSuccess({"n": 1}),
            StepSuccess("x"),
        ]
        script: Script = {f"{p}{i}": [rng.choice(faults) for _ in range(4)] for p in "ab" for i in range(8)}
        runner = ScriptedRunner(script)
        result, asker, mode = profiled(first, runner, repair=json.dumps(second))
        assert asker.kinds in (["profile", "reason"], ["profile", "repair", "reason"])
        thrice += len(asker.kinds) == 3
        steps = [profile["steps"] for profile in (first, second)]
        assert isinstance(steps[0], list)
        assert isinstance(steps[1], list)
        length = len(steps[0]) + (len(steps[1]) if mode.repaired else 0)
        assert len(runner.firings) <= length * (1 + 2 + 1)
        assert 0 <= mode.risk <= 1
        assert result.model_calls == len(asker.kinds)
    assert 50 < thrice < 300


def test_risk_and_trust_are_monotone_and_bounded() -> None:
    rng = random.Random(1)
    assert sum(ptr.STANDARD.risk_weights) == pytest.approx(1)
    assert min(ptr.STANDARD.risk_weights) > 0
    for _ in range(500):
        parts = [rng.random() for _ in range(5)]
        more = list(parts)
        i = rng.randrange(5)
        more[i] = min(1.0, more[i] + rng.random())
        assert 0 <= ptr.risk_of(parts) <= ptr.risk_of(more) <= 1 + 1e-9
        counts = {name: rng.randint(0, 4) for name in ptr.FLAWS}
        worse = counts | {(name := rng.choice(list(counts))): counts[name] + 1}
        assert 0 <= ptr.trust_of(worse) <= ptr.trust_of(counts) <= 1
    assert [ptr.route_of(r) for r in (0.0, 0.24, 0.25, 0.54, 0.55, 1.0)] == [
        "pure", "pure", "guarded", "guarded", "repair_eligible", "repair_eligible"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("a.n + 1", None), ("a.n == 3", True), ("a.n >= 2 and not empty(a.list)", True), ("a.zz", None),
        ("a.list.0 in 'xyz'", True), ("len(a.list)", 2), ("a.list contains 'q'", False), ("failed(b)", True),
        ("failed(a) or a.t == \"T\"", True), ("lower(a.t)", "t"), ("number('2.5') > 2", True), ("not not true", True),
        ("a.n < 'x'", False), ("(1 < 2) == true", True), ("a.list in a", False), ("exists(a.n)", True), ("-1 < 0", True),
    ],
)  # fmt: skip
def test_expressions(source: str, value: object) -> None:
    if value is None and "+" in source:
        with pytest.raises(ValueError, match="grammar"):
            Expression(source)
        return
    store = StepOutputs({"a": {"n": 3, "list": ["x", "y"], "t": "T"}}, ["b"])
    assert Expression(source).value(store) == value


@pytest.mark.parametrize(
    "source",
    ["", "a.n ==", "(", "f(x)", "a b", "and", "((" * 30, "x" * 600, "__import__('os')", "a[0]", "failed()"],
)
def test_what_is_not_in_the_grammar_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="expression"):
        Expression(source)
