"""The tools of one task of the seven groups, as the program `tool.py` in a session's folder: standard library alone.

    python3 tool.py TOOL WORD [VALUE …]

TASK is replaced by the task. Failures that pass are counted in a file beside it.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

TASK: dict[str, Any] = {}
COUNTS = Path(__file__).with_name(".tool.json")


def value(tool: str, word: str, inputs: tuple[str, ...]) -> str:
    """What a call gives: a name that depends on everything that went into it."""
    digest = hashlib.sha256(repr((tool, word, inputs)).encode()).hexdigest()[:10]
    return f"{tool}:{word}#{digest}"


def word_of(step: dict[str, Any]) -> str:
    """The word that a step really needs."""
    for one, trouble in TASK["troubles"].items():
        if (trouble["kind"] == "moved" and one == step["id"]) or (
            trouble["kind"] == "upstream" and trouble["of"] == step["id"]
        ):
            return str(trouble["now"])
    return str(step["word"])


def wanted(one: str) -> str:
    """The value that a step has to give."""
    step = next(step for step in TASK["steps"] if step["id"] == one)
    return value(step["tool"], word_of(step), tuple(map(wanted, step["inputs"])))


def attempt(key: str) -> int:
    """How often this call was made, with this time."""
    counts = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    counts[key] = counts.get(key, 0) + 1
    COUNTS.write_text(json.dumps(counts))
    return int(counts[key])


def refusal(step: dict[str, Any], word: str, inputs: tuple[str, ...], count: int) -> str:
    """Why the call fails; empty if it doesn't."""
    if len(inputs) < len(step["inputs"]):
        return f"{len(step['inputs'])} values are needed, and {len(inputs)} were given."
    trouble = TASK["troubles"].get(step["id"])
    if trouble is None:
        return ""
    if trouble["kind"] == "flaky" and count <= trouble["times"]:
        return "The tool did not answer. Try again."
    if trouble["kind"] == "moved" and word == step["word"]:
        return f"{word!r} is called {trouble['now']!r} now."
    if trouble["kind"] == "upstream" and wanted(trouble["of"]) not in inputs:
        before = next(one for one in TASK["steps"] if one["id"] == trouble["of"])
        return f"The value of {before['tool']} {before['word']!r} can't be used here; make it with {trouble['now']!r}."
    return ""


def main(arguments: list[str]) -> int:
    """One call; its value on standard output, or why there is none on standard error and 1."""
    if len(arguments) < 2:
        print("Usage: python3 tool.py TOOL WORD [VALUE …]", file=sys.stderr)
        return 2
    tool, word, inputs = arguments[0], arguments[1], tuple(arguments[2:])
    mine = [step for step in TASK["steps"] if step["tool"] == tool]
    meant = [step for step in mine if word in (step["word"], word_of(step))]
    if not meant:
        there = ", ".join(sorted({f"{step['tool']} {step['word']}" for step in mine or TASK["steps"]}))
        print(f"There is no {tool} {word!r}; there is {there}.", file=sys.stderr)
        return 1
    step = max(meant, key=lambda one: sum(wanted(each) in inputs for each in one["inputs"]))
    time.sleep(step["seconds"])
    why = refusal(step, word, inputs, attempt(" ".join((tool, word, *inputs))))
    print(why or value(tool, word, inputs), file=sys.stderr if why else sys.stdout)
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
