"""The sessions of all users of a host; a session's name says which user it belongs to.

Among hosts, a user's session is called `USER/SESSION`, with the user's id; a session of the user `local` is called by
its id alone. So everything that hosts note and tell each other about sessions (`cluster.leases`, `cluster.placement`,
`cluster.host`) works the same for all users, and the names of two users never collide.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from iact.accounts.rights import LOCAL
from iact.cluster.host import OpenSession, Page
from iact.core.errors import UsageError
from iact.core.stored.index import TextHits

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

Users = Callable[[str], AbstractAsyncContextManager[object]]
"""Opens a user's runtime by their id, for as long as it is needed."""


def name_of(user: str, session: str) -> str:
    """A user's session's name among hosts.

    Raises:
        UsageError: this id is not valid for a session.
    """
    if not _ID.fullmatch(session):
        raise UsageError(f"There is no session {session[:100]!r}.")
    return session if user == LOCAL.user else f"{user}/{session}"


def parts_of(name: str) -> tuple[str, str]:
    """The session's user, and its id."""
    user, _, session = name.rpartition("/")
    return user or LOCAL.user, session


class UserRuntime(Protocol):
    """What a host needs of a runtime of one user."""

    @property
    def opened(self) -> Mapping[str, OpenSession]: ...
    async def open(self, session_id: str | None = None) -> OpenSession: ...
    async def close(self, session_id: str) -> None: ...
    async def close_unless(self, session_id: str, needed: Callable[[OpenSession], bool]) -> None: ...
    def texts(self, query: str, limit: int) -> TextHits: ...


class UserSessions:
    """`cluster.host.Sessions` of all users. `local`: the runtime of the user `local`; `running`: the open runtimes of
    others, by user id; `users`: opens them; None where there is one user."""

    def __init__(
        self, local: UserRuntime, running: Mapping[str, UserRuntime] | None = None, users: Users | None = None
    ) -> None:
        self._local = local
        self._running: Mapping[str, UserRuntime] = {} if running is None else running
        self._users = users

    @property
    def opened(self) -> Mapping[str, OpenSession]:
        """See `Sessions.opened`."""
        by_name = dict(self._local.opened)
        for user, runtime in self._running.items():
            for identity, session in runtime.opened.items():
                by_name[name_of(user, identity)] = session
        return by_name

    async def open(self, session: str) -> OpenSession:
        """See `Sessions.open`."""
        user, identity = parts_of(session)
        async with self._of(user) as runtime:
            return await runtime.open(identity)

    async def close(self, session: str) -> None:
        """See `Sessions.close`."""
        user, identity = parts_of(session)
        runtime = self._there(user)
        if runtime is not None:
            await runtime.close(identity)

    async def close_unless(self, session: str, needed: Callable[[OpenSession], bool]) -> None:
        """See `Sessions.close_unless`."""
        user, identity = parts_of(session)
        runtime = self._there(user)
        if runtime is not None:
            await runtime.close_unless(identity, needed)

    @asynccontextmanager
    async def texts_of(self, user: str) -> AsyncIterator[Callable[[str, int], TextHits]]:
        """See `Sessions.texts_of`."""
        async with self._of(user) as runtime:
            yield runtime.texts

    def _there(self, user: str) -> UserRuntime | None:
        return self._local if user == LOCAL.user else self._running.get(user)

    @asynccontextmanager
    async def _of(self, user: str) -> AsyncIterator[UserRuntime]:
        """A user's runtime, open as long as the context is."""
        if user == LOCAL.user:
            yield self._local
            return

        if self._users is None:
            raise UsageError(
                "This host has one user. All hosts and gateways of a store need the same accounts."
            )
        async with self._users(user):
            yield self._running[user]


class UserPage:
    """`cluster.host.Page`, which knows sessions by their id alone: ids are unique among all users."""

    def __init__(self, page: Page) -> None:
        self._page = page

    @property
    def unavailable(self) -> str:
        """See `Page.unavailable`."""
        return self._page.unavailable

    @unavailable.setter
    def unavailable(self, why: str) -> None:
        self._page.unavailable = why

    def watches(self, session: str) -> bool:
        """See `Page.watches`."""
        return self._page.watches(parts_of(session)[1])

    async def send_away(self, session: str | None) -> None:
        """See `Page.send_away`."""
        if session is not None:
            _, session = parts_of(session)
        await self._page.send_away(session)
