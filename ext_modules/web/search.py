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

    parameters: dict[str, str | int] = {"q": query, "format": "json", "pageno": max(1, page)}
    if language:
        parameters["language"] = language
    base = server if server.endswith("/search") else f"{server}/search"
    response = fetch(f"{base}?{urlencode(parameters)}", limit)
    if response.status != 200:
        hint = " Its settings must allow the format json." if response.status == 403 else ""
        raise FetchFailed(f"The search server answered with status {response.status}.{hint}")

    try:
        rows = json.loads(response.body)["results"]
        if not isinstance(rows, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FetchFailed("The search server's answer is not that of a SearXNG server.") from error
    results: list[JSON] = [result for row in rows if (result := _row(row)) is not None]
    return results[: min(max(1, most), MOST)]


def _row(row: object) -> dict[str, JSON] | None:
    """A result; None if it has no address of a web page."""
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
    if not isinstance(engines, list):
        engines = []
    sources: list[JSON] = [_text(engine, 60) for engine in engines[:10]]
    result: dict[str, JSON] = {
        "title": _text(row.get("title"), 300),
        "url": url,
        "text": _text(row.get("content"), 800),
        "from": sources or [_text(row.get("engine"), 60)],
    }
    date = _text(row.get("publishedDate"), 40)
    if date:
        result["date"] = date
    return result


def _text(value: object, most: int) -> str:
    """A text of a result in one line, without signs that can't be seen."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "".join(sign for sign in text if sign.isprintable())[:most]
