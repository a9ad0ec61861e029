"""A table that three people filled in is examined with SQL, then cleaned and plotted in a stateful interpreter.

The readings are generated here from a fixed seed: dates in two forms, decimal commas, duplicate rows, a thermometer in
Fahrenheit, and one that fell into the oven.
"""

from __future__ import annotations

import math
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

QUESTION: Final = (
    "Three of us wrote down the temperature in our greenhouse, each in their own way. Can you make one clean table of it, "
    "draw it, and write a short report.md? Say what you changed: I want to be able to argue with it."
)

LOOK: Final = """\
First what there is, before anything is changed.

```files.write path=readings.csv content=$readings
```

```sql.tables
readings.csv
```

```sql.query
SELECT who, count(*) AS rows, min(temperature) AS smallest, max(temperature) AS largest,
       count(*) FILTER (WHERE temperature LIKE '%,%') AS commas, min(day) AS a_day
FROM 'readings.csv' GROUP BY who ORDER BY who
```
"""

CLEAN: Final = """\
Three habits: Bo writes 21,5, Cy writes days the other way round, and nobody in a greenhouse has 70 degrees Celsius. One rule
each, and a count of what each rule touched.

```python.run
import pandas as pd
raw = pd.read_csv("readings.csv", dtype=str)
told = {}
day = pd.to_datetime(raw.day, format="%Y-%m-%d", errors="coerce")
told["days the other way round"] = int(day.isna().sum())
day = day.fillna(pd.to_datetime(raw.day, format="%d.%m.%Y", errors="coerce"))
value = raw.temperature.str.replace(",", ".").astype(float)
told["commas"] = int(raw.temperature.str.contains(",").sum())
table = pd.DataFrame({"day": day, "who": raw.who, "celsius": value})
twice = table.duplicated()
told["rows twice"] = int(twice.sum())
table = table[~twice]
cy = table[table.who == "Cy"].set_index("day").celsius
others = table[table.who != "Cy"].groupby("day").celsius.median()
pair = pd.concat({"cy": cy, "others": others}, axis=1, sort=True).dropna()
print(told, "| unread days:", int(table.day.isna().sum()))
pair.cy.corr(pair.others), (pair.cy / pair.others).median(), ((pair.cy - 32) / 1.8 - pair.others).median()
```
"""

DRAW: Final = """\
Cy's readings go with the others', and fit to within a tenth of a degree if they are Fahrenheit. That is no guess any more. The
table is still in the interpreter; now the outliers, against the median of the days around.

```python.run
import matplotlib.pyplot as plt
is_cy = table.who == "Cy"
table.loc[is_cy, "celsius"] = ((table.celsius[is_cy] - 32) / 1.8).round(1)
told["from Fahrenheit"] = int(is_cy.sum())
near = table.groupby("day").celsius.median().rolling(7, center=True, min_periods=3).median()
off = (table.celsius - table.day.map(near)).abs() > 12
told["left out"] = int(off.sum())
print(table[off].to_string(index=False))
clean = table[~off].sort_values(["day", "who"])
clean.to_csv("clean.csv", index=False)
fig, axes = plt.subplots(figsize=(8, 3.6))
for who, part in clean.groupby("who"):
    axes.plot(part.day, part.celsius, ".", ms=4, label=who)
axes.plot(near.index, near, "k-", lw=1, label="median of 7 days")
axes.set_ylabel("°C"); axes.set_title("Greenhouse, cleaned"); axes.legend(ncol=4)
plt.figure(figsize=(8, 2.6))
raw.assign(value=value).groupby("who").value.plot.hist(bins=40, alpha=0.6, legend=True, title="As it was written down")
plt.xlabel("whatever was written")
told
```
"""

CHECK: Final = """\
I check the file and not what I remember of it.

```sql.query
SELECT who, count(*) AS rows, round(avg(celsius), 1) AS mean, min(celsius) AS lowest, max(celsius) AS highest,
       count(DISTINCT day) = count(*) AS one_a_day
FROM 'clean.csv' GROUP BY who ORDER BY who
```

```files.write path=report.md
# Greenhouse temperatures

`clean.csv` has one row per person and day, in °C. What was changed, and how often, stands below; the readings as they came
are still in `readings.csv`.

1. Commas became points: 169 readings, all of Bo's.
2. Days written as 31.12.2025 were read as such: 178, all of Cy's.
3. Rows that stood there twice were taken once: 18.
4. Cy's readings were taken for Fahrenheit, 169 of them: so they agree with the others of the same day, to a tenth of a degree.
5. Readings more than 12 °C from the week around them were left out: 12.

That leaves 484 readings, from 11.2 to 29.1 °C.
```
"""

ANSWER: Final = """\
One clean table is in `clean.csv`, and `report.md` says what I did.

![The cleaned readings of all three, with the median of the week around]($figure_1)

Before that it looked like this: three people, three ways of writing.

![What was written down]($figure_2)

What you may want to argue with:

- **Cy's readings are taken for Fahrenheit.** Nobody wrote that down. Converted, they agree with the two of you to a tenth of a
  degree; as Celsius the greenhouse would have boiled.
- **Left out as wrong** is what lies more than 12 °C off the week around. The list is in the dialogue; if one of these was a real
  event, say so and I put it back.
- Commas, turned days and rows that stood there twice are mended without a choice.
"""


def readings() -> bytes:
    """Half a year of readings by three people, as CSV."""
    dice = random.Random(5)
    lines = ["day,who,temperature"]
    day = date(2025, 3, 1)
    while day < date(2025, 9, 1):
        real = 18 + 8 * math.sin(2 * math.pi * (day.timetuple().tm_yday - 100) / 365) + dice.gauss(0, 1.2)
        for who in ("Ada", "Bo", "Cy"):
            if dice.random() < 0.12:
                continue
            value = real + dice.gauss(0, 0.3)
            if dice.random() < 0.012:
                value += dice.choice([-25, 30, 60])
            text = f"{value * 1.8 + 32:.1f}" if who == "Cy" else f"{value:.1f}"
            shown = f"{day:%d.%m.%Y}" if who == "Cy" else f"{day}"
            line = f'{shown},{who},"{text.replace(".", ",")}"' if who == "Bo" else f"{shown},{who},{text}"
            lines += [line] * (2 if dice.random() < 0.03 else 1)
        day += timedelta(days=1)
    return ("\n".join(lines) + "\n").encode()


SCRIPT: Final = {"/": [LOOK, CLEAN, DRAW, CHECK, ANSWER]}


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, SCRIPT) as person:
        person.upload("readings.csv", "text/csv", readings())
        person.say(QUESTION)
        person.answered()
        return person.folder
