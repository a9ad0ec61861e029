"""The address of an agent, and the token that is shown there. Addresses are checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from .transport import AgentFailed

TOKENS: Final = "A2A_TOKENS"
"""The secret with one line per host: its name, a space, the token."""
CARD: Final = "/.well-known/agent-card.json"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an agent."""

    scheme: str
    host: str
    base: str
    """The address below which its card is."""

    @property
    def token(self) -> str:
        """The token for this host, or "" if none is stored."""
        return _tokens(os.environ).get(self.host, "")

    def leads_on_to(self, url: str) -> bool:
        """Whether a card at this address may name `url` as the place where its agent takes messages."""
        parts = urlsplit(url)
        return parts.hostname == self.host and parts.scheme in ("https", self.scheme)


def address_of(at: str) -> Address:
    """Parse the address of an agent, or of its card.

    Raises:
        AgentFailed: it is not valid.
    """
    try:
        parts = urlsplit(at.strip())
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _no_address(at) from None
    if parts.scheme not in ("http", "https") or not has_host:
        raise _no_address(at)
    if parts.query or parts.fragment or not at.isascii():
        raise _no_address(at)
    if parts.username is not None or parts.password is not None:
        raise AgentFailed(
            f"An address with a user name or a password in it is not used; store a token as the secret {TOKENS}."
        )

    base = at.strip().removesuffix(CARD).rstrip("/")
    return Address(parts.scheme, parts.hostname or "", base)


def _no_address(at: str) -> AgentFailed:
    return AgentFailed(f"{at[:200]!r} is not an address of the form https://host/path.")


def without_tokens(text: str) -> str:
    """Remove the hosts' tokens from `text`, in case a host repeats one."""
    for token in _tokens(os.environ).values():
        text = text.replace(token, f"[secret {TOKENS}]")
    return text


def _tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """The token of each host."""
    rows = [line.split() for line in environment.get(TOKENS, "").splitlines()]
    return {row[0].lower(): row[1] for row in rows if len(row) == 2}
