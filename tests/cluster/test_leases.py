"""Which hosts are alive, as one reader sees it by its own clock, and which of their notes are left in the store."""

from __future__ import annotations

import pytest

from iact.cluster.leases import (
    LIFE,
    HostLease,
    Members,
    OwnLease,
    forget_host,
    holder_of,
    incarnation_of,
    open_at,
    read_hosts,
)
from tests.objects import Objects


def lease(name: str, number: int, at: float = 1000.0) -> HostLease:
    return HostLease(f"{name}.00000000", "p:1", "c:1", number, at)


def names(leases: list[HostLease]) -> list[str]:
    return [one.host for one in leases]


def test_a_host_without_a_new_note_is_dead_after_a_while_by_the_readers_clock() -> None:
    members = Members()
    for now in range(0, 12, 2):
        # The clock of b's machine is hours away from ours, which changes nothing once b was seen to go on.
        members = members.observe(
            [lease("a", 1), lease("b", 1 + now // 2, at=1000.0 + 9999)], now=float(now), wall=1000.0
        )
    assert names(members.alive(10.0)) == ["b"]
    assert names(members.dead(10.0)) == ["a"]
    members = members.observe([lease("a", 2)], now=11.0, wall=1000.0)
    assert names(members.alive(11.0)) == ["a"], "a host that thaws is there again"
    assert members.dead(11.0) == [], "one that has left is not dead"


def test_a_new_reader_takes_a_note_from_long_ago_for_that_of_a_dead_host() -> None:
    members = Members()
    members = members.observe([lease("old", 7, at=0.0), lease("new", 7, at=999.0)], now=50.0, wall=1000.0)
    assert names(members.alive(50.0)) == ["new"]
    assert names(members.dead(50.0)) == ["old"]


def test_a_reader_that_was_away_itself_takes_nobody_for_dead() -> None:
    """Frozen, or without the store: it has not seen notes that may well have been there."""
    members = Members()
    members = members.observe([lease("a", 1)], now=0.0, wall=1000.0)
    members = members.observe([lease("a", 1)], now=LIFE * 5, wall=1000.0)
    assert names(members.alive(LIFE * 5)) == ["a"]
    for step in range(1, 4):
        members = members.observe([lease("a", 1)], now=LIFE * 5 + step * LIFE / 3, wall=1000.0)
    assert names(members.dead(LIFE * 6)) == ["a"]


def test_of_its_notes_a_host_leaves_one_and_none_when_it_ends() -> None:
    store = Objects()
    own = OwnLease(store, incarnation_of("a"))
    own.serves(page="p:1", control="c:1")
    for sessions in range(3):
        own.renew(at=5.0, sessions=sessions, draining=sessions == 2)
    [read] = read_hosts(store)
    assert (read.host, read.page, read.control, read.number) == ("a", "p:1", "c:1", 3)
    assert (read.sessions, read.draining) == (2, True)
    assert len(store.content) == 1
    own.claimed("s1", 1)
    other = OwnLease(store, incarnation_of("b"))
    other.claimed("s1", 2)
    assert holder_of(store, "s1") == (other.incarnation, 2)
    assert open_at(store, own.incarnation) == ["s1"], "it has not noticed yet"
    own.closed("s1")
    other.closed("s1")
    own.leave()
    forget_host(store, other.incarnation)
    assert list(store.content) == ["leases/s1/0000000002"]


def test_what_is_no_note_is_nobody() -> None:
    store = Objects(content={"hosts/a.1/0000000001": b"[]", "hosts/b.1/0000000001": b"\xff"})
    assert list(read_hosts(store)) == []
    assert holder_of(store, "s1") == ("", 0)


@pytest.mark.parametrize("name", ["", "a/b", "a b", ".a", "x" * 101])
def test_what_can_be_no_name_of_a_host(name: str) -> None:
    with pytest.raises(ValueError, match="can't be the name of a host"):
        incarnation_of(name)
