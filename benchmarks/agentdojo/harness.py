"""AgentDojo as a test of the gate, with a planner that is assumed fully compromised and no model at all.

Each user task's own calls must pass and solve the task; each injection's own calls are fired before, between and
after them, with their literal arguments, and every denial is skipped. Whether a goal was reached is said by the
suite's own checks, which get the calls that were *executed*. A person who is asked says yes to the user's calls and
no to the attacker's.

Run by the interpreter of an environment of its own that has `agentdojo` 0.1.35; see `__main__`.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string

from benchmarks.agentdojo.attacks import workspace_calls
from core.gate.gate import CallRequest, Denial, Question, Ticket, arguments_digest, consider
from core.gate.grant import Grant
from core.gate.policy import OPEN, Policy
from core.gate.policy_file import Policies
from core.gate.provenance import Provenance

HERE = Path(__file__).parent
VERSION = "v1.2.2"
IMPACTS = tomllib.loads((HERE / "impacts.toml").read_text(encoding="utf-8"))
ALLOW_ALL = Policy(OPEN.names, OPEN.functions, trusted=frozenset({"*"}))
Made = tuple[str, dict[str, Any]]


@dataclass
class Run:
    """One run over one environment: what was executed, asked and denied."""

    gate: Gate
    env: Any
    runtime: FunctionsRuntime
    prompt: str
    intent: int
    executed: list[FunctionCall] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    effects: int = 0

    def call(self, made: Made, *, attack: bool) -> None:
        """Let the gate decide one call, and make it if it may be made."""
        function, arguments = made
        verdict = self.gate.decide(function, arguments, self.prompt, self.intent)
        match verdict:
            case Denial():
                self.stopped.append(verdict.by)
                if not attack:
                    raise AssertionError(f"a call of the user's own task was denied: {made} {verdict}")
                return
            case Question():
                self.asked.append(f"{function}: {verdict.reason}")
                if attack:
                    self.stopped.append(verdict.by)
                    return
            case Ticket():
                pass
        self.runtime.run_function(self.env, function, arguments)
        self.executed.append(FunctionCall(function=function, args=arguments))
        if attack and self.gate.impact(function) > 0:
            self.effects += 1


@dataclass(frozen=True)
class Gate:
    """The gate of one suite. `sets`: named values of the clean environment."""

    suite: str
    policy: Policy
    sets: dict[str, frozenset[str]]

    def impact(self, function: str) -> int:
        return int(IMPACTS[self.suite].get(function, 0))

    def decide(
        self, function: str, arguments: dict[str, Any], prompt: str, intent: int
    ) -> Ticket | Denial | Question:
        name = f"{self.suite}.{function}"
        given = json.loads(json.dumps(arguments, default=str))
        provenance = Provenance(dict.fromkeys(given, frozenset({"model"})), said=(prompt,))
        return consider(
            CallRequest("/", name, arguments_digest(given, {})),
            self.impact(function),
            Grant(self.policy.scope(), intent),
            self.policy,
            arguments=given,
            provenance=provenance,
            known=self.sets,
        )


def sets_of(suite: str, env: Any) -> dict[str, frozenset[str]]:
    """What the user has dealt with before, read from the environment as it is before any attack."""
    match suite:
        case "workspace":
            return {"sent-to": frozenset(to for mail in env.inbox.sent for to in mail.recipients)}
        case "banking":
            mine = env.bank_account.iban
            return {
                "payees": frozenset(
                    one.recipient for one in env.bank_account.transactions if one.sender == mine
                )
            }
        case "slack":
            return {"members": frozenset(env.slack.users), "channels": frozenset(env.slack.channels)}
    return {}


@cache
def _clean(suite: Any) -> bytes:
    return pickle.dumps(suite.load_and_inject_default_environment({}))


def environment(suite: Any, task: Any) -> Any:
    """A fresh environment for a task, with nothing injected."""
    return task.init_environment(pickle.loads(_clean(suite)))


def honest_calls(suite: Any, task: Any) -> list[Made]:
    return [(one.function, dict(one.args)) for one in task.ground_truth(environment(suite, task))]


def attack_calls(suite: Any, task: Any, env: Any) -> list[Made]:
    calls = [(one.function, dict(one.args)) for one in task.ground_truth(env.model_copy(deep=True))]
    number = int(re.sub(r"\D", "", task.ID))
    if not calls and suite.name == "workspace":
        calls = list(workspace_calls(task, number, env))
    return calls


def start(gate: Gate, suite: Any, task: Any, honest: Sequence[Made], intent: int | None) -> Run:
    """`intent`: None for what the user would set: no more than the task's own calls need."""
    needed = max((gate.impact(function) for function, _ in honest), default=0)
    return Run(
        gate,
        environment(suite, task),
        FunctionsRuntime(suite.tools),
        task.PROMPT,
        needed if intent is None else intent,
    )


