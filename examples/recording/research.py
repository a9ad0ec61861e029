"""Which compressor for our logs? Three agents measure in parallel; one has its work checked, one asks back.

The figures in the agents' texts are those that were measured during the recording.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed
from tests.endpoint import Request

QUESTION: Final = (
    "We write about 2 GB of JSON log lines a day and keep them for a year. Which compressor of Python's standard "
    "library should we use? Please measure, don't guess."
)

SAMPLE: Final = """\
I'll need something to measure with: log lines like theirs, the same ones for everybody.

```shell.run language=python
import json, random
dice = random.Random(7)
routes = ["/v1/orders", "/v1/orders/{}", "/v1/customers/{}", "/health", "/v1/search"]
with open("sample.jsonl", "w") as out:
    for n in range(60_000):
        out.write(json.dumps({
            "at": f"2026-05-04T03:{n // 1000:02d}:{n % 60:02d}.{dice.randrange(1000):03d}Z",
            "level": dice.choices(["info", "warning", "error"], [95, 4, 1])[0],
            "route": dice.choice(routes).format(dice.randrange(100_000)),
            "ms": round(dice.lognormvariate(3, 0.6), 1),
            "request": f"{dice.getrandbits(64):016x}",
        }) + "\\n")
import os
print(f"{os.path.getsize('sample.jsonl') / 1e6:.1f} MB")
```
"""

SPLIT: Final = """\
Three candidates, three agents; they don't need each other.

```CALL_ASYNC zlib role="an engineer who measures before speaking"
Measure zlib on sample.jsonl at three levels: how many times smaller, MB/s in, MB/s out. One table, one sentence.
```

```CALL_ASYNC bz2 role="an engineer who measures before speaking"
Measure bz2 on sample.jsonl at three levels: how many times smaller, MB/s in, MB/s out. One table, one sentence.
```

```CALL_ASYNC lzma role="an engineer who measures before speaking"
Measure lzma on sample.jsonl at three presets: how many times smaller, MB/s in, MB/s out. Have somebody else check
that what was packed comes back, also from a file that was cut off. One table, one sentence.
```

```WAIT
```
"""

MEASURE: Final = """\
{intro}

```shell.run language=python
import time, {codec} as codec
data = open("sample.jsonl", "rb").read()
size = len(data) / 1e6
for level in {levels}:
    begun = time.perf_counter()
    packed = codec.compress(data, {option}=level)
    there = time.perf_counter() - begun
    begun = time.perf_counter()
    assert codec.decompress(packed) == data
    back = time.perf_counter() - begun
    print(f"{codec} {{level}}: {{len(data) / len(packed):.1f}} times smaller, {{size / there:.0f}} MB/s in, {{size / back:.0f}} MB/s out")
```
"""

CHECK: Final = """\
Good. Now somebody else should try to break it.

