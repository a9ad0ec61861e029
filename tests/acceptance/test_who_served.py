"""Who did it: two users in one session of a real server. Their actions have their names, whatever they send, in the
journal, the audit, the lists and the exports, which agree; so do their actions from before the server was killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect
from websockets.sync.client import ClientConnection

from iact.core.journal import read_journal
from iact.core.records.person import PersonContent
from tests.acceptance.conftest import Stage
from tests.acceptance.members import bearer, dial, token_of, until_record, with_people
from tests.acceptance.product import Product, Server, acknowledged, kill
from tests.acceptance.test_clearance import asking, question
from tests.acceptance.test_people_page import browsing, more, open_session, person, signed_in
from tests.endpoint import Endpoint, Request
from tests.web.browser import Wrongs

FORGED: Final = {"by": "root", "who": "root", "user": "root", "name_of": "root", "actor": {"name": "root"}}
"""What somebody adds to each message who wants it to have been somebody else."""

TASK: Final = re.compile(r"Do this: make (\S+)")

MODULE: Final = '''
from ext_modules.sdk import Module

module = Module("greeter", "Greets.")

@module.function(impact=0, summary="Greet")
def greet() -> str:
    """Greet."""
    return "Hello."
'''


DECIDED: Final[Mapping[str, str]] = {
    "clear yes": "call.allowed", "clear no": "call.denied", "declassify": "declassified", "intent": "intent.changed",
    "budget": "budget.raised", "lockdown": "lockdown.begun", "unlock": "lockdown.ended", "module.allow": "hosts.changed",
}  # fmt: skip
"""What of this the audit has of the session, and what it calls it."""


def answers(request: Request) -> str:
    """What it is told to make is made once."""
    said = [(n, found[1]) for n, (_, one) in enumerate(request.messages) if (found := TASK.search(one))]
    if not said:
        return "Noted."
    task = said[-1][1]
    began = next(n for n, one in said if one == task)
    if any(role == "assistant" for role, _ in request.messages[began:]):
        return "That is all."
    return f"I make it.\n\n```shell.run\ntouch {task}\n```"


@dataclass
class Person:
    """Somebody at the session. `did`: which record each of their deeds became, in the order in which they did them."""

    name: str
    socket: ClientConnection
    did: list[tuple[str, int]] = field(default_factory=list)

    def do(self, what: str, message: dict[str, object], *, forged: bool = True) -> dict[str, object]:
        """Send a message that says it is from somebody else."""
        told = acknowledged(self.socket, {**(FORGED if forged else {}), **message})
        if "n" in told:
            self.did.append((what, int(str(told["n"]))))
        return told

    def upload(self, name: str, text: str) -> None:
        """A file, in which nothing says whose it is."""
        self.do("", {"type": "upload", "name": name, "media": "text/plain", "size": len(text)}, forged=False)
        self.socket.send(text.encode())
        self.do("upload", {"type": "upload.end"})

    def asked(self) -> int:
        """The next question that they see."""
        return int(str(question(self.socket)["n"]))


def at(line: ExitStack, server: Server, name: str, token: str, session: str | None, since: int = 0) -> Person:
    """Somebody who watches a session, until the line is closed."""
    socket = line.enter_context(dial(server, **bearer(token)))
    acknowledged(socket, {"type": "hello", "session": session, "since": since})
    return Person(name, socket)


def steers(one: Person, file: str) -> None:
    """All that both may do: a steerer, too."""
    one.do("say", {"type": "say", "text": f"I am {one.name}."})
    until_record(one.socket, "reply")
    one.do("say", {"type": "say", "text": f"Do this: make {file}-1"})
    call = one.asked()
    one.do("inject", {"type": "inject", "path": "/", "text": f"Mind that it is {one.name}.", "mode": "queue"})
    one.do("pause", {"type": "pause", "path": "/"})
    one.do("resume", {"type": "resume", "path": "/"})
    one.do("clear yes", {"type": "clear", "call": call, "allow": True})
    until_record(one.socket, "reply")
    one.do("say", {"type": "say", "text": f"Do this: make {file}-2"})
    one.do("clear no", {"type": "clear", "call": one.asked(), "allow": False})
    until_record(one.socket, "reply")
    one.do("say", {"type": "say", "text": f"Do this: make {file}-3"})
    one.asked()
    one.do("cancel", {"type": "cancel", "path": "/"})
    one.upload(f"{file}.txt", "What is in it is nobody's concern here.")
    one.do("lockdown", {"type": "lockdown", "value": True})
    one.do("unlock", {"type": "lockdown", "value": False})


def owns(one: Person) -> None:
    """What the owner alone may."""
    read = one.do("reading", {"type": "reading", "path": "/"})
    one.do("declassify", {"type": "declassify", "path": "/", "digest": read["digest"]})
    one.do("intent", {"type": "intent", "value": 0.5})
    one.do("budget", {"type": "budget", "tokens": 1000})


def journal_says(journal: Path, *people: Person) -> dict[int, str]:
    """The journal has each deed with the name of whoever did it, and no other deed of a person."""
    wanted = {n: one.name for one in people for _, n in one.did}
    records = read_journal(journal).records
    found = {
        one.n: one.content.who
        for one in records
        if isinstance(one.content, PersonContent) and one.content.who
    }
    assert found == wanted
    unsigned = [one for one in records if isinstance(one.content, PersonContent) and not one.content.who]
    assert [one.kind for one in unsigned if one.text("by") == "user"] == []
    return found


def told_alike(product: Product, journal: Path, found: Mapping[int, str], *people: Person) -> None:
    """What verifies, lists, shows and audits the journal says what it says."""
    verified = product.run("replay", str(journal), "--verify")
    assert verified.status == 0, verified
    assert product.run("journal", "check", str(journal)).status == 0
    lines = product.run("journal", "tail", str(journal)).stdout.splitlines()
    listed = {int(line.split()[0]): line for line in lines}
    assert all(f"{who}:" in listed[n] for n, who in found.items())
    assert not any("root" in line for line in lines)

    page = product.data.parent / "exported.html"
    assert product.run("journal", "html", str(journal), "-o", str(page)).status == 0
    text = page.read_text(encoding="utf-8")
    for n, who in found.items():
        entry = text.partition(f'id="r{n}"')[2].partition('id="r')[0]
        assert who in entry, (n, who)
    page.unlink()

    decided = {n: (DECIDED[what], one.name) for one in people for what, n in one.did if what in DECIDED}
    printed = [json.loads(line) for line in product.run("audit", "--json").stdout.splitlines()]
    audited = {
        one["n"]: (one["what"], one["who"])
        for one in printed
        if one["session"] == journal.parent.name and one["n"]
    }
    assert audited == decided


@pytest.mark.no_prefix_law("two sessions talk to one model")
def test_each_deed_bears_the_name_of_whoever_did_it(stage: Stage) -> None:
    with Endpoint(answers) as endpoint:
        _each_deed(asking(stage.product(endpoint)))


def _each_deed(product: Product) -> None:
    ids = with_people(product, "root", "ada", "bob")
    tokens = {name: token_of(product, name) for name in ("ada", "bob")}
    with product.serving() as server, ExitStack() as line:
        ada = at(line, server, "ada", tokens["ada"], None)
        session = str(ada.do("say", {"type": "say", "text": "Hello."})["session"])
        until_record(ada.socket, "reply")
        ada.do("", {"type": "share", "name": "bob", "role": "steerer"})
        journal = product.data / "users" / ids["ada"] / "sessions" / session / "journal.md"
        bob = at(line, server, "bob", tokens["bob"], session, since=len(read_journal(journal).records))
        steers(bob, "his")
        ada.socket.close()
        mine = at(line, server, "ada", tokens["ada"], session, since=len(read_journal(journal).records))
        ada.socket = mine.socket
        steers(ada, "hers")
        owns(ada)
        found = journal_says(journal, ada, bob)
        kill(server.process)
    told_alike(product, journal, found, ada, bob)

    with product.serving() as server, ExitStack() as line:
        end = len(read_journal(journal).records)
        ada.socket, bob.socket = (
            at(line, server, name, tokens[name], session, end).socket for name in ("ada", "bob")
        )
        bob.do("say", {"type": "say", "text": "Are you there?"})
        until_record(bob.socket, "reply")
        ada.do("inject", {"type": "inject", "path": "/", "text": "I am.", "mode": "queue"})
        found = journal_says(journal, ada, bob)
        told_alike(product, journal, found, ada, bob)
        _on_the_page(server, session)
        _exported(product, server)
        _outside_of_sessions(product, ada, bob, session)
        kill(server.process)
    _audit_of_deeds(product, session)


def _on_the_page(server: Server, session: str) -> None:
    """Each has the other's name before what the other did."""
    wrongs = Wrongs(f"http://127.0.0.1:{server.port}")
    with browsing() as browser:
        page = signed_in(person(browser, wrongs), server, "ada")
        open_session(page, server, session)
        paused = page.locator(".entry").filter(has_text="You paused.")
        for at, name in enumerate(("bob", "ada")):
            expect(paused.nth(at).locator(".from")).to_have_text(name)
            expect(paused.nth(at).locator(".from")).to_be_visible()
        quiet = page.locator(".entry.minor").filter(has_text="touch").first
        expect(quiet.locator(".entry-head")).to_be_hidden()
    wrongs.forgive("401")
    assert wrongs.found == []


