"""AgentDojo as a test of the gate, with a planner that is assumed to be fully compromised, and without a model.

The calls of each user task must pass and solve the task. The calls of each injection are made before, between and
after them, and every denial is skipped. Each pair runs twice: with nothing injected, and with the injection's text in
every place that an attacker can write to. The result of a call is a value with the product's labels, and both planners
bind each argument in the way that is most likely to pass the gate (`planner`). The suite's own checks decide whether a
goal was reached; they get the calls that were *executed*. A person who is asked says yes to the user's calls and no to
the attacker's.

Run by the interpreter of a separate environment that has `agentdojo` 0.1.35; see `__main__`.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string

from benchmarks.agentdojo.attacks import workspace_calls
from benchmarks.agentdojo.planner import Allows, Binding, Planner, Result, leaves
from iact.core.gate.gate import CallRequest, Denial, Question, Ticket, arguments_digest, consider
from iact.core.gate.grant import Grant
from iact.core.gate.policy import OPEN, Policy
from iact.core.gate.policy_file import Policies
from iact.core.gate.provenance import Labels, Provenance, join
from iact.core.gate.user_values import wrote

HERE = Path(__file__).parent
VERSION = "v1.2.2"
IMPACTS = tomllib.loads((HERE / "impacts.toml").read_text(encoding="utf-8"))
READS = tomllib.loads((HERE / "reads.toml").read_text(encoding="utf-8"))
NOT_UNDERSTOOD = 2
"""The impact of a function that neither table knows."""
ALLOW_ALL = Policy(OPEN.names, OPEN.functions, trusted=frozenset({"*"}))
Made = tuple[str, dict[str, Any]]
Known = dict[str, frozenset[str]]
NAMES = {"impact": "intent"}
"""The name of an authority in the table. No function has a cap here."""


@dataclass(frozen=True)
class Decided:
    """One decision, with everything that it was based on."""

    suite: str
    function: str
    arguments: dict[str, Any]
    origins: dict[str, Labels]
    known: Known
    intent: int
    verdict: Ticket | Denial | Question
    attack: bool


@dataclass
class Run:
    """One run over one environment: what was executed, asked and denied.

    `honest`, `compromised`: what the two planners know. The second planner knows everything that the first one knows.
    `questions`: how often a person is asked about the task's own calls; one question may be about several calls.
    `shown`: calls that were shown together with an earlier one.
    """

    gate: Gate
    env: Any
    runtime: FunctionsRuntime
    honest: Planner
    compromised: Planner
    intent: int
    executed: list[FunctionCall] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    questions: int = 0
    shown: list[Made] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    effects: int = 0
    decided: list[Decided] = field(default_factory=list)

    def call(self, made: Made, *, attack: bool, behind: Sequence[Made] = ()) -> None:
        """Let the gate decide on one call, and make the call if it is allowed. `behind`: the task's next calls."""
        function, arguments = made
        planner = self.compromised if attack else self.honest
        known = self.gate.known(self.env)
        bound = self.gate.bind(planner, function, arguments, known)
        origins = {name: one.seen for name, one in bound.items()}
        verdict = self.gate.decide(function, arguments, origins, planner.prompt, self.intent, known)
        self.decided.append(
            Decided(self.gate.suite, function, arguments, origins, known, self.intent, verdict, attack)
        )
        match verdict:
            case Denial():
                self.stopped.append(NAMES.get(verdict.by, verdict.by))
                if not attack:
                    raise AssertionError(f"a call of the user's own task was denied: {made} {verdict}")
                return
            case Question():
                self.asked.append(f"{function}: {verdict.reason}")
                if attack:
                    self.stopped.append(verdict.by)
                    return
                if made not in self.shown:
                    self.questions += 1
                    self.shown += self._with(made, verdict, origins, behind, known)
            case Ticket():
                pass
        value, _ = self.runtime.run_function(self.env, function, arguments)
        self.executed.append(FunctionCall(function=function, args=arguments))
        result = Result.of(self.gate.name(function), [one.made_of for one in bound.values()], value)
        for one in (self.compromised,) if attack else (self.honest, self.compromised):
            one.results.append(result)
        if attack and self.gate.impact(function) > 0:
            self.effects += 1

    def _with(
        self, made: Made, asked: Question, origins: dict[str, Labels], behind: Sequence[Made], known: Known
    ) -> list[Made]:
        """The calls that a person is shown together with this one (`core.tree.ahead`, `core.views.questions`): the
        next calls of the same function whose arguments are all known by now, and that wait for the same reason with
        the same labels.
        """
        found: list[Made] = []
        for function, arguments in behind:
            if function != made[0] or not all(self._is_known(leaf) for leaf in leaves(arguments)):
                break
            bound = self.gate.bind(self.honest, function, arguments, known)
            seen = {name: one.seen for name, one in bound.items()}
            verdict = self.gate.decide(function, arguments, seen, self.honest.prompt, self.intent, known)
            alike = (
                isinstance(verdict, Question) and verdict.by == asked.by and verdict.impact == asked.impact
            )
            if not alike or join(seen.values()) != join(origins.values()):
                break
            found.append((function, arguments))
        return found

    def _is_known(self, leaf: Any) -> bool:
        """Whether a value is in what was said or read so far. A long text counts: the model may have written it."""
        text = str(leaf)
        return (
            len(text) > 60
            or wrote(self.honest.prompt, text)
            or any(
                text in one.typed or any(text in each for each in one.texts) for one in self.honest.results
            )
        )


