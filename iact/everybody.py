"""What administrators set for all users of a server with accounts: modules, their approvals, secrets, the policy.

Shared modules and secrets are in their own directory, laid out like a data directory; the runtimes of users read it
(`sandbox.catalogue`). A shared module is given shared secrets, and none of a user's. A user's own module is given that
user's secrets, and no shared ones. So no user can read a shared secret with a module that they wrote, whichever names it
asks for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from iact.catalogue import catalogue_of
from iact.core.errors import IactError, ModuleLost, UsageError
from iact.core.ports import ModuleSource, Report
from iact.core.stored.policy import policy_text, write_policy
from iact.core.views.known_modules import KnownModule
from iact.sandbox.secrets import Secrets
from iact.settings import Settings, make_data_directory
from iact.shared_users import settings_of_all


def settings_of_everybody(settings: Settings) -> Settings:
    """The same settings, applied to the directory that all users share.

    Raises:
        UsageError: this installation has only one user.
    """
    if settings.accounts.authenticator == "token":
        raise UsageError(
            "This installation has only one user, so nothing is set for all users. Leave out --everybody."
        )
    return settings_of_all(settings)


async def _nobody() -> None:
    """Do nothing: no session runs here."""


def _unheard(line: str) -> None:
    """Ignore a progress line."""


class Everybody:
    """`web.ports.SharedSetup`. `changed`: notifies sessions that run here. `scope`: the scope of new sessions."""

    def __init__(
        self, settings: Settings, changed: Callable[[], Awaitable[None]] = _nobody, scope: str = "default"
    ) -> None:
        self._settings = settings_of_everybody(settings)
        self._data = settings.data
        self._changed = changed
        self._scope = scope
        self._secrets = Secrets(self._settings.data)

    async def modules(self) -> Sequence[KnownModule]:
        """The shared modules, with their approved functions."""
        async with catalogue_of(self._settings) as catalogue:
            return [one for one in await catalogue.modules() if one.entry.origin != "shipped"]

    async def add_module(self, source: ModuleSource, report: Report = _unheard) -> KnownModule:
        """Add a module, which is started once. This approves none of its functions.

        Raises:
            UsageError, SandboxError, ModuleFault: as `ModuleCatalogue.add`.
        """
        async with catalogue_of(self._settings) as catalogue:
            try:
                added = await catalogue.add(source, report)
            except ModuleLost as error:
                raise IactError(f"{error}\n{error.log}".rstrip()) from error
        await self._changed()
        return added

    async def remove_module(self, name: str) -> None:
        """Remove a module for all users, together with its approvals.

        Raises:
            UsageError: there is no such module.
        """
        async with catalogue_of(self._settings) as catalogue:
            await catalogue.remove(name)
            catalogue.withdraw(name)
        await self._changed()

    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule:
        """Approve functions of a module for all users. If none are named, approve all of them and its needs.

        Raises:
            UsageError: there is no such module, version or function.
        """
        async with catalogue_of(self._settings) as catalogue:
            approved = await catalogue.approve(name, functions, digest=digest)
        await self._changed()
        return approved

    def secrets(self) -> Sequence[str]:
        """The names of the secrets of shared modules. Values are never returned. Blocks."""
        return self._secrets.names()

    def store_secret(self, name: str, value: str) -> None:
        """Store a secret. Blocks.

        Raises:
            UsageError: the name or the value is invalid.
        """
        make_data_directory(self._settings)
        self._secrets.store(name, value)

    def remove_secret(self, name: str) -> None:
        """Remove a secret. Blocks.

        Raises:
            UsageError: there is no secret of this name.
        """
        self._secrets.remove(name)

    def policy(self) -> str:
        """The text of the policy file, or an empty string if there is none. Blocks."""
        return policy_text(self._data)

    def change_policy(self, text: str, was: str) -> None:
        """Write the policy, which applies to sessions that are started or reopened afterwards. Blocks.

        `was`: the text that the change is based on.

        Raises:
            UsageError: it is not a policy, lacks the scope of new sessions, or was changed in the meantime.
        """
        write_policy(self._data, text, was=was, scope=self._scope)
