"""Writes what models are asked about three jobs, in each mode: `python -m docs.measurements.plan_questions`.

The jobs are those of the review by hand (four look-ups and a summary; a chain with a surprise; a step that fails and has
another way). The machine of a plan is the real one, and so are the functions' signatures; what steps return and what
models answer is written here. Each file holds the questions of one job in one mode, word for word, as they are asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iact.core.plan.briefing import Briefing, KnownValue, SaidBefore
from iact.core.plan.commands import AskModel
from iact.core.plan.forms import read_plan, step_of
from iact.core.plan.machine import PlanMachine
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.protocol import (
    Firing,
    FunctionInfo,
    Outcome,
    PlanQuestion,
    StepFailure,
    StepSuccess,
)

FOLDER: Final = Path(__file__).parent / "plans"
MODES: Final = ("static", "reflect", "nreflect", "orchestrator", "analyze", "profile")
WINDOW: Final = 8_192

_MOST: Final = 100
"""The most questions of one job, so that an endless one is noticed."""
_STEP = 1.0
"""Seconds that a step or an answer takes."""
_BETWEEN = 0.01
"""Seconds between the ends of steps that began together."""

_INFOS: Final = (
    FunctionInfo("shell.run", signature="- `shell.run <command> timeout=120` · Run bash: stdout, stderr, exit status", impact=1),
    FunctionInfo("files.read", signature="- `files.read path start=1 end=0` · The text of a file, or lines of it"),
    FunctionInfo("files.write", signature="- `files.write <content> path` · Make or replace a whole file", impact=1),
    FunctionInfo("web.search", signature="- `web.search <query> most=10` · Search the web", returns="JSON"),
    FunctionInfo("web.fetch", signature="- `web.fetch <url> raw=false` · A web page as Markdown"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """One job: what is asked, which steps are planned, and what comes of each."""

    name: str
    words: str
    steps: str
    """What the planner answers."""
    outcomes: Mapping[str, Outcome]
    answers: Mapping[str, str] = field(default_factory=dict)
    """What models answer, by the kind of question."""
    conversation: Sequence[SaidBefore] = ()


JOBS: Final = (
    Job(
        "look-ups",
        "Which kernel, which shell, how many cores and how much memory does this machine have? Two sentences.",
        "steps:\n"
        "  - {id: kernel, call: shell.run, params: {command: uname -r}}\n"
        "  - {id: shell, call: shell.run, params: {command: echo $SHELL}}\n"
        "  - {id: cores, call: shell.run, params: {command: nproc}}\n"
        "  - {id: memory, call: shell.run, params: {command: free -g}}\n",
        {
            "kernel": StepSuccess("6.1.0"),
            "shell": StepSuccess("/bin/bash"),
            "cores": StepSuccess("2"),
            "memory": StepSuccess("Mem: 8"),
        },
    ),
    Job(
        "surprise",
        "Jetzt dasselbe für web.conf und mail.yaml: Welche Hosts stehen darin? Schreib sie in hosts.txt.",
        "steps:\n"
        "  - {id: web, call: files.read, params: {path: web.conf}}\n"
        "  - {id: mail, call: files.read, params: {path: mail.yaml}}\n"
        "  - {id: schreiben, call: files.write, params: {path: hosts.txt}, refs: {content: {step: web}}, after: [mail]}\n",
        {
            "web": StepSuccess("include = sites/main.conf"),
            "mail": StepSuccess("host: mail1"),
            "main": StepSuccess("host: web1"),
            "schreiben": StepSuccess("Created hosts.txt, 12 bytes."),
            "neu": StepSuccess("Created hosts.txt, 11 bytes."),
        },
        {
            "reflect": '{"decision": "replan", "reason": "web.conf verweist auf sites/main.conf."}',
            "replan": "steps:\n"
            "  - {id: main, call: files.read, params: {path: sites/main.conf}}\n"
            "  - {id: neu, call: files.write, params: {path: hosts.txt, content: web1}, after: [main]}\n",
        },
        (SaidBefore("person", "Which host does db.conf use?"), SaidBefore("agent", "It uses db7.")),
    ),
    Job(
        "another-way",
        "Add up the amounts in orders.csv; if the service at shop.example is down, take the dump, and say which it was.",
        "steps:\n"
        "  - {id: service, call: web.fetch, params: {url: https://shop.example/orders.csv}}\n"
        "  - {id: total, call: shell.run, params: {command: ./add}, refs: {stdin: {step: service}}}\n",
        {
            "service": StepFailure("raised", "shop.example can't be reached from here."),
            "dump": StepSuccess("a,100.00\nb,277.10"),
            "total": StepSuccess("377.10"),
        },
        {
            "patch": '{"failure": "the service is down", "cause": "no connection", "action": "replace", "confidence": 0.9, '
            '"steps": [{"id": "dump", "call": "files.read", "params": {"path": "dump.csv"}}]}',
        },
    ),
)

_ANSWERS: Final[Mapping[str, str]] = {
    "reflect": '{"decision": "continue"}',
    "observe": '{"action": "continue"}',
    "analyze": '{"achieved": true, "confidence": 0.9, "reasoning": "The results show it."}',
    "synthesize": "(the answer)",
    "reason": "reached: yes\n(the answer)",
    "patch": '{"action": "give_up", "cause": "nothing helps"}',
}


def questions(job: Job, mode: str) -> list[tuple[str, str]]:
    """The questions of a job in a mode, in order: kind and text."""
    briefing = Briefing(
        date="Friday, 2026-11-27",
        known=[KnownValue("$run_1 (text/plain, 4 B)", "db7")],
        models=["fast", "smart"],
        words=[job.words],
        conversation=job.conversation,
        files=["web.conf (26 B)", "mail.yaml (12 B)", "dump.csv (18 B)"],
        memory=["prefers short answers"],
    )
    machine = PlanMachine(
        read_plan(json.dumps({"goal": job.words}), id="plan"),
        mode=make_mode(mode, {"n": 2} if mode == "nreflect" else {}),
        catalogue=_Catalogue(),
        asks=True,
        briefing=briefing,
        window=lambda role: WINDOW,
    )
    asked: list[tuple[str, str]] = []
    machine.begin(0.0)
    at = 0.0
    while (commands := machine.take()) and len(asked) < _MOST:
        at += _STEP
        machine.wake(at)
        for command in commands:
            at += _BETWEEN
            if isinstance(command, Firing):
                found = job.outcomes.get(command.node.id, StepFailure("raised", "There is no such thing."))
                machine.attempt_ended(command.node.id, found, at)
            elif isinstance(command, AskModel):
                kind = command.question.kind
                earlier = [one for one, _ in asked]
                asked.append((kind, command.question.text))
                answer = _answer(job, command.question, earlier)
                if command.pieces:
                    machine.piece(command.thought, answer, at)
                machine.answered(command.thought, answer, "", at)
    return asked


def _answer(job: Job, question: PlanQuestion, earlier: Sequence[str]) -> str:
    kind = question.kind
    if kind == "plan":
        return job.steps
    if kind == "profile":
        steps = [step_of(node) for node in read_plan(job.steps, id="plan").nodes.values()]
        return json.dumps({"steps": steps, "confidence": 0.8, "assumptions": ["the files are complete"]})
    # A judge that wanted more is content the second time.
    first = kind not in earlier
    if kind in job.answers and (first or kind == "patch"):
        return job.answers[kind]
    if kind == "reflect" and "nothing is planned any more" in question.text:
        return '{"decision": "conclude", "reached": true, "answer": "(the answer)"}'
    return _ANSWERS.get(kind, '{"steps": []}')


class _Catalogue:
    """The functions of the jobs."""

    def find(self, name: str) -> FunctionInfo | None:
        return next((info for info in _INFOS if info.name == name), None)

    def of_call(self, name: str, arguments: Mapping[str, object]) -> FunctionInfo | None:
        return self.find(name)

    def all(self) -> Sequence[FunctionInfo]:
        return _INFOS


def pages() -> dict[str, str]:
    """The files, by name."""
    made: dict[str, str] = {}
    for job in JOBS:
        for mode in MODES:
            parts = [f"# {job.name}, {mode}\n\nMade by `python -m docs.measurements.plan_questions`.\n"]
            for number, (kind, text) in enumerate(questions(job, mode), 1):
                parts.append(f"## {number}: {kind}\n\n~~~~text\n{text}\n~~~~\n")
            made[f"{job.name}-{mode}.md"] = "\n".join(parts)
    return made


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
