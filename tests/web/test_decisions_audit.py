"""What somebody decides outside of sessions is in the audit of a server with accounts, under their name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from iact.accounts.accounts import open_accounts
from iact.accounts.rights import Principal
from iact.core.clock import SystemClock
from iact.core.ports import CatalogueEntry
from iact.core.views.known_modules import KnownModule
from iact.register import AccountRegister
from iact.web.ports import Tenant
from iact.web.server import WebServer
from iact.web.tenants import UserTenants
from tests.core.session.fakes import MANIFEST
from tests.web.dialling import dial, send, until
from tests.web.fake import FakeAround, FakeRuntime
from tests.web.people import FakePeople, bearer


def test_a_module_that_a_user_approves_is_in_the_audit_and_one_that_is_not_there_is_not(
    tmp_path: Path,
) -> None:
    runtime = FakeRuntime()
    entry = CatalogueEntry("t", "ab" * 32, "agent", "For tests.", MANIFEST.to_proto())
    runtime.catalogue["t"] = KnownModule(entry, MANIFEST, frozenset())

    @asynccontextmanager
    async def open_one(user: str) -> AsyncIterator[Tenant]:
        yield Tenant(runtime, FakeAround())

    async def main() -> None:
        people = FakePeople({"bob": Principal(user="u-bob", name="bob", key="bob")})
        with open_accounts(tmp_path, None, lambda: 0.0) as accounts:
            async with UserTenants(open_one, SystemClock()) as tenants:
                register = AccountRegister(accounts, tmp_path, public_links=False)
                server = WebServer(
                    FakeRuntime(), product=FakeAround(), people=people, tenants=tenants, register=register
                )
                async with server, dial(server, **bearer("bob")) as client:
                    await send(client, type="hello", session=None, id=0)
                    await until(client, type="ok", id=0)
                    approve = {"type": "module.approve", "digest": "0" * 64, "functions": []}
                    await send(client, **approve, name="absent", id=1)
                    await until(client, type="error", id=1)
                    await send(client, **approve, name="t", id=2)
                    await until(client, type="ok", id=2)
            assert [(one.kind, one.who, one.about) for one in accounts.audit.events(since=-1.0)] == [
                (
                    "module.approved",
                    "bob",
                    {"module": "t", "functions": ", ".join(sorted(one.name for one in MANIFEST.functions))},
                )
            ]

    asyncio.run(asyncio.wait_for(main(), 60))