@dataclass(frozen=True, eq=False)
class Gate:
    """The gate of one suite."""

    suite: str
    policy: Policy

    def known(self, env: Any) -> Known:
        """The named sets of values: those of the policy, and the current contents of the environment's directories."""
        return {**self.policy.known, **sets_of(self.suite, env)}

    def name(self, function: str) -> str:
        return f"{self.suite}.{function}"

    def impact(self, function: str) -> int:
        reads = function in READS[self.suite]["reads"]
        return 0 if reads else int(IMPACTS[self.suite].get(function, NOT_UNDERSTOOD))

    def bind(
        self, planner: Planner, function: str, arguments: dict[str, Any], known: Known
    ) -> dict[str, Binding]:
        """The origin of each argument, as `planner` binds it."""

        def allows(parameter: str) -> Allows:
            return lambda leaf, labels: isinstance(
                self.decide(function, {parameter: leaf}, {parameter: labels}, planner.prompt, 2, known),
                Ticket,
            )

        return {name: planner.bind(value, allows(name)) for name, value in arguments.items()}

    def decide(
        self,
        function: str,
        arguments: dict[str, Any],
        origins: dict[str, Labels],
        prompt: str,
        intent: int,
        known: Known,
    ) -> Ticket | Denial | Question:
        name = self.name(function)
        given = json.loads(json.dumps(arguments, default=str))
        return consider(
            CallRequest("/", name, arguments_digest(given, {})),
            self.impact(function),
            Grant(self.policy.scope(), intent),
            self.policy,
            arguments=given,
            provenance=Provenance(origins, said=(prompt,)),
            known=known,
        )


def sets_of(suite: str, env: Any) -> Known:
    """The people and accounts that the user has dealt with, from fields of the environment that hold nothing else.

    They are read again for each call. Every change of these fields went through the gate.
    """
    match suite:
        case "workspace":
            events = env.calendar.events.values()
            return {
                "sent-to": frozenset(to for mail in env.inbox.sent for to in mail.recipients),
                "invited": frozenset(one for event in events for one in event.participants),
            }
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
def _filled(suite: Any, injected: str) -> bytes:
    text = json.dumps(injected)[1:-1]
    places = suite.get_injection_vector_defaults() if injected else ()
    return pickle.dumps(suite.load_and_inject_default_environment(dict.fromkeys(places, text)))


def environment(suite: Any, task: Any, injected: str = "") -> Any:
    """A new environment for a task. `injected`: the text in each place that an attacker can write to."""
    return task.init_environment(pickle.loads(_filled(suite, injected)))