def _exported(product: Product, server: Server) -> None:
    """An administrator has from the page what the command prints, all of it or a part; and that is in the audit."""
    wrongs = Wrongs(f"http://127.0.0.1:{server.port}")
    with browsing() as browser:
        page = signed_in(person(browser, wrongs), server, "root")
        more(page, "admin-open")
        for who, what, since in (
            ("", "", ""),
            ("bob", "call", ""),
            ("Bob", "call.denied", "2026-01-01"),
            ("", "", "2999-01-01"),
        ):
            page.locator("[data-role=audit-who]").fill(who)
            page.locator("[data-role=audit-what]").fill(what)
            page.locator("[data-role=audit-since]").fill(since)
            wanted = [
                f"--{name}={text}" for name, text in (("who", who), ("what", what), ("since", since)) if text
            ]
            with page.expect_download() as download:
                page.get_by_role("button", name="Download the audit").click()
            printed = product.run("audit", "--json", *wanted).stdout
            assert download.value.path().read_text(encoding="utf-8") == printed
            assert bool(printed) == (not since.startswith("2999"))
            told = [json.loads(line) for line in printed.splitlines()]
            assert not who or {(one["who"], one["what"].partition(".")[0]) for one in told} == {
                ("bob", "call")
            }
            assert what != "call.denied" or len(told) == 1
    last = json.loads(product.run("audit", "--json", "--what", "audit.exported").stdout.splitlines()[1])
    assert (last["who"], last["about"]) == ("root", {"of": "bob", "what": "call"})
    wrongs.forgive("401")
    assert wrongs.found == []


