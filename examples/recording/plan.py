"""Who was affected by last night's fault, and notifying them: a plan whose last step needs a person's approval."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

MODULES: Final = Path(__file__).parent / "modules"

POLICY: Final = """\
[scope.default]
functions = ["*"]
clearance = ["notices.send"]   # nothing leaves the house without somebody's yes
"""

QUESTION: Final = (
    "Last night our orders failed for a while; this is the access log. Find out when it was and which customers were "
    "hit, and write them a short and honest notice. I want to read it before it goes out."
)

PLAN: Final = """\
That can be foreseen, so I make a plan of it: what only reads runs side by side, and sending comes last.

```files.write path=access.log content=$access_log
```

```PLAN inform
goal: Tell the customers who were hit by last night's failing orders
steps:
  - {id: window, call: shell.run, params: {command: "awk '$5 >= 500 {print $1}' access.log | sed -n '1p;$p'"}}
  - {id: customers, call: shell.run, params: {command: "awk '$5 >= 500 {print $2}' access.log | sort -u"}}
  - {id: extent, call: shell.run, params: {command: "awk '$4 == \\"/v1/orders\\" {n++; if ($5 >= 500) bad++} END {print bad, \\"of\\", n, \\"orders failed\\"}' access.log"}}
  - {id: lost, call: shell.run, params: {command: "awk '$5 >= 500 {bad[$2]=NR} $5 == 201 {good[$2]=NR} END {for (c in bad) print c, (good[c] > bad[c]) ? \\"ordered again later\\" : \\"gave up\\"}' access.log | sort"}}
  - {id: text, agent: writer, role: someone who writes to customers plainly, task: "Write the notice: what failed, from when to when, what the customer should do now. No excuses, at most 80 words. Reply with the text alone.", refs: {window: {step: window, field: stdout}, extent: {step: extent, field: stdout}}}
  - {id: send, call: notices.send, params: {subject: "Orders that failed last night"}, refs: {to: {step: customers, field: stdout}, text: {step: text}}, after: [lost]}
```
"""

LOOK: Final = """\
What I have to say must be right, so I look.

```SHOW window
```

```SHOW extent
```
"""

NOTICE: Final = """\
Last night, between 02:14 and 02:31 UTC, our shop could not accept orders. Yours was among those that failed; it was not
stored, and nothing was charged.

Please send it again if you still want it. If you ordered again since then, that order is fine and you need do nothing.

We are still looking into why it happened, and will write again when we know. We are sorry.
"""

CHECK: Final = """\
All six steps are through. For my report I read two of their results myself.

```SHOW extent
```

```SHOW lost
```
"""

ANSWER: Final = """\
The notice went out after your yes.

- **When**: 02:14 to 02:31 UTC, seventeen minutes.
- **How much**: 15 of 476 orders of the night failed, those of 13 customers. None was stored.
- **Who**: ten of them ordered again later. Customers 110, 116 and 120 did not; you may want to call these three.

What was sent lies in `outbox/`, one file per customer.
"""

SCRIPT: Final = {"/": [PLAN, CHECK, ANSWER], "/inform/writer": [LOOK, NOTICE]}


def log() -> bytes:
    """A night's access log: time, customer, method, route, status."""
    dice = random.Random(3)
    customers = [f"customer-{number}" for number in range(101, 125)]
    lines = []
    for minute in range(8 * 60):
        for second in sorted(dice.sample(range(60), 3)):
            route = dice.choice(["/v1/orders", "/v1/search", "/v1/items"])
            fails = route == "/v1/orders" and 134 <= minute <= 151
            status = 503 if fails else 201 if route == "/v1/orders" else 200
            here = customers if minute <= 151 else [one for one in customers if int(one[-1]) % 3]
            stamp = f"{minute // 60:02d}:{minute % 60:02d}:{second:02d}Z"
            method = "POST" if route == "/v1/orders" else "GET"
            lines.append(f"2026-05-04T{stamp} {dice.choice(here)} {method} {route} {status}")
    return ("\n".join(lines) + "\n").encode()


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, SCRIPT, policy=POLICY, modules=[MODULES / "notices"]) as person:
        person.upload("access.log", "text/plain", log())
        person.tell({"type": "intent", "value": 2})
        person.say(QUESTION)
        person.tell({"type": "clear", "call": person.asked(), "allow": True})
        person.answered()
        return person.folder
