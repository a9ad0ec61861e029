"""A yes holds for what was shown, through the product: changes of a real shell, real commands, a real server.

A person is shown something and its digest, then it becomes something else under the same name, and then the yes with
that digest arrives. Nothing may happen.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from websockets.sync.client import ClientConnection

from iact.core.journal import read_journal
from iact.core.ports import JSON
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, Ran, Server, acknowledged, until
from tests.acceptance.test_clearance import answered, asking, made, question, serving, tell
from tests.acceptance.test_hosts import leads, web
from tests.acceptance.test_hosts import question as host_question
from tests.acceptance.test_live import picture, project, session_path
from tests.acceptance.test_modules import SCOUT, deploy, say
from tests.acceptance.test_scenes import shell, speak

REFUSED: Final = "It has changed since you looked; look again."


def refused(ran: Ran) -> None:
    assert ran.status != 0, ran
    assert ran.sentence == REFUSED


@contextmanager
def ended(product: Product, *arguments: str) -> Iterator[Server]:
    """A server that is ended as a person ends it."""
    with product.serving(*arguments) as server:
        yield server
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(300) == 0


def digest_shown(ran: Ran) -> str:
    """The digest in what a command prints when it is given no yes."""
    assert ran.status == 2, ran
    found = re.search(r"--digest ([0-9a-f]{64})", ran.stderr)
    assert found is not None, ran
    return found[1]


def error_of(socket: ClientConnection, message: Mapping[str, JSON]) -> str:
    """Send what must be refused; gives the sentence."""
    socket.send(json.dumps({**message, "id": "refused"}))
    while True:
        frame = json.loads(socket.recv(timeout=60))
        if frame.get("id") == "refused":
            assert frame["type"] == "error", frame
            return str(frame["message"])


# --- changes that wait ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Swap:
    """What becomes of a waiting change between the look and the yes."""

    agent: str = ""
    """A script of the agent, in its next message."""
    user: Callable[[Path], object] | None = None
    """What the user does in their directory instead."""
    keeps_the_row: bool = False
    """Whether the change that was shown is still the same, so that only a yes to the whole list is void."""


SHOWN: Final = "sed -i s/one/ONE/ notes.txt"
"""The script whose change the person looks at."""

SWAPS: Final[Mapping[str, Swap]] = {
    "another text of the same length": Swap("sed -i s/two/TWO/ notes.txt"),
    "a blank at its end": Swap("printf ' ' >> notes.txt"),
    "a separator that looks like no line": Swap(r"printf '\342\200\250rm -rf ~' >> notes.txt"),
    "another mode": Swap("chmod 755 notes.txt"),
    "a link out of the directory": Swap("ln -sf /etc/passwd notes.txt"),
    "a link to another file": Swap("ln -sf victim notes.txt"),
    "a folder of the same name": Swap("rm notes.txt; mkdir notes.txt; echo x > notes.txt/a"),
    "a deletion": Swap("rm notes.txt"),
    "moved onto another file": Swap("mv notes.txt victim"),
    "one more change": Swap("rm victim", keeps_the_row=True),
    "another change in its place": Swap("printf 'one\\ntwo\\nthree\\n' > notes.txt; rm victim"),
    "the user's own text below": Swap(user=lambda mine: (mine / "notes.txt").write_text("mine\n")),
    "the user's own link below": Swap(user=lambda mine: _link(mine / "notes.txt", "victim")),
}  # fmt: skip


def _link(place: Path, target: str) -> None:
    place.unlink()
    place.symlink_to(target)


def test_changes_that_became_others_are_not_applied(stage: Stage, tmp_path: Path) -> None:
    """One session: for each swap, a change is shown, swapped, agreed to in vain, and dropped."""
    mine = project(tmp_path)
    before = picture(mine)
    turns = ["Hello."]
    for swap in SWAPS.values():
        turns += [shell(SHOWN), "Done."]
        if swap.agent:
            turns += [shell(swap.agent), "Done."]
    product = stage.product(stage.endpoint({"/": turns}))

    with ended(product, "serve", "--workspace", str(mine)) as server:
        spoken = speak(product, server, "Hello.")
        for name, swap in SWAPS.items():
            say(spoken, server, "Go.")
            whole, row = listed(product, spoken.session)
            if swap.agent:
                say(spoken, server, "Go on.")
            if swap.user is not None:
                swap.user(mine)
            now = picture(mine)

            ran = product.run("workspace", "apply", "--session", spoken.session, "--digest", whole)
            assert (ran.status, ran.sentence) == (2, REFUSED), name
            if not swap.keeps_the_row:
                with server.connect() as socket:
                    acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
                    apply: dict[str, JSON] = {"type": "apply", "paths": ["notes.txt"], "force": True}
                    error_of(socket, {**apply, "digests": {"notes.txt": row}})
            assert picture(mine) == now, name

            dropped = product.run("workspace", "drop", "--session", spoken.session)
            assert dropped.status == 0, (name, dropped)
            put_back(mine, before)
    verified = product.run("replay", session_path(product, spoken.session), "--verify")
    assert verified.status == 0, verified


def listed(product: Product, session: str) -> tuple[str, str]:
    """The digest of all that waits, and that of the change of `notes.txt`."""
    shown = json.loads(product.run("workspace", "pending", "--session", session, "--json").stdout)
    (row,) = shown["pending"]
    assert row["path"] == "notes.txt"
    return str(shown["digest"]), str(row["digest"])


def put_back(mine: Path, before: Mapping[str, tuple[int, str]]) -> None:
    """Undo what the user did."""
    _, text = before["notes.txt"]
    (mine / "notes.txt").unlink()
    (mine / "notes.txt").write_text(text, encoding="utf-8")
    assert picture(mine) == before


# --- questions --------------------------------------------------------------------------------------------------


CALLS: Final = ("touch made", "touch made # again", "touch made; rm -rf /workspace", "touch  made;")


def test_a_yes_to_an_earlier_call_is_none_to_the_next_one(stage: Stage) -> None:
    """Every yes is that of the call before, by the page's message and by the command."""
    turns = [turn for command in CALLS for turn in (shell(command), "It can't be made.")]
    product = asking(stage.product(stage.endpoint({"/": turns})))
    with serving(product) as server, server.connect() as socket:
        tell(socket, {"type": "hello", "session": None, "since": 0})
        seen = ""
        for command in CALLS:
            socket.send(json.dumps({"type": "say", "text": "Make it."}))
            asked = question(socket)
            assert asked["params"] == {"command": command}
            n, session = int(str(asked["n"])), next(iter(product.journals())).parent.name
            if seen:
                assert (
                    error_of(socket, {"type": "clear", "call": n, "allow": True, "digest": seen}) == REFUSED
                )
                refused(product.run("clear", "--session", session, str(n), "--allow", "--digest", seen))
            seen = digest_shown(product.run("clear", "--session", session, str(n), "--allow"))
            assert not made(product)
            tell(socket, {"type": "clear", "call": n, "allow": False})
            until_answered(product, command)


