"""What several users of one server have: each a runtime on a directory of their own, opened at the first need.

Shared by all are the models, the policy and the engine that modules run in; of everything else there is one for each, so
that nobody meets what is another's. The models are an administrator's to choose.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypedDict

from iact.choices import Choices
from iact.core.ports import ConcurrencyLimits, ModelQuota
from iact.core.session.clock import SystemClock
from iact.core.session.index import TextHits
from iact.core.session.models import Models, Tried
from iact.core.session.runtime import Runtime, SearchElsewhere
from iact.settings import Settings
from iact.shared_files import fetch, follow
from iact.shared_users import settings_of_user, share_key
from iact.surroundings import ServerSurroundings
from iact.user_folders import shared_folder
from iact.web.ports import FirstMessage, RoleChoice, RoleView, Tenant
from iact.web.tenants import UserTenants
from iact.wiring import open_runtime


class ElsewhereOptions(TypedDict, total=False):
    """Arguments of `open_runtime` for what a host among others has."""

    claimed: Callable[[str, int], None]
    search_elsewhere: SearchElsewhere


class UserLimits(ModelQuota, ConcurrencyLimits, Protocol):
    """How much one user may use."""


class UserChoices:
    """`web.ports.Choices` of one user: their own first messages; models are the same for everybody."""

    def __init__(self, shared: Choices, own: Choices) -> None:
        self._shared = shared
        self._own = own

    def roles(self) -> Sequence[RoleView]:
        """As of `Choices`."""
        return self._shared.roles()

    async def try_role(self, choice: RoleChoice) -> Tried:
        """As of `Choices`."""
        return await self._shared.try_role(choice)

    async def choose_role(self, choice: RoleChoice) -> None:
        """As of `Choices`, for everybody."""
        await self._shared.choose_role(choice)

    async def forget_role(self, name: str) -> None:
        """As of `Choices`, for everybody."""
        await self._shared.forget_role(name)

    def first_messages(self) -> Sequence[FirstMessage]:
        """As of `Choices`."""
        return self._own.first_messages()

    def keep_first_message(self, message: FirstMessage) -> None:
        """As of `Choices`."""
        self._own.keep_first_message(message)

    def forget_first_message(self, name: str) -> None:
        """As of `Choices`."""
        self._own.forget_first_message(name)


@dataclass(frozen=True, slots=True)
class AmongHosts:
    """What a host has for its users. `claimed`: told of a user, a session's id and its epoch; `search`: asks the other hosts.

    `running`: the runtimes that are open, by their user.
    """

    claimed: Callable[[str, str, int], None]
    search: Callable[[str, int, str], Awaitable[Sequence[TextHits]]]
    running: dict[str, Runtime] = field(default_factory=dict)


@asynccontextmanager
async def open_tenants(
    settings: Settings,
    models: Models,
    choices: Choices,
    scope: str,
    quota_of: Callable[[str], UserLimits],
    among: AmongHosts | None = None,
) -> AsyncIterator[UserTenants]:
    """What the users of a server have. `models`: those of the server; `choices`: who chooses them; `scope`: of new sessions.

    `quota_of`: how much somebody may use, by their id. `among`: where the server is a host among others.
    """
    open_one = partial(_open_tenant, settings, models, choices, scope, quota_of, among)
    async with UserTenants(open_one, SystemClock()) as tenants:
        yield tenants


@asynccontextmanager
async def _open_tenant(
    settings: Settings,
    models: Models,
    choices: Choices,
    scope: str,
    quota_of: Callable[[str], UserLimits],
    among: AmongHosts | None,
    user: str,
) -> AsyncIterator[Tenant]:
    own = settings_of_user(settings, user)
    if settings.store is not None:
        await asyncio.to_thread(share_key, settings, own)
        await asyncio.to_thread(fetch, own)
    limits = quota_of(user)
    elsewhere: ElsewhereOptions = {}
    if among is not None:
        elsewhere = {
            "claimed": partial(among.claimed, user),
            "search_elsewhere": lambda query, limit: among.search(query, limit, user),
        }
    async with open_runtime(
        own,
        scope=scope,
        opened=models.lend(limits),
        user=user,
        policy=settings.data,
        limits=limits,
        shared=shared_folder(settings.data),
        **elsewhere,
    ) as runtime:
        if runtime.memory is not None:
            runtime.memory.wake()
        if among is not None:
            among.running[user] = runtime
        tending = [
            asyncio.create_task(one, name=f"tending what the user {user} has")
            for one in (runtime.tend(), follow(own))
        ]
        try:
            chosen = UserChoices(choices, Choices(own, _unused))
            yield Tenant(runtime, ServerSurroundings(choices, chosen, data=own.data))
        finally:
            if among is not None:
                del among.running[user]
            for one in tending:
                one.cancel()
            await asyncio.wait(tending)


def _unused(models: Models) -> None:
    raise AssertionError("a user's own choices are no models")
