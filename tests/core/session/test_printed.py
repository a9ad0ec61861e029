"""What a call printed before it was ended: its beginning, its end, and a true number for what is between them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from iact.core.session.printed import Printed


@given(st.lists(st.integers(0, 150_000), max_size=8))
def test_nothing_is_lost_that_is_not_counted(sizes: list[int]) -> None:
    whole = "".join(chr(ord("a") + number % 26) * size for number, size in enumerate(sizes))
    printed, at = Printed(), 0
    for size in sizes:
        printed.feed(whole[at : at + size])
        at += size

    shown = printed.text()
    found = re.search(r"\n\[([0-9,]+) characters were not kept here\.\]\n", shown)
    if found is None:
        assert shown == whole
        return
    head, tail = shown[: found.start()], shown[found.end() :]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + int(found[1].replace(",", "")) + len(tail) == len(whole)
    assert len(shown) < 300_000
