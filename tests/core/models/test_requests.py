"""The bytes of a request, and which addresses they can be written for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.models.requests import Destination, Origin, body, destination_of, head, whole

THERE = Destination(Origin(True, "api.example.org", 443), "api.example.org", "/v1/chat/completions")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://api.example.org/v1/chat/completions", THERE),
        ("https://API.example.org:443/v1/chat/completions", THERE),
        ("http://localhost:8080/x", Destination(Origin(False, "localhost", 8080), "localhost:8080", "/x")),
        ("http://localhost:443/x", Destination(Origin(False, "localhost", 443), "localhost:443", "/x")),
        ("http://[::1]:9/x", Destination(Origin(False, "::1", 9), "[::1]:9", "/x")),
        ("http://127.0.0.1/x%20y", Destination(Origin(False, "127.0.0.1", 80), "127.0.0.1", "/x%20y")),
        ("http://me:pass@localhost/x", None),
        ("http://localhost/x?key=1", None),
        ("http://localhost/x#y", None),
        ("http://localhost", None),
        ("http://localhost/ä", None),
        ("http://localhost/x y", None),
        ("http://bücher.example/x", None),
        ("http://[fe80::1%25eth0]/x", None),
        ("http://localhost:port/x", None),
        ("ftp://localhost/x", None),
        ("", None),
    ],
)
def test_addresses(url: str, address: Destination | None) -> None:
    assert destination_of(url) == address


def test_a_request() -> None:
    begun = head(THERE, {"accept": "application/json", "authorization": "Bearer k"})
    assert begun is not None
    assert whole(begun, b'{"a":"\xc3\xa4"}') == (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.example.org\r\naccept: application/json\r\n"
        b'authorization: Bearer k\r\nContent-Length: 10\r\n\r\n{"a":"\xc3\xa4"}'
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("authorization", "Bearer k\r\nx: y"), ("authorization", "k\nx"), ("authorization", "ключ"),
     ("authorization", "k\0"), ("a b", "c"), ("a:", "c"), ("", "c"), ("a\r\nb", "c")],
)  # fmt: skip
def test_a_header_that_would_end_its_line_is_not_written(name: str, value: str) -> None:
    assert head(THERE, {name: value}) is None


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers() | st.none(), max_size=5))
def test_a_head_has_the_lines_that_it_was_given(headers: dict[str, str]) -> None:
    named = {name: str(value) for name, value in headers.items()}
    written = head(THERE, named)
    assert written is None or written.count(b"\r\n") == written.count(b"\n") == 2 + len(named)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none()))
def test_a_body_says_what_it_was_given(fields: dict[str, str | int | bool | None]) -> None:
    try:
        written = body(fields)
    except UnicodeEncodeError:
        return
    assert json.loads(written) == fields
    assert b"\n" not in written


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf")])
def test_what_no_endpoint_could_read_is_not_sent(value: str | float) -> None:
    with pytest.raises(ValueError, match=r"surrogates|JSON compliant"):
        body({"x": value})
