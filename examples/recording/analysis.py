"""Why do our bicycle counts jump? A file is uploaded, and an agent as statistician examines it and draws charts.

The counts are generated here from a fixed seed: a season, a working week, a storm, and a counter that failed.
"""

from __future__ import annotations

import math
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

MODULES: Final = Path(__file__).parent / "modules"

QUESTION: Final = (
    "This is what our counter at the bridge says, one line per day. What do the numbers depend on, and is there "
    "anything in them that I shouldn't believe? Pictures, please."
)

LOOK: Final = """\
First the shape of it.

```files.write path=bridge.csv content=$bridge
```

```shell.run
head -n 4 bridge.csv; echo …; tail -n 2 bridge.csv; wc -l < bridge.csv
```
"""

ASK: Final = """\
Two years of days, two columns. That is for a statistician.

```CALL analyst role="a careful statistician who looks at the data before any model"
What do the daily counts in $bridge (also as bridge.csv) depend on: season, weekday, a trend? Which days are not to be
believed, and why? Draw what shows it.
```
"""

GROUPS: Final = """\
By month and by weekday first, and every day that is far from its neighbours.

```shell.run language=python
import csv, statistics as st
from datetime import date
days = [(date.fromisoformat(r["day"]), int(r["rides"])) for r in csv.DictReader(open("bridge.csv"))]
by = lambda key: {k: st.mean(n for d, n in days if key(d) == k) for k in sorted({key(d) for d, _ in days})}
with open("months.csv", "w") as out:
    out.write("month,rides\\n" + "".join(f"{date(2025, m, 1):%b},{n:.0f}\\n" for m, n in by(lambda d: d.month).items()))
with open("weekdays.csv", "w") as out:
    names = "Mon Tue Wed Thu Fri Sat Sun".split()
    out.write("weekday,rides\\n" + "".join(f"{names[w]},{n:.0f}\\n" for w, n in by(date.weekday).items()))
print(open("months.csv").read() + open("weekdays.csv").read())
print({year: round(n) for year, n in by(lambda d: d.year).items()})
for i in range(7, len(days) - 7):
    near = [days[j][1] for k in (-7, 7) for j in (i + k,)]
    if days[i][1] < 0.25 * min(near):
        print("far too low:", days[i][0], days[i][1], "a week before and after:", near)
runs = [d for (d, n), (_, m), (_, o) in zip(days, days[1:], days[2:]) if n == m == o]
print("three days in a row the same:", *runs)
```
"""

DRAW: Final = """\
The pictures. The tables go into them by name; I don't need to see them again.

```plots.line x=day y=rides title="Rides per day, as the counter has them" table=$bridge
```

```files.read path=weekdays.csv
```

```files.read path=months.csv
```
"""

BARS: Final = """\
```plots.bars x=weekday y=rides title="Mean rides by weekday" table=$read_1
```

```plots.bars x=month y=rides title="Mean rides by month" table=$read_2
```
"""

FOUND: Final = """\
Season first, weekday second, hardly any trend.

![Every day: two summers, a gap, a flat stretch]($line_1)

![The working week carries it]($bars_1)

![The season]($bars_2)

- **Season**: from 978 rides a day in January to 3,230 in July; three times as many.
- **Weekday**: a Saturday or Sunday has about half of a working day. The counter sees people on their way to work.
- **Trend**: none to speak of; 2,082 a day in 2024, 2,061 in 2025, and 2025 has the stretch below.
- **Not to be believed**: 2025-03-10 to 2025-03-21 has the same number each day, 1,304. A counter that stands still.
- **Low, but true, I think**: 2024-10-19 to 2024-10-21 has under 300 rides in three days. It looks like weather; ask.
"""

ANSWER: Final = """\
The counts follow the **season** and the **working week**; there is hardly a trend.

![Every day, as the counter has them]($line_1)

![By weekday]($bars_1)

![By month]($bars_2)

Two things to know before you use them:

1. From **10 to 21 March 2025** the counter reports 1,304 every single day. Leave these twelve days out.
2. **19 to 21 October 2024** is nearly empty. The analyst takes it for a storm; if the bridge was closed, it is not weather
   but a gap.

The 1 % less in 2025 is no trend: the two years are as good as the same.
"""


def counts() -> bytes:
    """Two years of daily counts, as CSV."""
    dice = random.Random(11)
    lines = ["day,rides"]
    day = date(2024, 1, 1)
    while day < date(2026, 1, 1):
        season = 2200 - 1200 * math.cos(2 * math.pi * (day.timetuple().tm_yday - 15) / 365)
        rides = season * (0.55 if day.weekday() >= 5 else 1.1) * dice.lognormvariate(0, 0.12)
        if date(2024, 10, 19) <= day <= date(2024, 10, 21):
            rides = dice.randrange(40, 120)
        if date(2025, 3, 10) <= day <= date(2025, 3, 21):
            rides = 1304
        lines.append(f"{day},{rides:.0f}")
        day += timedelta(days=1)
    return ("\n".join(lines) + "\n").encode()


SCRIPT: Final = {"/": [LOOK, ASK, ANSWER], "/analyst": [GROUPS, DRAW, BARS, FOUND]}


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, SCRIPT, modules=[MODULES / "plots"]) as person:
        person.upload("bridge.csv", "text/csv", counts())
        person.say(QUESTION)
        person.answered()
        return person.folder
