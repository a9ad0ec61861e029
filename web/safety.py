"""Who may talk to the server: a pure judgement over a request's line and headers.

A local server is reachable by every page that the user's browser has open, so being on loopback proves nothing. Three
conditions are checked for every request, in this order:

1. `Host` is exactly one of our own names; otherwise a foreign name was rebound to this address;
2. `Origin`, where there is one, is exactly ours; a websocket or anything but GET must have one,
   unless it authenticates with the token itself, which no browser does on its own;
3. it knows a secret: the cookie, the key of this run or the token of an address as `Authorization: Bearer`, or
   such a token in the address `/?token=…`, which is answered with the cookie and a redirect that removes the
   token from the address bar.

On a server with accounts, identifying the user replaces the third; the key of this run is valid there, too. Each path
requires a right (`ROUTES`), and the path is looked up only after that check. Nothing here reads a clock, a socket or a
file; which tokens are valid is an input (`web.tokens`).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from urllib.parse import parse_qs

from iact.accounts.rights import LOCAL, NOBODY, Principal, Right, may

SOCKET_PATH: Final = "/ws"
ALIVE: Final = "/healthz"
READY: Final = "/readyz"
METRICS: Final = "/metrics"

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "media-src blob:",
        # Files that are looked at (web/downloads.py): each is a document of its own, with a stricter policy.
        "frame-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types iact",
    )
)

SECURITY_HEADERS: Final[tuple[tuple[str, str], ...]] = (
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    ("Cache-Control", "no-store"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a request that are judged. Headers come as tuples because they may be repeated."""

    method: str
    target: str
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    cookies: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    """All headers, with names in lower case; for callers that trust a proxy."""
    peer: str = ""
    """The address of the peer."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer is an error: an HTTP status, and a sentence for people."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A valid token came in the address: set `cookie` (a whole `Set-Cookie` value) and go to the page."""

    cookie: str
    token: str


@dataclass(frozen=True, slots=True)
class WantsPath:
    """A GET by an authorised client: `path` is as sent, without the query, not decoded."""

    path: str
    who: Principal


@dataclass(frozen=True, slots=True)
class WantsSocket:
    """A websocket upgrade by an authorised client."""

    who: Principal


@dataclass(frozen=True, slots=True)
class WantsEntrance:
    """A client signs in or out, or follows a link, on a server with accounts (`web.ports.Entrance`)."""


@dataclass(frozen=True, slots=True)
class WantsProbe:
    """A process monitor asks whether this process answers, or accepts new work."""

    path: str


Verdict: TypeAlias = Refused | SignedIn | WantsPath | WantsSocket | WantsEntrance | WantsProbe

_UNKNOWN: Final = Refused(
    401,
    "This page needs the address that was printed when the server started: look for the line "
    "“iact: ready http://…/?token=…” in its terminal and open that. It is good for one sign-in; "
    "to get a new one, run: iact address",
)


_ONLY_GET: Final = Refused(405, "Only GET is supported here; use the websocket for everything else.")
_PASSES_ON: Final = Refused(
    403,
    "This token's program passes on what others write. The page's messages are all its user's words; speak over "
    "chat completions, Responses, AG-UI, A2A or MCP.",
)
_NOT_SIGNED_IN: Final = Refused(
    401, "You are not signed in to this server, or your sign-in has expired. Sign in first."
)

ROUTES: Final[Mapping[str, Right]] = {
    "/": "greet",
    "/static/": "greet",
    "/download/": "greet",
    "/view/": "greet",
    SOCKET_PATH: "greet",
    ALIVE: "public",
    READY: "public",
    METRICS: "admin",
    "/sign-in": "public",
    "/sign-in/": "public",
    "/sign-out": "public",
    "/account": "public",
    "/link/": "public",
    "/static/sign-in/": "public",
    "/static/languages/": "public",
    "/static/css/tokens.css": "public",
    "/static/js/early.js": "public",
    "/static/js/base/language.js": "public",
}
"""The right that each path requires; a path that ends in a slash covers everything below it.

A path that is not listed requires "admin". Public paths are only public on a server with accounts. Without accounts, a
client that does not know the secret gets nothing, except the two probes, which reveal nothing.
"""

SIGN_IN: Final = "/sign-in"
_ENTRANCE: Final = frozenset({SIGN_IN, "/sign-in/", "/sign-out", "/account", "/link/"})
"""Rows that the accounts answer."""


