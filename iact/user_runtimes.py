"""What several users of one server have: each a runtime on a directory of their own, opened at the first need.

Shared by all are the models, the policy and the engine that modules run in; of everything else there is one for each, so
that nobody meets what is another's. The models are an administrator's to choose.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from iact.choices import Choices
from iact.core.errors import UsageError
from iact.core.ports import ConcurrencyLimits, ModelQuota
from iact.core.session.clock import SystemClock
from iact.core.session.models import Models, Tried
from iact.settings import Settings
from iact.surroundings import ServerSurroundings
from iact.user_folders import folder_of, shared_folder
from iact.web.ports import FirstMessage, RoleChoice, RoleView, Tenant
from iact.web.tenants import UserTenants
from iact.wiring import open_runtime


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


@asynccontextmanager
async def open_tenants(
    settings: Settings,
    models: Models,
    choices: Choices,
    scope: str,
    quota_of: Callable[[str], UserLimits],
) -> AsyncIterator[UserTenants]:
    """What the users of a server have. `models`: those of the server; `choices`: who chooses them; `scope`: of new sessions.

    `quota_of`: how much somebody may use, by their id.

    Raises:
        UsageError: several hosts share a store, in which nothing keeps one user's sessions from another's.
    """
    if settings.store is not None:
        raise UsageError(
            "Accounts and a store that several hosts share (IACT_STORE) can't be used together. Use one of them."
        )
    open_one = partial(_open_tenant, settings, models, choices, scope, quota_of)
    async with UserTenants(open_one, SystemClock()) as tenants:
        yield tenants


@asynccontextmanager
async def _open_tenant(
    settings: Settings,
    models: Models,
    choices: Choices,
    scope: str,
    quota_of: Callable[[str], UserLimits],
    user: str,
) -> AsyncIterator[Tenant]:
    own = settings.model_copy(update={"data": folder_of(settings.data, user)})
    limits = quota_of(user)
    async with open_runtime(
        own,
        scope=scope,
        opened=models.lend(limits),
        user=user,
        policy=settings.data,
        limits=limits,
        shared=shared_folder(settings.data),
    ) as runtime:
        if runtime.memory is not None:
            runtime.memory.wake()
        tending = asyncio.create_task(runtime.tend(), name=f"tending what the user {user} has")
        try:
            chosen = UserChoices(choices, Choices(own, _unused))
            yield Tenant(runtime, ServerSurroundings(choices, chosen, data=own.data))
        finally:
            tending.cancel()
            await asyncio.wait([tending])


def _unused(models: Models) -> None:
    raise AssertionError("a user's own choices are no models")
