"""Values in the messages that mention them: what is shown of each, and what showing it makes of the reader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iact.core.context.values import SMALL, describe_values, first_line, in_full
from iact.core.language.variables import Value, text_value

WEB = frozenset({"tool:web.fetch"})
PICTURE = Value("0" * 64, 4, "image/png", lambda: b"\x89PNG", WEB)


def is_lost(digest: str) -> bool:
    """Whether the content is lost, which none here is."""
    return digest == ""


def page(text: str) -> Value:
    return text_value(text, media="text/markdown", labels=WEB)


def test_a_text_of_fewer_than_2_000_characters_is_shown_whole() -> None:
    assert in_full(page("x" * (SMALL - 1))) == "x" * (SMALL - 1)
    assert in_full(page("é" * (SMALL - 1))) == "é" * (SMALL - 1)
    assert in_full(page("x" * SMALL)) is None
    assert in_full(page(" \n")) is None
    assert in_full(PICTURE) is None


def test_what_is_shown_cannot_deceive() -> None:
    assert in_full(page("a\x1b[31mb\u202e")) == "ab\\u202e"


def test_a_first_line_is_of_text_only() -> None:
    assert first_line(page("\n  id,amount\n1,2\n")) == "id,amount"
    assert first_line(page("é" * 5000)).startswith("é" * 100)
    assert first_line(PICTURE) == ""


def test_a_longer_text_is_named_with_its_first_line() -> None:
    long = text_value('say "hi"\n' + "x" * 5000)
    found = describe_values({"log": long}, new={"log"}, begun={"log"}, room=6_000, is_lost=is_lost)
    assert found.about == ('$log (text/plain, 5.0 kB, begins "say \\"hi\\"")',)
    assert found.whole == {}


texts = st.text(max_size=3_000) | st.integers(0, 3_000).map(lambda count: "word " * (count // 5))


@given(
    st.dictionaries(st.sampled_from("abcde"), texts),
    st.sets(st.sampled_from("abcde")),
    st.sets(st.sampled_from("abcde")),
)
def test_whatever_is_shown_is_in_the_sources(texts: dict[str, str], new: set[str], begun: set[str]) -> None:
    """Each value has a label of its own, so the sources say exactly of which values something is shown."""
    values = {name: text_value(text, labels=frozenset({f"tool:t.{name}"})) for name, text in texts.items()}
    found = describe_values(values, new=new, begun=begun, room=4_000, is_lost=is_lost)

    begins = {name for name, about in zip(values, found.about, strict=True) if ", begins " in about}
    assert found.sources == {f"tool:t.{name}" for name in found.whole.keys() | begins}
    assert found.whole.keys() | begins <= new
    assert begins <= begun
    assert sum(map(len, found.whole.values())) <= 4_000
