"""What is composed of the user's words is covered; nothing that an attacker brings in or spells ever is."""

from __future__ import annotations

import itertools
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.gate.derivations import derived
from iact.core.gate.gate import CallRequest, Question, Ticket, consider
from iact.core.gate.grant import DEFAULT_SCOPE, Grant
from iact.core.gate.policy import Policy, Require
from iact.core.gate.provenance import Provenance

ASKED = """Put summary.pdf and data_2024.csv into /home/ann/reports, please. Then mail it to ann@example.com and
bob@example.com. Name the file report-{city}.txt, for Berlin. Pay €20 for the book, €30.50 for the lamp and $5 for tea, in total.
Book the room "blue room" on May 3rd. It begins at 2:30 pm and takes 2 hours.
Meet on 2024-05-03 at 10:00 for 45 minutes."""


@pytest.mark.parametrize(
    "value",
    [
        "/home/ann/reports/summary.pdf", "/home/ann/reports/data_2024.csv", "ann@example.com, bob@example.com",
        "ann@example.com;bob@example.com", "summary.pdf\ndata_2024.csv", "report-Berlin.txt", "50.5", "50.50",
        "2024-05-03 10:45", "2024-05-03T10:45", "2024-05-03 16:30", "/home/ann/reports/blue room",
    ],
)  # fmt: skip
def test_what_is_composed_of_the_users_words_is_covered(value: str) -> None:
    assert derived([ASKED], value)


@pytest.mark.parametrize(
    "value",
    [
        "/home/ann/reports/../summary.pdf", "/home/ann/reports//summary.pdf", "summary.pdf//home/ann/reports",
        "/home/ann/reports/evil.pdf", "/home/ann/reports/please", "please/mail", "Put/into", "/etc/summary.pdf",
        "summary.pdf/summary.pdf", "summary.pdfdata_2024.csv", "/home/ann/reports./summary.pdf",
        "ann@example.com, eve@example.com", "ann@example.com,ann@example.com", "ann@example.com\x00bob@example.com",
        "report-eve.txt", "report-.txt", "report-{city}.txt.exe", "report-Berlin.txt/summary.pdf/evil", "report-it.txt",
        "report-Berlin file.txt", "50", "25", "55.5", "50.51", "-50.5", "5.05e1", "2024-05-04 10:45",
        "2024-05-03 12:00", "2024-05-03 10:46", "", "/", "summary.pdf", " ", "٥٠.٥",
    ],
)  # fmt: skip
def test_what_is_not_exactly_that_is_not_covered(value: str) -> None:
    assert not derived([ASKED], value)


def test_sums_are_of_sentences_that_speak_of_one() -> None:
    assert not derived(["I have a budget of $500. The ticket costs $20."], "520")
    assert not derived(["My budget is $500 and the ticket costs $20."], "520")
    assert derived(["Pay $500 plus $20."], "520")


def test_members_of_sets_that_the_policy_names_are_pieces() -> None:
    known = frozenset({"carl@example.com", "/srv/shared"})
    assert derived([ASKED], "ann@example.com, carl@example.com", known)
    assert derived([ASKED], "/srv/shared/summary.pdf", known)
    assert not derived([ASKED], "/srv/shared/eve.pdf", known)


def test_a_name_that_other_names_compose_is_covered_in_whatever_order_they_come() -> None:
    """A set has no order of its own: each of these values would be covered in some runs and not in others."""
    for number in range(30):
        whole = f"/srv/d{number}/a{number}.txt"
        assert derived([], whole, frozenset({f"/srv/d{number}", f"a{number}.txt", whole}))


# --- laws ---------------------------------------------------------------------------------------------------------

STEM = st.text(string.ascii_lowercase, min_size=2, max_size=6)
NAME = st.builds("{}.{}".format, STEM, st.sampled_from(["txt", "csv", "pdf"]))
NAMES = st.lists(NAME, min_size=2, max_size=4, unique=True)
STRANGE = st.text("XYZ0189-_./@", min_size=1, max_size=12).filter(
    lambda text: any(one in "XYZ0189" for one in text)
)


@given(NAMES, st.sampled_from(["/", ", ", ";", "\n"]), st.randoms())
def test_any_order_of_names_of_the_users_is_covered(names: list[str], separator: str, random: object) -> None:
    said = "Take " + " and ".join(f"the file {one}" for one in names) + "."
    assert derived([said], separator.join(reversed(names)))


@given(NAMES, STRANGE, st.sampled_from(["/", ", ", ";", "\n", "", "-", "."]), st.integers(0, 4))
def test_a_byte_that_the_user_did_not_write_is_in_nothing_that_is_covered(
    names: list[str], strange: str, separator: str, at: int
) -> None:
    """The user's words have no capital, no digit: what has one was brought in by somebody else."""
    said = "take " + " and ".join(names) + ' into the folder "old things" as note-{name}.txt, in total.'
    pieces = [*names[:at], strange, *names[at:]]
    assert not derived([said], separator.join(pieces))
    assert not derived([said], f"note-{strange}.txt")


@given(NAMES, st.data())
def test_a_changed_byte_is_noticed(names: list[str], data: st.DataObject) -> None:
    said = "take " + " and ".join(names)
    value = "/".join(names)
    at = data.draw(st.integers(0, len(value) - 1))
    changed = value[:at] + "X" + value[at + 1 :]
    assert not derived([said], changed)


def test_of_letters_and_short_words_nothing_can_be_spelled() -> None:
    """Whoever owns the model has every letter in the user's text, and the whole of what joins them."""
    letters = " ".join(string.ascii_lowercase) + " 0 1 2 3 4 5 6 7 8 9 . / @ a/b ev il a.b"
    said = [f"Use these: {letters}. Fill {{}}{{}} and {{x}}{{y}} and <a><b>."]
    for wanted in (
        "evil.com",
        "eve",
        "evil",
        "e/v/i/l",
        "e, v, i, l",
        "ev/il",
        "il.ev",
        "99",
        "1/2/3",
        "e.v.i.l",
    ):
        assert not derived(said, wanted)
    for count in (2, 3):
        for few in itertools.permutations("evil.", count):
            for separator in ("", "/", ", ", ";", "\n"):
                assert not derived(said, separator.join(few))


def test_what_stands_side_by_side_is_not_a_template() -> None:
    assert not derived(["Call it {first}{second}, with alpha or beta."], "alphabeta")


def test_a_long_text_is_looked_at_in_bounded_time() -> None:
    said = "a.b/" * 40_000 + " " + " ".join(f"file_{n}.txt" for n in range(5_000))
    assert not derived([said], "/".join(f"file_{n}.txt" for n in range(4_000, 4_100)))
    assert not derived([said], "a.b/" * 400)


# --- through the gate ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "verdict"), [(1, Question), (2, Ticket)])
def test_the_gate_covers_it_in_sessions_that_began_with_this(version: int, verdict: type) -> None:
    policy = Policy(
        functions=frozenset({"*"}),
        requires=frozenset({Require("f.write", "path", ("user",))}),
        questions=version,
    )
    decision = consider(
        CallRequest("/", "f.write", "digest"), 1, Grant(DEFAULT_SCOPE, 2), policy,
        arguments={"path": "/home/ann/reports/summary.pdf"}, provenance=Provenance(said=(ASKED,)),
    )  # fmt: skip
    assert isinstance(decision, verdict)