```CALL checker role="somebody who trusts nothing"
Pack sample.jsonl with lzma, preset 6, and see whether it comes back byte for byte. Then cut the last 1000 bytes off the
packed file, as a crash would: what can still be read?
```
"""

BREAK: Final = """\
```shell.run language=python
import hashlib, lzma
data = open("sample.jsonl", "rb").read()
packed = lzma.compress(data, preset=6)
print("whole:", hashlib.sha256(lzma.decompress(packed)).digest() == hashlib.sha256(data).digest())
try:
    lzma.decompress(packed[:-1000])
except lzma.LZMAError as error:
    print("cut off, in one go:", error)
saved = lzma.LZMADecompressor().decompress(packed[:-1000])
print(f"cut off, as a stream: {len(saved) / len(data):.1%} of it, the same so far: {data.startswith(saved)}")
```
"""

_ROW: Final = re.compile(r"(zlib|bz2|lzma) (\d): ([\d.]+) times smaller, (\d+) MB/s in, (\d+) MB/s out")
_SAVED: Final = re.compile(r"as a stream: ([\d.]+%)")

Row = tuple[str, str, str, str, str]


def _rows(text: str) -> list[Row]:
    """The measurements in a text: codec, level, compression ratio, MB/s in, MB/s out."""
    found = {(one[0], one[1]): one for one in _ROW.findall(text)}
    return list(found.values())


def _table(rows: list[Row]) -> str:
    lines = [f"| {codec} {level} | {ratio} | {there} | {back} |" for codec, level, ratio, there, back in rows]
    head = ["| | times smaller | MB/s in | MB/s out |", "|---|---:|---:|---:|"]
    return "\n".join([*head, *lines])


def _heard(request: Request) -> str:
    return "\n".join(content for _, content in request.messages)


def _quoted(request: Request) -> str:
    """The rows as lines, so that the reader of the reply has them too."""
    rows = _rows(request.last)
    return "\n".join(f"- {c} {n}: {r} times smaller, {i} MB/s in, {o} MB/s out" for c, n, r, i, o in rows)


def _measure(codec: str, levels: str, option: str, intro: str) -> str:
    return MEASURE.format(codec=codec, levels=levels, option=option, intro=intro)


def _root(request: Request) -> str:
    if request.turn == 0:
        return SAMPLE
    if request.turn == 1:
        return SPLIT
    if request.turn == 2:
        return (
            "zlib's engineer asks what counts. That follows from the question: a year of files that are hardly ever "
            "opened.\n\n```CALL zlib\nSize counts: we keep a year and read perhaps one day of it. Would you still "
            "take zlib, then?\n```\n"
        )
    rows = _rows(_heard(request))
    best = {codec: max((row for row in rows if row[0] == codec), key=lambda row: float(row[2])) for codec in ("zlib", "bz2", "lzma")}  # fmt: skip
    winner = max(best.values(), key=lambda row: float(row[2]))
    year = 2 * 365 / float(winner[2])
    return (
        f"**{winner[0]} at {winner[1]}**, for files that are kept for a year and seldom read.\n\n{_table(list(best.values()))}\n\n"
        f"Measured on 60,000 lines of the kind you write: a year of 2 GB a day takes about {year:.0f} GB with it. The three "
        "ran side by side on one core, so alone each is faster than the table says; even so a day is packed in about "
        f"{2000 / max(1, int(winner[3])) / 60:.0f} minutes. All came back byte for byte.\n\nTwo things to know. A packed file that "
        "a crash cut off must be read as a stream; in one go it is an error. And if somebody searches these logs every "
        "day after all, take zlib: it reads fastest."
    )


def _zlib(request: Request) -> str:
    if request.turn == 0:
        return _measure(
            "zlib", "(1, 6, 9)", "level", "I'll take the fastest, the default and the best level."
        )
    if request.turn == 1:
        return (
            f"{_quoted(request)}\n\nLevel 9 gains little over 6 and costs most of the speed. One question before I recommend anything: "
            "what counts more to you, the size on disk or the speed of reading?"
        )
    return "No. If size decides, zlib is the worst of the three; its strength is reading."


def _bz2(request: Request) -> str:
    if request.turn == 0:
        return _measure("bz2", "(1, 5, 9)", "compresslevel", "bz2 has nine block sizes; three of them will show the trend.")  # fmt: skip
    return f"{_quoted(request)}\n\nLarger blocks help, and cost little; but it is slow both ways."


def _lzma(request: Request) -> str:
    if request.turn == 0:
        return _measure("lzma", "(0, 3, 6)", "preset", "Presets above 6 only help with larger files, so 0, 3 and 6.")  # fmt: skip
    if request.turn == 1:
        return CHECK
    rows = "\n".join(f"- {c} {n}: {r} times smaller, {i} MB/s in, {o} MB/s out" for c, n, r, i, o in _rows(_heard(request)))  # fmt: skip
    return (
        f"{rows}\n\nSlow to write, quick to read. The checker got everything back; from a file that was cut off, only by "
        "reading it as a stream."
    )


def _checker(request: Request) -> str:
    if request.turn == 0:
        return BREAK
    saved = _SAVED.search(request.last)
    assert saved is not None, request.last
    return (
        "It comes back byte for byte. Cut off, `lzma.decompress` gives an error and nothing else; read as a "
        f"stream, {saved[1]} of it is there, and right."
    )


_PARTS: Final = {"/": _root, "/zlib": _zlib, "/bz2": _bz2, "/lzma": _lzma, "/lzma/checker": _checker}


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, lambda request: _PARTS[request.agent](request)) as person:
        person.say(QUESTION)
        person.answered()
        return person.folder
