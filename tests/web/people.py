"""A server with several users for tests of the web room: who somebody is, is said by a bearer token in plain words."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from iact.accounts.people import SharedSession
from iact.accounts.rights import LinkView, Principal, Role
from iact.core.clock import SystemClock
from iact.core.ports import (
    ChatMessage,
    ModelEvent,
    ModelProfile,
    StreamEnd,
    TextDelta,
    Usage,
    UsageReport,
)
from iact.core.session.runtime import Runtime
from iact.web.ports import Entrance, People, Tenant
from iact.web.safety import Asked
from iact.web.server import WebServer
from iact.web.tenants import UserTenants
from tests.core.session.fakes import Asked as ModelAsked
from tests.core.session.fakes import ScriptedModel, runtime
from tests.web.fake import FakeAround


class PlainModel(ScriptedModel):
    """Answers whatever it is asked, by whomever and in whatever order, with one text."""

    def __init__(self, text: str) -> None:
        super().__init__(lambda asked: text)
        self._text = text
        self.profile = ModelProfile("plain", 1_000_000)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        yield TextDelta(self._text)
        yield UsageReport(Usage(10, 0, 10))
        yield StreamEnd("stop")


@dataclass
class FakePeople:
    """`tokens`: who comes by which. `grants`: roles by user (or link) and session. `ended`: tokens that were withdrawn."""

    tokens: dict[str, Principal]
    grants: dict[tuple[str, str], SharedSession] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def identify(self, asked: Asked) -> Principal | None:
        found = self.tokens.get("".join(asked.authorizations).removeprefix("Bearer "))
        return found if found is not None and self.holds(found) else None

    def holds(self, who: Principal) -> bool:
        return who.key not in self.ended

    def grant(self, who: Principal, session: str | None) -> SharedSession | None:
        if who.link:
            return next(
                (
                    one
                    for (whose, id_), one in self.grants.items()
                    if whose == who.whose and session in (None, id_)
                ),
                None,
            )
        return self.grants.get((who.whose, session or ""))

    def give(
        self, who: Principal, session: str, owner: Principal, role: Role, view: LinkView | None = None
    ) -> None:
        """Grant a role on a session. `view`: that of a link by which they came."""
        self.grants[who.whose, session] = SharedSession(
            session=session, owner=owner.user, owner_name=owner.name, role=role, view=view
        )


@dataclass
class Town:
    """A server, its people, and the folders of what they have."""

    server: WebServer
    people: People
    tenants: UserTenants
    data: Path

    def folder(self, user: str) -> Path:
        """A user's data directory."""
        return self.data / "users" / user


@asynccontextmanager
async def town(
    data: Path,
    people: People,
    says: Mapping[str, str],
    *,
    idle: float = 600.0,
    entrance: Entrance | None = None,
) -> AsyncIterator[Town]:
    """A server with these people; everybody's models answer with what they `says`, or nothing that matters."""

    @asynccontextmanager
    async def open_one(user: str) -> AsyncIterator[Tenant]:
        folder = data / "users" / user
        folder.mkdir(parents=True, exist_ok=True)
        async with runtime(folder, _unasked, model=PlainModel(says.get(user, "I see."))) as opened:
            yield Tenant(opened, FakeAround())

    local: Runtime = runtime(data, _unasked, model=PlainModel("I see."))
    async with local, UserTenants(open_one, SystemClock(), idle=idle) as tenants:
        server = WebServer(local, product=FakeAround(), people=people, tenants=tenants, entrance=entrance)
        async with server:
            yield Town(server, people, tenants, data)


def _unasked(asked: ModelAsked) -> str:
    raise AssertionError("the plain model answers")


def bearer(token: str) -> Mapping[str, str]:
    """The headers by which somebody comes."""
    return {"Authorization": f"Bearer {token}"}
