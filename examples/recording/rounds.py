"""A plan is judged as a whole: a judgement with low confidence makes it plan again, and a confident one ends it.

The loop of the DAG mode: plan, execute, analyze, plan again. The first question is planned again at a confidence of 0.4
and then answered. The second one is given up at 0.85 although its goal was not reached, because planning again would
not change that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

FILES: Final = """\
I put the files where they belong.

```files.write path=depot/stock.csv content=$code_1
```

```files.write path=depot/orders.csv content=$code_2
```

```files.write path=depot/counted.txt content=$code_3
```
"""

HERE: Final = """\
Here is what our depot has written down. Put it into a folder `depot`, as `stock.csv`, `orders.csv` and `counted.txt`; the
questions come afterwards.

```csv
part,in_stock
bolt,1200
nut,950
washer,400
```

```csv
part,ordered
bolt,300
nut,500
washer,450
```

```text
4 May, counted by hand: bolt 1190, nut 950, washer 610.
```
"""

READY: Final = "All three are in `depot/`."

FIRST: Final = "Do we have enough washers for the open orders?"

PLAN: Final = """\
steps:
  - {id: stock, call: shell.run, params: {command: "awk -F, '$1 == \\"washer\\" {print $2}' depot/stock.csv"}}
  - {id: ordered, call: shell.run, params: {command: "awk -F, '$1 == \\"washer\\" {print $2}' depot/orders.csv"}}
"""

DOUBT: Final = (
    '{"achieved": false, "confidence": 0.4, "reasoning": "By the list there are 400 washers for 450 that are ordered, but '
    'nobody knows how old the list is; there may be a count.", "final_answer": null}'
)

AGAIN: Final = """\
steps:
  - {id: dates, call: shell.run, params: {command: "ls depot; cat depot/counted.txt"}}
"""

SURE: Final = (
    '{"achieved": true, "confidence": 0.9, "reasoning": "The count of 4 May is newer than the list and says 610; 450 are '
    'ordered.", "final_answer": "Yes: 610 are there, 450 are ordered."}'
)

ENOUGH: Final = """\
Yes. By hand, 610 washers were counted on 4 May, and 450 are ordered; 160 remain.

`stock.csv` says 400, which would have been too few: the list is older than the count.
"""

SECOND: Final = "And who took the ten bolts that are missing?"

LOOK: Final = """\
steps:
  - {id: names, call: shell.run, params: {command: "grep -rni bolt depot"}}
"""

NOBODY: Final = (
    '{"achieved": false, "confidence": 0.85, "reasoning": "No file names a person, so more steps over the same files '
    'will not tell.", "final_answer": null}'
)


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    script = {"/": [FILES, READY], "*": [PLAN, DOUBT, AGAIN, SURE, ENOUGH, LOOK, NOBODY, UNKNOWN]}
    with performed(data, script) as person:
        person.say(HERE)
        person.answered()
        person.tell({"type": "say", "text": FIRST, "mode": "analyze"})
        person.answered(2)
        person.tell({"type": "say", "text": SECOND, "mode": "analyze"})
        person.answered(3)
        return person.folder


UNKNOWN: Final = """\
That can't be told from what is in `depot/`: ten bolts fewer were counted than are listed, and no file names a person.
"""
