"""What the commands print: nothing that a model, an endpoint or a foreign journal wrote steers a terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.characters import DECEPTIVE
from iact.core.journal import encode, read_journal
from iact.core.ports import JSON
from iact.core.records.content import Unknown
from iact.core.records.record import GENESIS
from iact.terminal import Screen, as_json, readable
from tests.acceptance.product import NO_MODULES, Product
from tests.command import Command
from tests.endpoint import Endpoint, HttpError, Reply
from tests.iact.recorded import record
from tests.records import raw_record, with_fields

POISON = "\x1b]0;owned\x07\x1b[31m\x9b2J\x9d0;x\x9c\u202e\u200b\u3164\U000e0041\rgone"
WORDS = ("writer", "counter", "checker")


def steers(printed: bytes) -> list[str]:
    """What in the output of a command could steer a terminal or hide something."""
    text = printed.decode("utf-8").replace("\r\n", "\n")
    return [match.group() for match in DECEPTIVE.finditer(text) if not match["flag"]]


def poisoned(value: JSON, *, all_of_it: bool) -> JSON:
    match value:
        case str() if all_of_it:
            return value + POISON
        case str():
            for word in WORDS:
                value = value.replace(word, word[:3] + POISON + word[3:])
            return value
        case list():
            return [poisoned(one, all_of_it=all_of_it) for one in value]
        case dict():
            return {name: poisoned(one, all_of_it=all_of_it) for name, one in value.items()}
        case _:
            return value


def forged(source: Path, folder: Path, *, kinds: frozenset[str] | None) -> Path:
    """The session with poison in its agents' names; with `kinds`, in every field of records of these kinds instead."""
    folder.mkdir(parents=True)
    previous, parts = GENESIS, []
    for one in read_journal(source).records:
        whole = kinds is not None and one.kind in kinds
        changed: dict[str, JSON] = dict(one.fields)
        for name, value in one.fields.items() if kinds is None or whole else ():
            worse = {**changed, name: poisoned(value, all_of_it=whole)}
            if not isinstance(with_fields(one, worse).content, Unknown):
                changed = worse  # else a field in which only our own words can stand
        agent = poisoned(one.agent, all_of_it=False) if kinds is None else one.agent
        body = poisoned(one.body, all_of_it=False) if kinds is None else one.body + POISON * whole
        data, previous = encode(
            raw_record(one.n, one.at, one.kind, str(agent), one.step, str(body), changed, prev=previous)
        )
        parts.append(data)
    (folder / "journal.md").write_bytes(b"".join(parts))
    if (source / "blobs").is_dir():
        (folder / "blobs").symlink_to(source / "blobs")
    return folder


def on_a_terminal(product: Product, *arguments: str) -> bytes:
    """All that a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with Command(
        arguments, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=product.environment, text=True
    ):  # fmt: skip
        os.close(theirs)
        seen = b""
        with suppress(OSError):  # the terminal is gone with the last who writes to it
            while piece := os.read(ours, 65536):
                seen += piece
    os.close(ours)
    return seen


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    made = Product.at(tmp_path_factory.mktemp("terminal") / "data", **NO_MODULES)
    record(made.data)
    return made


@pytest.fixture(scope="module")
def sessions(product: Product) -> dict[str, Path]:
    """Forged sessions: poison in names, and in every field of one kind of record."""
    source = next(iter(product.journals())).parent
    kinds = {one.kind for one in read_journal(source).records}
    folder = source.parent
    made = {
        kind: forged(source, folder / f"forged-{kind}", kinds=frozenset({kind})) for kind in sorted(kinds)
    }
    return {"names": forged(source, folder / "forged-names", kinds=None), **made}


COMMANDS = (
    ("replay", "{}", "--tree"),
    ("replay", "{}", "--json"),
    ("replay", "{}", "--verify"),
    ("context", "{}", "--agent", "/wri" + POISON + "ter"),
    ("context", "{}", "--agent", "/"),
    ("journal", "check", "{}"),
    ("journal", "check", "{}", "--json"),
    ("journal", "tail", "{}", "-n", "500"),
    ("journal", "html", "{}"),
    ("gate", "explain", "{}", "9"),
    ("workspace", "log", "--json", "--session", "{}"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:2]))
def test_a_forged_journal_steers_no_terminal(
    product: Product, sessions: dict[str, Path], command: tuple[str, ...]
) -> None:
    arguments = [str(sessions["names"]) if word == "{}" else word for word in command]
    with suppress(ValueError):
        arguments[arguments.index("--session") + 1] = sessions["names"].name
    seen = on_a_terminal(product, *arguments)
    assert seen
    assert b"usage:" not in seen
    assert not steers(seen)


def test_the_names_are_shown_all_the_same(product: Product, sessions: dict[str, Path]) -> None:
    ran = product.run("replay", str(sessions["names"]), "--tree")
    assert "\\u202e" in ran.stdout
    assert "\\u3164" in ran.stdout


@pytest.mark.parametrize("command", [("replay", "--tree"), ("journal", "tail", "-n", "500")])
def test_nor_does_one_with_poison_in_any_record(
    product: Product, sessions: dict[str, Path], command: tuple[str, ...]
) -> None:
    for folder in sessions.values():
        ran = product.run(*command, str(folder))
        assert not steers((ran.stdout + ran.stderr).encode())
        assert ran.stdout + ran.stderr


def test_json_says_exactly_what_was_there(product: Product, sessions: dict[str, Path]) -> None:
    name = "/wri" + POISON + "ter"
    ran = product.run("context", str(sessions["names"]), "--agent", name, "--json")
    assert not steers(ran.stdout.encode())
    assert ran.status == 0, ran.stderr
    assert json.loads(ran.stdout)["agent"] == name


@pytest.mark.parametrize(
    "reply", [f"Done{POISON}.", Reply(error=HttpError(400, json.dumps({"error": {"message": POISON}})))]
)
def test_nor_does_an_endpoint(tmp_path: Path, reply: Reply | str) -> None:
    with Endpoint({"/": [reply]}) as endpoint:
        product = Product.at(tmp_path / "data", endpoint, **NO_MODULES)
        seen = on_a_terminal(product, "run", "Hello")
    assert b"Done" in seen or b"endpoint" in seen
    assert not steers(seen)


@given(st.text(st.characters() | st.sampled_from(POISON)))
def test_no_text_does(text: str) -> None:
    assert not steers(readable(text).replace("\r", "").encode("utf-8"))
    assert "\r" not in readable(text)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(POISON)), st.text(max_size=20)
    )
)
def test_json_means_the_same(value: dict[str, str]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(as_json(text)) == value
    assert not [match for match in DECEPTIVE.finditer(as_json(text)) if not match["flag"]]


def test_a_terminal_that_was_closed_is_no_failure_and_a_broken_disk_is(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as terminal:
        screen = Screen(terminal)
        print("said", file=screen, flush=True)
        os.close(master)
        print("said to nobody", file=screen, flush=True)
        with suppress(OSError):
            terminal.close()  # tries to write it once more

    class Broken(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        Screen(Broken()).flush()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["module", "--help"]])
def test_help_that_can_not_be_written_says_so(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "iact", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("iact: The disk is full.")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_command_can_be_started_without_its_streams(closed: str, tmp_path: Path) -> None:
    """As some services start programs. Its own files are then not one of the streams of what it starts."""
    command = f'"$0" -m iact session list --json --data "$1" {closed}'
    ended = subprocess.run(
        ["sh", "-c", command, sys.executable, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ("" if "1>&-" in closed else "[]\n")
    assert ended.stderr == ""
