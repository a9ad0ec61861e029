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
from iact.accounts.rights import Principal, Scope

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
    """The signed content. `host`: an incarnation; `once`: a value that no other statement has."""

    model_config = ConfigDict(extra="forbid", strict=True)

    host: Annotated[str, Field(max_length=128)]
    path: Annotated[str, Field(max_length=512)]
    at: float
    once: Annotated[str, Field(min_length=16, max_length=64)]
    user: Annotated[str, Field(max_length=64)]
    name: Annotated[str, Field(max_length=256)]
    admin: bool
    scopes: Annotated[list[Scope], Field(max_length=16)]
    link: Annotated[str, Field(max_length=64)]
    key: Annotated[str, Field(max_length=128)]


@dataclass(frozen=True, slots=True)
class StatementWriter:
    """Signs for a gateway. `key`: from `statement_key`; `clock`: seconds since 1970."""

    key: bytes
    clock: Callable[[], float] = time.time

    def header(self, who: Principal, incarnation: str, path: str) -> dict[str, str]:
        """The header that tells a host who a request for a path comes from; good once."""
        told = _Statement(
            host=incarnation, path=path, at=self.clock(), once=secrets.token_hex(16), user=who.user, name=who.name,
            admin=who.admin, scopes=sorted(who.scopes), link=who.link, key=who.key,
        )  # fmt: skip
        said = base64.urlsafe_b64encode(json.dumps(told.model_dump(), ensure_ascii=False).encode())
        return {"Authorization": f"{_SCHEME} {said.decode()}.{_sign(self.key, said)}"}


class StatementReader:
    """Reads statements for one start of a host. Called from several threads."""

    def __init__(self, key: bytes, incarnation: str, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._incarnation = incarnation
        self._clock = clock
        self._seen: dict[str, float] = {}
        """The accepted statements, in order of acceptance, and until when each is remembered."""
        self._lock = threading.Lock()

    def read(self, asked: HttpRequest) -> Principal | None:
        """Who a request comes from, according to a member. None if no member says so, or the statement is for another
        host, outdated or used."""
        given = _given(asked.authorizations)
        if given is None:
            return None
        said, _, signature = given.rpartition(".")
        if not hmac.compare_digest(_sign(self._key, said.encode()), signature):
            _log.warning("A statement was refused that no member of this cluster signed.")
            return None
        try:
            told = _Statement.model_validate_json(base64.urlsafe_b64decode(said.encode()))
        except (ValidationError, binascii.Error, ValueError):
            _log.warning(
                "A statement of a member can't be read: do all members have the same version of iact?"
            )
            return None
        with self._lock:
            why = self._refusal(told, asked.target.partition("?")[0])
        if why:
            _log.warning("A statement of a member was refused: %s.", why)
            return None
        return Principal(
            user=told.user, name=told.name, admin=told.admin, scopes=frozenset(told.scopes), link=told.link,
            key=told.key,
        )  # fmt: skip

    def _refusal(self, told: _Statement, path: str) -> str:
        """Why a statement is refused; empty if it is accepted, and remembered from then on."""
        now = self._clock()
        while self._seen and next(iter(self._seen.values())) < now:
            del self._seen[next(iter(self._seen))]
        if told.host != self._incarnation:
            return "it is for another host, or for an earlier start of this one"
        if told.path != path:
            return "it is for another path"
        if not abs(now - told.at) <= LIFE:
            return f"by the clock of this host it was made {now - told.at:.0f} s ago; set the clocks of all members"
        if len(self._seen) >= _REMEMBERED:
            return "too many were used within a minute"
        if told.once in self._seen:
            return "it was used before"
        self._seen[told.once] = now + 2 * LIFE  # by a clock that is ahead, it may stay valid that long
        return ""


def _sign(key: bytes, said: bytes) -> str:
    return hmac.new(key, said, hashlib.sha256).hexdigest()


def _given(authorizations: tuple[str, ...]) -> str | None:
    if len(authorizations) != 1 or len(authorizations[0]) > _LONGEST:
        return None
    scheme, _, given = authorizations[0].partition(" ")
    return given if scheme == _SCHEME and given.isascii() else None
