"""Addresses that let a browser in, each with a token that is good for one sign-in.

An address is printed on a terminal, and what is printed stays: in the scrollback, in a log, in a recording. So its
token is exchanged for a cookie, and then it dies. Not at once: a browser may open an address twice (it
prefetches, restores a tab, is told to by an impatient person), and whoever starts a server may have several clients
to let in. The rules:

- the token of the start is good until it is exchanged, for whoever serves may open the page much later; one that was
  asked for is good for ten minutes;
- once exchanged, it is good for another minute, and never less than for its first ten minutes.

Programs have a key of their own, which is printed nowhere (`iact.address`).
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
"""Tokens that are good at a time; the oldest makes way, but not that of the start."""


@dataclass(slots=True)
class _Token:
    """One token. `lasting`: it is good until it is exchanged. Times are seconds of the clock."""

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
    """The tokens of one server. `clock`: monotonic seconds. `first`: that of the start."""

    def __init__(self, clock: Callable[[], float], first: str | None = None) -> None:
        self._clock = clock
        self._tokens = [_Token(first or secrets.token_urlsafe(32), clock(), lasting=True)]

    @property
    def first(self) -> str:
        """The token of the start."""
        return self._tokens[0].secret

    def issue(self) -> str:
        """A fresh one."""
        now = self._clock()
        self._tokens[1:] = [one for one in self._tokens[1:] if one.good(now)][-(MOST - 2) :]
        self._tokens.append(_Token(secrets.token_urlsafe(32), now, lasting=False))
        return self._tokens[-1].secret

    def good(self, given: str) -> bool:
        """Whether a token lets its bearer in."""
        return self._find(given) is not None

    def exchange(self, given: str) -> bool:
        """Take a token for a cookie; False if it is not good, or not any more."""
        found = self._find(given)
        if found is not None and found.exchanged is None:
            found.exchanged = self._clock()
        return found is not None

    def _find(self, given: str) -> _Token | None:
        now, data = self._clock(), given.encode("utf-8", "replace")
        # All are compared, whichever it is.
        equal = [one for one in self._tokens if hmac.compare_digest(data, one.secret.encode())]
        return next((one for one in equal if one.good(now)), None)
