"""Long output keeps its head and its tail, and streams only up to the cap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ext_modules.sdk.kept import Kept


def fed(pieces: list[str], cap: int) -> tuple[Kept, str]:
    kept = Kept(cap)
    return kept, "".join([kept.feed(piece) for piece in pieces])


def test_short_output_is_streamed_and_kept_whole() -> None:
    kept, streamed = fed(["ab\n", "", "é"], 100)
    assert (streamed, kept.text(), kept.complete, kept.left_out, kept.at_line_start) == (
        "ab\né",
        "ab\né",
        True,
        0,
        False,
    )


def test_long_output_keeps_both_ends_and_says_how_much_was_left_out() -> None:
    kept, streamed = fed([f"{number:04}\n" for number in range(1000)], 100)
    assert streamed == "".join(f"{number:04}\n" for number in range(20))
    assert not kept.complete
    assert kept.text().startswith("0000\n0001\n")
    assert kept.text().endswith("0998\n0999\n")
    assert "[4,900 bytes of output were left out here.]" in kept.text()


@given(st.lists(st.text(max_size=12), max_size=30), st.integers(min_value=2, max_value=60))
def test_what_is_kept_is_bounded_and_true(pieces: list[str], cap: int) -> None:
    kept, streamed = fed(pieces, cap)
    whole = "".join(pieces)
    assert kept.size == len(whole.encode())
    assert whole.startswith(streamed)
    assert len(streamed.encode()) <= cap
    assert kept.complete == (streamed == whole)
    if kept.complete:
        assert kept.text() == whole
    if kept.left_out:
        head, _, rest = kept.text().partition("\n[")
        tail = rest.partition("here.]\n")[2]
        assert whole.startswith(head) or "\n[" in whole
        assert whole.endswith(tail) or "here.]\n" in whole
        assert kept.size - kept.left_out <= cap
