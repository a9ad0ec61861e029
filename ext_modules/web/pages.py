"""A page as it is cached with the session, so that whoever reads it again reads the same.

One line of JSON about the answer, and the body behind it. It comes back from outside of the sandbox, perhaps from a
session of somebody else's: what is not of this form is no page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ext_modules.sdk.values import Value

from .http import Response

MEDIA = "application/x-iact-page"


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page, and when it was fetched: ISO 8601, UTC. `again`: it was cached."""

    response: Response
    at: str
    again: bool = False


def fetched(response: Response) -> CachedPage:
    """A page that came just now."""
    return CachedPage(response, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def packed(page: CachedPage) -> Value:
    """The form in which it is cached."""
    answer = page.response
    about = {
        "url": answer.url, "status": answer.status, "kind": answer.kind, "charset": answer.charset,
        "cut": answer.cut, "at": page.at,
    }  # fmt: skip
    return Value(json.dumps(about).encode() + b"\n" + answer.body, MEDIA)


def unpacked(cached: Value | None) -> CachedPage | None:
    """The page that was cached, if it is one."""
    if cached is None or cached.media_type != MEDIA:
        return None
    head, _, body = cached.data.partition(b"\n")
    try:
        about = json.loads(head)
        texts = [about[name] for name in ("url", "kind", "charset", "at")]
        status, cut = about["status"], about["cut"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(isinstance(one, str) for one in texts) or type(status) is not int or type(cut) is not bool:
        return None
    url, kind, charset, at = texts
    return replace(fetched(Response(url, status, kind, charset, body, cut)), at=at, again=True)
