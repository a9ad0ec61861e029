"""Who a gateway speaks for: a statement that it signs, and that one host accepts once.

On a server with accounts, people sign in at a gateway, and the hosts behind it must learn who they are. They learn it
not from a header that anyone could send, but from a statement signed with a key that is derived from the key of the
seals, which only hosts and gateways of the store have. A statement names the start of the host that it is for and the
requested path, says when it was made, and is good once: a stolen one is useless, there and elsewhere. It comes as
`Authorization: Iact-Member STATEMENT`; a gateway makes every request to a host itself, and passes on no header of a
client.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iact.accounts.people import HttpRequest
from iact.accounts.rights import Principal, Scope, Words

LIFE: Final = 60.0
"""How many seconds a statement may be older or newer than the host's clock: clocks of members differ."""
_SCHEME: Final = "Iact-Member"
_LONGEST: Final = 4096
_REMEMBERED: Final = 100_000
"""How many statements a host remembers while they could still be valid. If there are more, it accepts none."""

_log = logging.getLogger("iact.cluster")


def statement_key(seals: bytes) -> bytes:
    """The key with which statements are signed. `seals`: the key of the seals."""
    return hmac.digest(seals, b"iact: statements of members of a cluster", "sha256")


class _Statement(BaseModel):
    """The signed content."""

    model_config = ConfigDict(extra="forbid", strict=True)

    host: Annotated[str, Field(max_length=128)]
    """The incarnation that it is for."""
    path: Annotated[str, Field(max_length=512)]
    """The requested path."""
    at: float
    """When it was made, in seconds since 1970."""
    once: Annotated[str, Field(min_length=16, max_length=64)]
    """A value that no other statement has."""

    # The principal.
    user: Annotated[str, Field(max_length=64)]
    name: Annotated[str, Field(max_length=256)]
    admin: bool
    scopes: Annotated[list[Scope], Field(max_length=16)]
    link: Annotated[str, Field(max_length=64)]
    key: Annotated[str, Field(max_length=128)]
    words: Words = "newest"

    def principal(self) -> Principal:
        """Who is spoken for."""
        return Principal(
            user=self.user,
            name=self.name,
            admin=self.admin,
            scopes=frozenset(self.scopes),
            link=self.link,
            key=self.key,
            words=self.words,
        )


@dataclass(frozen=True, slots=True)
class StatementWriter:
    """Signs for a gateway. `key`: from `statement_key`; `clock`: seconds since 1970."""

    key: bytes
    clock: Callable[[], float] = time.time

    def header(self, who: Principal, incarnation: str, path: str) -> dict[str, str]:
        """The header that tells a host who a request for a path comes from; good once."""
        statement = _Statement(
            host=incarnation,
            path=path,
            at=self.clock(),
            once=secrets.token_hex(16),
            user=who.user,
            name=who.name,
            admin=who.admin,
            scopes=sorted(who.scopes),
            link=who.link,
            key=who.key,
            words=who.words,
        )
        # A member of an earlier version knows no `words`, and refuses what it doesn't know.
        text = json.dumps(statement.model_dump(exclude_defaults=True), ensure_ascii=False)
        encoded = base64.urlsafe_b64encode(text.encode())
        return {"Authorization": f"{_SCHEME} {encoded.decode()}.{_signature(self.key, encoded)}"}


class StatementReader:
    """Reads statements for one start of a host. Called from several threads."""

    def __init__(self, key: bytes, incarnation: str, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._incarnation = incarnation
        self._clock = clock
        self._seen: dict[str, float] = {}
        """The accepted statements, in order of acceptance, and until when each is remembered."""
        self._lock = threading.Lock()

    def read(self, request: HttpRequest) -> Principal | None:
        """Who a request comes from, according to a member. None if no member says so, or the statement is for another
        host, outdated or used."""
        signed = _signed(request.authorizations)
        if signed is None:
            return None

        encoded, _, signature = signed.rpartition(".")
        if not hmac.compare_digest(_signature(self._key, encoded.encode()), signature):
            _log.warning("A statement was refused that no member of this cluster signed.")
            return None
        try:
            statement = _Statement.model_validate_json(base64.urlsafe_b64decode(encoded.encode()))
        except (ValidationError, binascii.Error, ValueError):
            _log.warning(
                "A statement of a member can't be read: do all members have the same version of iact?"
            )
            return None

        path = request.target.partition("?")[0]
        with self._lock:
            refusal = self._refusal(statement, path)
        if refusal:
            _log.warning("A statement of a member was refused: %s.", refusal)
            return None
        return statement.principal()

    def _refusal(self, statement: _Statement, path: str) -> str:
        """Why a statement is refused; empty if it is accepted, and remembered from then on."""
        now = self._clock()
        while self._seen and next(iter(self._seen.values())) < now:
            del self._seen[next(iter(self._seen))]

        if statement.host != self._incarnation:
            return "it is for another host, or for an earlier start of this one"
        if statement.path != path:
            return "it is for another path"

        age = now - statement.at
        is_in_time = abs(age) <= LIFE  # false for a time that is no number, too
        if not is_in_time:
            return f"by the clock of this host it was made {age:.0f} s ago; set the clocks of all members"

        if len(self._seen) >= _REMEMBERED:
            return "too many were used within a minute"
        if statement.once in self._seen:
            return "it was used before"
        self._seen[statement.once] = now + 2 * LIFE  # by a clock that is ahead, it may stay valid that long
        return ""


def _signature(key: bytes, encoded: bytes) -> str:
    return hmac.new(key, encoded, hashlib.sha256).hexdigest()


def _signed(authorizations: tuple[str, ...]) -> str | None:
    """The statement with its signature; None if there is none."""
    if len(authorizations) != 1 or len(authorizations[0]) > _LONGEST:
        return None
    scheme, _, signed = authorizations[0].partition(" ")
    return signed if scheme == _SCHEME and signed.isascii() else None
