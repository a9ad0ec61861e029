"""The cost of a decision of the gate: `python -m benchmarks.gate` prints a table.

Decision: scope, impact, intent and provenance with 1,000 functions in scope, each with its own cap, over random
functions in and out of scope. Shell: a 200-character command through the classifier.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from benchmarks import kept
from iact.core.gate.gate import CallRequest, consider
from iact.core.gate.grant import Grant
from iact.core.gate.policy import Policy, Require
from iact.core.gate.provenance import Provenance
from iact.core.gate.shell import judge_script

CALLS = 20_000
SCRIPT = (
    'find . -name "*.py" -not -path "./.venv/*" | xargs grep -n "import" | sort | uniq -c | head -20; '
    'for f in a b c; do wc -l "$f"; done && git log --oneline -5 | cat; echo "$(date) done" >> log.txt; ls -la src'
)


def timed(action: Callable[[], object]) -> float:
    """The microseconds that one call takes."""
    start = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - start) / 1000


def percentiles(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2)}


def decisions(source: random.Random, functions: int = 1000) -> dict[str, float]:
    """The microseconds of a decision with `functions` functions in scope."""
    names = [f"module{i // 10}.function{i % 10}" for i in range(functions)]
    policy = Policy(
        frozenset({"bench"}),
        frozenset(names),
        frozenset((name, float(i % 3)) for i, name in enumerate(names)),
        requires=frozenset(
            {Require("module1.*", "to", ("user", "book")), Require("module2.*", "to", ("user",))}
        ),
    )
    grant = Grant(policy.scope(), 2)
    origins = [frozenset({"user"}), frozenset({"model"}), frozenset({"tool:web.fetch"})]
    book = {"book": frozenset(f"person{i}@example.com" for i in range(1000))}
    said = ("Please write to person7@example.com about the meeting on Monday. " * 5,)
    times = []
    for _ in range(CALLS):
        name = source.choice(names) if source.random() < 0.95 else f"other.function{source.randrange(50)}"
        request = CallRequest("/a/b", name, "0" * 64)
        provenance = Provenance({"to": source.choice(origins)}, said=said)
        impact = source.randrange(3)
        times.append(
            timed(
                lambda request=request, impact=impact, provenance=provenance: consider(  # type: ignore[misc]
                    request, impact, grant, policy,
                    arguments={"to": "person7@example.com", "text": "hello"}, provenance=provenance, known=book,
                )
            )
        )  # fmt: skip
    return percentiles(times)


def shell() -> dict[str, float]:
    assert 195 <= len(SCRIPT) <= 215, len(SCRIPT)
    judge_script(SCRIPT)
    return percentiles([timed(lambda: judge_script(SCRIPT)) for _ in range(500)])


def main() -> int:
    """Measure and print. Returns 1 if a goal is missed."""
    rows = {
        "decision": (decisions(random.Random(1)), {"p50": 20.0, "p99": 100.0}),
        "shell": (shell(), {"p50": 1000.0}),
    }
    missed = False
    print(f"{'':10}{'p50 µs':>10}{'p99 µs':>10}   goal")
    for name, (got, goal) in rows.items():
        print(
            f"{name:10}{got['p50']:>10}{got['p99']:>10}   {', '.join(f'{k} ≤ {v:g}' for k, v in goal.items())}"
        )
        missed = missed or any(got[key] > most for key, most in goal.items())
    kept.numbers({name: got for name, (got, _) in rows.items()})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
