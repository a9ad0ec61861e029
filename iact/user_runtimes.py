"""Runtimes for several users of one server: one per user, on the user's own directory, opened when first needed.

All users share the models, the policy and the engine that modules run in. Everything else exists once per user, so no
user sees another's data. An administrator chooses the models.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypedDict

from iact.choices import Choices
from iact.core.clock import SystemClock
from iact.core.ports import ConcurrencyLimits, ModelQuota
from iact.core.session.models import Models, Tried
from iact.core.session.runtime import Runtime, SearchElsewhere
from iact.core.stored.index import TextHits
from iact.settings import Settings
from iact.shared_files import fetch, follow
from iact.shared_users import settings_of_user, share_key
from iact.surroundings import ServerSurroundings
from iact.user_folders import shared_folder
from iact.web.ports import (
    AddedEndpointView,
    FirstMessage,
    ModelFileView,
    Preset,
    RoleChoice,
    RoleView,
    Tenant,
)
from iact.web.tenants import UserTenants
from iact.wiring import open_runtime


class ElsewhereOptions(TypedDict, total=False):
    """Arguments of `open_runtime` for a host that is one of several."""

    claimed: Callable[[str, int], None]
    search_elsewhere: SearchElsewhere


class UserLimits(ModelQuota, ConcurrencyLimits, Protocol):
    """The limits of one user."""


class UserChoices:
    """`web.ports.Choices` of one user: the user's own first messages, and the models shared by all users."""

    def __init__(self, shared: Choices, own: Choices) -> None:
        self._shared = shared
        self._own = own

    def roles(self) -> Sequence[RoleView]:
        """See `Choices`."""
        return self._shared.roles()

    async def try_role(self, choice: RoleChoice) -> Tried:
        """See `Choices`."""
        return await self._shared.try_role(choice)

    async def choose_role(self, choice: RoleChoice) -> None:
        """See `Choices`. Applies to all users."""
        await self._shared.choose_role(choice)

    async def forget_role(self, name: str) -> None:
        """See `Choices`. Applies to all users."""
        await self._shared.forget_role(name)

    def presets(self) -> Sequence[Preset]:
        """See `Choices`."""
        return self._shared.presets()

    def model_files(self) -> Sequence[ModelFileView]:
        """See `Choices`."""
        return self._shared.model_files()

    async def use_on_board(self, name: str) -> None:
        """See `Choices`. Applies to all users."""
        await self._shared.use_on_board(name)

    def added_endpoints(self) -> Sequence[AddedEndpointView]:
        """See `Choices`."""
        return self._shared.added_endpoints()

    async def use_endpoint(self, name: str) -> None:
        """See `Choices`. Applies to all users."""
        await self._shared.use_endpoint(name)

    def first_messages(self) -> Sequence[FirstMessage]:
        """See `Choices`."""
        return self._own.first_messages()

    def keep_first_message(self, message: FirstMessage) -> None:
        """See `Choices`."""
        self._own.keep_first_message(message)

    def forget_first_message(self, name: str) -> None:
        """See `Choices`."""
        self._own.forget_first_message(name)


@dataclass(frozen=True, slots=True)
class AmongHosts:
    """What a host in a cluster needs for its users.

    `claimed`: called with a user, a session id and its epoch. `search`: searches the other hosts. `running`: the open
    runtimes, by user.
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
    """Open the runtimes of a server's users.

    `models`: the server's models. `choices`: changes them. `scope`: the scope of new sessions. `quota_of`: returns the
    limits of a user, by id. `among`: set if the server is one of several hosts.
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
        # A host looks after all sessions itself, because other hosts must learn what it closes.
        closed_after = own.session_idle if among is None else 0.0
        tending = [
            asyncio.create_task(one, name=f"tending what the user {user} has")
            for one in (runtime.tend(), runtime.close_unneeded(closed_after), follow(own))
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