def _outside_of_sessions(product: Product, ada: Person, bob: Person, session: str) -> None:
    """What is done to sessions and modules as a whole is in the audit, also once the session is gone."""
    for one in (ada, bob):
        source = MODULE.replace("greeter", f"greeter_{one.name}")
        one.do("", {"type": "module.add", "name": f"greeter_{one.name}", "source": source}, forged=False)
    for message in ({"type": "session.rename", "title": "Mine"}, {"type": "session.delete"}):
        bob.socket.send(json.dumps({**message, "session": session, "sessions": [session], "id": "tried"}))
        while (told := json.loads(bob.socket.recv(timeout=300))).get("id") != "tried":
            pass
        assert told["type"] == "error", "it is not his to name or to delete"
    ada.do("", {"type": "session.rename", "session": session, "title": "A title with plover in it"})
    ada.do("", {"type": "unshare", "name": "bob"})
    for kind in ("session.delete", "session.restore", "session.delete", "session.purge"):
        ada.do("", {"type": kind, "sessions": [session]})


def _audit_of_deeds(product: Product, session: str) -> None:
    printed = product.run("audit", "--json").stdout
    assert "plover" not in printed
    deeds = [
        (one["what"], one["who"])
        for one in map(json.loads, printed.splitlines())
        if one["session"] == session and not one["n"]
    ]
    assert deeds == [
        ("grant.given", "ada"), ("session.renamed", "ada"), ("grant.taken", "ada"), ("session.deleted", "ada"),
        ("session.restored", "ada"), ("session.deleted", "ada"), ("session.purged", "ada"),
    ]  # fmt: skip
    added = [
        (one["what"], one["who"], one["about"]["module"])
        for one in map(json.loads, printed.splitlines())
        if one["what"] == "module.added"
    ]
    assert added == [("module.added", name, f"greeter_{name}") for name in ("ada", "bob")]
