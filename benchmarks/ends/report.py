"""The table of ends, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.ends.cells import BACKENDS, COMMANDS, ENDINGS, MOMENTS, Cell
from benchmarks.ends.played import WITHIN, Outcome

PAGE: Final = Path(__file__).parents[2] / "docs" / "measurements" / "ends.md"

_ABOUT: Final = """\
# What is left after an end

**The problem.** Commands are ended in the middle of their work: by Ctrl-C, a service manager, a closed terminal, `timeout`, a container that is stopped, or `kill -9`. Nothing of theirs may go on after that, no container, job, mount or lock may be left, and the next start must go on in the session.

**How it is measured.** `python -m benchmarks.ends` starts every command that holds sessions as its user starts it, with real modules and a scripted model, brings it to a moment, and ends it. *Start*: its first module is coming up (with modules off: its first file is there). *Call running*, *job running*: a `sleep` of an agent's shell runs. *Approval pending*: a person was asked, and does not answer. *Terminal closed*: the terminal that the command was started in. *Timeout*: `timeout` of coreutils, when its time is over. *Container stop*: the command is the first process of a container of its own, and `docker stop` ends that. From outside are counted: processes (also of other PID namespaces), containers and volumes by their label, mounts, overlays, control groups, folders of sockets, temporary files, claims, and locks on files of the data directory. Then `iact run --session` goes on in the same session; it must succeed, and after it nothing at all may be there.

Every fifth cell is also a test (`tests/acceptance/test_ends.py`).
"""

_READ: Final = f"""\
A number is the seconds from the end until nothing of the command goes on; {WITHIN:.0f} are allowed. What a killed command could not remove itself, and what does nothing any more, is behind the number: *c* containers, *f* folders of sockets, *o* overlays, *g* control groups, *l* claims (empty files), *m* mounts, *t* temporary files. The next start had removed all of it. **Bold**: something was wrong.
"""

_LETTERS: Final[Mapping[str, str]] = {
    "container": "c",
    "folder": "f",
    "overlay": "o",
    "control": "g",
    "claim": "l",
    "mount": "m",
    "temporary": "t",
}


def table(cells: Iterable[Cell], known: Mapping[Cell, Outcome]) -> str:
    """The table of these cells in Markdown, and what the next starts say."""
    wanted = set(cells)
    parts = list[str]()
    for backend in BACKENDS:
        rows = list[list[str]]()
        for command in COMMANDS:
            for moment in MOMENTS:
                line = [Cell(command, ending, moment, backend) for ending in ENDINGS]
                if any(cell in wanted and not cell.why_not for cell in line):
                    rows.append([f"`{command}`", moment, *(_cell(cell, known) for cell in line)])
        if rows:
            parts.append(_markdown(f"{backend}", ["command", "moment", *ENDINGS], rows))

    reasons = Counter(f"{cell.backend}: {cell.why_not}" for cell in wanted if cell.why_not)
    parts += [f"{count} cells can't be: {reason}." for reason, count in reasons.items()]
    parts.append(_next_starts([known[cell] for cell in wanted if cell in known]))
    return "\n\n".join(part for part in parts if part)


def write(text: str, known: Mapping[Cell, Outcome]) -> None:
    """Write the page in docs/measurements."""
    day = datetime.now(UTC).strftime("%-d %B %Y")
    slowest = max(outcome.seconds for outcome in known.values())
    wrong = sum(1 for outcome in known.values() if outcome.wrong)
    result = f"**Results**, on {day}: {len(known)} cells played, {wrong} of them wrong; the longest end took {slowest:.1f} s."
    PAGE.write_text("\n".join([_ABOUT, result, "", _READ, text, ""]), encoding="utf-8")


def _cell(cell: Cell, known: Mapping[Cell, Outcome]) -> str:
    if cell.why_not:
        return "–"
    outcome = known.get(cell)
    if outcome is None:
        return "not played"

    kinds = Counter(_LETTERS[one.split(" ")[0]] for one in outcome.left)
    left = " ".join(f"{count}{letter}" for letter, count in sorted(kinds.items()))
    text = f"{outcome.seconds:.1f}"
    if outcome.wrong:
        text = f"**{text}**"
    return f"{text} {left}".strip()


def _markdown(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"## {title}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _next_starts(outcomes: Sequence[Outcome]) -> str:
    said = Counter((outcome.cell.moment, line) for outcome in outcomes for line in outcome.says)
    if not said:
        return ""
    rows = [[moment, line.replace("|", "\\|"), str(said[moment, line])] for moment, line in sorted(said)]
    return _markdown("What the next start says", ["moment of the end", "words", "times"], rows)
