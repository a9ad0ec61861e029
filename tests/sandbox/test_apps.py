"""The heads of requests and answers on their way to an app and back."""

from __future__ import annotations

import pytest

from iact.sandbox.apps import app_of, joined, split

NAME = "0123456789abcdef"


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([f"Host: {NAME}.localhost:80"], NAME),
        ([f"HOST:{NAME.upper()}.LOCALHOST:80 "], NAME),
        ([f"Host: {NAME}.localhost:81"], None),
        ([f"Host: {NAME}.localhost"], None),
        ([f"Host: {NAME}.localhost:80", f"Host: {NAME}.localhost:80"], None),
        ([f"Host: x{NAME}.localhost:80"], None),
        ([f"Host: {NAME}.localhost:80.evil"], None),
        (["Host: 127.0.0.1:80"], None),
        ([], None),
    ],
)
def test_only_an_app_s_own_name_leads_to_it(headers: list[str], found: str | None) -> None:
    assert app_of([line.encode() for line in headers], 80) == found


def test_headers_are_dropped_and_added() -> None:
    first, headers = split(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nX: 1\r\n\r\n")
    assert joined(first, headers, frozenset({b"connection"}), (b"Connection: close",)) == (
        b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nConnection: close\r\n\r\n"
    )