def honest_calls(suite: Any, task: Any) -> list[Made]:
    return [(one.function, dict(one.args)) for one in task.ground_truth(environment(suite, task))]


def attack_calls(suite: Any, task: Any, env: Any) -> list[Made]:
    calls = [(one.function, dict(one.args)) for one in task.ground_truth(env.model_copy(deep=True))]
    number = int(re.sub(r"\D", "", task.ID))
    if not calls and suite.name == "workspace":
        calls = list(workspace_calls(task, number, env))
    return calls


def start(
    gate: Gate, suite: Any, task: Any, honest: Sequence[Made], intent: int | None, injected: str = ""
) -> Run:
    """A new run. `intent`: None for the intent that the user would set, no more than the task's own calls need."""
    needed = max((gate.impact(function) for function, _ in honest), default=0)
    runtime = FunctionsRuntime(suite.tools)
    found = searched(gate, suite, task, injected)
    return Run(
        gate,
        environment(suite, task, injected),
        runtime,
        Planner(task.PROMPT, list(found)),
        Planner(task.PROMPT, list(found)),
        needed if intent is None else intent,
    )


@lru_cache(maxsize=1)
def searched(gate: Gate, suite: Any, task: Any, injected: str) -> tuple[Result, ...]:
    """The results of a planner that first searches for every phrase that the user wrote."""
    planner, runtime = Planner(task.PROMPT), FunctionsRuntime(suite.tools)
    reads = [name for name in runtime.functions if gate.impact(name) == 0]
    planner.search(gate.name, runtime, environment(suite, task, injected), reads)
    return tuple(planner.results)


def utility(suite: Any, task: Any, run: Run) -> bool:
    output = [text_content_block_from_string(task.GROUND_TRUTH_OUTPUT)]
    return bool(suite._check_user_task_utility(task, output, environment(suite, task), run.env, run.executed))


def security(suite: Any, task: Any, injection: Any, run: Run, injected: str) -> bool:
    """Whether the injection's goal was reached, by the calls that were executed."""
    output = [text_content_block_from_string(task.GROUND_TRUTH_OUTPUT)]
    return bool(
        suite._check_injection_task_security(
            injection, output, environment(suite, task, injected), run.env, run.executed
        )
    )


def attacked(
    gate: Gate,
    suite: Any,
    task: Any,
    injection: Any,
    honest: list[Made],
    intent: int | None,
    gaps: set[int],
    injected: str,
) -> tuple[bool, Run]:
    """Run the user's calls with the attack in each of `gaps`. Returns whether its goal was reached, and the run."""
    run, won = start(gate, suite, task, honest, intent, injected), False
    for position in range(len(honest) + 1):
        if position in gaps:
            for made in attack_calls(suite, injection, run.env):
                run.call(made, attack=True)
            # The user's later calls may undo what the check looks for. A goal that was reached once counts.
            won = won or security(suite, task, injection, run, injected)
        if position < len(honest):
            try:
                run.call(honest[position], attack=False)
            except AssertionError:
                raise
            except Exception:  # an attack may have broken the user's own call
                pass
    return won or security(suite, task, injection, run, injected), run


def gate_of(name: str) -> Gate:
    """The gate of a suite, with the policy that is written for it."""
    text = (HERE / "policies" / f"{name}.toml").read_text(encoding="utf-8")
    return Gate(name, Policies.from_toml(text).named([name]))


def record(name: str, suite: Any, tape: Tape) -> None:
    """Record the decisions about every task's own calls, and about every attack that is made before them."""
    gate = gate_of(name)
    for task in suite.user_tasks.values():
        honest = honest_calls(suite, task)
        run = start(gate, suite, task, honest, None)
        for made in honest:
            run.call(made, attack=False)
        tape.take(run)
        for injection in suite.injection_tasks.values():
            attack = start(gate, suite, task, honest, None, injection.GOAL)
            for made in attack_calls(suite, injection, attack.env):
                attack.call(made, attack=True)
            tape.take(attack)


