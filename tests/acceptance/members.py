"""Users with accounts on a real server: creating them, signing in without a browser, and their requests."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import httpx
from websockets.sync.client import ClientConnection, connect

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from iact.accounts.rights import SCOPES, Scope
from tests.acceptance.product import Product, Server

PASSWORD = "correct horse battery"
_CALL = Actor("the test")


def with_people(
    product: Product, *names: str, settings: Sequence[str] = (), url: str | None = None
) -> dict[str, str]:
    """Create accounts with a password, the first of them an administrator. Returns their ids. `settings`: further lines
    of the table. `url`: the database, if it is not in the data directory."""
    lines = ["[accounts]", 'authenticator = "password"', *settings, ""]
    (product.data / "iact.toml").write_text("\n".join(lines), encoding="utf-8")
    with open_accounts(product.data, url, lambda: 0.0) as accounts:
        for name in names:
            accounts.users.add(
                name, role="admin" if name == names[0] else "user", password=PASSWORD, by=_CALL
            )
        return {one.name: one.id for one in accounts.users.all()}


def token_of(product: Product, name: str, *scopes: Scope, called: str = "of-a-test") -> str:
    """Create an API token for a user, by default with every scope except the administrator's."""
    named = [part for one in scopes or [one for one in SCOPES if one != "admin"] for part in ("--scope", one)]
    made = product.run("token", "create", called, "--user", name, *named, "--json")
    assert made.status == 0, made
    return str(json.loads(made.stdout)["token"])


def sign_in(server: Server, name: str, password: str = PASSWORD) -> httpx.Response:
    """Sign in as the page's script does."""
    address = f"http://127.0.0.1:{server.port}"
    given = base64.b64encode(f"{name}:{password}".encode()).decode()
    headers = {"Authorization": f"Basic {given}", "Origin": address}
    return httpx.post(f"{address}/sign-in", headers=headers, trust_env=False)


def follow(server: Server, path: str, **headers: str) -> str:
    """Open a link as the page's script does. Returns the cookie of a visitor without an account, else nothing."""
    address = f"http://127.0.0.1:{server.port}"
    told = httpx.post(f"{address}{path}", headers={**headers, "Origin": address}, trust_env=False)
    assert told.status_code == 200, told
    return str(told.headers.get("set-cookie", "")).partition(";")[0]


def dial(server: Server, **headers: str) -> ClientConnection:
    """Open a websocket with these headers."""
    return connect(
        f"ws://127.0.0.1:{server.port}/ws", additional_headers=headers, max_size=None, close_timeout=0.2,
        ping_interval=None, proxy=None,
    )  # fmt: skip


def bearer(token: str) -> dict[str, str]:
    """The header of a program with a token."""
    return {"Authorization": f"Bearer {token}"}


def until_record(socket: ClientConnection, kind: str, *, within: float = 300.0) -> dict[str, object]:
    """The messages up to the first record of this kind."""
    while True:
        frame = json.loads(socket.recv(timeout=within))
        if frame.get("type") == "record" and frame.get("kind") == kind:
            return dict(frame)
