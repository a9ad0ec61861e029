"""The requests for signing in, signing out and following a link. Each answers JSON for the page's script, or redirects.

A name and a password come in the header `Authorization` of a POST, which no other site's page can make a browser send
(`web.safety` checks its origin first). A provider sends people back with a redirect; that return uses a separate
cookie, since browsers send no strict cookie after a redirect from another site.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from iact.accounts.accounts import Accounts
from iact.accounts.authentication import Authentication, cookie, header
from iact.accounts.digests import mint
from iact.accounts.oidc import LIFE, OidcProvider, ProviderProblem
from iact.accounts.people import Actor, HttpReply, HttpRequest, User
from iact.accounts.users import name_key
from iact.core.errors import UsageError

_RETURN: Final = "/sign-in/return"
_LINK: Final = "/link/"


class SignInRoutes:
    """Implements `web.ports.Entrance`. `provider`: the provider that people sign in with, if any. Everything here
    blocks."""

    def __init__(
        self, accounts: Accounts, authentication: Authentication, provider: OidcProvider | None = None
    ) -> None:
        self._accounts = accounts
        self._authentication = authentication
        self._rules = authentication.rules
        self._provider = provider

    def answer(self, request: HttpRequest) -> HttpReply:
        """Answer a request whose path begins with `/sign-in`, `/sign-out`, `/account` or `/link/`."""
        path, _, query = request.target.partition("?")
        match request.method, path:
            case "GET", "/sign-in/ways":
                return self._ways(request)
            case "POST", "/sign-in" if self._rules.authenticator == "password":
                return self._with_password(request)
            case "POST", "/sign-out":
                return self._sign_out(request)
            case "GET", "/account":
                return self._account(request)
            case "GET", "/sign-in/provider" if self._provider is not None:
                return self._to_provider(self._provider)
            case "GET", "/sign-in/return" if self._provider is not None:
                return self._from_provider(self._provider, request, query)
            case "POST", _ if path.startswith(_LINK):
                return self._follow(request, path.removeprefix(_LINK))
        return _problem(404, "There is nothing at this address.")

    def _ways(self, request: HttpRequest) -> HttpReply:
        """How to sign in here and, where a proxy vouches for a person, why they are not let in."""
        ways: dict[str, str] = {"authenticator": self._rules.authenticator}
        if self._provider is not None:
            ways["provider"] = self._provider.host

        if self._rules.authenticator == "header":
            try:
                self._authentication.by_header(request)
            except UsageError as error:
                ways["problem"] = str(error)
        return _json(200, ways)

    def _with_password(self, request: HttpRequest) -> HttpReply:
        credentials = _basic(request.authorizations)
        if credentials is None:
            return _problem(400, "A name and a password are needed.")
        name, password = credentials

        # Counted before the password is looked at, which takes a while.
        address = self._rules.address_of(request)
        wait = self._accounts.attempts.take(name_key(name), address)
        if wait:
            sentence = f"Too many attempts to sign in. Try again in {wait} seconds."
            return _problem(429, sentence, (("Retry-After", str(wait)),))

        user = self._accounts.users.with_password(name, password)
        if user is None:
            self._accounts.audit.tell("sign-in.failed", Actor(name, address), why="name or password")
            return _problem(401, "The name or the password is wrong.")

        self._accounts.attempts.forgive(name_key(name), address)
        return self._signed_in(request, user, 200)

    def _to_provider(self, provider: OidcProvider) -> HttpReply:
        browser = mint()
        try:
            address = provider.begin(browser)
        except ProviderProblem as problem:
            return self._failed(str(problem))

        # Lax, because another site redirects back here; valid for that path only, and for one return.
        set_cookie = self._cookie(self._return_cookie, browser, "Lax", seconds=LIFE, path=_RETURN)
        return HttpReply(303, (("Location", address), ("Set-Cookie", set_cookie)))

    def _from_provider(self, provider: OidcProvider, request: HttpRequest, query: str) -> HttpReply:
        address = self._rules.address_of(request)
        try:
            user = self._vouched(provider, request, _one_each(query))
        except (ProviderProblem, UsageError) as problem:
            actor = Actor("", address)
            self._accounts.audit.tell("sign-in.failed", actor, why=type(problem).__name__)
            return self._failed(str(problem))

        # Not to "/" at once: browsers send no strict cookie at the end of a navigation that another site began.
        return self._signed_in(request, user, 303, (("Location", "/sign-in?done"),))

    def _vouched(self, provider: OidcProvider, request: HttpRequest, fields: Mapping[str, str]) -> User:
        """The user for whom a provider vouches. `fields`: those of the address to which they came back.

        Raises:
            ProviderProblem: the provider does not vouch for them, or they may not sign in.
            UsageError: they have no account.
        """
        if "error" in fields:
            raise ProviderProblem(f"{provider.host} did not sign you in ({fields['error'][:60]}).")

        browser = cookie(request, self._return_cookie)
        person = provider.finish(fields.get("state", ""), browser, fields.get("code", ""))
        user = self._accounts.users.vouched(
            f"oidc:{provider.issuer} {person.subject}",
            person.name,
            person.groups,
            create=self._rules.create,
            by=Actor(person.name, self._rules.address_of(request)),
        )
        if user is None:
            raise ProviderProblem("Your account here is disabled. Ask an administrator.")
        return user

    def _signed_in(
        self, request: HttpRequest, user: User, status: int, headers: tuple[tuple[str, str], ...] = ()
    ) -> HttpReply:
        # An existing cookie may have been planted by someone else.
        sign_ins = self._accounts.sign_ins
        before = sign_ins.find(cookie(request, self._rules.cookie_name))
        if before is not None:
            sign_ins.end(before.user, before.id)

        address = self._rules.address_of(request)
        agents = header(request, "user-agent")
        shown = sign_ins.start(user.id, address=address, agent="".join(agents[:1]))
        self._accounts.audit.tell("sign-in", Actor(user.name, address, user.id))

        set_cookie = self._cookie(self._rules.cookie_name, shown.secret, "Strict", seconds=sign_ins.life)
        return _json(status, {"name": user.name}, (*headers, ("Set-Cookie", set_cookie)))

    def _sign_out(self, request: HttpRequest) -> HttpReply:
        sign_in = self._accounts.sign_ins.find(cookie(request, self._rules.cookie_name))
        if sign_in is not None:
            self._accounts.sign_ins.end(sign_in.user, sign_in.id)
            user = self._accounts.users.get(sign_in.user)
            name = "" if user is None else user.name
            actor = Actor(name, self._rules.address_of(request), sign_in.user)
            self._accounts.audit.tell("sign-out", actor)

        cookies = (self._rules.cookie_name, self._rules.link_cookie)
        headers = [("Set-Cookie", self._cookie(name, "", "Strict", seconds=0)) for name in cookies]
        return _json(200, {}, tuple(headers))

    def _account(self, request: HttpRequest) -> HttpReply:
        """Who the client is, for programs that were given a token."""
        who = self._authentication.identify(request)
        if who is None or not who.user:
            return _problem(
                401, "You are not signed in to this server, or your sign-in has expired. Sign in first."
            )
        return _json(200, {"name": who.name, "admin": who.admin, "scopes": sorted(who.scopes)})

    def _follow(self, request: HttpRequest, secret: str) -> HttpReply:
        who = self._authentication.identify(request)
        user = self._accounts.users.get(who.user) if who is not None and who.user else None
        address = self._rules.address_of(request)
        actor = Actor("", address) if user is None else Actor(user.name, address, user.id)

        link = self._accounts.sharing.follow(secret, user, by=actor)
        if link is None and user is None:
            return _problem(
                401, "This link needs an account, or no longer works. Sign in, and open it again."
            )
        if link is None:
            return _problem(
                404, "This link no longer works. Ask the person who gave it to you for a new one."
            )
        if user is not None:
            return _json(200, {"session": link.session})

        # Without an account, the link itself is what they are known by.
        seconds = max(1.0, link.ends - self._accounts.clock())
        set_cookie = self._cookie(self._rules.link_cookie, secret, "Strict", seconds=seconds)
        return _json(200, {"session": link.session}, (("Set-Cookie", set_cookie),))

    @property
    def _return_cookie(self) -> str:
        return f"{self._rules.cookie}_return"

    def _cookie(self, name: str, value: str, site: str, *, seconds: float, path: str = "/") -> str:
        secure = "; Secure" if self._rules.secure else ""
        return f"{name}={value}; Path={path}; Max-Age={seconds:.0f}; HttpOnly; SameSite={site}{secure}"

    def _failed(self, sentence: str) -> HttpReply:
        """Redirect back to the page, which shows why. The sentence is in a cookie that the page's script reads and
        deletes."""
        text = base64.urlsafe_b64encode(sentence[:400].encode()).decode()
        secure = "; Secure" if self._rules.secure else ""
        set_cookie = f"iact_sign_in_problem={text}; Path=/sign-in; Max-Age=60; SameSite=Lax{secure}"
        return HttpReply(303, (("Location", "/sign-in?failed"), ("Set-Cookie", set_cookie)))


def _json(status: int, fields: Mapping[str, object], headers: tuple[tuple[str, str], ...] = ()) -> HttpReply:
    return HttpReply(status, headers, json.dumps(fields, ensure_ascii=False))


def _problem(status: int, sentence: str, headers: tuple[tuple[str, str], ...] = ()) -> HttpReply:
    return _json(status, {"problem": sentence}, headers)


def _basic(authorizations: tuple[str, ...]) -> tuple[str, str] | None:
    """A name and a password (RFC 7617), or None if there are none."""
    if len(authorizations) != 1:
        return None
    scheme, _, encoded = authorizations[0].partition(" ")
    if scheme.lower() != "basic":
        return None

    try:
        credentials = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, colon, password = credentials.partition(":")
    return (name, password) if colon and name else None


def _one_each(query: str) -> Mapping[str, str]:
    """The fields of a query that occur exactly once."""
    try:
        fields = parse_qs(query, max_num_fields=16)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items() if len(values) == 1}
