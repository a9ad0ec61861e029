"""Addresses that let a browser in, each with a token that is good for one sign-in.

An address is printed on a terminal, where it stays: in the scrollback, in a log, in a recording. So its token is
exchanged for a cookie, and then expires. Not at once: a browser may open an address twice (because it prefetches,
restores a tab, or the user clicks twice), and the person who starts a server may have several clients to let in. The
rules:

- the token of the start is valid until it is exchanged, since the page may be opened much later; one that was
  requested is valid for ten minutes;
- once exchanged, it is valid for another minute, and never less than for its first ten minutes.

Programs have a separate key, which is never printed (`iact.address`).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LIFE: Final = 600.0
GRACE: Final = 60.0
MOST: Final = 16
"""How many tokens are valid at a time; the oldest is dropped, but never that of the start."""


@dataclass(slots=True)
class _Token:
    """One token. Times are seconds of the clock."""

    secret: str
    issued: float
    lasting: bool
    """Whether it is valid until it is exchanged."""
    exchanged: float | None = None

    def good(self, now: float) -> bool:
        is_young = now < self.issued + LIFE
        if self.exchanged is None:
            return is_young or self.lasting
        return is_young or now < self.exchanged + GRACE


class AccessTokens:
    """The tokens of one server. `clock`: monotonic seconds. `first`: the token of the start."""

    def __init__(self, clock: Callable[[], float], first: str | None = None) -> None:
        self._clock = clock
        self._tokens = [_Token(first or secrets.token_urlsafe(32), clock(), lasting=True)]

    @property
    def first(self) -> str:
        """The token of the start."""
        return self._tokens[0].secret

    def issue(self) -> str:
        """A new token."""
        now = self._clock()
        token = _Token(secrets.token_urlsafe(32), now, lasting=False)

        # Besides the new one and that of the start, the newest that are still good.
        still_good = [earlier for earlier in self._tokens[1:] if earlier.good(now)]
        self._tokens[1:] = [*still_good[-(MOST - 2) :], token]
        return token.secret

    def good(self, secret: str) -> bool:
        """Whether a token lets its bearer in."""
        return self._find(secret) is not None

    def exchange(self, secret: str) -> bool:
        """Exchange a token for a cookie; False if it is not valid, or no longer."""
        token = self._find(secret)
        if token is None:
            return False

        if token.exchanged is None:
            token.exchanged = self._clock()
        return True

    def _find(self, secret: str) -> _Token | None:
        now = self._clock()
        data = secret.encode("utf-8", "replace")

        # Compare with all of them, so that the time reveals nothing.
        equal = [token for token in self._tokens if hmac.compare_digest(data, token.secret.encode())]
        return next((token for token in equal if token.good(now)), None)
