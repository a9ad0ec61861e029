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
_SAYS: Final = "An agent wrote this app. What you type into it stays in it: no agent reads it."

_SANDBOX: Final = "allow-forms allow-modals allow-same-origin allow-scripts"

_STYLE: Final = (
    "html,body{height:100%;margin:0}"
    "body{display:flex;flex-direction:column;font:16px/1.4 system-ui,sans-serif;color:#222;background:#fff}"
    "header{padding:.5rem 1rem;background:#f1f1f1;border-bottom:1px solid #bbb}"
    "iframe{flex:1;border:0;width:100%}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#222}header{background:#333;border-color:#666}}"
)

_ALWAYS: Final = (
    b"Cache-Control: no-store",
    b"Referrer-Policy: no-referrer",
    b"X-Content-Type-Options: nosniff",
    b"X-DNS-Prefetch-Control: off",
    b"Cross-Origin-Resource-Policy: same-origin",
    b"Cross-Origin-Opener-Policy: same-origin",
    b"Permissions-Policy: camera=(), geolocation=(), microphone=(), display-capture=(), usb=(), serial=()",
    b"Connection: close",
)


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
    return (f"Content-Security-Policy: {policy}".encode(), *_ALWAYS)


def page(name: str, port: int, target: str) -> bytes:
    """The whole answer with our page; `target`: the path and query that the app is opened at."""
    address = html.escape(f"{app_origin(name, port)}{target}")
    body = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_TITLE}</title><style>{_STYLE}</style>'
        f"<header>{_SAYS}</header>"
        f'<iframe title="{_TITLE}" sandbox="{_SANDBOX}" src="{address}"></iframe></html>'
    ).encode()
    policy = (
        f"default-src 'none'; style-src '{_digest(_STYLE)}'; frame-src {app_origin(name, port)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    head = (
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/html; charset=utf-8",
        b"Content-Length: %d" % len(body),
        f"Content-Security-Policy: {policy}".encode(),
        *_ALWAYS,
    )
    return b"\r\n".join([*head, b"", body])


def moved(name: str, port: int, target: str) -> bytes:
    """The whole answer to a window that asks for the app itself: it is sent to our page."""
    head = (
        b"HTTP/1.1 303 See Other",
        f"Location: {page_origin(name, port)}{target}".encode(),
        b"Content-Length: 0",
        *_ALWAYS,
    )
    return b"\r\n".join([*head, b"", b""])


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
