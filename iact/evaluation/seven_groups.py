"""The fifty tasks of the seven groups (Graph Harness, 8.1) for real sessions. Their tools are a program that agents call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from iact.evaluation.graph_tasks import GraphTask, tasks, wanted
from iact.evaluation.questions import EvalQuestion

_SOURCE: Final = Path(__file__).with_name("tool_program.py")
_HOW: Final = (
    "The tools are a program in your folder. Call it with shell.run, as `python3 tool.py TOOL WORD VALUE…`: the values are "
    "those that earlier calls printed, in the order in which they are named. It prints a value, or says why there is none."
)


def questions() -> list[EvalQuestion]:
    """All questions. A reply is right if it contains the wanted value."""
    source = _SOURCE.read_text(encoding="utf-8")
    return [
        EvalQuestion(
            one.id, f"{one.goal}\n\n{_HOW}", (wanted(one),), "contains", one.tier, program(one, source)
        )
        for one in tasks()
    ]


def program(task: GraphTask, source: str) -> str:
    """The program with the tools of one task."""
    steps = [
        {
            "id": one.id,
            "tool": one.tool.name,
            "word": one.literal,
            "inputs": one.inputs,
            "seconds": one.tool.seconds,
        }
        for one in task.steps
    ]
    troubles = {
        name: {"kind": one.kind, "times": one.times, "now": one.now, "of": one.of}
        for name, one in task.troubles.items()
    }
    literal = json.dumps(json.dumps({"steps": steps, "troubles": troubles}))
    return source.replace("TASK: dict[str, Any] = {}", f"TASK: dict[str, Any] = json.loads({literal})")
