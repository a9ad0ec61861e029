"""`iact journal check | tail | fork`, as a script uses them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from iact.commands.journals import line
from iact.core.journal import encode, read_journal
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from tests.acceptance.product import NO_MODULES, Product
from tests.endpoint import Endpoint
from tests.iact.recorded import record
from tests.records import NOTICE, raw_record


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """A data directory with one recorded session."""
    made = Product.at(tmp_path_factory.mktemp("journals") / "data", **NO_MODULES)
    record(made.data)
    return made


@pytest.fixture(scope="module")
def session(product: Product) -> Path:
    """Its directory."""
    return next(iter(product.journals())).parent


def copied(session: Path, folder: Path) -> Path:
    """A journal of one's own, with its blobs."""
    (folder / "blobs").mkdir(parents=True)
    for blob in (session / "blobs").iterdir():
        (folder / "blobs" / blob.name).write_bytes(blob.read_bytes())
    journal = folder / "journal.md"
    journal.write_bytes((session / "journal.md").read_bytes())
    return journal


def unclosed(session: Path, folder: Path) -> Path:
    """A journal of one's own, as it stood before its session was closed."""
    journal = copied(session, folder)
    *_, last = read_journal(journal).records
    assert last.kind == "close"
    os.truncate(journal, journal.stat().st_size - len(encode(last)[0]))
    return journal


def test_an_answer_that_was_first_a_turn_is_told_once() -> None:
    first = Record(n=3, at="", agent="/", step=1, content=Reply(to="user", status="ok"), body="It is so.")
    again = Record(
        n=5, at="", agent="/", step=3, content=Reply(to="user", status="ok", of=3), body="It is so."
    )
    assert line(first).endswith("reply    It is so.")
    assert line(again).endswith("reply    (what it wrote in record 3)")


# --- check ------------------------------------------------------------------------------------------


def test_check_by_id_and_by_file(product: Product, session: Path) -> None:
    records = len(read_journal(session).records)
    for name in (session.name, str(session), str(session / "journal.md")):
        ran = product.run("journal", "check", name)
        assert (ran.status, ran.stderr) == (0, "")
        assert ran.stdout == f"{session / 'journal.md'}: {records} records, 1 blob, unbroken.\n"


def test_check_json_of_a_whole_journal(product: Product, session: Path) -> None:
    ran = product.run("journal", "check", "--json", session.name)
    assert ran.status == 0
    assert json.loads(ran.stdout) == {
        "journal": str(session / "journal.md"),
        "ok": True,
        "records": len(read_journal(session).records),
        "blobs": 1,
        "torn": 0,
        "error": None,
        "record": None,
        "offset": None,
    }


def flip(journal: Path) -> tuple[int | None, str]:
    data = bytearray(journal.read_bytes())
    at = data.index(b"Two will look")
    data[at] ^= 1
    journal.write_bytes(data)
    n = next(one.n for one in read_journal_of(journal) if "will look" in one.body)
    return n, f"Record {n} at byte"


def read_journal_of(damaged: Path) -> list[Record]:
    """The records as they were before the damage."""
    return read_journal(damaged.parent.with_name("whole")).records


def lose_blob(journal: Path) -> tuple[int | None, str]:
    next((journal.parent / "blobs").iterdir()).unlink()
    return None, "is missing"


def change_blob(journal: Path) -> tuple[int | None, str]:
    next((journal.parent / "blobs").iterdir()).write_bytes(b"other")
    return None, "is damaged"


def empty(journal: Path) -> tuple[int | None, str]:
    journal.write_bytes(b"")
    return None, "holds no record"


@pytest.mark.parametrize("damage", [flip, lose_blob, change_blob, empty])
def test_check_names_the_damage(
    product: Product, session: Path, tmp_path: Path, damage: Callable[[Path], tuple[int | None, str]]
) -> None:
    copied(session, tmp_path / "whole")
    journal = copied(session, tmp_path / "damaged")
    n, said = damage(journal)
    ran = product.run("journal", "check", str(journal))
    assert (ran.status, ran.stdout) == (1, "")
    assert said in ran.sentence
    told = product.run("journal", "check", "--json", str(journal))
    report = json.loads(told.stdout)
    assert (told.status, report["ok"], report["record"]) == (1, False, n)
    assert report["error"] == ran.sentence


