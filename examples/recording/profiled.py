"""At most three model calls: a profile, rules that adapt without asking the model, one repair, one report.

Profile-Then-Reason: a branch rule changes a step's parameters according to the result of another step, a recovery rule
fixes a failing call, and a result that does not support the answer is repaired once.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

STORE: Final = """\
```files.write path=sensor.csv content=$sensor
```
"""

READY: Final = "It is there as `sensor.csv`."

QUESTION: Final = (
    "What is the usual temperature in `sensor.csv`, on how many days was it above 30 degrees, and which month was the "
    "warmest? The device writes 999 when it fails."
)

PROFILE: Final = json.dumps(
    {
        "steps": [
            {"id": "name", "call": "shell.run", "params": {"command": "ls sensor*.csv"}},
            {
                "id": "faults",
                "call": "shell.run",
                "refs": {"command": {"step": "name", "field": "stdout", "template": "grep -c ',999$' {}"}},
            },
            {
                "id": "usual",
                "call": "shell.run",
                "refs": {
                    "command": {
                        "step": "name",
                        "field": "stdout",
                        "template": "awk -F, 'NR > 1 {sum += $2; n++} END {printf \"mean %.1f\\n\", sum / n}' {}",
                    }
                },
                "after": ["faults"],
            },
            {
                "id": "hot",
                "call": "shell.run",
                "params": {
                    "command": "awk -F, '$2 > 30 && $2 < 999' sensors.csv > hot.txt && wc -l < hot.txt"
                },
            },
            {
                "id": "months",
                "call": "shell.run",
                "refs": {"command": {"step": "name", "field": "stdout", "template": "grep '^2025/' {}"}},
            },
        ],
        "confidence": 0.6,
        "assumptions": ["the first column is a date", "faults are rare"],
        "fragile": ["a mean counts the faults as temperatures"],
        "branches": [
            {
                "step": "usual",
                "when": "number(faults.stdout) > 0",
                "set": {
                    "command": "awk -F, 'NR > 1 && $2 != 999 {print $2}' sensor.csv | sort -n | awk '{a[NR] = $1} END {print \"median\", a[int((NR + 1) / 2)]}'"
                },
            }
        ],
        "recoveries": [
            {
                "step": "hot",
                "error": "sensors.csv",
                "set": {"command": "awk -F, '$2 > 30 && $2 < 999' sensor.csv | wc -l"},
            }
        ],
        "replan_when": ["empty(months.stdout)"],
    },
    indent=1,
)

REPAIR: Final = json.dumps(
    {
        "steps": [
            {
                "id": "warmest",
                "call": "shell.run",
                "params": {
                    "command": "awk -F, 'NR > 1 && $2 != 999 {m = substr($1, 1, 7); s[m] += $2; n[m]++} END {for (m in s) printf \"%s %.1f\\n\", m, s[m] / n[m]}' sensor.csv | sort -k2 -nr | head -3"
                },
            }
        ],
        "confidence": 0.9,
    },
    indent=1,
)

REPORT: Final = """\
The usual temperature is {median} degrees; this is the median, since the device failed {faults} times [faults] [usual].

It was above 30 degrees on {hot} days [hot].

The warmest month was {warmest} [warmest].
"""


def table() -> bytes:
    """A year of daily temperatures, with errors."""
    dice = random.Random(7)
    lines = ["day,celsius"]
    for month in range(1, 13):
        middle = (2, 4, 8, 13, 18, 22, 26, 25, 20, 13, 7, 3)[month - 1]
        for day in range(1, 29):
            value = 999 if dice.random() < 0.03 else round(dice.gauss(middle, 3), 1)
            lines.append(f"2025-{month:02d}-{day:02d},{value}")
    return ("\n".join(lines) + "\n").encode()


def report() -> str:
    """The report that the results support, from the same table."""
    rows = [line.split(",") for line in table().decode().splitlines()[1:]]
    values = sorted(float(value) for _, value in rows if value != "999")
    months: dict[str, list[float]] = {}
    for day, value in rows:
        if value != "999":
            months.setdefault(day[:7], []).append(float(value))
    warmest = max(months, key=lambda month: sum(months[month]) / len(months[month]))
    return REPORT.format(
        median=values[(len(values) + 1) // 2 - 1],
        faults=sum(value == "999" for _, value in rows),
        hot=sum(value > 30 for value in values),
        warmest=f"{warmest}, with {sum(months[warmest]) / len(months[warmest]):.1f} degrees on average",
    )


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    script = {"/": [STORE, READY], "*": [PROFILE, REPAIR, report()]}
    with performed(data, script) as person:
        person.upload("sensor.csv", "text/csv", table())
        person.say("Put this file into the workspace as `sensor.csv`, please.")
        person.answered()
        person.tell({"type": "say", "text": QUESTION, "mode": "profile"})
        person.answered(2)
        return person.folder
