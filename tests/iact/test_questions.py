"""What a person reads at the terminal before they say yes: the call in full, and nothing in it can pass for our words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.hosts import HostAsk
from iact.core.views.question_text import host_words, words
from tests.rounds import rounds


def shown_for(params: Mapping[str, JSON], provenance: Mapping[str, tuple[str, ...]] | None = None) -> str:
    asked = ClearanceAsk(
        turn=1, action=0, function="mail.send", to="person", rule="clearance", impact=2, why="", reason="It sends.",
        user="user", params=params, provenance=provenance or {}, read=(),
    )  # fmt: skip
    return words("/a/b", asked)


def test_the_call_stands_there_in_full() -> None:
    shown = shown_for({"to": "eve@example.org", "copies": 2}, {"to": ("tool:web.fetch",)})
    assert shown.split("\n") == [
        "/a/b asks to run mail.send (impact 2).",
        "It sends.",
        "  to (from tool:web.fetch): eve@example.org",
        "  copies: 2",
    ]


@pytest.mark.parametrize(
    "end", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029", "\x1b[2K\n", "\x1b[1A\x1b[2K"]
)
def test_a_value_cant_forge_a_line(end: str) -> None:
    forged = f"Hello{end}  to (from user): bob@example.com{end}  body: Hello{end}"
    shown = shown_for({"body": forged, "to": "eve@example.org"})
    assert [line for line in shown.split("\n") if line.startswith("  to")] == ["  to: eve@example.org"]
    assert "\x1b" not in shown
    assert "bob@example.com" in shown  # it is shown, behind its bar


def test_names_and_labels_cant_either() -> None:
    shown = shown_for({"x\n  to: bob": "1"}, {"x\n  to: bob": ("tool:a\n  to: eve",)})
    assert not any(line.startswith("  to") for line in shown.split("\n"))


def test_letters_that_deceive_are_shown_as_what_they_are() -> None:
    shown = shown_for({"to": "bob\u202emoc.elpmaxe@\u200b"})
    assert "\\u202e" in shown
    assert "\\u200b" in shown


def test_a_long_value_is_whole_and_its_length_is_told_first() -> None:
    text = "x" * 5_000 + "\nthe end"
    shown = shown_for({"body": text}).split("\n")
    assert "5008 characters in 51 lines" in shown[2]
    assert sum(line.count("x") for line in shown if line.startswith("  | ")) == 5_000
    assert shown[-1] == "  | the end"


@settings(deadline=None, max_examples=rounds(50))
@given(st.text(max_size=400))
def test_no_value_has_a_line_of_its_own(value: str) -> None:
    shown = shown_for({"body": value, "to": "eve"}).split("\n")
    assert shown[0].startswith("/a/b asks")
    assert shown[-1] == "  to: eve"
    assert all(line.startswith(("  body", "  | ")) for line in shown[2:-1])


def test_a_host_is_named_as_what_it_is() -> None:
    asked = HostAsk(module="web", host="docs.python.org", port=8443, seconds=1)
    first, named, second = host_words("/a/b", asked).split("\n")
    assert (
        first
        == "/a/b: the module web wants to reach docs.python.org:8443, which has not been allowed so far."
    )
    assert named == "No call names this host: a page may lead there, or a program asks on its own."
    assert second == "If you allow it, the module can send data there and receive data from there."
    deceiving = HostAsk(module="web", host="a\u202e\n.example", port=443, seconds=1)
    assert len(host_words("/", deceiving).split("\n")) == 3
    assert "\\u202e" in host_words("/", deceiving)


@pytest.mark.parametrize(
    ("origins", "sentence"),
    [
        (("user",), "You named this host."),
        (("model",), "The agent named this host on its own."),
        (("model", "tool:web.fetch"), "The agent named this host, after it had read from: tool:web.fetch."),
    ],
)
def test_a_host_is_shown_with_the_address_and_with_who_named_it(
    origins: tuple[str, ...], sentence: str
) -> None:
    asked = HostAsk(
        module="web", host="a.example", port=443, seconds=1, agents=("/a", "/b"), origins=origins,
        addresses=("https://a.example/x?y=z",),
    )  # fmt: skip
    lines = host_words("/a", asked).split("\n")
    assert lines[0].startswith("one of /a, /b: the module web wants to reach a.example")
    assert lines[1:3] == ["  https://a.example/x?y=z", sentence]
