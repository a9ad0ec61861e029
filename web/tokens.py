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
    """One token. `lasting`: it is valid until it is exchanged. Times are seconds of the clock."""

    secret: str
    issued: float
    lasting: bool
    exchanged: float | None = None

    def good(self, now: float) -> bool:
        young = now < self.issued + LIFE
        if self.exchanged is None:
            return young or self.lasting
        return young or now < self.exchanged + GRACE


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
        self._tokens[1:] = [one for one in self._tokens[1:] if one.good(now)][-(MOST - 2) :]
        self._tokens.append(_Token(secrets.token_urlsafe(32), now, lasting=False))
        return self._tokens[-1].secret

    def good(self, given: str) -> bool:
        """Whether a token lets its bearer in."""
        return self._find(given) is not None

    def exchange(self, given: str) -> bool:
        """Exchange a token for a cookie; False if it is not valid, or no longer."""
        found = self._find(given)
        if found is not None and found.exchanged is None:
            found.exchanged = self._clock()
        return found is not None

    def _find(self, given: str) -> _Token | None:
        now, data = self._clock(), given.encode("utf-8", "replace")
        # Compare with all of them, so that the time reveals nothing.
        equal = [one for one in self._tokens if hmac.compare_digest(data, one.secret.encode())]
        return next((one for one in equal if one.good(now)), None)
