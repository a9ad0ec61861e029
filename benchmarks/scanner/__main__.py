"""How fast the scanner reads a reply, compared with markdown-it-py in one run: a table, and JSON with `--json FILE`.

    python -m benchmarks.scanner [--megabytes N] [--json FILE]

Times are processor seconds, the best of several runs, on generated agent-like Markdown that is always the
same. Ratios only compare lines of one run. `re-parsed` is the cost for an interpreter without an incremental
scanner: it parses the whole message again at every chunk of four characters.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from benchmarks import kept
from iact.core.language.scanner import Scanner

ROUNDS: Final = 5
LINEAR: Final = 2.0
"""The cost of a byte in a reply of 10 MB may be at most this multiple of its cost in a tenth of that reply."""

TARGETS: Final = {"one chunk": 50.0, "chunks of 4": 10.0}
"""MB/s that the scanner must reach."""

_WORDS: Final = [
    "the",
    "data",
    "shows",
    "a",
    "trend",
    "in",
    "sales",
    "per",
    "region",
    "and",
    "`value`",
    "of",
    "*each*",
    "month",
    "so",
    "we",
    "fit",
    "a",
    "line",
    "to",
    "it",
    "and",
    "report",
    "what",
    "is",
    "uncertain",
    "about",
    "file",
    "names",
    "such",
    "as",
    "`src/main.py`",
    "or",
    "[this",
    "page](http://example.org/a?b=c)",
    "now",
]


def is_action(name: str) -> bool:
    """Whether a name counts as an action in the generated text."""
    return name in ("shell.run", "CALL", "VAR")


def reply(characters: int, seed: int = 7) -> str:
    """Agent-like Markdown of about that length: prose, lists, headings, code blocks. No actions, so nothing is cut."""
    draw = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < characters:
        parts.append(_part(draw) + "\n\n")
        length += len(parts[-1])
    return "".join(parts)


def _part(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.55:
        return "\n".join(_sentence(draw, 18) for _ in range(draw.randint(2, 6)))
    if kind < 0.7:
        return "\n".join(f"- {_sentence(draw, 10)}" for _ in range(draw.randint(2, 6)))
    if kind < 0.78:
        return "\n".join(f"{at}. {_sentence(draw, 12)}" for at in range(1, draw.randint(3, 6)))
    if kind < 0.84:
        return f"## {_sentence(draw, 4)}"
    lines = [f"    {_sentence(draw, 6)}" for _ in range(draw.randint(3, 20))]
    return "\n".join([f"```{draw.choice(['python', 'sql', 'text', ''])}", "def f():", *lines, "```"])


def _sentence(draw: random.Random, words: int) -> str:
    return " ".join(draw.choices(_WORDS, k=words)).capitalize() + "."


def scan_in_chunks(text: str, size: int) -> None:
    """Scan one reply in chunks of `size` characters."""
    scanner = Scanner(is_action)
    feed = scanner.feed
    for at in range(0, len(text), size):
        feed(text[at : at + size])
    scanner.end()


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Processor seconds of `work`, the best of `rounds`."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def measure(megabytes: float) -> dict[str, float]:
    """MB/s by the name of the measured line."""
    text = reply(int(megabytes * 1e6))
    short = text[: max(1, len(text) // 8)]
    commonmark, rules = (
        MarkdownIt("commonmark"),
        MarkdownIt("commonmark").disable(["inline"], ignoreInvalid=True),
    )
    rules.core.ruler.disable(["inline"], ignoreInvalid=True)
    size = len(text) / 1e6
    return {
        "one chunk": size / seconds(lambda: scan_in_chunks(text, len(text))),
        "chunks of 4096": size / seconds(lambda: scan_in_chunks(text, 4096)),
        "chunks of 64": size / seconds(lambda: scan_in_chunks(text, 64)),
        "chunks of 4": size / seconds(lambda: scan_in_chunks(text, 4)),
        "chunks of 1": size / seconds(lambda: scan_in_chunks(text, 1), 2),
        "markdown-it-py": len(short) / 1e6 / seconds(lambda: commonmark.parse(short), 2),
        "markdown-it-py, block rules": len(short) / 1e6 / seconds(lambda: rules.parse(short), 2),
    }


def linear(megabytes: float = 10.0) -> dict[str, float]:
    """The cost of a byte in a reply ten times as long, as a multiple: in one chunk and in chunks of 1."""
    text = reply(int(megabytes * 1e6))
    tenth = text[: len(text) // 10]
    return {
        name: seconds(partial(scan_in_chunks, text, size), 2)
        / 10
        / seconds(partial(scan_in_chunks, tenth, size), 2)
        for name, size in (("in one go", len(text)), ("in chunks of 1", 1))
    }


def growing(characters: int) -> dict[str, float]:
    """Seconds for a message that grows by four characters at a time: scanned, and parsed again each time."""
    text, parser = reply(characters)[:characters], MarkdownIt("commonmark")

    def again() -> None:
        for at in range(4, len(text) + 1, 4):
            parser.parse(text[:at])

    return {"scanned": seconds(lambda: scan_in_chunks(text, 4)), "re-parsed": seconds(again, 1)}


def main(arguments: list[str]) -> int:
    """Measure and print. Returns 1 if a target is missed."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.scanner", description=__doc__)
    options.add_argument("--megabytes", type=float, default=2.0)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args(arguments)
    speeds, grown = measure(chosen.megabytes), growing(2000)
    ratio = speeds["one chunk"] / speeds["markdown-it-py"]
    print(f"{'':32}{'MB/s':>8}{'× markdown-it-py':>18}")
    for name, speed in speeds.items():
        print(f"{name:32}{speed:8.1f}{speed / speeds['markdown-it-py']:18.1f}")
    print(
        f"\na message of 2 kB, growing by 4 characters: {grown['scanned']:.4f} s scanned, {grown['re-parsed']:.2f} s re-parsed"
    )
    costs = linear()
    for name, cost in costs.items():
        print(f"10 MB {name}: a byte costs {cost:.2f} times what it costs in 1 MB")
    missed = [f"{name} below {target} MB/s" for name, target in TARGETS.items() if speeds[name] < target]
    missed += ["less than 15 times markdown-it-py"] if ratio < 15 else []
    missed += [f"not linear {name}" for name, cost in costs.items() if cost > LINEAR]
    print("targets: " + ("; ".join(missed) if missed else "all reached"))
    kept.numbers({"mb_per_s": speeds, "ratio": ratio, "growing_2kB_s": grown, "linear": costs})
    bars = [(name, [("", speed)]) for name, speed in speeds.items()]
    kept.chart(kept.Chart("Reading a reply", "", "MB/s", bars, kind="bars", log=True))
    if chosen.json is not None:
        result = {
            "mb_per_s": speeds,
            "ratio": ratio,
            "growing_2kB_s": grown,
            "linear": costs,
            "missed": missed,
        }
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
