"""Bad input of every kind leads to one clear sentence in the right place, and loses nothing that was acknowledged.

Commands that must wait (mostly for retries) run in parallel, once for all tests of this file.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from iact.core.errors import JournalCorrupt
from iact.core.journal import Journal, Parser, encode, read_journal
from iact.core.records.kinds import FORMAT
from iact.core.records.record import Record
from iact.core.tree.apply import read_tree
from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.product import NO_MODULES, Product, Ran
from tests.endpoint import Endpoint, HttpError, Reply, Request
from tests.records import with_fields
from tests.rounds import rounds

_NOWHERE = "http://127.0.0.1:9/v1"

# --- endpoints that fail ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failing:
    """An endpoint that answers everything with `reply` (None: there is none). `says`: what the sentence must hold."""

    reply: Reply | None
    says: tuple[str, ...]
    attempts: int = 5


_FAILING = {
    "down": Failing(None, ("can't be reached", "check that it runs and that OPENAI_BASE_URL is right"), 10),
    "cut": Failing(Reply("Half a reply, and then", cut_after=12), ("broke off in the middle of a reply",)),
    "429": Failing(Reply(error=HttpError(429, "Slow down.")), ("answers HTTP 429: Slow down", "try again later"), 10),
    "500": Failing(Reply(error=HttpError(500, "Oh no.")), ("answers HTTP 500: Oh no",)),
    "no page": Failing(
        Reply(garbage=b"<!doctype html><title>Router</title>", content_type="text/html"),
        ("did not answer in the OpenAI protocol", "it often ends in /v1"),
        attempts=2,
    ),
    "no JSON": Failing(
        Reply("Half", garbage_after=2, garbage=b"data: {nonsense\n\n"), ("did not answer in the OpenAI protocol",), attempts=2
    ),
    "empty": Failing(Reply(""), ("sent an empty reply",), attempts=2),
    "wrong key": Failing(Reply("Never."), ("does not accept the API key (HTTP 401", "check OPENAI_API_KEY"), attempts=1),
    "no model": Failing(
        Reply(error=HttpError(404, "The model scripted does not exist.")), ("does not know the model", "check IACT_MODEL"), attempts=1
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failed:
    """What came of it."""

    product: Product
    ran: Ran
    requests: list[Request]


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Failed]]:
    """`iact run` against every failing endpoint, all at once: most of the time they wait to try again."""

    places = {name: tmp_path_factory.mktemp("failing") / "data" for name in _FAILING}

    def play(name: str) -> Failed:
        data = places[name]
        reply, secret = _FAILING[name].reply, "sk-wrong-0123456789"
        key = "sk-right" if name == "wrong key" else None
        with Endpoint({"*": [replace(reply or Reply("Never."), repeat=True)]}, api_key=key) as endpoint:
            url = endpoint if reply is not None else _NOWHERE
            product = Product.at(data, url, OPENAI_API_KEY=secret, **NO_MODULES)
            return Failed(product, product.run("run", "--json", "Say something."), endpoint.requests)

    with ThreadPoolExecutor(len(_FAILING)) as pool:
        yield dict(zip(_FAILING, pool.map(play, _FAILING), strict=True))


@pytest.mark.parametrize("name", _FAILING)
def test_an_endpoint_that_fails(failures: dict[str, Failed], name: str) -> None:
    failed, expected = failures[name], _FAILING[name]
    assert failed.ran.status == 1
    for words in expected.says:
        assert words in failed.ran.sentence
    assert "sk-wrong" not in failed.ran.stderr
    if expected.attempts > 1:
        assert f"({expected.attempts} attempts)" in failed.ran.sentence
    answer = failed.ran.answer()
    assert answer.status == "failed"
    assert answer.reply == failed.ran.sentence
    records = journal_law(answer.journal)
    assert [record.body for record in records if record.kind == "say"] == ["Say something."]
    assert "sk-wrong" not in answer.journal.read_text("utf-8")


def test_a_failed_session_goes_on_when_the_endpoint_is_back(
    stage: Stage, failures: dict[str, Failed]
) -> None:
    failed = failures["down"]
    session = failed.ran.answer().session
    endpoint = stage.endpoint({"/": ["Here I am."]})
    answer = Product.at(failed.product.data, endpoint, **NO_MODULES).ask("Are you there?", session=session)
    assert answer.reply == "Here I am."
    heard = endpoint.requests[0].last
    assert heard.index("Say something.") < heard.index("Are you there?")
    journal_law(answer.journal)


def test_a_slow_endpoint_is_waited_for(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": [Reply("Slowly but surely.", first_delay=1.0, delay=0.2, chunk=6)]})
    assert stage.product(endpoint, **NO_MODULES).ask("Hurry!").reply == "Slowly but surely."


def test_what_came_before_a_break_is_void(stage: Stage) -> None:
    """A stream that breaks off starts over; nothing of the first half is kept."""
    endpoint = stage.endpoint(
        {"/": [Reply("FIRST half of a", cut_after=10), Reply(error=HttpError(503)), "Second try."]}
    )
    answer = stage.product(endpoint, **NO_MODULES).ask("Go.")
    assert answer.reply == "Second try."
    assert [record.kind for record in answer.records if "FIRST" in record.body] == ["discard"]


# --- no engine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"DOCKER_HOST": "unix:///nonexistent/docker.sock", "PATH": "/nonexistent"},  # nor bubblewrap
            "No Docker engine answers, so tools can't run; install",
        ),
        ({"IACT_SANDBOX": "off"}, "Modules are switched off by the setting IACT_SANDBOX=off."),
    ],
)
def test_without_an_engine_one_can_talk_and_is_told(
    stage: Stage, settings: dict[str, str], says: str
) -> None:
    endpoint = stage.endpoint({"/": ["I can't run tools here."]})
    ran = stage.product(endpoint, **settings).run("run", "--json", "Run something.")
    assert ran.status == 0, ran
    assert ran.stderr.count(says) == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.answer().reply == "I can't run tools here."
    assert "shell.run" not in endpoint.requests[0].last


def test_an_engine_that_is_demanded_must_be_there(stage: Stage) -> None:
    product = stage.product(_NOWHERE, IACT_SANDBOX="docker", DOCKER_HOST="unix:///nonexistent/docker.sock")
    ran = product.run("run", "Run something.")
    assert ran.status == 1
    assert ran.sentence.startswith("No Docker engine answers")
    assert not product.journals()


# --- a disk that takes no more ------------------------------------------------------------------------


def _fills(request: Request) -> Reply:
    body = f"line {request.turn}\n" * 2000
    return (
        Reply(f"```VAR part_{request.turn}\n{body}```", chunk=4096)
        if request.turn < 12
        else Reply("All is kept.")
    )


def _fill_and_go_on(
    limited: Callable[[str], Ran], product: Product, *, reason: str, make_room: Callable[[], None]
) -> None:
    ran = limited("Fill the disk.")
    assert ran.status == 1
    assert f"can't be written ({reason}), so the session has stopped." in ran.sentence
    assert "Free some disk space, then open the session again." in ran.sentence
    (journal,) = product.journals()
    before = read_journal(journal)
    assert before.torn == 0, "what was half-written is taken back"
    assert f"Everything up to record {len(before.records)} is stored" in ran.sentence
    assert len(before.records) > 3

    make_room()
    answer = product.ask("Go on.", session=before.records[0].text("session"))
    assert answer.reply == "All is kept."
    assert answer.records[: len(before.records)] == before.records
    journal_law(answer.journal)


def test_a_write_that_fails_stops_the_session(stage: Stage) -> None:
    """The same as a full disk for the writer, on every machine: files may not grow beyond a size."""
    product = stage.product(stage.endpoint(_fills, crashes=True), IACT_CONTEXT="200000", **NO_MODULES)

    _fill_and_go_on(
        lambda task: product.run("run", task, inside=["prlimit", "--fsize=100000:100000", "--"]),
        product,
        reason="File too large",
        make_room=lambda: None,
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system; the test before this one needs none")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_stops_the_session(stage: Stage, small_disk: Path) -> None:
    product = Product.at(
        small_disk, stage.endpoint(_fills, crashes=True), IACT_CONTEXT="200000", **NO_MODULES
    )

    def make_room() -> None:
        subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)

    _fill_and_go_on(
        lambda task: product.run("run", task), product, reason="No space left on device", make_room=make_room
    )


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("run", "Hello."), "No space left on device"),
        (("serve", "--port", "0"), "The disk is full"),
        (("mcp", "--http", "0"), "No space left on device|The disk is full"),
    ],
)
def test_a_disk_that_is_full_from_the_start(
    stage: Stage, small_disk: Path, command: tuple[str, ...], says: str
) -> None:
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "fill").write_bytes(b"\0" * (1 << 20))
    ran = Product.at(small_disk, _NOWHERE, **NO_MODULES).run(*command)
    assert ran.status == 1
    assert re.search(says, ran.stderr.splitlines()[-1]), ran.stderr
    assert "internal error" not in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.fixture
def read_only_disk(small_disk: Path) -> Path:
    """A directory that nobody can write to, not even root."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    return small_disk


