"""The server that the user is logged in to on the command line: its address, and an API token.

Both are in one small file in the data directory, readable only by its owner. While the file exists, commands for running
sessions use that server, as that user. Otherwise they use the server of the data directory, with the key of its run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iact.address import Address
from iact.core import whole_file
from iact.core.errors import IactError, UsageError

FILE: Final = "login.json"
_PATIENCE: Final = 10.0


class Login(BaseModel):
    """A server, and the token for it. `name`: the user's name on that server."""

    model_config = ConfigDict(frozen=True)

    url: str
    token: str = Field(repr=False)
    name: str

    @property
    def address(self) -> Address:
        """The server's address for commands."""
        return Address(url=f"{self.url}/", pid=0, started="", key=self.token)


class _Account(BaseModel):
    """What a server reports about the owner of a token."""

    name: str
    admin: bool
    scopes: list[str]


def checked(url: str, token: str) -> Login:
    """Return the login, after asking the server whether it accepts the token.

    Raises:
        UsageError: the address is invalid, or the token would cross a network unencrypted.
        IactError: the server can't be reached, or refuses.
    """
    # Every command about a session reads the file, and only this one asks.
    import httpx

    parts = httpx.URL(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.host:
        raise UsageError(f"{url!r} is not the address of a server. Write it like https://iact.example.org")
    if parts.scheme == "http" and parts.host not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError(
            f"{url} is not encrypted, so others could read the token on the way. Use the server's https address."
        )
    base = f"{parts.scheme}://{parts.netloc.decode()}"
    try:
        answer = httpx.get(f"{base}/account", headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE)
    except (httpx.HTTPError, UnicodeEncodeError) as error:
        raise IactError(f"The server at {base} can't be reached: {error}.") from error
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise IactError(
            f"{base} does not accept this token; it may have expired or been revoked. Create a new one on its page, under Account."
        )
    try:
        return Login(url=base, token=token, name=_Account.model_validate_json(answer.content).name)
    except ValidationError as error:
        raise IactError(f"{base} is not an iact server with accounts.") from error


def keep(data: Path, login: Login) -> None:
    """Store a login, replacing the previous one."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    whole_file.replace(data / FILE, (login.model_dump_json() + "\n").encode(), mode=0o600)


def read(data: Path) -> Login | None:
    """The login of a data directory, if there is one."""
    try:
        return Login.model_validate_json((data / FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def forget(data: Path) -> Login | None:
    """Delete the login and return it."""
    found = read(data)
    (data / FILE).unlink(missing_ok=True)
    return found
