"""The server for faces, next to the page's server. It uses the same key, tokens and rights."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.util import find_spec
from urllib.parse import urlsplit

from iact.accounts.rights import LOCAL, Principal
from iact.core.errors import UsageError
from iact.core.session.runtime import Runtime
from iact.web.ports import People, Tenants
from iact.web.safety import Asked


class ServerVisitors:
    """`faces.http.access.Visitors` of a server.

    `runtime`: the runtime for clients that send `key`. `people`, `tenants`: for users with accounts.
    """

    def __init__(self, key: str, runtime: Runtime, people: People | None, tenants: Tenants | None) -> None:
        self._key = f"Bearer {key}".encode()
        self._runtime = runtime
        self._people = people
        self._tenants = tenants

    def identify(self, authorization: str, peer: str) -> Principal | None:
        """See `Visitors.identify`."""
        if hmac.compare_digest(authorization.encode(), self._key):
            return LOCAL
        if self._people is None:
            return None
        return self._people.identify(
            Asked(method="POST", target="/", authorizations=(authorization,), peer=peer)
        )

    def lease(self, who: Principal) -> AbstractAsyncContextManager[Runtime]:
        """See `Visitors.lease`."""
        if who.user == LOCAL.user:
            return nullcontext(self._runtime)
        assert self._tenants is not None
        return self._leased(self._tenants, who)

    @asynccontextmanager
    async def _leased(self, tenants: Tenants, who: Principal) -> AsyncIterator[Runtime]:
        async with tenants.lease(who.user) as tenant:
            runtime = tenant.runtime
            assert isinstance(runtime, Runtime)
            yield runtime


def serving(
    visitors: ServerVisitors, host: str, port: int, outside: str | None
) -> AbstractAsyncContextManager[int]:
    """Serve the HTTP faces until the context exits. Yields the port. `outside`: the address of a proxy in front.

    Raises:
        UsageError: a package is missing, or the address is not available.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise UsageError(
            "--faces needs packages that are not installed. Install them: pip install 'iact[http]'."
        )
    from iact.faces.a2a.routes import routes as a2a
    from iact.faces.ag_ui.routes import routes as ag_ui
    from iact.faces.http import server
    from iact.faces.mcp.routes import routes as mcp
    from iact.faces.responses.routes import routes as responses

    names = [urlsplit(outside).netloc] if outside else []
    return server.serving(server.application([responses, ag_ui, a2a, mcp], visitors), host, port, names=names)
