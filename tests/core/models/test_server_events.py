"""Bytes in, the data of events out; the same however the bytes were cut, and the same as the SDK gives."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from iact.core.models.server_events import EventReader

_BITS = (
    b"data: ", b"data:", b"data", b"datas: ", b"event: ping", b"id: 7", b":", b": so", b"retry: 9", b" ", b"{}", b"x",
    "ü".encode(), b"\xff", b"\0", b"\x0b", b"\x0c", b"\x1c", "\u2028".encode(), b"\n", b"\r", b"\r\n", b"\n\n",
)  # fmt: skip
_STREAMS = st.lists(st.sampled_from(_BITS), max_size=40).map(b"".join)


def read(pieces: list[bytes], longest: int = 1000) -> tuple[list[bytes], bool]:
    reader = EventReader(longest)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events, reader.overlong


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"", []),
        (b"data: one\n\n", [b"one"]),
        (b"data:one\n\n", [b"one"]),
        (b"data:  one \n\n", [b" one "]),
        (b"data: one\r\n\r\ndata: two\r\rdata: three\n\n", [b"one", b"two", b"three"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"data\n\n", [b""]),
        (b"data: one: two\n\n", [b"one: two"]),
        (b": a comment\n\ndata: one\n: another\n\n", [b"one"]),
        (b"event: ping\n\nid: 7\nretry: 9\n\n", []),
        (b"event: delta\ndata: one\nid: 7\n\n", [b"one"]),
        (b"Data: one\n data: two\n\n", []),
        (b"data: one\n", []),
        (b"data: one\n\ndata: never ended", [b"one"]),
        (b"data: a\x0bb\x0cc\x1c\xff\0\n\n", [b"a\x0bb\x0cc\x1c\xff\0"]),
        ("data: \u2028\u2029\x85\n\n".encode(), ["\u2028\u2029\x85".encode()]),
    ],
)
def test_events(stream: bytes, events: list[bytes]) -> None:
    assert read([stream]) == (events, False)


@given(stream=_STREAMS, cuts=st.lists(st.integers(0, 200)), longest=st.integers(0, 60))
def test_any_cut_gives_the_same(stream: bytes, cuts: list[int], longest: int) -> None:
    places = [0, *sorted(cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in pairwise(places)]
    bytewise = [stream[at : at + 1] for at in range(len(stream))]
    assert read(pieces, longest) == read([stream], longest) == read(bytewise, longest)


@given(_STREAMS)
def test_it_reads_as_the_sdk_does(stream: bytes) -> None:
    text = stream.decode("utf-8", "replace").encode()
    theirs = [event.data.encode() for event in SSEDecoder().iter_bytes(iter([text])) if event.data]
    assert [event for event in read([text])[0] if event] == theirs


@pytest.mark.parametrize(
    ("stream", "overlong"),
    [
        (b"data: 4567890", False),
        (b"data: 45678901", True),
        (b"data: 4567890\n\ndata: 4567890\n\n", False),
        (b"data: 45678901\n\n", True),
        (b"data: 4\n: 8901234\n\n", True),
        (b"data: 4\n\n: 89012\n\n", False),
        (b"data: 4\n: 89\n: 89\n: 89\n: 89\n\n", False),
    ],
)
def test_an_event_is_bounded(stream: bytes, overlong: bool) -> None:
    assert read([stream], 13)[1] is overlong


def test_what_came_before_an_overlong_event_counts_and_nothing_after_it() -> None:
    stream = b"data: one\n\ndata: " + b"x" * 1000 + b"\n\ndata: two\n\n"
    assert read([stream], 100) == ([b"one"], True)
    assert read([stream, b"data: three\n\n"], 100) == ([b"one"], True)
