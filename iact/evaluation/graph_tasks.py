"""Fifty tasks in three tiers over coding, data analysis and operations.

A task is a small graph of tool calls that leads to one value. Seventeen shapes are filled with the words
of three domains (one is left out, which makes fifty). The goal describes the wanted value as one nested
phrase, but not the order of calls. Some steps run into trouble, which is part of the task and the same in
every run: a tool that fails at first, a name that has changed, an input that must be made differently.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Tier = Literal["simple", "medium", "complex"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `literal`: the name of its only plain parameter. `inputs`: parameters for results of other calls."""

    name: str
    literal: str
    inputs: tuple[str, ...]
    seconds: float
    summary: str


@dataclass(frozen=True, slots=True)
class Step:
    """A call of the task: the tool, its literal, and the ids of the steps whose results it takes."""

    id: str
    tool: Tool
    literal: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """The trouble that a step runs into. "flaky": it first fails `times` times. "moved": its literal must be `now`.

    "upstream": the step before it (`of`), which only this step uses, must be made with the literal `now`.
    """

    kind: Literal["flaky", "moved", "upstream"]
    times: int = 0
    now: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class GraphTask:
    """A task. `steps` are in an order in which they can run; the last one returns the wanted value."""

    id: str
    domain: str
    tier: Tier
    steps: tuple[Step, ...]
    troubles: Mapping[str, Trouble]

    @property
    def goal(self) -> str:
        """The wanted value, in words."""
        by_id = {step.id: step for step in self.steps}

        def phrase(one: str) -> str:
            step = by_id[one]
            of = f" of ({'; '.join(phrase(other) for other in step.inputs)})" if step.inputs else ""
            return f"{step.tool.name} {step.literal!r}{of}"

        return f"Give the result of: {phrase(self.steps[-1].id)}. Make what is named twice only once."

    def step(self, one: str) -> Step:
        return next(step for step in self.steps if step.id == one)


PARTS: Final = tuple(f"part{n}" for n in range(1, 7))
"""Inputs of the tools that combine results. At least one is used."""

_WORDS: Final[Mapping[str, Mapping[str, tuple[tuple[Tool, tuple[str, ...]], ...]]]] = {
    "coding": {
        "S": ((Tool("read", "path", (), 0.5, "Read a source file."), ("core.py", "api.py", "model.py", "util.py", "main.py", "cli.py")),
              (Tool("search", "pattern", (), 1.0, "Find where a pattern occurs."), ("retry", "token", "cache", "lock", "parse", "close"))),
        "T": ((Tool("lint", "rule", ("source",), 1.0, "Check a source against a rule."), ("names", "types", "unused")),
              (Tool("edit", "change", ("source",), 0.5, "Apply a change to a source."), ("rename", "inline", "guard")),
              (Tool("build", "target", ("source",), 4.0, "Build a target from a source."), ("wheel", "docs", "binary"))),
        "J": ((Tool("test", "suite", ("left", "right"), 6.0, "Run a suite over two builds or sources."), ("unit", "smoke", "full")),),
        "R": ((Tool("review", "title", PARTS, 1.0, "Write a review of up to six results."), ("change", "release", "defect")),),
    },
    "data": {
        "S": ((Tool("load", "dataset", (), 1.5, "Load a data set."), ("sales", "costs", "visits", "staff", "stock", "returns")),
              (Tool("query", "view", (), 2.0, "Query a view of the warehouse."), ("orders", "regions", "prices", "claims", "leads", "tickets"))),
        "T": ((Tool("clean", "rule", ("table",), 1.0, "Clean a table by a rule."), ("nulls", "dates", "doubles")),
              (Tool("group", "by", ("table",), 1.0, "Sum a table up by a column."), ("month", "region", "product")),
              (Tool("fit", "target", ("table",), 5.0, "Fit a model to a table."), ("trend", "season", "churn"))),
        "J": ((Tool("join", "key", ("left", "right"), 2.0, "Join two tables."), ("month", "customer", "product")),),
        "R": ((Tool("report", "title", PARTS, 1.0, "Write a report of up to six results."), ("margins", "forecast", "quarter")),),
    },
    "operations": {
        "S": ((Tool("metrics", "host", (), 1.0, "Metrics of a host."), ("web1", "web2", "db1", "db2", "mail", "queue")),
              (Tool("logs", "service", (), 2.0, "The last logs of a service."), ("nginx", "postgres", "cron", "sshd", "redis", "kafka"))),
        "T": ((Tool("window", "span", ("series",), 0.5, "Cut a series to a span of time."), ("hour", "night", "week")),
              (Tool("rate", "event", ("series",), 1.0, "Rate of an event in a series."), ("errors", "restarts", "logins")),
              (Tool("trace", "depth", ("series",), 4.0, "Trace what lies behind a series."), ("calls", "disks", "locks"))),
        "J": ((Tool("compare", "measure", ("left", "right"), 2.0, "Compare two series."), ("load", "latency", "size")),),
        "R": ((Tool("incident", "title", PARTS, 1.0, "Write an incident note of up to six results."), ("outage", "slowness", "alarm")),),
    },
}  # fmt: skip

