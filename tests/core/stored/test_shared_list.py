"""What hosts tell each other of their sessions: the newest row counts, whatever clocks and a bad network do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from iact.cluster.cipher import HostCipher
from iact.core.errors import StoreUnavailable
from iact.core.journal.seal import NOBODY
from iact.core.stored.listing import SessionInfo, ToldRow, listed
from iact.core.stored.shared_list import SharedList
from iact.core.views.status import SessionStatus
from tests.core.session.fakes import TickingClock
from tests.objects import Objects

START = datetime(2026, 1, 1, tzinfo=UTC)


class HostClock(TickingClock):
    """Each look at the store is a new one; `ahead`: seconds by which this host's clock is wrong."""

    def __init__(self, ahead: float = 0) -> None:
        super().__init__()
        self.advance(ahead)
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return 10.0 * self._looks


def a_list(objects: Objects, *, ahead: float = 0, key: bytes = bytes(32)) -> SharedList:
    return SharedList(objects, HostCipher(key), HostClock(ahead))


def row(records: int, title: str = "A title", *, session: str = "s", changed: str = "") -> SessionInfo:
    return SessionInfo(session, title, "2026-01-01T00:00:00Z", changed, records, open=True)


def titles(told: Mapping[str, ToldRow]) -> dict[str, str]:
    return {name: one.row.title for name, one in told.items() if one.row is not None}


def test_the_row_with_most_records_counts_whatever_the_clocks_say() -> None:
    objects = Objects()
    a, b, reader = a_list(objects, ahead=500), a_list(objects), a_list(objects)
    a.tell(row(5, "from a"))
    assert titles(reader.read()) == {"s": "from a"}
    b.tell(row(7, "from b"))
    assert titles(reader.read()) == {"s": "from b"}
    b.tell(row(7, "from b, renamed"))
    assert titles(reader.read()) == titles(a_list(objects).read()) == {"s": "from b, renamed"}


def test_what_was_deleted_for_good_stays_so_whatever_a_host_says_that_has_not_heard_of_it() -> None:
    objects = Objects()
    a, b = a_list(objects), a_list(objects, ahead=500)
    a.tell(row(7, "a title"))
    b.purged("s")
    a.tell(row(8, "a title"))
    for one in (a, b, a_list(objects)):
        assert one.deleted() == ["s"]
        assert not one.has("s")
    assert len(objects.content) == 1


def test_a_row_is_open_nowhere_and_a_deleted_session_has_none_until_it_goes_on() -> None:
    objects = Objects()
    here = a_list(objects)
    here.tell(row(5))
    told = here.read()["s"].row
    assert told is not None
    assert not told.open
    here.tell(row(5), gone=True)
    assert here.read()["s"] == ToldRow(5, None)
    assert not here.has("s")
    here.tell(row(6))
    assert here.has("s")


def test_what_is_read_once_is_not_read_again() -> None:
    objects = Objects()
    reader, writer = a_list(objects), a_list(objects)
    asked: list[str] = []
    for number in range(20):
        writer.tell(row(number, session=f"s{number % 4}"))
    objects.before = lambda what, name: asked.append(what)
    assert len(reader.read()) == 4
    assert asked.count("get") == 4, "only the newest of each"
    reader.read()
    assert asked.count("get") == 4


def test_what_others_wrote_into_the_store_is_not_believed() -> None:
    objects = Objects()
    stranger, reader = a_list(objects, key=bytes([1] * 32)), a_list(objects)
    stranger.tell(row(9, "made up"))
    objects.content["list/nonsense"] = b"?"
    objects.content["list/0000000000000001-other-0000000001-00000000"] = b"short"
    assert reader.read() == {}
    # A row of one session under the name of another can't be decrypted.
    a_list(objects).tell(row(3, "true"))
    (name,) = [one for one in objects.content if "-s-0000000003" in one]
    objects.content[name.replace("-s-", "-t-")] = objects.content[name]
    assert titles(reader.read()) == {}  # of s, the made-up row is the newest; nothing older is shown for it
    assert titles(a_list(objects).read()) == {}