def route_of(path: str) -> str:
    """The row of `ROUTES` for a path; empty if there is none."""
    if path in ROUTES:
        return path

    folders = (row for row in ROUTES if row != "/" and row.endswith("/"))
    return max((folder for folder in folders if path.startswith(folder)), key=len, default="")


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The secrets and names of one running server."""

    key: str
    """The secret that programs send."""
    port: int
    hosts: frozenset[str]
    """Its names, as whole `Host` values, lower case."""
    good: Callable[[str], bool] = lambda token: False
    """Whether a token of an address is valid."""
    identify: Callable[[Asked], Principal | None] | None = None
    """Who a request comes from, where there are accounts, which then handle cookies and tokens of addresses."""
    origins: frozenset[str] = frozenset()
    """Of pages that a proxy serves for us."""
    admits: Callable[[str], bool] = lambda peer: True
    """Whether requests may come from an address. Behind a proxy with TLS, other clients would send plain text."""

    @property
    def cookie_name(self) -> str:
        """The cookie's name. Cookies are shared by all ports of a host, so each server has its own name."""
        return f"iact_{self.port}"

    @property
    def cookie_value(self) -> str:
        """Derived, so that a leaked cookie doesn't reveal the key."""
        return hmac.new(self.key.encode(), b"iact cookie", hashlib.sha256).hexdigest()

    @property
    def set_cookie(self) -> str:
        return f"{self.cookie_name}={self.cookie_value}; HttpOnly; SameSite=Strict; Path=/"

    def judge(self, asked: Asked) -> Verdict:
        """Decide what happens to a request."""
        path, _, query = asked.target.partition("?")
        is_get = asked.method == "GET"
        if path in (ALIVE, READY) and is_get and not asked.origins:
            return WantsProbe(path)  # for any host: probes use addresses, and learn nothing

        # First, where it comes from.
        if not self.admits(asked.peer) and self._program(asked) is None:
            return Refused(403, "This server can only be reached through its proxy; use the proxy's address.")
        if not self._is_for_us(asked) and not self._collects_metrics(asked, path):
            return Refused(
                421, "This server does not answer under that host name; use the address it printed."
            )
        program = self._program(asked)
        if not self._origin_is_ours(asked, path, program is not None):
            return Refused(403, "Requests from another site are refused.")

        # Then what needs no identity: signing in by an address, and with accounts, the public routes.
        token = _token_in(query) if is_get and path == "/" and self.identify is None else ""
        if token and self.good(token):
            return SignedIn(self.set_cookie, token)
        right: Right = ROUTES.get(route_of(path), "admin")
        if right == "public" and self.identify is not None:
            return self._for_everybody(asked.method, path)

        # Only a client that is known learns what there is.
        who = program or self._browser(asked)
        if who is None:
            return _UNKNOWN if self.identify is None else _NOT_SIGNED_IN
        if not is_get:
            return _ONLY_GET
        if not may(who, right, "reader"):
            return Refused(404, "There is nothing at this address.")
        if path != SOCKET_PATH:
            return WantsPath(path, who)

        return _PASSES_ON if who.words == "none" else WantsSocket(who)

    def _is_for_us(self, asked: Asked) -> bool:
        """Whether a request names us, and nobody else, as its host."""
        return len(asked.hosts) == 1 and asked.hosts[0].lower() in self.hosts | self._proxied

    def _collects_metrics(self, asked: Asked, path: str) -> bool:
        """Whether a program asks for metrics. Collectors use an address, and a rebound page of another site can't send
        a secret."""
        return path == METRICS and not asked.origins and self._program(asked) is not None

    @property
    def _proxied(self) -> frozenset[str]:
        """Our names at a proxy. A page has its origin there, which with TLS does not begin with http:."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    def _for_everybody(self, method: str, path: str) -> Verdict:
        if route_of(path) in _ENTRANCE and method in ("GET", "POST"):
            return WantsEntrance()
        return WantsPath(path, NOBODY) if method == "GET" else _ONLY_GET

    def _program(self, asked: Asked) -> Principal | None:
        """The sender of a request that authenticates itself, which no browser does on its own."""
        if self._bearer(asked.authorizations):
            return LOCAL
        if self.identify is None or not asked.authorizations:
            return None
        return self.identify(replace(asked, cookies=()))

    def _browser(self, asked: Asked) -> Principal | None:
        if self.identify is not None:
            return self.identify(replace(asked, authorizations=()))
        return LOCAL if self._cookie(asked.cookies) else None

    def _origin_is_ours(self, asked: Asked, path: str, bearer: bool) -> bool:
        if not asked.origins:
            is_harmless = asked.method == "GET" and path != SOCKET_PATH
            return is_harmless or bearer

        ours = {f"http://{host}" for host in self.hosts} | self.origins
        return len(asked.origins) == 1 and asked.origins[0] in ours

    def _bearer(self, authorizations: tuple[str, ...]) -> bool:
        if len(authorizations) != 1:
            return False
        scheme, _, rest = authorizations[0].partition(" ")
        if scheme.lower() != "bearer":
            return False

        secret = rest.strip()
        if _same(secret, self.key):
            return True
        return self.identify is None and self.good(secret)

    def _cookie(self, cookies: tuple[str, ...]) -> bool:
        pairs = (pair.strip().partition("=") for line in cookies for pair in line.split(";"))
        return any(_same(value, self.cookie_value) for name, _, value in pairs if name == self.cookie_name)


def _token_in(query: str) -> str:
    """The only token of a query; empty if there is none, or more than one."""
    try:
        tokens = parse_qs(query, max_num_fields=8).get("token", [])
    except ValueError:
        return ""

    return tokens[0] if len(tokens) == 1 else ""


def _same(value: str, secret: str) -> bool:
    """Whether a value is the secret, in the same time whatever it is."""
    return hmac.compare_digest(value.encode("utf-8", "replace"), secret.encode())


def is_loopback(host: str) -> bool:
    """Whether binding to `host` reaches this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def own_hosts(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """The `Host` values to which a server bound to `host`:`port` answers.

    `names`: further host names, without port, for a server that is bound to more than loopback.
    """
    known = {"127.0.0.1", "localhost", "[::1]", *(name.lower() for name in names)}
    if host not in ("", "0.0.0.0", "::"):
        known.add(bracketed(host.lower()))

    values = {f"{name}:{port}" for name in known}
    if port == 80:
        values |= known  # browsers leave out the standard port
    return frozenset(values)


def bracketed(host: str) -> str:
    """`host` as it is written in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
