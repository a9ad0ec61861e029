"""Signing in with an OpenID Connect provider: the authorization code flow with PKCE.

The server sends people to the provider with three values that no one else knows: a state, which identifies their
return; a nonce, which the provider writes into its token; and the digest of a verifier, without which a stolen code is
worthless. Each return is good once, and only for the browser that was sent. A token is accepted if a key of the
provider signed it, and if it was issued for this server and this nonce and has not expired.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus, urlsplit

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, KeySetSerialization
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import delete, insert, select

from iact.accounts.database import Database
from iact.accounts.digests import digest, mint
from iact.accounts.schema import redirects
from iact.core.errors import IactError, UsageError

LIFE: Final = 600.0
"""Seconds within which a person must come back from the provider."""

_FRESH: Final = 3600.0
"""Seconds after which the provider's metadata is fetched again."""

_PATIENCE: Final = 10.0
_LONGEST: Final = 1 << 20
_ALGORITHMS: Final = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
]
"""All asymmetric: with a shared secret, or none, anyone who reads this server's settings could vouch for any user."""

_LEEWAY: Final = 60
"""Seconds by which the provider's clock may differ from ours."""


class ProviderProblem(IactError):
    """The provider can't be asked, or its answer is not accepted; the sentence is for people."""


class _Metadata(BaseModel):
    """A provider's metadata (OpenID Connect Discovery 1.0, section 3)."""

    model_config = ConfigDict(frozen=True)

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class _Tokens(BaseModel):
    """The tokens that a provider returns for a code. Only the id token is used."""

    id_token: str = Field(max_length=1 << 16)


