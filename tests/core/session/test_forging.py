"""Forgeries with everything else in order: a verification names the record that says what the core would not.

Recorded sessions are changed record by record. A derived field, or body, that says anything else is named at its own
record. Of an outcome, either something later is named, or it is listed here with the reason why nothing depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from iact.core.journal.file import read_blob, read_journal
from iact.core.records.kinds import CLASSES, FORMAT
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.tree.apply import migrated_at
from tests.core.session import (
    lives,
    test_effects,
    test_file_owners,
    test_forms,
    test_hosts,
    test_moving,
    test_race_copies,
    test_verify_gate,
)
from tests.core.session.forging import Blobs, forged, named
from tests.core.session.live_fakes import does
from tests.journals.record import PLACE
from tests.rounds import SCALE

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
_OF_ONE: Final = round(4 * SCALE**2)
"""Forgeries of one outcome in one session, and a quarter as many of what is derived; all of them from scale 20 on."""

BYTES: Final = {"adopt.sha256"}
"""What is over the bytes of a journal, and not over its records: `test_what_was_adopted_is_told_by_its_bytes`."""

NEXT: Final = {"spawn.plan"}
"""How a person wants a plan run stands in the record by which it is handed over, the next one: that is named."""

OVERLAPS: Final = {
    "gate.action",
    "call.action",
    "result.action",
    "clearance ask.action",
    "clearance answer.action",
}
"""Of calls that overlap any may come first. So a forged one is named there or, by what follows, later."""

FREE: Final = {
    "ms": "how long something took is for people",
    "first_ms": "likewise",
    "cut": "what was cut off was never read",
    "reasoning": "it enters no context",
    "waits": "how long an endpoint kept anybody waiting is for people",
    "finish": "what a limit cut off matters only in an action that was begun",
    "close.late": "what it ends is the same, whether it was written before or after the kill",
    "compress.by": "who wanted it is for people",
    "control models.by": "likewise",
    "recall.meant": "what it brings to mind is documented up to format 1.2 only",
    "who": "likewise: which person did it",
    "compress.usage": "it counts on a budget that was never short here",
    "choose.failures": "shares of failures decide only where three sessions failed, and none of these sessions follows three",
    "result.unkept": "which files are kept is for a person to go back to",
    "result.unchanged": "what an overlay saw counts with one alone",
    "state.node": "likewise; and which of a plan's steps holds something counts only until the plan holds nothing",
    "once": "what a program calls its message is for that program, which sends it again",
    "say.traceparent": "under which span work is told is for who traces it",
    "settle.notes": "for people",
    "fork.left_out": "likewise",
    "adopt.left_out": "likewise",
    "adopt.lost": "nothing is lost in any of these sessions (see test_lost_values)",
    "migrate.lost": "likewise",
    "fork.session": "an id is as good as another",
    "adopt.session": "likewise",
    "adopt.workspace": "what came from elsewhere is marked as such, whenever it was written",
    "control restore.version": "which files are there is for a person to see",
    "host ask.seconds": "how long a person had is for people",
    "form ask.seconds": "likewise",
    "form ask.message": "what a module asked is between it and the person",
    "distill.body": "what a model found in messages counts in memory, which is not in the journal",
    "epoch.host": "who goes on with a session is for people",
    "control apply.force": "how the directory was written shows in what was left",
}
"""Outcomes on which nothing may depend that these sessions record, and why."""

SOMETIMES: Final = {
    "result.data": "what kind of error it was counts in a step of a plan that took too long; whether one is among those"
    " that are forged is a matter of how the sessions were recorded",
    "host reach.owner": "whose instance connected counts where a module has one for each agent",
    "discard.read": "what a stopped text had answered counts where its agent is stopped for good before it answers again",
}
"""Outcomes on which something depends in some recordings and in some not, and why."""

Told = tuple[list[Record], Blobs]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """Recorded sessions: the goldens of this format, a plan, questions about calls, a directory of the user's."""
    places = [one.parent for one in (PLACE / FORMAT).glob("*/journal.md")] + [
        EXAMPLES / "plan",
        EXAMPLES / "correction",
    ]
    places += [
        made(tmp_path_factory.mktemp(name)).parent for name, made in sorted(test_verify_gate.SESSIONS.items())
    ]
    places.append(_live(tmp_path_factory.mktemp("live")))
    places += [test_race_copies.raced(tmp_path_factory.mktemp(one), one) for one in ("turns", "meets")]
    places += lives.everything(tmp_path_factory.mktemp("everything"))
    places.append(
        test_moving.moved(
            test_moving.Hosts(tmp_path_factory.mktemp("moved"), "One.", "Two.", "Three.")
        ).parent
    )
    places.append(lives.stopped(tmp_path_factory.mktemp("stopped")))
    places.append(lives.with_plans(tmp_path_factory.mktemp("plans")))
    places.append(test_hosts.everything(tmp_path_factory.mktemp("hosts")))
    places.append(test_forms.everything(tmp_path_factory.mktemp("forms")))
    places.append(test_file_owners.shared(tmp_path_factory.mktemp("shared")))
    places.append(lives.adopted(tmp_path_factory.mktemp("adopted")))
    places.append(lives.migrated(tmp_path_factory.mktemp("migrated"), PLACE / "1.1" / "tree"))
    return [(read_journal(place).records, partial(read_blob, place)) for place in places]


