"""Who has to go when too many say nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iact.web.unverified_connections import UnverifiedConnections


def test_the_oldest_of_the_same_address_goes_first() -> None:
    unverified: UnverifiedConnections[int] = UnverifiedConnections(most=10, per_peer=2)
    assert [unverified.add(one, "attacker") for one in range(4)] == [None, None, 0, 1]
    assert unverified.add(9, "other") is None
    unverified.discard(2)  # it has shown who it is
    assert unverified.add(10, "attacker") is None
    assert unverified.add(11, "attacker") == 3


def test_from_many_addresses_the_oldest_of_all_goes() -> None:
    unverified: UnverifiedConnections[int] = UnverifiedConnections(most=3, per_peer=2)
    assert [unverified.add(one, str(one)) for one in range(5)] == [None, None, None, 0, 1]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 30))))
def test_there_are_never_too_many_and_the_newest_is_always_in(steps: list[tuple[bool, int, int]]) -> None:
    unverified: UnverifiedConnections[int] = UnverifiedConnections(most=5, per_peer=3)
    inside: dict[int, int] = {}
    for number, (comes, peer, which) in enumerate(steps):
        if comes:
            gone = unverified.add(number, str(peer))
            inside[number] = peer
            if gone is not None:
                assert gone != number
                del inside[gone]
        elif inside:
            one = list(inside)[which % len(inside)]
            unverified.discard(one)
            unverified.discard(one)
            del inside[one]
        assert len(unverified) == len(inside) <= 5
        assert all(list(inside.values()).count(peer) <= 3 for peer in range(4))