def test_a_torn_tail_is_no_damage(product: Product, session: Path, tmp_path: Path) -> None:
    journal = copied(session, tmp_path / "torn")
    with journal.open("ab") as stream:
        stream.write(b'<!-- iact {"n":')
    ran = product.run("journal", "check", str(journal))
    assert ran.status == 0
    assert "15 bytes of an unfinished append follow them" in ran.stdout
    assert json.loads(product.run("journal", "check", "--json", str(journal)).stdout)["torn"] == 15


# --- tail -------------------------------------------------------------------------------------------


def test_tail_prints_a_line_for_each_record(product: Product, session: Path) -> None:
    ran = product.run("journal", "tail", session.name)
    assert (ran.status, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert [int(one.split()[0]) for one in lines] == [one.n for one in read_journal(session).records]
    assert product.run("journal", "tail", session.name, "-n", "3").stdout.splitlines() == lines[-3:]
    assert product.run("journal", "tail", session.name, "-n", "0").stdout == ""
    assert all(character >= " " or character == "\n" for character in ran.stdout)
    assert "denied by impact" in ran.stdout


def test_a_line_shows_hidden_characters_and_obeys_none() -> None:
    one = raw_record(
        7, "2026-05-04T03:02:01.123456Z", "say", "/\x1b[2J", 1, "a\x1b]0;owned\x07b\nc\u202ed" + "x" * 500
    )
    shown = line(one)
    assert shown.startswith("    7  2026-05-04 03:02:01  /")
    assert "ab c‹U+202E›d" in shown
    assert "\x1b" not in shown
    assert shown.endswith("x…")
    assert len(shown) < 220


def append(journal: Path, *, kind: str = "notice", body: str = "news", cut: int = 0) -> None:
    """Append a record as another process would, the last `cut` bytes of it later or never."""
    last = read_journal(journal).records[-1]
    data = encode(raw_record(last.n + 1, last.at, kind, "/nobody", 1, body, NOTICE, last.digest))[0]
    with journal.open("ab") as stream:
        stream.write(data[: len(data) - cut])


def read_lines(stream: IO[str], count: int) -> list[str]:
    return [stream.readline() for _ in range(count)]


def test_follow_prints_what_comes_and_ends_with_the_session(
    product: Product, session: Path, tmp_path: Path
) -> None:
    journal = unclosed(session, tmp_path / "followed")
    with product.started("journal", "tail", "-n", "1", "--follow", str(journal)) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        append(journal, body="one")
        append(journal, body="two")
        assert [text.split()[-1] for text in read_lines(process.stdout, 2)] == ["one", "two"]
        # An append that a crash cut short is taken back by the next writer, and another takes its place.
        whole = journal.stat().st_size
        append(journal, body="lost " * 50, cut=40)
        os.truncate(journal, whole)
        append(journal, body="three")
        assert process.stdout.readline().split()[-1] == "three"
        append(journal, kind="close", body="")
        assert process.stdout.readline().split()[-1] == "close"
        assert process.wait(300) == 0
        assert process.stdout.read() == ""
    assert int(first.split()[0]) == len(read_journal(session).records) - 1


def test_following_a_session_that_is_closed_ends_at_once(product: Product, session: Path) -> None:
    ran = product.run("journal", "tail", "--follow", "-n", "1", session.name)
    assert (ran.status, ran.stdout.split()[-1]) == (0, "close")


def test_following_ends_well_by_an_interrupt(product: Product, session: Path, tmp_path: Path) -> None:
    journal = unclosed(session, tmp_path / "followed")
    with product.started("journal", "tail", "--follow", "-n", "1", str(journal)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0


def test_following_says_so_when_the_journal_is_damaged(
    product: Product, session: Path, tmp_path: Path
) -> None:
    journal = unclosed(session, tmp_path / "followed")
    with product.started("journal", "tail", "--follow", "-n", "1", str(journal)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with journal.open("ab") as stream:
            stream.write(b"nonsense\n")
        assert process.wait(300) == 1


# --- fork -------------------------------------------------------------------------------------------


def test_fork_prints_the_new_session(product: Product, session: Path) -> None:
    ran = product.run("journal", "fork", session.name, "--at", "6")
    assert (ran.status, ran.stderr) == (0, "")
    made = product.data / "sessions" / ran.stdout.strip()
    assert [one.kind for one in read_journal(made).records][-1] == "fork"
    assert product.run("replay", "--verify", made.name).status == 0


def test_fork_json_tells_where_it_is(product: Product, session: Path) -> None:
    report = json.loads(product.run("journal", "fork", session.name, "--json").stdout)
    last = len(read_journal(session).records)
    assert report == {
        "session": report["session"],
        "journal": str(product.data / "sessions" / report["session"] / "journal.md"),
        "from": session.name,
        "at": last,
        "workspace": "current",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--at", "10000"), "There is no record 10000"),
        (("--at", "0"), "There is no record 0"),
        (("--at", "5", "--say", " "), "The message is empty."),
    ],
)
def test_a_fork_that_can_not_be_is_refused(
    product: Product, session: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = product.journals()
    ran = product.run("journal", "fork", session.name, *arguments)
    assert ran.status == 2
    assert said in ran.sentence
    assert product.journals() == before


@pytest.mark.no_prefix_law("the original and its fork go their own ways behind one endpoint")
def test_fork_and_say_goes_on_with_another_message(tmp_path: Path) -> None:
    script = {"/": ["First answer.", "Other answer."]}
    with Endpoint(script) as endpoint:
        product = Product.at(tmp_path / "data", endpoint, **NO_MODULES)
        first = product.ask("First question.")
        said = next(one.n for one in first.records if one.kind == "say")
        before = first.journal.read_bytes()
        ran = product.run(
            "journal", "fork", first.session, "--at", str(said - 1), "--say", "Another question.", "--json"
        )
        assert ran.status == 0, ran
        other = ran.answer()
        assert (other.reply, other.status) == ("Other answer.", "done")
        assert other.session != first.session
        assert first.journal.read_bytes() == before
        newest = endpoint.requests[-1]
        assert "Another question." in newest.last
        assert not any("First question." in content for _, content in newest.messages)
        endpoint.assert_used()
    assert product.run("replay", "--verify", other.session).status == 0


def test_a_fork_of_a_paused_session_goes_on_and_says_so(tmp_path: Path) -> None:
    with Endpoint({"/": ["Ready.", "Answer."]}) as endpoint:
        product = Product.at(tmp_path / "data", endpoint, **NO_MODULES)
        session = product.ask("Are you ready?").session
        with product.serving():
            assert product.run("pause", "--session", session).status == 0
            ran = product.run("journal", "fork", session, "--say", "Go on.")
        assert (ran.status, ran.stdout) == (0, "Answer.\n"), ran
        assert "note: / was paused" in ran.stderr
        endpoint.assert_used()


def test_a_message_to_a_paused_root_is_refused_and_says_how_to_go_on(tmp_path: Path) -> None:
    with Endpoint({"/": ["Ready."]}) as endpoint:
        product = Product.at(tmp_path / "data", endpoint, **NO_MODULES)
        session = product.ask("Are you ready?").session
        with product.serving():
            assert product.run("pause", "--session", session).status == 0
        ran = product.run("run", "--session", session, "Go on.")
        assert (ran.status, ran.stdout) == (1, ""), ran
        assert f"The root of session {session} is paused" in ran.stderr
        assert f"iact resume --session {session}" in ran.stderr
        endpoint.assert_used()
