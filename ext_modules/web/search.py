"""Queries the user's SearXNG server and returns the results as data. No I/O except through `http`.

Results are written by strangers: only plain fields of known types are kept, each limited in length.
"""

from __future__ import annotations

import json
import os
from typing import Final
from urllib.parse import urlencode, urlsplit

from ext_modules.sdk.values import JSON

from .http import FetchFailed, Limit, fetch

_VARIABLE: Final = "IACT_SEARCH"
MOST: Final = 50


def search(query: str, limit: Limit, *, page: int, most: int, language: str) -> list[JSON]:
    """Return the server's results, best first. Blocks.

    Raises:
        FetchFailed: there is no server, or its answer is not that of a search server.
    """
    server = os.environ.get(_VARIABLE, "").rstrip("/")
    if not server:
        raise FetchFailed(
            "No search server is set. The user can set one: `search` in iact.toml, or IACT_SEARCH."
        )
    asked = {
        "q": query,
        "format": "json",
        "pageno": max(1, page),
        **({"language": language} if language else {}),
    }
    base = server if server.endswith("/search") else f"{server}/search"
    response = fetch(f"{base}?{urlencode(asked)}", limit)
    if response.status != 200:
        hint = " Its settings must allow the format json." if response.status == 403 else ""
        raise FetchFailed(f"The search server answered with status {response.status}.{hint}")
    try:
        found = json.loads(response.body)
        rows = found["results"]
        if not isinstance(rows, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FetchFailed("The search server's answer is not that of a SearXNG server.") from error
    kept: list[JSON] = [one for row in rows if (one := _row(row)) is not None]
    return kept[: min(max(1, most), MOST)]


def _row(row: object) -> dict[str, JSON] | None:
    if not isinstance(row, dict):
        return None
    url = _text(row.get("url"), 2000)
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    engines = row.get("engines")
    sources: list[JSON] = [_text(one, 60) for one in engines[:10]] if isinstance(engines, list) else []
    date = _text(row.get("publishedDate"), 40)
    return {
        "title": _text(row.get("title"), 300),
        "url": url,
        "text": _text(row.get("content"), 800),
        "from": sources or [_text(row.get("engine"), 60)],
        **({"date": date} if date else {}),
    }


def _text(value: object, most: int) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "".join(one for one in text if one.isprintable())[:most]
