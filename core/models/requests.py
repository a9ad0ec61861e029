"""Formats a request as bytes for the wire. Pure.

Address and headers are the same for every request to an endpoint, so they are formatted once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from iact.core.ports import JSON

_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_PATH: Final = re.compile(r"/[\x21-\x7e]*")
_HOST: Final = re.compile(r"[0-9A-Za-z._:-]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections lead."""

    secure: bool
    """Whether over TLS."""
    host: str
    """A name or an address, without brackets."""
    port: int


@dataclass(frozen=True, slots=True)
class Destination:
    """Where requests go."""

    origin: Origin
    """Over connections to here."""
    named: str
    """The value of the Host header."""
    path: str


def destination_of(url: str) -> Destination | None:
    """The parts of an address in ASCII; None if it has other parts, such as a user, or can't be parsed."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return None

    usual = _PORTS.get(parts.scheme)
    if usual is None or host is None:
        return None
    if not _HOST.fullmatch(host) or not _PATH.fullmatch(parts.path):
        return None
    if "@" in parts.netloc or parts.query or parts.fragment:
        return None

    named = f"[{host}]" if ":" in host else host
    if port is not None and port != usual:
        named = f"{named}:{port}"
    origin = Origin(parts.scheme == "https", host, port or usual)
    return Destination(origin, named, parts.path)


def head(destination: Destination, headers: Mapping[str, str]) -> bytes | None:
    """The head of a POST without the length of its body; None if a header can't be written as it is."""
    lines = [f"POST {destination.path} HTTP/1.1", f"Host: {destination.named}"]
    for name, value in headers.items():
        # RFC 9110, 5.5: anyone who could put a line end into a value could write requests of their own.
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return None
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "Content-Length: "]).encode("ascii")


def body(fields: Mapping[str, JSON]) -> bytes:
    """A JSON body, formatted as the SDK does.

    Raises:
        ValueError: a number is not finite, or a text is not valid Unicode.
    """
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def whole(begun: bytes, content: bytes, more: Mapping[str, str] | None = None) -> bytes:
    """Join a request from its `head` and its body. `more`: headers of this request alone, whose values are ours."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in (more or {}).items())
    return b"%b%d\r\n%b\r\n%b" % (begun, len(content), lines.encode("ascii"), content)