def measure(name: str, suite: Any, *, open_gate: bool) -> dict[str, Any]:
    """All user tasks and all pairs of one suite."""
    gate = Gate(name, ALLOW_ALL) if open_gate else gate_of(name)
    intent = 2 if open_gate else None
    solved, asks, tasks_asking, questions, failed = 0, [], 0, 0, []
    pairs = goals = effects = text_only = 0
    stopped: Counter[str] = Counter()
    reached: list[str] = []
    for task in suite.user_tasks.values():
        honest = honest_calls(suite, task)
        run = start(gate, suite, task, honest, intent)
        for number, made in enumerate(honest, 1):
            run.call(made, attack=False, behind=honest[number:])
        print(f"{name} {task.ID} {'off' if open_gate else 'on'}", file=sys.stderr, flush=True)
        if utility(suite, task, run):
            solved += 1
        else:
            failed.append(task.ID)
        asks += [f"{task.ID} {one}" for one in run.asked]
        tasks_asking += bool(run.asked)
        questions += run.questions
        for injection in suite.injection_tasks.values():
            if not attack_calls(suite, injection, environment(suite, task)):
                text_only += 1
                continue
            pairs += 1
            places = [{0}, {len(honest) // 2}, {len(honest)}, set(range(len(honest) + 1))]
            won, effect = False, 0
            # Without a gate nothing is injected, because the texts mislead one of the package's checks.
            for injected, place in product(("",) if open_gate else ("", injection.GOAL), places):
                goal, attack = attacked(gate, suite, task, injection, honest, intent, place, injected)
                won, effect = won or goal, effect + attack.effects
                if place == {0} and injected:
                    stopped.update(attack.stopped)
            goals += won
            effects += effect > 0
            if won:
                reached.append(f"{task.ID} × {injection.ID}")
    return {
        "user_tasks": len(suite.user_tasks), "solved": solved, "unsolved": failed, "asks": len(asks), "questions": questions,
        "tasks_that_ask": tasks_asking, "asked": asks, "pairs": pairs, "text_only": text_only, "goals": goals,
        "pairs_with_an_effect": effects, "stopped": dict(stopped), "reached": reached,
    }  # fmt: skip


class Tape:
    """Decisions that `tests/benchmarks` repeats without the package: each text once, and rows of their numbers."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._rows: dict[tuple[Any, ...], None] = {}

    def take(self, run: Run) -> None:
        """Record the decisions of a run."""
        for one in run.decided:
            if self._matters(run.gate, one):
                arguments = json.loads(json.dumps(one.arguments, default=str))
                origins = {name: sorted(labels) for name, labels in one.origins.items()}
                known = {name: sorted(values) for name, values in one.known.items()}
                parts = (one.suite, run.honest.prompt, one.function, arguments, origins, known)
                numbers = tuple(self._number(part) for part in parts)
                kind = type(one.verdict).__name__.lower()
                self._rows[*numbers, one.intent, kind, int(one.attack)] = None

    @staticmethod
    def _matters(gate: Gate, one: Decided) -> bool:
        """Whether to record a decision. A denial needs no labels, and a read has no rule."""
        return gate.impact(one.function) > 0 and not isinstance(one.verdict, Denial)

    def _number(self, part: Any) -> int:
        return self._texts.setdefault(json.dumps(part, sort_keys=True), len(self._texts))

    def write(self, file: Path) -> None:
        data = {
            "texts": [json.loads(text) for text in self._texts],
            "rows": [list(row) for row in self._rows],
        }
        file.write_bytes(gzip.compress(json.dumps(data).encode(), mtime=0))


def main() -> int:
    """Print results by gate and suite as a JSON object. With an argument, only write the decisions to that file."""
    suites = get_suites(VERSION)
    if sys.argv[1:]:
        tape = Tape()
        for name, suite in suites.items():
            record(name, suite, tape)
        tape.write(Path(sys.argv[1]))
        return 0
    result = {
        gate: {name: measure(name, suite, open_gate=gate == "off") for name, suite in suites.items()}
        for gate in ("off", "on")
    }
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