_SHAPES: Final[Mapping[Tier, tuple[str, ...]]] = {
    "simple": (
        "a=S r=R(a)",
        "a=S b=T(a) r=R(b)",
        "a=S b=T(a) c=T(b) r=R(c)",
        "a=S b=S c=J(a,b) r=R(c)",
        "a=S b=T(a) c=T(a) r=R(b,c)",
        "a=S b=T(a) c=T(b)",
    ),
    "medium": (
        "a=S b=S c=S d=S e=T(a) f=T(b) g=T(c) h=T(d) r=R(e,f,g,h)",
        "a=S b=T(a) c=T(b) d=S e=T(d) f=T(e) g=J(c,f) r=R(g)",
        "a=S b=T(a) c=T(a) d=J(b,c) e=T(d) f=T(d) g=J(e,f)",
        "a=S b=S c=J(a,b) d=T(c) e=T(c) f=T(c) r=R(d,e,f)",
        "a=S b=T(a) c=T(b) d=T(c) e=T(d) r=R(e)",
        "a=S b=T(a) c=S d=T(c) e=S f=T(e) r=R(b,d,f)",
    ),
    "complex": (
        "a=S b=S c=S d=S e=S f=S g=T(a) h=T(b) i=T(c) j=T(d) k=T(e) l=T(f) r=R(g,h,i,j,k,l)",
        "a=S b=S c=S d=S e=T(a) f=T(b) g=T(c) h=T(d) i=J(e,f) j=J(g,h) k=T(i) l=T(j) m=J(k,l) r=R(m)",
        "a=S b=T(a) c=T(a) d=J(b,c) e=S f=T(e) g=T(e) h=J(f,g) i=J(d,h) j=T(i) k=T(i) r=R(j,k)",
        "a=S b=T(a) c=T(b) d=S e=J(c,d) f=T(e) g=S h=J(f,g) i=T(h) j=T(i) r=R(c,e,h,j)",
        "a=S b=S c=S d=J(a,b) e=J(b,c) f=T(d) g=T(d) h=T(e) i=T(e) j=J(f,h) k=J(g,i) r=R(j,k,d,e)",
    ),
}

_TROUBLES: Final[Mapping[Tier, tuple[float, float, float]]] = {
    "simple": (0.06, 0.06, 0.0),
    "medium": (0.08, 0.06, 0.04),
    "complex": (0.08, 0.06, 0.06),
}
"""By tier, the probabilities that a step is flaky, moved, or needs another input."""


def tools() -> tuple[Tool, ...]:
    """All tools of all domains."""
    return tuple(tool for words in _WORDS.values() for some in words.values() for tool, _ in some)


def tasks() -> tuple[GraphTask, ...]:
    """The fifty tasks, always the same."""
    made = [
        _task(f"{domain}-{tier}-{number}", domain, tier, shape)
        for domain in _WORDS
        for tier, shapes in _SHAPES.items()
        for number, shape in enumerate(shapes, 1)
    ]
    return tuple(made[:50])


def _task(name: str, domain: str, tier: Tier, shape: str) -> GraphTask:
    rng = random.Random(name)
    used: set[tuple[str, str]] = set()
    steps = [_step(part, domain, rng, used) for part in shape.split()]
    return GraphTask(name, domain, tier, tuple(steps), _troubles(steps, _TROUBLES[tier], rng))


def _step(part: str, domain: str, rng: random.Random, used: set[tuple[str, str]]) -> Step:
    one, _, call = part.partition("=")
    inputs = tuple(call[2:-1].split(",")) if "(" in call else ()
    choices = [
        (tool, word)
        for tool, words in _WORDS[domain][call[0]]
        for word in words
        if (tool.name, word) not in used
    ]
    tool, word = rng.choice(
        choices or [(tool, word) for tool, words in _WORDS[domain][call[0]] for word in words]
    )
    used.add((tool.name, word))
    return Step(one, tool, word, inputs)


def _troubles(
    steps: Sequence[Step], chances: tuple[float, float, float], rng: random.Random
) -> dict[str, Trouble]:
    flaky, moved, upstream = chances
    found: dict[str, Trouble] = {}
    for step in steps:
        drawn = rng.random()
        alone = [
            one
            for one in step.inputs
            if one not in found and sum(one in other.inputs for other in steps) == 1
        ]
        if drawn < flaky:
            found[step.id] = Trouble("flaky", times=rng.randint(1, 2))
        elif drawn < flaky + moved:
            found[step.id] = Trouble("moved", now=f"{step.literal}-2")
        elif drawn < flaky + moved + upstream and alone:
            found[step.id] = Trouble("upstream", now=f"{_literal_of(steps, alone[0])}-raw", of=alone[0])
    return found


def _literal_of(steps: Sequence[Step], one: str) -> str:
    return next(step.literal for step in steps if step.id == one)


def value(tool: str, literal: str, inputs: tuple[str, ...]) -> str:
    """The result of a call: a name that depends on all of its inputs."""
    digest = hashlib.sha256(repr((tool, literal, inputs)).encode()).hexdigest()[:10]
    return f"{tool}:{literal}#{digest}"


def needed(task: GraphTask, step: Step) -> str:
    """The literal that a step really needs."""
    for one, trouble in task.troubles.items():
        if (trouble.kind == "moved" and one == step.id) or (
            trouble.kind == "upstream" and trouble.of == step.id
        ):
            return trouble.now
    return step.literal


def wanted(task: GraphTask, one: str | None = None) -> str:
    """The value that a step (by default the last) must return."""
    step = task.step(one or task.steps[-1].id)
    return value(step.tool.name, needed(task, step), tuple(wanted(task, each) for each in step.inputs))