@pytest.mark.parametrize("command", [("run", "Hello."), ("serve", "--port", "0"), ("mcp", "--http", "0")])
def test_a_data_directory_that_is_read_only(
    stage: Stage, read_only_disk: Path, command: tuple[str, ...]
) -> None:
    ran = Product.at(read_only_disk, _NOWHERE, **NO_MODULES).run(*command)
    assert ran.status in (1, 2), ran
    told = ran.stderr.splitlines()[-1]
    assert str(read_only_disk) in told, ran.stderr
    assert "Read-only file system" in told, ran.stderr
    assert "internal error" not in ran.stderr
    assert "Traceback" not in ran.stderr


# --- journals that are damaged ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """A session on disk. `ends`: behind which byte each record ends."""

    session: str
    key: bytes
    content: bytes
    records: list[Record]
    ends: list[int]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A session with two agents, some variables, and text beyond ASCII."""
    script = {
        "/": [
            "```CALL poet\nSay something → nice.\n```",
            "```VAR verse\nÆ\n~~~\n```\n\n```SHOW verse\n```",
            "Done — ✓.",
        ],
        "/poet": ["Roses are red.\n\n```\nunbalanced"],
    }
    with Endpoint(script) as endpoint:
        data = tmp_path_factory.mktemp("stored") / "data"
        answer = Product.at(data, endpoint, **NO_MODULES).ask("A verse, please.")
        endpoint.assert_used()
    content = answer.journal.read_bytes()
    parser, ends = Parser(), []
    for position in range(len(content)):
        ends += [position + 1 for _ in parser.feed(content[position : position + 1])]
    assert len(ends) == len(answer.records)
    return Stored(answer.session, (data / "seal.key").read_bytes(), content, answer.records, ends)


def _put(data: Path, stored: Stored, content: bytes) -> Path:
    """A session directory with this content for a journal."""
    directory = data / "sessions" / stored.session
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    journal = directory / "journal.md"
    journal.write_bytes(content)
    (data / "seal.key").write_bytes(stored.key)  # of where it was made: else it would be somebody else's
    (data / "seal.key").chmod(0o600)
    return journal


def test_a_journal_cut_at_any_byte(stored: Stored, tmp_path: Path) -> None:
    """Every whole record before the cut is read, the rest is known as torn, and what is left verifies."""
    rng = random.Random(1)
    near = {end + step for end in stored.ends for step in (-2, -1, 0, 1, 2)}
    anywhere = {rng.randrange(len(stored.content)) for _ in range(rounds(150))}
    for cut in sorted(cut for cut in near | anywhere if cut <= len(stored.content)):
        contents = read_journal(_put(tmp_path, stored, stored.content[:cut]))
        whole = sum(end <= cut for end in stored.ends)
        assert contents.records == stored.records[:whole], cut
        assert contents.torn == cut - (stored.ends[whole - 1] if whole else 0), cut
        if contents.records:
            read_tree(contents.records, lambda digest: b"", strict=True)


@pytest.mark.parametrize("left", [0.35, 0.6, 0.95])
def test_a_session_with_a_torn_journal_goes_on(stage: Stage, stored: Stored, left: float) -> None:
    product = stage.product(stage.endpoint(lambda request: "As you like."), **NO_MODULES)
    cut = round(len(stored.content) * left)
    whole = [record for record, end in zip(stored.records, stored.ends, strict=True) if end <= cut]
    _put(product.data, stored, stored.content[:cut])
    ran = product.run("run", "--json", "--session", stored.session, "Go on.")
    assert ran.status == 0, ran
    assert (
        f"The last {cut - stored.ends[len(whole) - 1]} bytes of the journal were an unfinished append"
        in ran.stderr
    )
    assert ran.answer().records[: len(whole)] == whole


def test_a_journal_with_one_bit_flipped(stored: Stored, tmp_path: Path) -> None:
    """Any change is noticed and blamed on the record that it is in, never taken for a torn tail."""
    rng = random.Random(2)
    near = {position for end in stored.ends for position in range(end - 40, end)}
    places = sorted(near | {rng.randrange(len(stored.content)) for _ in range(rounds(200))})
    for position in places:
        content = bytearray(stored.content)
        content[position] ^= 1 << rng.randrange(8)
        number = sum(end <= position for end in stored.ends) + 1
        with pytest.raises(JournalCorrupt, match=rf"^Record {number} at byte \d+ is damaged: .*\.$"):
            read_journal(_put(tmp_path, stored, bytes(content)))


def _flipped(stored: Stored) -> bytes:
    content = bytearray(stored.content)
    content[stored.ends[2] - 60] ^= 4
    return bytes(content)


def _without_one(stored: Stored) -> bytes:
    return stored.content[: stored.ends[1]] + stored.content[stored.ends[2] :]


def _swapped(stored: Stored) -> bytes:
    one, two, three = stored.ends[1:4]
    content = stored.content
    return content[:one] + content[two:three] + content[one:two] + content[three:]


@pytest.mark.parametrize("damage", [_flipped, _without_one, _swapped])
def test_a_damaged_journal_is_refused_and_left_alone(
    stage: Stage, stored: Stored, damage: Callable[[Stored], bytes]
) -> None:
    product = stage.product(_NOWHERE, **NO_MODULES)
    journal = _put(product.data, stored, damage(stored))
    commands = [
        ("journal", "check", str(journal)), ("replay", str(journal)), ("replay", "--verify", stored.session),
        ("context", stored.session), ("run", "--session", stored.session, "Go on."),
    ]  # fmt: skip
    with ThreadPoolExecutor(3) as pool:
        for ran in pool.map(lambda command: product.run(*command), commands):
            assert ran.status == 1
            assert ran.sentence.startswith("Record 3 at byte ")
            assert ran.stdout == ""
    assert journal.read_bytes() == damage(stored)
    shutil.rmtree(journal.parent)


def test_a_journal_that_was_edited_with_care_does_not_verify(stage: Stage, stored: Stored) -> None:
    """Somebody who computes every digest anew passes `check`, but the contexts tell on them."""
    product = stage.product(**NO_MODULES)
    forged, previous = b"", "00000000"
    for record in stored.records:
        body = record.body.replace("A verse", "A curse") if record.kind == "say" else record.body
        data, previous = encode(replace(record, body=body, prev=previous))
        forged += data
    journal = _put(product.data, stored, forged)
    assert product.run("journal", "check", str(journal)).status == 0
    ran = product.run("replay", "--verify", str(journal))
    assert ran.status == 1
    first = next(record for record in stored.records if record.kind == "turn")
    assert ran.sentence.startswith(f"Record {first.n} (turn) differs: it answers a context with digest ")
    shutil.rmtree(journal.parent)


def test_a_journal_of_a_newer_program(stage: Stage, stored: Stored) -> None:
    product = stage.product(**NO_MODULES)
    opened = stored.records[0]
    data, _ = encode(with_fields(opened, {**opened.fields, "format": "2.0"}))
    journal = _put(product.data, stored, data)
    ran = product.run("replay", str(journal))
    assert ran.status == 1
    assert (
        ran.sentence == f"The journal has format 2.0; this program reads up to {FORMAT}. Update the program."
    )
    shutil.rmtree(journal.parent)


def test_a_session_that_another_process_has_open(stage: Stage, stored: Stored) -> None:
    product = stage.product(_NOWHERE, **NO_MODULES)
    journal = _put(product.data, stored, stored.content)
    held, _ = Journal.open(journal.parent)
    try:
        ran = product.run("run", "--session", stored.session, "Go on.")
    finally:
        held.abandon()
    assert ran.status == 1
    assert "is open in another process; use or end that process." in ran.sentence
    assert journal.read_bytes() == stored.content


# --- wrong usage --------------------------------------------------------------------------------------

_USAGE: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "unknown session": (("run", "--session", "nobody", "Hi."), {}, "There is no session 'nobody'. List the sessions with: iact session list."),
    "a session that is a path": (("run", "--session", "../data", "Hi."), {}, "There is no session '../data'. List the sessions with: iact session list."),
    "empty task": (("run", " "), {}, "The task is empty."),
    "unknown scope": (("run", "--scope", "moon", "Hi."), {}, "There is no scope 'moon'; there are default."),
    "a file as workspace": (("run", "--workspace", "/etc/passwd", "Hi."), {}, "/etc/passwd is a file; give the directory to work in."),
    "no such workspace": (("run", "--workspace", "/nonexistent", "Hi."), {}, "There is no directory /nonexistent to work in."),
    "no model's name, and nothing to ask for one": (("run", "Hi."), {"IACT_MODEL": ""}, "so it can't be asked for its models; start it, or correct its address."),
    "no http": (("run", "Hi."), {"OPENAI_BASE_URL": "ftp://example.org"}, "OPENAI_BASE_URL must be an http or https address"),
    "context": (("run", "Hi."), {"IACT_CONTEXT": "many"}, "The setting context (or IACT_CONTEXT) can't be 'many'"),
    "sandbox": (("run", "Hi."), {"IACT_SANDBOX": "jail"}, "The setting sandbox (or IACT_SANDBOX) can't be 'jail'"),
    "log": (("doctor",), {"IACT_LOG": "loud"}, "The setting log (or IACT_LOG) can't be 'loud'"),
    "data": (("run", "Hi."), {"IACT_DATA": "/dev/null/data"}, "/dev/null/data"),
    "no journal": (("replay", "nowhere.md"), {}, "There is no journal nowhere.md. Give its file, or the id of a session in "),
    "open to all": (("serve", "--host", "0.0.0.0"), {}, "would open this server to other machines without encryption"),
}  # fmt: skip


@pytest.fixture(scope="module")
def misused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ran]]:
    places = {name: tmp_path_factory.mktemp("misused") / "data" for name in _USAGE}

    def play(name: str) -> Ran:
        arguments, settings, _ = _USAGE[name]
        return Product.at(places[name], _NOWHERE, **{**NO_MODULES, **settings}).run(*arguments)

    with ThreadPoolExecutor(3) as pool:
        yield dict(zip(_USAGE, pool.map(play, _USAGE), strict=True))


@pytest.mark.parametrize("name", _USAGE)
def test_wrong_usage(misused: dict[str, Ran], name: str) -> None:
    ran = misused[name]
    assert _USAGE[name][2] in ran.sentence
    assert ran.status == 2
    assert ran.stdout == ""


def test_a_settings_file_that_is_none(stage: Stage) -> None:
    product = stage.product(_NOWHERE)
    (product.data / "iact.toml").write_text("context = = 3\n")
    ran = product.run("run", "Hi.")
    assert ran.status == 2
    assert ran.sentence.startswith(f"The settings file {product.data / 'iact.toml'} can't be read: ")
    (product.data / "iact.toml").write_text("kontext = 3\n")
    ran = product.run("run", "Hi.")
    assert ran.status == 2
    assert "kontext" in ran.sentence


def test_numbers_and_names_that_a_journal_does_not_have(stage: Stage, stored: Stored) -> None:
    product = stage.product(**NO_MODULES)
    _put(product.data, stored, stored.content)
    last = len(stored.records)
    ran = product.run("replay", stored.session, "--at", str(last + 1))
    assert (ran.status, ran.sentence) == (2, f"There is no record {last + 1}; the journal has 1 to {last}.")
    ran = product.run("context", stored.session, "--agent", "/nobody")
    assert (ran.status, ran.sentence) == (2, "The agent /nobody had no turn.")


def test_an_unknown_command_is_told_in_one_line(stage: Stage) -> None:
    ran = stage.product().run("dance")
    assert (ran.status, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("iact: No such command 'dance'.")