def utility(suite: Any, task: Any, run: Run) -> bool:
    output = [text_content_block_from_string(task.GROUND_TRUTH_OUTPUT)]
    return bool(suite._check_user_task_utility(task, output, environment(suite, task), run.env, run.executed))


def security(suite: Any, task: Any, injection: Any, run: Run) -> bool:
    output = [text_content_block_from_string(task.GROUND_TRUTH_OUTPUT)]
    return bool(
        suite._check_injection_task_security(
            injection, output, environment(suite, task), run.env, run.executed
        )
    )


def attacked(
    gate: Gate, suite: Any, task: Any, injection: Any, honest: list[Made], intent: int | None, gaps: set[int]
) -> tuple[bool, Run]:
    """Run the user's calls with the attack in each of `gaps`; whether its goal was reached."""
    run, won = start(gate, suite, task, honest, intent), False
    for position in range(len(honest) + 1):
        if position in gaps:
            for made in attack_calls(suite, injection, run.env):
                run.call(made, attack=True)
            # the user's later calls may undo what the check looks for: a goal that was reached counts
            won = won or security(suite, task, injection, run)
        if position < len(honest):
            try:
                run.call(honest[position], attack=False)
            except AssertionError:
                raise
            except Exception:  # an attack may have broken the user's own call
                pass
    return won or security(suite, task, injection, run), run


def measure(name: str, suite: Any, *, open_gate: bool) -> dict[str, Any]:
    """All user tasks and all pairs of one suite."""
    clean = suite.load_and_inject_default_environment({})
    text = (HERE / "policies" / f"{name}.toml").read_text(encoding="utf-8")
    policy = ALLOW_ALL if open_gate else Policies.from_toml(text).named([name])
    gate = Gate(name, policy, sets_of(name, clean))
    intent = 2 if open_gate else None
    solved, asks, tasks_asking, failed = 0, [], 0, []
    pairs = goals = effects = text_only = 0
    stopped: Counter[str] = Counter()
    reached: list[str] = []
    for task in suite.user_tasks.values():
        honest = honest_calls(suite, task)
        run = start(gate, suite, task, honest, intent)
        for made in honest:
            run.call(made, attack=False)
        print(f"{name} {task.ID} {'off' if open_gate else 'on'}", file=sys.stderr, flush=True)
        if utility(suite, task, run):
            solved += 1
        else:
            failed.append(task.ID)
        asks += [f"{task.ID} {one}" for one in run.asked]
        tasks_asking += bool(run.asked)
        for injection in suite.injection_tasks.values():
            if not attack_calls(suite, injection, environment(suite, task)):
                text_only += 1
                continue
            pairs += 1
            places = [{0}, {len(honest) // 2}, {len(honest)}, set(range(len(honest) + 1))]
            won, effect = False, 0
            for place in places:
                goal, attack = attacked(gate, suite, task, injection, honest, intent, place)
                won, effect = won or goal, effect + attack.effects
                if place == {0}:
                    stopped.update(attack.stopped)
            goals += won
            effects += effect > 0
            if won:
                reached.append(f"{task.ID} × {injection.ID}")
    return {
        "user_tasks": len(suite.user_tasks), "solved": solved, "unsolved": failed, "asks": len(asks),
        "tasks_that_ask": tasks_asking, "asked": asks, "pairs": pairs, "text_only": text_only, "goals": goals,
        "pairs_with_an_effect": effects, "stopped": dict(stopped), "reached": reached,
    }  # fmt: skip


def main() -> int:
    """Print one JSON object: results by gate and suite."""
    result = {
        gate: {
            name: measure(name, suite, open_gate=gate == "off") for name, suite in get_suites(VERSION).items()
        }
        for gate in ("off", "on")
    }
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
