"""A page as it is cached with the session, so that later reads return the same page.

One line of JSON about the response, followed by the body. It comes back from outside the sandbox, perhaps from another
user's session, so anything that does not have this form is not accepted as a page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from ext_modules.sdk.values import Value

from .http import Response

MEDIA = "application/x-iact-page"


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page, and when it was fetched."""

    response: Response
    at: str
    """ISO 8601, UTC."""
    again: bool = False
    """Whether it came from the cache."""


def fetched(response: Response) -> CachedPage:
    """A page that was fetched just now."""
    return CachedPage(response, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def packed(page: CachedPage) -> Value:
    """Encode a page for the cache."""
    answer = page.response
    about = {
        "url": answer.url, "status": answer.status, "kind": answer.kind, "charset": answer.charset,
        "cut": answer.cut, "at": page.at,
    }  # fmt: skip
    return Value(json.dumps(about).encode() + b"\n" + answer.body, MEDIA)


def unpacked(cached: Value | None) -> CachedPage | None:
    """Decode the cached page. Returns None if it is not valid."""
    if cached is None or cached.media_type != MEDIA:
        return None

    head, _, body = cached.data.partition(b"\n")
    try:
        about = json.loads(head)
        texts = [about[name] for name in ("url", "kind", "charset", "at")]
        status = about["status"]
        cut = about["cut"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    # Not `isinstance`: in Python, a bool is an int.
    if not all(isinstance(text, str) for text in texts) or type(status) is not int or type(cut) is not bool:
        return None

    url, kind, charset, at = texts
    response = Response(url, status, kind, charset, body, cut)
    return CachedPage(response, at, again=True)
