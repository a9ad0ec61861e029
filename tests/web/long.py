"""Journals of any length, written without running anything: what models said and modules did is made up.

They fold like real ones, but hold no context digests, so they don't verify.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from iact.core.journal.file import FILE
from iact.core.journal.record import encode
from iact.core.journal.seal import Sealer, open_sealer
from iact.core.ports import JSON
from iact.core.records.codec import encode_part
from iact.core.records.parts import Bounds
from iact.core.records.record import GENESIS, timestamp
from tests.core.session.fakes import MANIFEST
from tests.records import least, raw_record

_BEGIN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
_TEXT = "A sentence of **ordinary** length, with `code` in it, that says what was found in step {}.\n\n- one\n- two\n"


class _Pen:
    """Appends records to a list of bytes."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self.parts: list[bytes] = []
        self._steps: dict[str, int] = {}
        self._prev = GENESIS

    @property
    def n(self) -> int:
        return len(self.parts)

    def write(self, kind: str, agent: str, body: str = "", **fields: JSON) -> int:
        n = self.n + 1
        step = self._steps[agent] = self._steps.get(agent, 0) + 1
        at = timestamp(_BEGIN + timedelta(milliseconds=40 * n))
        record = raw_record(n, at, kind, agent, step, body, least(kind, "", **fields), prev=self._prev)
        data, self._prev = encode(record, self._sealer)
        self.parts.append(data)
        return n


def _turn(pen: _Pen, agent: str, body: str, kind: str = "turn", **fields: JSON) -> int:
    usage: JSON = {"prompt": 1000, "cached": 900, "completion": 40}
    how: dict[str, JSON] = {
        "role": "smart",
        "seen": {"now": "2026-03-04 05:06 UTC"},
        "ms": 40,
        "first_ms": 10,
        "finish": "stop",
    }
    return pen.write(kind, agent, body, model="scripted", context="0" * 16, usage=usage, **how, **fields)


def _works(pen: _Pen, agent: str, task: int, took: int, rounds: int, to: str) -> None:
    """The agent reads `task`, makes `rounds` calls of a function and replies."""
    news: list[JSON] = [took]
    for number in range(rounds):
        turn = _turn(pen, agent, _TEXT.format(number) + f"```READ\nline {task}.{number}\n```\n", took=news)
        which = {"turn": turn, "action": 0, "impact": 0}
        pen.write("gate", agent, "", function="t.read", allow=True, by="impact", reason="as asked", **which)
        call = pen.write("call", agent, "", function="t.read", args="", **which)
        text, name = f"line {task}.{number}", f"read_{number + 1}"
        pen.write(
            "result", agent, text, function="t.read", call=call, status="ok", var=name, ms=12,
            media="text/plain", data={}, **which,
        )  # fmt: skip
        news = []
    _turn(pen, agent, f"Task {task} is done by {agent}, see $read_1.", "reply", to=to, status="ok", took=news)


def _delegates(pen: _Pen, child: str, task: int) -> None:
    said = pen.write("say", "/", f"Task {task}: have it done.")
    body = f"I'll call somebody.\n\n```CALL {child[1:]}\nDo task {task}.\n```\n"
    turn = _turn(pen, "/", body, took=[said])
    pen.write("spawn", child, "", caller="/", model="smart")
    call = pen.write("call", "/", turn=turn, action=0, function="CALL", impact=0, args="", budget=100_000)
    _works(pen, child, task, call, 12, "/")
    _turn(pen, "/", f"Task {task} was done.", "reply", to="user", status="ok", took=[])


def long_journal(
    sessions: Path, records: int, *, name: str = "20260304-050607-0a0b0c0d", word: str = ""
) -> Path:
    """Write a journal of exactly `records` records in which every tenth task goes to a new child.

    It belongs to the data directory that `sessions` is in. `word`: stands in the first task.
    """
    sessions.parent.mkdir(parents=True, exist_ok=True)
    pen = _Pen(open_sealer(sessions.parent))
    models: JSON = {"smart": {"model": "scripted", "context": 1_000_000, "prompt": "0" * 16}}
    grant: JSON = {"scope": "default", "allow": [["*"]], "caps": {}, "intent": 1, "user": "local"}
    pen.write(
        "open", "/", format="1.0", session=name, models=models, grant=grant, bounds=encode_part(Bounds()),
        workspace="scratch",
    )  # fmt: skip
    pen.write(
        "module", "/", f"```json\n{MANIFEST.to_json()}\n```", name="t", version="1", stake="scratch",
        digest="0" * 64, origin="shipped",
    )  # fmt: skip
    task = 0
    while pen.n < records:
        task += 1
        if task % 10 == 0:
            _delegates(pen, f"/helper{task}", task)
        else:
            _works(
                pen,
                "/",
                task,
                pen.write("say", "/", f"Task {task}: read the lines.{word and f' {word}'}"),
                4,
                "user",
            )
            word = ""
    folder = sessions / name
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(b"".join(pen.parts[:records]))
    return folder / FILE
