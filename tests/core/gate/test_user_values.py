"""A literal is the user's if it stands in what they wrote, in one of its written forms and in no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.gate.user_values import could_have, identifiers, wrote


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("send it to Bob, now", "Bob"),
        ("send it to Bob", " Bob!? "),
        ("ask MAX", "MAX"),
        ("see http://a.b/c?d.", "http://a.b/c?d"),
        ("rent is now 1,200 a month", "1200"),
        ("rent is now 1200 a month", "1200.0"),
        ("pay 12.50 please", "12.5"),
        ("pay 1,200.50 please", "1200.5"),
        ("on May 3rd at 10:00", "2024-05-03 10:00"),
        ("on the 3rd of May, 2024 at 10 am", "2024-05-03 10:00"),
        ("on 2024-05-03 at 2:30 pm", "2024-05-03 14:30"),
        ("at noon on Sept. 1", "2024-09-01 12:00"),
        ("on May 3", "2024-05-03"),
        ("on May 3", "2024-05-03 00:00"),
        ("on May 3", "2024-05-03T00:00"),
        ("look at www.example.com", "https://www.example.com"),
        ("look at www.example.com", "http://www.example.com/"),
        ("look at https://example.com/a", "https://example.com/a/"),
        ("", ""),
    ],
)
def test_what_the_user_wrote(said: str, value: str) -> None:
    assert wrote(said, value)
    assert could_have(f"before\n{said.lower()}\nafter", value)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("send it to Bobby", "Bob"),
        ("ask ...Bobby", "...Bob"),
        ("x", "("),
        ("pay 12 euros", "1200"),
        ("pay 1200 euros", "200"),
        ("pay 12.50", "12.05"),
        ("on May 3rd, 2023", "2024-05-03"),
        ("on May 13", "2024-05-03"),
        ("on May 31", "2024-05-03"),
        ("on May 3rd at 10:00", "2024-05-03 11:00"),
        ("on May 3rd at 10 pm", "2024-05-03 10:00"),
        ("on May 3rd at 10:00", "2024-05-04 10:00"),
        ("tomorrow", "2024-05-03"),
        ("on May 3", "2024-13-03"),
        ("look at https://example.com", "http://example.com"),
        ("look at example.com", "https://example.com.evil.org"),
        ("look at example.com/a", "https://example.com"),
        ("look at www.example.com", "ftp://www.example.com"),
    ],
)
def test_what_the_user_did_not_write(said: str, value: str) -> None:
    assert not wrote(said, value)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_it(said: str, value: str) -> None:
    assert wrote(f"a {value} b", value) or value.strip() != value or not value.isalnum()
    if wrote(said, value):
        assert could_have(said.lower(), value)
    identifiers(said)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("call +41 79 555 12 34 99", ["41 79 555 12 34 99"]),
        ("card 4111-1111-1111-1111", ["4111-1111-1111-1111"]),
        ("on 2024-05-15 10:00 in room 12", []),
        ("see https://a.b/c and bob@a.b", ["https://a.b/c", "bob@a.b"]),
        ("pay DE89370400440532013000", ["DE89370400440532013000"]),
        ("nothing", []),
    ],
)
def test_identifiers_in_a_text(text: str, found: list[str]) -> None:
    assert identifiers(text) == found
