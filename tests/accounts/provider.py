"""A real OpenID Connect provider for tests that can misbehave on request: it forges, replays, expires and rotates.

It is `oidc-provider-mock`, a Flask application over Authlib's server, on its own port. It does not check PKCE, so PKCE
is checked here: a code is only issued for a challenge, and only accepted with its verifier.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

Claims = dict[str, Any]


@dataclass
class Provider:
    """`change`: what becomes of an identity before it is signed; `key`: with which it is signed, if not with its own."""

    url: str = ""
    key: RSAKey | None = None
    header: dict[str, str] = field(default_factory=lambda: {"alg": "RS256"})
    change: Callable[[Claims], Claims] = dict
    replayed: str | None = None
    """An identity that is given out again, in place of the right one."""
    given: list[str] = field(default_factory=list)
    challenges: list[str] = field(default_factory=list)
    storage: Any = None

    def rotate(self) -> None:
        """Sign with another key from now on, which is among those that it shows."""
        self.storage.jwk = type(self.storage.jwk).generate_key(is_private=True)

    def rewritten(self, token: str) -> str:
        """The identity that is given out for one that was made as it should be."""
        if self.replayed is not None:
            return self.replayed
        own = RSAKey.import_key(dict(self.storage.jwk.as_dict(is_private=True)))
        claims = self.change(dict(jwt.decode(token, own).claims))
        made = jwt.encode(self.header, claims, self.key or own)
        self.given.append(made)
        return made

    def agree(self, address: str, subject: str) -> str:
        """A person who was sent here says yes; the address to which they are sent back."""
        answer = httpx.post(address, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])


@contextmanager
def provider(people: Mapping[str, Mapping[str, object]], host: str = "127.0.0.1") -> Iterator[Provider]:
    """One that knows these people, by subject, and what it says of them. `host`: what it is called on this machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own libraries
        import flask
        from oidc_provider_mock import User, app
        from werkzeug.serving import make_server

    made = Provider()
    users = [User(sub=name, claims=dict(claims)) for name, claims in people.items()]
    application: Any = app(require_nonce=True, user_claims=users)

    @application.before_request  # type: ignore[untyped-decorator]
    def look() -> None:
        made.storage = flask.g.oidc_provider_mock_storage
        if flask.request.path == "/oauth2/authorize" and flask.request.method == "GET":
            assert flask.request.args["code_challenge_method"] == "S256"
        if flask.request.path == "/oauth2/authorize":
            made.challenges.append(flask.request.args["code_challenge"])

    @application.after_request  # type: ignore[untyped-decorator]
    def rewrite(answer: Any) -> Any:
        if flask.request.path == "/oauth2/token" and answer.status_code == 200:
            digest = hashlib.sha256(flask.request.form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if challenge not in made.challenges:
                return flask.Response('{"error": "invalid_grant"}', 400)
            told = answer.get_json()
            told["id_token"] = made.rewritten(told["id_token"])
            answer.set_data(json.dumps(told))
        return answer

    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    made.url = f"http://{host}:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def query_of(address: str) -> dict[str, str]:
    """The query of an address."""
    return {name: given[0] for name, given in parse_qs(urlsplit(address).query).items()}