def _live(data: Path) -> Path:
    """A session whose calls change a directory of the user's."""
    mine = data / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")

    async def review(session: Session) -> None:
        await session.effects.apply(["notes.txt"])
        await session.effects.drop(None)

    script = does("write a 1", "rm notes.txt\nwrite b 1", "write a 2", "write b 3")
    identity, _ = test_effects.run(data, mine, script, then=review)
    return data / "sessions" / identity


def forgeries(sessions: list[Told], *, derived: bool) -> Iterator[tuple[str, list[Record], Record, Blobs]]:
    """Forgeries of the records of all sessions, a few of each field in each."""
    for records, blobs in sessions:
        count: dict[str, int] = defaultdict(int)
        for record in records[migrated_at(records) - 1 :]:
            for name, forgery in forged(record, derived=derived):
                count[name] += 1
                if count[name] <= (_OF_ONE if not derived else max(1, _OF_ONE // 4)):
                    yield name, records, forgery, blobs


def test_what_is_derived_is_named_where_it_is_forged(sessions: list[Told]) -> None:
    passed: dict[str, tuple[int, int]] = {}
    seen: set[str] = set()
    for name, records, forgery, blobs in forgeries(sessions, derived=True):
        seen.add(name)
        found = named(records, forgery.n, forgery, blobs, whole=name in OVERLAPS | NEXT)
        if found == forgery.n or (name in OVERLAPS and found > forgery.n):
            continue
        if name not in NEXT or found != forgery.n + 1:
            passed[name] = forgery.n, found
    assert set(passed) == BYTES, passed
    assert len(seen) > 80


def test_an_outcome_is_followed_by_what_depends_on_it(sessions: list[Told]) -> None:
    later: dict[str, bool] = {}
    for name, records, forgery, blobs in forgeries(sessions, derived=False):
        if not later.get(name):
            later[name] = named(records, forgery.n, forgery, blobs, whole=True) >= forgery.n
    silent = {name for name, found in later.items() if not found and name not in SOMETIMES}
    assert {name for name in silent if name not in FREE and name.split(".")[1] not in FREE} == set()
    depended = {name for name, found in later.items() if found and name in FREE}
    assert depended == set(), "something depends on them after all"


def test_these_sessions_use_every_kind(sessions: list[Told]) -> None:
    used = {type(record.content) for records, _ in sessions for record in records}
    assert {cls.__name__ for cls in CLASSES if cls not in used} == set()
