"""The stored state of an evaluation: a line for each run, written before the next run starts, and the terms."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from iact.core.errors import UsageError
from iact.core.ports import JSON

RunKey: TypeAlias = tuple[str, str, int]
"""A question, a way of working, and the number of the repetition, from 1."""

FILE: Final = "runs.jsonl"
TERMS: Final = "evaluation.json"


@dataclass(frozen=True, slots=True)
class EvalRun:
    """One question, worked on in one way.

    `resumed`: the run was interrupted, so its time is meaningless. `status`: the status of the reply. `nodes`: the number
    of tool calls. `bytes`: the size of the reply. `money`: the cost, if there are prices.
    """

    question: str
    arm: str
    session: str
    group: str
    status: str
    bound: str
    exact: bool | None
    f1: float | None
    seconds: float
    resumed: bool
    model_calls: int
    nodes: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    money: float
    bytes: int
    answer: str
    repetition: int = 1
    """Which of the repetitions of this question in this way it is."""
    retries: int = 0
    """How often steps of its plans were tried again."""
    versions: int = 0
    """The versions of its plans."""
    contracts: int = 0
    """The contracts that steps of its plans were held to."""
    held: int = 0
    """How many of these held."""
    width: int = 0
    """The most steps of a plan that were at work at the same time."""

    @property
    def key(self) -> RunKey:
        """What tells it from other runs."""
        return self.question, self.arm, self.repetition

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.prompt_tokens + self.completion_tokens


@dataclass
class Kept:
    """An evaluation's folder. `begun`: the sessions of unfinished runs."""

    folder: Path
    done: dict[RunKey, EvalRun] = field(default_factory=dict)
    begun: dict[RunKey, str] = field(default_factory=dict)
    spent: float = 0.0
    used: int = 0
    """Money and tokens of runs that a budget cut off. These have no result."""

    @property
    def money(self) -> float:
        """The total cost so far."""
        return self.spent + sum(one.money for one in self.done.values())

    @property
    def tokens(self) -> int:
        """The total number of tokens so far."""
        return self.used + sum(one.tokens for one in self.done.values())

    def begin(self, key: RunKey, session: str) -> None:
        """Record that a session was opened for a run."""
        self.begun[key] = session
        self._add({"begun": session, **_named(key)})

    def end(self, run: EvalRun) -> None:
        """Record the result of a run."""
        self.done[run.key] = run
        self.begun.pop(run.key, None)
        self._add({"run": asdict(run)})

    def cut(self, key: RunKey, money: float, tokens: int) -> None:
        """Record that a budget ended a run. Its cost counts, and the run is repeated when there is more budget."""
        self.begun.pop(key, None)
        self.spent += money
        self.used += tokens
        self._add({"cut": [money, tokens], **_named(key)})

    def _add(self, line: Mapping[str, object]) -> None:
        with (self.folder / FILE).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())


def _named(key: RunKey) -> dict[str, object]:
    question, arm, repetition = key
    return {"question": question, "arm": arm, "repetition": repetition}


def open_kept(folder: Path, terms: Mapping[str, JSON]) -> Kept:
    """Open the folder of an evaluation, new or to be continued. `terms`: what must be the same for all runs.

    Raises:
        UsageError: the folder can't be created, or contains an evaluation with other terms.
    """
    file = folder / TERMS
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            file.write_text(json.dumps(terms, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        before = json.loads(file.read_text(encoding="utf-8"))
        lines = (folder / FILE).read_bytes() if (folder / FILE).exists() else b""
    except (OSError, ValueError) as error:
        raise UsageError(f"The folder {folder} can't be used: {error}.") from error
    if before != terms:
        differ = ", ".join(sorted(name for name in {*before, *terms} if before.get(name) != terms.get(name)))
        raise UsageError(
            f"{folder} contains an evaluation with other terms ({differ}). Choose another folder with --out, or use the "
            "terms that it was started with."
        )
    kept = Kept(folder)
    whole, _, torn = lines.rpartition(b"\n")
    if torn:  # the program was stopped while writing
        (folder / FILE).write_bytes(whole + b"\n" if whole else b"")
    for line in map(json.loads, whole.decode().splitlines()):
        key = (str(line.get("question")), str(line.get("arm")), int(line.get("repetition", 1)))
        if "run" in line:
            run = EvalRun(**line["run"])
            kept.done[run.key] = run
            kept.begun.pop(run.key, None)
        elif "cut" in line:
            kept.begun.pop(key, None)
            kept.spent += line["cut"][0]
            kept.used += line["cut"][1]
        else:
            kept.begun[key] = line["begun"]
    return kept


def runs_in(folder: Path) -> list[EvalRun]:
    """The finished runs in the folder of an evaluation, which is not changed.

    Raises:
        UsageError: it contains no evaluation.
    """
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise UsageError(f"The folder {folder} contains no evaluation that can be read: {error}.") from error
    return [EvalRun(**line["run"]) for line in found if "run" in line]