@dataclass(frozen=True, slots=True)
class OidcClient:
    """This server, as a client of the provider."""

    issuer: str
    """The provider's identifier, which is its address."""
    client: str
    """The provider's name for this server."""
    redirect: str
    """The address to which people come back."""
    secret: str | None = field(default=None, repr=False)
    """None: it has none."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """What the provider is asked for."""
    name_claim: str = "preferred_username"
    """Where it says what a person is called."""
    groups_claim: str = "groups"
    """Where it says in which groups they are."""


@dataclass(frozen=True, slots=True)
class Vouched:
    """The person whom the provider vouches for."""

    subject: str
    """Their permanent identifier at the provider."""
    name: str
    groups: frozenset[str]


class OidcProvider:
    """The provider, as this server sees it. `clock`: seconds since 1970. Everything here blocks.

    Raises:
        UsageError: the issuer is on another machine and does not use https.
    """

    def __init__(self, about: OidcClient, database: Database, clock: Callable[[], float]) -> None:
        _check_address(about.issuer)
        self._about = about
        self._database = database
        self._clock = clock
        self._metadata: tuple[float, _Metadata] | None = None
        """The provider's metadata, and when it was fetched."""
        self._keys: tuple[float, KeySet] | None = None
        """The provider's keys, and when they were fetched."""

    @property
    def host(self) -> str:
        """The provider's host, for people."""
        return urlsplit(self._about.issuer).netloc

    @property
    def issuer(self) -> str:
        """The provider's identifier in the settings. A person's subject is stored together with it."""
        return self._about.issuer.rstrip("/")

    def begin(self, browser: str) -> str:
        """The address to which a person is sent. `browser`: a secret that only their browser has.

        Raises:
            ProviderProblem: the provider can't be asked.
        """
        metadata = self._discover()
        state = mint()
        nonce = mint()
        verifier = mint()

        now = self._clock()
        row = {
            "digest": digest(state),
            "browser": digest(browser),
            "nonce": nonce,
            "verifier": verifier,
            "ends": now + LIFE,
        }
        with self._database.writing() as connection:
            connection.execute(delete(redirects).where(redirects.c.ends <= now))
            connection.execute(insert(redirects).values(**row))

        address = prepare_grant_uri(
            metadata.authorization_endpoint,
            client_id=self._about.client,
            response_type="code",
            redirect_uri=self._about.redirect,
            scope=" ".join(self._about.scopes),
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return str(address)

    def finish(self, state: str, browser: str, code: str) -> Vouched:
        """Complete the sign-in of a person who came back with a code.

        Raises:
            ProviderProblem: they were not sent from this browser, came twice or too late, or the provider does not
                vouch for them.
        """
        # Deleted whatever comes of it: each return is good once. Of two at the same time one deletes it.
        is_this = redirects.c.digest == digest(state)
        with self._database.writing() as connection:
            row = connection.execute(select(redirects).where(is_this)).one_or_none()
            deleted = connection.execute(delete(redirects).where(is_this)).rowcount

        if row is not None and deleted == 1:
            is_in_time = row.ends > self._clock()
            if is_in_time and row.browser == digest(browser):
                return self._vouched(self._exchange(code, row.verifier), row.nonce)

        raise ProviderProblem(
            "This sign-in was started in another browser, was already completed, or took too long. Sign in again."
        )

    def _exchange(self, code: str, verifier: str) -> str:
        """The id token for a code. Raises ProviderProblem."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._about.redirect,
            "client_id": self._about.client,
            "code_verifier": verifier,
        }
        auth: httpx.Auth | None = None
        if self._about.secret is not None:
            # RFC 6749, section 2.3.1: both are form-encoded.
            auth = httpx.BasicAuth(quote_plus(self._about.client), quote_plus(self._about.secret))

        answer = self._ask(self._discover().token_endpoint, form, auth)
        try:
            return _Tokens.model_validate_json(answer).id_token
        except ValidationError as error:
            raise ProviderProblem(f"{self.host} sent no identity for the sign-in. Sign in again.") from error

    def _vouched(self, token: str, nonce: str) -> Vouched:
        """The person of an id token. Raises ProviderProblem if it is not for this server and this nonce."""
        try:
            claims = self._verified(token)
            required = {
                "iss": {"essential": True, "value": self._discover().issuer},
                "aud": {"essential": True, "value": self._about.client},
            }
            context = {"client_id": self._about.client, "nonce": nonce}
            # The signature was verified above; this checks what it says.
            id_token = CodeIDToken(claims, {"alg": "none"}, required, context)
            id_token.validate(now=int(self._clock()), leeway=_LEEWAY)
        except (JoseError, ValueError) as error:
            raise ProviderProblem(
                f"The identity that {self.host} sent can't be verified ({_reason(error)}). Sign in again."
            ) from error

        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise ProviderProblem(f"{self.host} does not say who you are. Ask its administrator.")

        name = claims.get(self._about.name_claim)
        if not isinstance(name, str) or not name:
            name = subject
        groups = claims.get(self._about.groups_claim)
        if not isinstance(groups, list):
            groups = []
        return Vouched(subject, name, frozenset(group for group in groups if isinstance(group, str)))

    def _verified(self, token: str) -> Mapping[str, object]:
        """The claims of a token that a key of the provider signed. Fetches the keys again if none matches, since they
        rotate."""
        with suppress(JoseError, ValueError):
            return jwt.decode(token, self._key_set(), algorithms=_ALGORITHMS).claims
        self._keys = None
        return jwt.decode(token, self._key_set(), algorithms=_ALGORITHMS).claims

    def _discover(self) -> _Metadata:
        """The provider's metadata. Raises ProviderProblem."""
        now = self._clock()
        if self._metadata is not None and now - self._metadata[0] < _FRESH:
            return self._metadata[1]

        answer = self._ask(f"{self.issuer}/.well-known/openid-configuration")
        try:
            metadata = _Metadata.model_validate_json(answer)
        except ValidationError as error:
            raise ProviderProblem(f"{self.host} is not an OpenID Connect provider.") from error

        # Section 4.3: the metadata must name the issuer that was asked.
        if metadata.issuer.rstrip("/") != self.issuer:
            raise ProviderProblem(
                f"{self.host} identifies itself as {metadata.issuer!r}, but the settings name "
                f"{self._about.issuer!r} (accounts.issuer)."
            )
        for address in (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri):
            _check_address(address)

        self._metadata = (now, metadata)
        return metadata

    def _key_set(self) -> KeySet:
        now = self._clock()
        if self._keys is None or now - self._keys[0] >= _FRESH:
            answer = self._ask(self._discover().jwks_uri)
            self._keys = (now, _key_set(answer))
        return self._keys[1]

    def _ask(self, url: str, form: Mapping[str, str] | None = None, auth: httpx.Auth | None = None) -> bytes:
        """The provider's answer to a request. Raises ProviderProblem."""
        method = "GET" if form is None else "POST"
        try:
            answer = httpx.request(method, url, data=form, auth=auth, timeout=_PATIENCE)
        except httpx.HTTPError as error:
            raise ProviderProblem(
                f"{self.host} can't be reached ({type(error).__name__}), so nobody can sign in with it now. Try again later."
            ) from error

        if answer.status_code != httpx.codes.OK or len(answer.content) > _LONGEST:
            raise ProviderProblem(
                f"{self.host} refused the sign-in (HTTP {answer.status_code}). Sign in again."
            )
        return answer.content


def _key_set(answer: bytes) -> KeySet:
    keys: KeySetSerialization = json.loads(answer)
    return KeySet.import_key_set(keys)


def _reason(error: Exception) -> str:
    return str(getattr(error, "error", "") or type(error).__name__)


def _check_address(url: str) -> None:
    """Require TLS for another machine. Otherwise anyone on the network path could vouch for any user."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return

    if parts.scheme != "https" and host != "localhost":
        raise UsageError(
            f"The provider's address {url!r} must begin with https://, unless it is on this machine."
        )
