"""Which hosts exist, and which has which session: notes in the store, each created once and never changed.

There are three kinds of notes, for liveness only. Safety does not depend on them: if two hosts both claim a session,
they meet at its journal, and one of them loses (`core.journal.fence`).

- `hosts/INCARNATION/0000000007`: a host is alive. It writes this regularly with the next number, and a reader who has
  seen no new number for a while considers the host dead. Only the reader's own clock counts, never two clocks compared.
  An incarnation is one start of a host: its name, a dot and a random number.
- `leases/SESSION/0000000003`: the incarnation that took the session over, and so began this epoch of its journal.
- `open/INCARNATION/SESSION`: it has the session open. A host that finds another one dead opens what that had open.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Final

from iact.core.ports import ObjectStore

LIFE: Final = 6.0
"""Seconds without a new note after which a host counts as dead."""
RENEWAL: Final = LIFE / 3
_SKEW: Final = 60.0
"""Seconds by which the clocks of two machines may differ before an old note is taken for a new one."""

_HOSTS: Final = "hosts/"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class HostLease:
    """What a host reports about itself."""

    incarnation: str
    """This start of it."""
    page: str
    """Where it serves the page, `HOST:PORT`."""
    control: str
    """Where it listens to other members, `HOST:PORT`."""
    number: int = 0
    """Counts its notes."""
    at: float = 0.0
    """Seconds since 1970, by its clock."""
    sessions: int = 0
    """How many it has open."""
    draining: bool = False
    """Whether it accepts no more."""

    @property
    def host(self) -> str:
        """The host's name."""
        return self.incarnation.rpartition(".")[0]


def incarnation_of(host: str) -> str:
    """A new incarnation of the host with this name.

    Raises:
        ValueError: the name is not valid for a host.
    """
    if _NAME.fullmatch(host) is None:
        raise ValueError(f"{host!r} can't be the name of a host: use letters, digits, dots and hyphens.")
    return f"{host}.{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class Members:
    """The hosts, as one reader sees them; immutable. `now` is the reader's clock, monotonic; `wall` its time of day."""

    life: float = LIFE
    """Seconds without a new note after which a host counts as dead."""
    seen: tuple[tuple[HostLease, float], ...] = ()
    """The newest note of each host, and when the reader first saw it."""
    looked: float | None = None
    """When the reader last looked; None: never."""

    def observe(self, leases: Iterable[HostLease], *, now: float, wall: float) -> Members:
        """The state after reading the newest note of each host. A host without a note has left."""
        # A reader that was frozen or without the store can't tell which hosts were silent meanwhile.
        was_away = self.looked is not None and now - self.looked > self.life / 2
        known = {lease.incarnation: (lease, at) for lease, at in self.seen}

        seen: list[tuple[HostLease, float]] = []
        for lease in leases:
            before = known.get(lease.incarnation)
            if before is not None and before[0].number == lease.number and not was_away:
                seen.append(before)
                continue

            # A reader that has just started knows no earlier notes; a note from long ago is not from a living host.
            is_old = before is None and wall - lease.at > self.life + _SKEW
            seen.append((lease, now - self.life if is_old else now))

        by_incarnation = sorted(seen, key=lambda note: note[0].incarnation)
        return Members(self.life, tuple(by_incarnation), now)

    def alive(self, now: float) -> list[HostLease]:
        """The living hosts, sorted by name."""
        return [lease for lease, at in self.seen if now - at < self.life]

    def dead(self, now: float) -> list[HostLease]:
        """The hosts that have been silent for too long, and did not leave."""
        return [lease for lease, at in self.seen if now - at >= self.life]

    def lease(self, incarnation: str) -> HostLease | None:
        """The newest note of an incarnation."""
        return next((lease for lease, _ in self.seen if lease.incarnation == incarnation), None)


# --- in the store: everything blocks, and raises `StoreUnavailable` ------------------------------


