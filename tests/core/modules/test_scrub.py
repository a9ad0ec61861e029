"""Secrets are taken out of what a module says, in whatever pieces it says it."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core.modules.outcome import Completed, Raised, SentArtifact
from iact.core.modules.scrub import Scrub, ScrubBytes

SECRETS = {"KEY": 'abcabcabd "quoted"/é', "LONGER": 'abcabcabd "quoted"/é and more', "PLAIN": "abcabcab"}


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(list(SECRETS.values())), st.text("abcd ", max_size=6)), max_size=8),
    st.data(),
)
def test_no_piece_of_a_stream_holds_a_secret_and_nothing_else_is_lost(
    parts: list[str], data: st.DataObject
) -> None:
    text, scrub, said, place = "".join(parts), Scrub(SECRETS), "", 0
    while place < len(text):
        size = data.draw(st.integers(1, 9))
        said += scrub.feed(text[place : place + size])
        place += size
    said += scrub.flush()
    assert not any(value in said for value in SECRETS.values())
    assert said.count("[secret ") > 0 or said == text


@settings(deadline=None)
@given(st.lists(st.sampled_from([*SECRETS.values(), "a", "abc", " "]), max_size=8), st.integers(1, 9))
def test_no_chunk_of_an_artifact_holds_a_secret_and_its_size_stays(parts: list[str], size: int) -> None:
    content, blank, said = "".join(parts).encode(), ScrubBytes(SECRETS), b""
    for place in range(0, len(content), size):
        said += blank.feed(content[place : place + size], last=place + size >= len(content))
    assert len(said) == len(content)
    assert not any(value.encode() in said for value in SECRETS.values())


def test_every_part_of_an_outcome_is_searched() -> None:
    scrub, value = Scrub(SECRETS), SECRETS["KEY"]
    ended = scrub.outcome(
        Completed(
            json.dumps([value]), "", {"a": [{value: value}]}, None, (SentArtifact("1", value, "", 1),), None
        )
    )
    failed = scrub.outcome(Raised("E", value, f"line: {value}", value))
    assert value not in repr(ended)
    assert json.dumps(value)[1:-1] not in repr(ended)
    assert value not in repr(failed)
    assert "[secret KEY]" in repr(failed)
