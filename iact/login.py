"""The server that a person is logged in to on the command line: its address, and the API token that lets them in.

One small file in the data directory, readable by its owner alone. While it is there, commands that act on a session of a
running server go to that one, as that user; else to the server of the data directory, with the key of its run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iact.address import Address
from iact.core import whole_file
from iact.core.errors import IactError, UsageError

FILE: Final = "login.json"
_PATIENCE: Final = 10.0


class Login(BaseModel):
    """A server, and the token for it. `name`: who one is there."""

    model_config = ConfigDict(frozen=True)

    url: str
    token: str = Field(repr=False)
    name: str

    @property
    def address(self) -> Address:
        """The server as commands reach it."""
        return Address(url=f"{self.url}/", pid=0, started="", key=self.token)


class _Account(BaseModel):
    """What a server says of whoever comes with a token."""

    name: str
    admin: bool
    scopes: list[str]


def checked(url: str, token: str) -> Login:
    """The login, after the server was asked whether it lets the token in.

    Raises:
        UsageError: the address is none, or would send the token over a network in the clear.
        IactError: the server is not there, or refuses.
    """
    parts = httpx.URL(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.host:
        raise UsageError(f"{url!r} is no address of a server, such as https://iact.example.org")
    if parts.scheme == "http" and parts.host not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError(
            f"{url} is not encrypted, so the token could be read on the way. Use its https address."
        )
    base = f"{parts.scheme}://{parts.netloc.decode()}"
    try:
        answer = httpx.get(f"{base}/account", headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE)
    except (httpx.HTTPError, UnicodeEncodeError) as error:
        raise IactError(f"The server at {base} can't be reached: {error}.") from error
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise IactError(
            f"{base} does not know this token, or not any more. Create one on its page, under Account."
        )
    try:
        return Login(url=base, token=token, name=_Account.model_validate_json(answer.content).name)
    except ValidationError as error:
        raise IactError(f"{base} is no iact server with accounts.") from error


def keep(data: Path, login: Login) -> None:
    """Remember a login, in place of the one before."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    whole_file.replace(data / FILE, (login.model_dump_json() + "\n").encode(), mode=0o600)


def read(data: Path) -> Login | None:
    """The login of a data directory, if there is one."""
    try:
        return Login.model_validate_json((data / FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def forget(data: Path) -> Login | None:
    """Forget it; which it was."""
    found = read(data)
    (data / FILE).unlink(missing_ok=True)
    return found