def read_hosts(store: ObjectStore) -> Iterator[HostLease]:
    """The newest note of each host."""
    newest: dict[str, str] = {}
    for name in store.names(_HOSTS):
        incarnation = name.split("/")[1]
        newest[incarnation] = name

    for incarnation, name in newest.items():
        data = store.get(name)
        lease = _lease(incarnation, data) if data is not None else None
        if lease is not None:
            yield lease


def _lease(incarnation: str, data: bytes) -> HostLease | None:
    """A note as it is stored; None if it can't be read."""
    try:
        fields = json.loads(data)
        return HostLease(
            incarnation=incarnation,
            page=str(fields["page"]),
            control=str(fields["control"]),
            number=int(fields["number"]),
            at=float(fields["at"]),
            sessions=int(fields["sessions"]),
            draining=bool(fields["draining"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


class OwnLease:
    """The notes of one host about itself."""

    def __init__(self, store: ObjectStore, incarnation: str) -> None:
        self.incarnation: Final = incarnation
        self._store = store
        self._newest = HostLease(incarnation, "", "")

    @property
    def host(self) -> str:
        """The host's name."""
        return self._newest.host

    def serves(self, *, page: str, control: str) -> None:
        """Set where it serves, each `HOST:PORT`. Call this before the first `renew`."""
        self._newest = replace(self._newest, page=page, control=control)

    def renew(self, *, at: float, sessions: int, draining: bool) -> None:
        """Report again that the host is alive."""
        before = self._newest
        lease = replace(before, number=before.number + 1, at=at, sessions=sessions, draining=draining)
        fields = asdict(lease)
        del fields["incarnation"]  # which is in the name of the note

        # The new note first: between two there must be one.
        self._store.create(_note(lease), json.dumps(fields).encode())
        self._newest = lease
        if before.number:
            self._store.remove(_note(before))

    def leave(self) -> None:
        """Report that the host is gone."""
        forget_host(self._store, self.incarnation)

    def claimed(self, session: str, epoch: int) -> None:
        """Note that this host has begun an epoch of a session's journal."""
        name = _session_note(session, epoch)
        self._store.create(name, self.incarnation.encode())
        self.opened(session)
        for earlier in list(self._store.names(f"leases/{session}/")):
            if earlier < name:
                self._store.remove(earlier)

    def opened(self, session: str) -> None:
        """Note that this host has the session open."""
        self._store.create(f"open/{self.incarnation}/{session}", b"")

    def closed(self, session: str) -> None:
        """Note that this host has closed the session."""
        self._store.remove(f"open/{self.incarnation}/{session}")


def _note(lease: HostLease) -> str:
    return f"{_HOSTS}{lease.incarnation}/{lease.number:010}"


def _session_note(session: str, epoch: int) -> str:
    return f"leases/{session}/{epoch:010}"


def forget_host(store: ObjectStore, incarnation: str) -> None:
    """Remove a host's notes about itself."""
    for name in list(store.names(f"{_HOSTS}{incarnation}/")):
        store.remove(name)


def holder_of(store: ObjectStore, session: str) -> tuple[str, int]:
    """The incarnation that began the newest epoch of a session, and that epoch; "" and 0 if there is none."""
    names = list(store.names(f"leases/{session}/"))
    data = store.get(names[-1]) if names else None
    if data is None:
        return "", 0
    return data.decode(), int(names[-1].rpartition("/")[2])


def open_at(store: ObjectStore, incarnation: str) -> list[str]:
    """The sessions that a host has open, or had when it died."""
    prefix = f"open/{incarnation}/"
    return [name.removeprefix(prefix) for name in store.names(prefix)]


def is_open_at(store: ObjectStore, incarnation: str, session: str) -> bool:
    """Whether a host has a session open."""
    return store.get(f"open/{incarnation}/{session}") is not None


def closed_by_another(store: ObjectStore, incarnation: str, session: str) -> None:
    """Remove the note that a dead host has a session open; another host has it now."""
    store.remove(f"open/{incarnation}/{session}")
