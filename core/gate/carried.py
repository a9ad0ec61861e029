"""What a call carries out: the part of its arguments that leaves, where it goes, and as what. Pure.

Reading is sending, too: an address has a path and a query, and the one who answers there reads them. So an agent that has
read a stranger, and something that isn't public, is asked about before it sends what it composed itself, wherever that
goes (`core.tree.carried`). An address that the user wrote, or that stood in a page, carries nothing of the agent's.

Of a function that runs code, arguments don't tell what leaves. There the connection is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from iact.core.gate.rules import host_of
from iact.core.ports import JSON

SendingKind = Literal["address", "query", "form", "call", "connection"]
"""As what something leaves: an address, a search, what is typed into a page, the arguments of a module that does not
ship, or whatever a program sends over a connection."""

_ADDRESSES: Final[Mapping[str, str]] = {
    "web.fetch": "url",
    "browser.open": "url",
    "git.clone": "url",
    "a2a.card": "at",
}
"""Functions of shipped modules that go to an address: the parameter that names it."""

_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "git.clone": ("branch", "depth"),
    "web.search": ("language", "page"),
}
"""What else such a function sends: parameters beside the address or the words."""

_USUAL: Final = frozenset({"main", "master", "trunk", "develop", "HEAD"})
"""Names of branches that say nothing."""
_FEW: Final = 100
"""A number up to this one says nothing: a page of results, a depth."""
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2}(-[A-Za-z]{2})?")

_SEARCH: Final = "web.search"
_FORM: Final = "browser.fill"

SPEAKING: Final = frozenset({"a2a", "browser", "web"})
"""Shipped modules whose arguments say what they send. Of all others, the connection is asked about."""

_HOST: Final = re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE)

_SHOWN: Final = 300
"""The most characters of what leaves that a sentence quotes. The question has all of it below."""

_AS: Final[Mapping[SendingKind, str]] = {
    "address": "an address that neither you nor a page gave",
    "query": "words to search for",
    "form": "what it types into a page",
    "call": "what it passes to the module",
    "connection": "whatever its program sends",
}


@dataclass(frozen=True, slots=True)
class Sending:
    """What leaves with a call."""

    destination: str
    """The host that receives it, or the module if its arguments name none. Empty: nobody can tell."""
    kind: SendingKind
    texts: tuple[str, ...]
    """What leaves."""

    @property
    def place(self) -> tuple[str, SendingKind]:
        """What a person's yes is for."""
        return self.destination, self.kind


def sending_of(function: str, arguments: Mapping[str, JSON], *, page: str) -> Sending | None:
    """What a call of a shipped module's function sends by its arguments; None if nothing, or if they don't tell.

    `page`: the host of the page that the agent's browser shows.
    """
    if function in _ADDRESSES:
        address = arguments.get(_ADDRESSES[function])
        if isinstance(address, str) and address:
            texts = (address, *_beside(function, arguments))
            return Sending(host_of(address) or "", "address", texts)
        return None

    if function == _SEARCH:
        words = _texts(arguments, ("query",))
        return Sending("the search server", "query", (*words, *_beside(function, arguments)))

    if function == _FORM:
        return Sending(page, "form", _texts(arguments, ("value",)))
    return None


def _texts(arguments: Mapping[str, JSON], names: Iterable[str]) -> tuple[str, ...]:
    values = (arguments.get(name) for name in names)
    return tuple(text for text in values if isinstance(text, str))


def _beside(function: str, arguments: Mapping[str, JSON]) -> tuple[str, ...]:
    """What a function sends beside its address or its words, without what says nothing."""
    texts = []
    for name in _BESIDE.get(function, ()):
        match arguments.get(name):
            # In Python a bool is an int, too.
            case bool() | None:
                continue

            case int() | float() as number if abs(number) > _FEW or number != int(number):
                texts.append(str(number))

            case str() as text if text and text not in _USUAL and not _LANGUAGE.fullmatch(text):
                texts.append(text)
    return tuple(texts)


def bare_host(address: str) -> str:
    """The host of an address that names nothing else, at a usual port; empty if it has a path or a query."""
    host = host_of(address)
    if host is None or "://" not in address:
        return ""

    parts = urlsplit(address)
    names_more = parts.path not in ("", "/") or parts.query or parts.port not in (None, 80, 443)
    return "" if names_more else host


def without_fragment(address: str) -> str:
    """An address as it is sent: what follows `#` stays with the program that opens it."""
    return address.partition("#")[0]


_BOUNDARY: Final = r"[\w%&=?/~+@:-]|\.\w"
"""What an address goes on with. A shorter one is another address: to choose its end is to send something."""


def stands_in(text: str, address: str) -> bool:
    """Whether a text has an address, letter by letter: in another spelling, capitals could be a message."""
    bare = address.rstrip("/")
    if bare not in text:
        return False
    return re.search(rf"(?<![\w@.+/-]){re.escape(bare)}/?(?!{_BOUNDARY})", text) is not None


def after_host(address: str) -> str:
    """The path and the query of an address; the whole text if it is no address."""
    match = _HOST.match(address)
    return address[match.end() :].rstrip("/") if match else address


def why_asked(sending: Sending, strange: Iterable[str], private: Iterable[str]) -> str:
    """The sentence for people about a call that carries something out."""
    shown = " ".join(" ".join(sending.texts).split())
    if len(shown) > _SHOWN:
        shown = shown[: _SHOWN - 1] + "…"

    where = sending.destination or "a place that can't be told"
    read = ", ".join([*sorted(strange), *sorted(private)])
    return f"It sends {_AS[sending.kind]} to {where}: {shown!r}. It has read what strangers wrote and what isn't public: {read}."