def test_without_an_answer_what_was_read_last_counts() -> None:
    objects = Objects()
    reader = a_list(objects)
    a_list(objects).tell(row(1))
    assert titles(reader.read()) == {"s": "A title"}

    def gone(what: str, name: str) -> None:
        raise StoreUnavailable("No answer came.")

    objects.before = gone
    assert titles(reader.read()) == {"s": "A title"}


def test_lists_join_what_is_here_with_what_others_say(tmp_path: Path) -> None:
    elsewhere = {
        "new": ToldRow(3, row(3, "Theirs", session="new", changed="2026-01-02")),
        "gone": ToldRow(3, None),
        "older": ToldRow(2, row(2, "Older", session="older", changed="2026-01-03")),
    }
    assert [one.title for one in listed(tmp_path, NOBODY, {}, elsewhere=elsewhere)] == ["Older", "Theirs"]
    running = {"new": SessionStatus("working")}
    assert len(listed(tmp_path, NOBODY, running, elsewhere=elsewhere)) == 2


def test_hosts_whose_clocks_differ_by_minutes_miss_nothing() -> None:
    objects = Objects()
    fast, slow, reader = (
        a_list(objects, ahead=timedelta(minutes=9).total_seconds()),
        a_list(objects),
        a_list(objects),
    )
    fast.tell(row(1, session="one"))
    assert set(reader.read()) == {"one"}
    slow.tell(row(1, session="two"))
    assert set(reader.read()) == {"one", "two"}


def test_of_a_session_one_row_is_left_and_of_a_deleted_one_that_it_is(tmp_path: Path) -> None:
    objects = Objects()
    a, b, reader = a_list(objects), a_list(objects), a_list(objects)
    for number in range(20):
        a.tell(row(number))
    assert len(objects.content) == 1
    b.tell(row(25, "from b"))
    assert titles(reader.read()) == {"s": "from b"}
    assert len(objects.content) == 1, (
        "what a host left that does not know of the other's is removed by a reader"
    )
    a.tell(row(22, "late"))
    assert titles(reader.read()) == titles(a_list(objects).read()) == {"s": "from b"}
    assert len(objects.content) == 1
    reader.tell(row(25), gone=True)
    assert reader.read()["s"].row is None
    assert len(objects.content) == 1


def test_a_row_that_was_replaced_while_it_was_read_is_read_the_next_time() -> None:
    objects = Objects()
    writer, reader = a_list(objects), a_list(objects)
    writer.tell(row(1, "old"))

    def replaced(what: str, name: str) -> None:
        if what == "get":
            objects.before = lambda what, name: None
            writer.tell(row(2, "new"))

    objects.before = replaced
    assert titles(reader.read()) == {}
    assert titles(reader.read()) == {"s": "new"}


def test_what_a_host_says_whose_clock_is_behind_counts() -> None:
    objects = Objects()
    fast, slow, reader = a_list(objects, ahead=500), a_list(objects), a_list(objects)
    fast.tell(row(5, "from the fast one"))
    slow.tell(row(5, "renamed by the slow one"))
    assert titles(reader.read()) == {"s": "renamed by the slow one"}
    slow.tell(row(5), gone=True)
    assert titles(reader.read()) == {}


def test_a_row_whose_answer_was_lost_counts_and_is_replaced_by_the_next() -> None:
    objects = Objects()
    writer, reader = a_list(objects), a_list(objects)
    objects.lost = lambda what, name: what == "create"
    with pytest.raises(StoreUnavailable):
        writer.tell(row(1, "unheard"))
    objects.lost = lambda what, name: False
    assert titles(reader.read()) == {"s": "unheard"}
    writer.tell(row(2, "heard"))
    assert titles(reader.read()) == {"s": "heard"}
    assert len(objects.content) == 1