def until_answered(product: Product, command: str) -> None:
    """Wait for the answer to the message in which a command was asked about."""
    place = CALLS.index(command) + 1
    (journal,) = product.journals()

    def replies() -> int:
        return sum(record.kind == "reply" for record in records_of(journal))

    until(lambda: replies() == place, f"answer {place}")


def records_of(journal: Path) -> list[Record]:
    return read_journal(journal).records


HOSTS: Final = ("docs.test", "docs.test.evil.test", "evil.test")


def test_a_yes_to_a_host_is_none_to_another(stage: Stage) -> None:
    fetches = [f"```web.fetch\nhttp://{host}/page\n```" for host in HOSTS]
    with web() as pages:
        product = stage.product(stage.endpoint({"/": [*fetches, "Done."]}))
        leads(product, pages, *(f"{host}:80" for host in HOSTS))
        with serving(product) as server, server.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "say", "text": "Look it up."})
            seen = ""
            for _ in HOSTS:
                n = host_question(socket)
                if seen:
                    clear: dict[str, JSON] = {"type": "clear", "call": n, "allow": True, "for": "always"}
                    assert error_of(socket, {**clear, "digest": seen}) == REFUSED
                seen = str(acknowledged(socket, {"type": "question", "n": n})["digest"])
                tell(socket, {"type": "clear", "call": n, "allow": False})
            until(answered(product), "the answer")
            assert pages.asked == []


# --- what else is agreed to -------------------------------------------------------------------------------------


def test_a_module_that_was_deployed_anew_is_not_approved_unseen(stage: Stage) -> None:
    """The other version reaches another host, and says the same of itself."""
    other = SCOUT.replace("127.0.0.1", "127.0.0.2")
    turns = [deploy("scout", SCOUT), "It is there.", deploy("scout", other), "It is there."]
    product = stage.product(stage.endpoint({"/": turns}))
    with ended(product, "serve") as server:
        spoken = speak(product, server, "Hello.")
        until(lambda: any(one.kind == "reply" for one in spoken.records()), "the answer")
        seen = digest_shown(product.run("module", "approve", "scout"))
        say(spoken, server, "Once more.")
        refused(product.run("module", "approve", "scout", "--digest", seen))

        (scout,) = [
            one
            for one in json.loads(product.run("module", "list", "--json").stdout)
            if one["name"] == "scout"
        ]
        assert [one["approved"] for one in scout["functions"]] == [False]
        assert product.agree("module", "approve", "scout").status == 0


def test_a_variable_and_all_that_was_read_are_not_vouched_for_unseen(stage: Stage) -> None:
    turns = [
        "```VAR note\nAsk ada@home.test.\n```", "Noted.",
        "```VAR note\nAsk eve@evil.test.\n```", "Noted.",
    ]  # fmt: skip
    product = stage.product(stage.endpoint({"/": turns}), **NO_MODULES)
    with ended(product, "serve") as server:
        spoken = speak(product, server, "Note it.")
        until(lambda: any(one.kind == "reply" for one in spoken.records()), "the answer")
        ways = (
            ["declassify", "note", "--session", spoken.session],
            ["declassify", "--session", spoken.session],
        )
        seen = [digest_shown(product.run(*way)) for way in ways]
        say(spoken, server, "Once more.")
        for way, digest in zip(ways, seen, strict=True):
            refused(product.run(*way, "--digest", digest))
        for way in ways:
            assert product.agree(*way).status == 0


STRICT: Final = '[scope.default]\nfunctions = ["files.*"]\n'
LOOSE: Final = '[scope.default]\nfunctions = ["*"]\n'


def test_a_policy_that_became_another_is_not_set(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(**NO_MODULES)
    new = tmp_path / "new.toml"
    new.write_text(STRICT, encoding="utf-8")
    seen = digest_shown(product.run("policy", "set", str(new)))
    new.write_text(LOOSE, encoding="utf-8")
    refused(product.run("policy", "set", str(new), "--digest", seen))
    assert not (product.data / "policy.toml").exists()
