"""The router on requests that were written before it: the table with what people say of them, and the form alone."""

from __future__ import annotations

from collections import Counter

from iact.core.plan.modes.auto import choose, choose_by_form
from tests.routing.requests import WRONG, is_right, requests


def test_there_are_120_in_six_languages() -> None:
    assert Counter(one.language for one in requests()) == dict.fromkeys(
        ("en", "de", "fr", "es", "zh", "ru"), 20
    )
    assert len({one.text for one in requests()}) == 120


def test_the_table_finds_a_right_way_for_what_people_say_of_each() -> None:
    wrong = [(one.text, choose(one.like)) for one in requests() if not is_right(one, choose(one.like))]
    assert wrong == []


def test_the_form_alone_never_sends_what_must_be_observed_into_a_plan_written_beforehand() -> None:
    """PTR's counter-example: where nobody understands the request, it goes to a dialogue."""
    for one in requests():
        if one.kind in ("multihop", "debug", "talk", "one"):
            assert choose_by_form(one.text).way == "dialogue", one.text


def test_where_the_form_alone_is_wrong_it_is_wrong_towards_the_dialogue() -> None:
    wrong = [(one.kind, choose_by_form(one.text).way) for one in requests()]
    wrong = [
        (kind, way)
        for (kind, way), one in zip(wrong, requests(), strict=True)
        if not is_right(one, choose_by_form(one.text))
    ]
    assert {way for _, way in wrong} == {"dialogue"}
    assert {*wrong} <= WRONG.keys()
