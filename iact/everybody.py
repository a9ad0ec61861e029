"""What administrators set for everybody on a server with accounts: modules, what is approved of them, secrets, the policy.

Modules and secrets are in a directory of their own, laid out as a data directory is; runtimes of users look into it
(`sandbox.catalogue`). A module from there is given secrets from there, and no user's; a user's own module is given the
user's, and none from there. So nobody can learn a shared secret with a module that they wrote, whatever names it asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from iact.core.errors import IactError, ModuleLost, UsageError
from iact.core.ports import ModuleSource, Report
from iact.core.session.catalogue import KnownModule, ModuleCatalogue
from iact.core.session.policy import policy_text, write_policy
from iact.sandbox import open_host
from iact.sandbox.secrets import Secrets
from iact.settings import Settings
from iact.shared_users import settings_of_all
from iact.wiring import make_data_directory


def settings_of_everybody(settings: Settings) -> Settings:
    """The same settings, over the directory with what everybody has.

    Raises:
        UsageError: this installation has one user.
    """
    if settings.accounts.authenticator == "token":
        raise UsageError(
            "This installation has only one user, so nothing is set for all users. Leave out --everybody."
        )
    return settings_of_all(settings)


@asynccontextmanager
async def catalogue_of(settings: Settings) -> AsyncIterator[ModuleCatalogue]:
    """The catalogue of a data directory, for as long as this is open.

    Raises:
        SandboxUnavailable: what the settings demand doesn't work here.
    """
    make_data_directory(settings)
    host = await open_host(
        settings.data, backend=settings.sandbox, runtime=settings.runtime, kubernetes=settings.kubernetes
    )
    try:
        yield ModuleCatalogue.of(host, settings.data)
    finally:
        await host.close()


async def _nobody() -> None:
    """No session runs here."""


def _unheard(line: str) -> None:
    """Nobody waits for such lines."""


class Everybody:
    """`web.ports.SharedSetup`. `changed`: lets sessions that run here know of modules; `scope`: of new sessions."""

    def __init__(
        self, settings: Settings, changed: Callable[[], Awaitable[None]] = _nobody, scope: str = "default"
    ) -> None:
        self._settings = settings_of_everybody(settings)
        self._data = settings.data
        self._changed = changed
        self._scope = scope
        self._secrets = Secrets(self._settings.data)

    async def modules(self) -> Sequence[KnownModule]:
        """Those of everybody, with what is approved of them."""
        async with catalogue_of(self._settings) as catalogue:
            return [one for one in await catalogue.modules() if one.entry.origin != "shipped"]

    async def add_module(self, source: ModuleSource, report: Report = _unheard) -> KnownModule:
        """Add one, which is started once; nothing of it is approved by that.

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
        """Take one away from everybody, and what was approved of it.

        Raises:
            UsageError: there is none.
        """
        async with catalogue_of(self._settings) as catalogue:
            await catalogue.remove(name)
            catalogue.withdraw(name)
        await self._changed()

    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule:
        """Approve functions of one (none named: all, and what it needs) for everybody.

        Raises:
            UsageError: there is no such module, version or function.
        """
        async with catalogue_of(self._settings) as catalogue:
            approved = await catalogue.approve(name, functions, digest=digest)
        await self._changed()
        return approved

    def secrets(self) -> Sequence[str]:
        """The names of the secrets of everybody's modules. No value is ever told. Blocks."""
        return self._secrets.names()

    def store_secret(self, name: str, value: str) -> None:
        """Store one. Blocks.

        Raises:
            UsageError: the name or the value can't be.
        """
        make_data_directory(self._settings)
        self._secrets.store(name, value)

    def remove_secret(self, name: str) -> None:
        """Remove one. Blocks.

        Raises:
            UsageError: there is none of this name.
        """
        self._secrets.remove(name)

    def policy(self) -> str:
        """The policy, as its file has it; empty where there is none. Blocks."""
        return policy_text(self._data)

    def change_policy(self, text: str, was: str) -> None:
        """Write the policy, which holds for sessions that begin, or are opened again. Blocks. `was`: what it was.

        Raises:
            UsageError: it is no policy, lacks the scope of new sessions, or is another one by now.
        """
        write_policy(self._data, text, was=was, scope=self._scope)
