"""Our page around an app that an agent serves: a line that says what it is, and the app in a frame. Pure.

The page and the app have different origins of one site (`NAME.localhost` and `app.NAME.localhost`), so that the app has
its cookies and storage, and can't touch the page. The frame opens no window and no other origin.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from typing import Final

_TITLE: Final = "An app of an agent"
_SAYS: Final = (
    "An agent wrote this app. What you type into it stays in it: no agent reads it unless you share it."
)

SHARE: Final = "/.iact/share"
"""Where our page shows what the user can share with the agent."""
ASKED: Final = "/share"
"""Where an app has what its user may share: a text."""

_SANDBOX: Final = "allow-forms allow-modals allow-same-origin allow-scripts"

_STYLE: Final = (
    "html,body{height:100%;margin:0}"
    "body{display:flex;flex-direction:column;font:16px/1.4 system-ui,sans-serif;color:#222;background:#fff}"
    "header{padding:.5rem 1rem;background:#f1f1f1;border-bottom:1px solid #bbb}"
    "iframe{flex:1;border:0;width:100%}"
    "main{padding:1rem;overflow:auto}pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #bbb;padding:.5rem}"
    "button,a.button{font:inherit;padding:.3rem .8rem}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#222}header{background:#333;border-color:#666}}"
)

_ALWAYS: Final = (
    b"Cache-Control: no-store",
    b"X-Content-Type-Options: nosniff",
    b"X-DNS-Prefetch-Control: off",
    b"Cross-Origin-Resource-Policy: same-origin",
    b"Cross-Origin-Opener-Policy: same-origin",
    b"Permissions-Policy: camera=(), geolocation=(), microphone=(), display-capture=(), usb=(), serial=()",
    b"Connection: close",
)


_OF_APP: Final = b"Referrer-Policy: no-referrer"
_OURS: Final = b"Referrer-Policy: same-origin"
"""Without a referrer, a browser doesn't say either that a form was sent by our page."""


def page_origin(name: str, port: int) -> str:
    """The origin of our page around the app `name`."""
    return f"http://{name}.localhost:{port}"


def app_origin(name: str, port: int) -> str:
    """The origin of the app `name` itself."""
    return f"http://app.{name}.localhost:{port}"


def headers_of_app(name: str, port: int) -> Sequence[bytes]:
    """The headers with which an app's answers reach a browser. Nothing but our page may show them."""
    policy = (
        "default-src 'self' 'unsafe-inline' data:; frame-src 'self'; worker-src 'none'; object-src 'none'; "
        "form-action 'self'; base-uri 'none'; webrtc 'block'; "
        f"frame-ancestors 'self' {page_origin(name, port)}; sandbox {_SANDBOX}"
    )
    return (f"Content-Security-Policy: {policy}".encode(), _OF_APP, *_ALWAYS)


def page(name: str, port: int, target: str) -> bytes:
    """The whole answer with our page; `target`: the path and query that the app is opened at."""
    address = html.escape(f"{app_origin(name, port)}{target}")
    return _answer(
        f'<header>{_SAYS} <a href="{SHARE}">Share with the agent…</a></header>'
        f'<iframe title="{_TITLE}" sandbox="{_SANDBOX}" src="{address}"></iframe>',
        f"frame-src {app_origin(name, port)}; form-action 'none'",
    )


def question(text: str, digest: str, once: str) -> bytes:
    """The whole answer that asks whether to share `text`, with the fields that the yes sends back."""
    return _answer(
        "<main><h1>Share this with the agent?</h1><p>The app offers this text. It may be what you typed, and whatever the "
        "app made of it. Nothing else is shared.</p>"
        f"<pre>{html.escape(text)}</pre>"
        f'<form method="post" action="{SHARE}"><input type="hidden" name="digest" value="{digest}">'
        f'<input type="hidden" name="once" value="{once}"><button>Share</button> <a href="/">Back to the app</a></form></main>',
        "form-action 'self'",
    )


def told(sentence: str) -> bytes:
    """The whole answer with a sentence, and the way back to the app."""
    return _answer(
        f'<main><p>{html.escape(sentence)}</p><p><a href="/">Back to the app</a></p></main>',
        "form-action 'none'",
    )


def _answer(body: str, allowed: str) -> bytes:
    """A page of ours. `allowed`: what its policy lets it do beside showing its style."""
    content = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_TITLE}</title><style>{_STYLE}</style>{body}</html>'
    ).encode()
    policy = f"default-src 'none'; style-src '{_digest(_STYLE)}'; {allowed}; base-uri 'none'; frame-ancestors 'none'"
    head = (
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/html; charset=utf-8",
        b"Content-Length: %d" % len(content),
        f"Content-Security-Policy: {policy}".encode(),
        _OURS,
        *_ALWAYS,
    )
    return b"\r\n".join([*head, b"", content])


def moved(name: str, port: int, target: str) -> bytes:
    """The whole answer to a window that asks for the app itself: it is sent to our page."""
    head = (
        b"HTTP/1.1 303 See Other",
        f"Location: {page_origin(name, port)}{target}".encode(),
        b"Content-Length: 0",
        _OURS,
        *_ALWAYS,
    )
    return b"\r\n".join([*head, b"", b""])


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
