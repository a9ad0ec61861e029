"""Case studies of what the program is for, from the question to the answer, with real tools and servers of the tests.

A repository is cloned, built and fixed with its own tests. A question is researched on thirty pages that contradict
each other, and citations are where they claim to be. A service with a database is written, tested, and opened by its
user. The model is scripted, but its texts depend on what it was shown. Each session verifies after all servers are
gone.

The fourth case is a recorded example: a table is cleaned, plotted and reported (`examples/recording/cleaned.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from websockets.sync.client import ClientConnection

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server
from tests.acceptance.test_browser import SLOW, page_of
from tests.acceptance.test_clearance import PATIENCE, records, serving, tell
from tests.acceptance.test_hosts import hosts
from tests.acceptance.test_scenes import served
from tests.endpoint import Request
from tests.rounds import short
from tests.sandbox.calling import need_bubblewrap
from tests.sandbox.outside import Serve
from tests.sandbox.test_git_module import git, server
from tests.sandbox.workshops import equip


@pytest.fixture(params=short(["docker"], of=["docker", "bubblewrap"]))
def backend(request: pytest.FixtureRequest) -> str:
    """What the tools run in: each case is shown with an engine and without."""
    if request.param == "bubblewrap":
        need_bubblewrap()
    return str(request.param)


def attended(socket: ClientConnection, text: str, answers: Mapping[str, str]) -> str:
    """Say `text` as a person who stays, and answers each question about a host; gives the root's reply.

    `answers`: by host, for how long it is allowed, or "no".
    """
    tell(socket, {"type": "say", "text": text})
    while True:
        frame = json.loads(socket.recv(timeout=PATIENCE))
        if frame.get("type") != "record":
            continue
        if (frame["kind"], frame.get("op")) == ("host", "ask"):
            lasts = answers[frame["host"]]
            yes = {"allow": True, "digest": frame["digest"], "for": lasts}
            allow = {"allow": False} if lasts == "no" else yes
            socket.send(json.dumps({"type": "clear", "call": frame["n"], **allow}))
        elif (frame["kind"], frame["agent"]) == ("reply", "/"):
            return str(frame["body"])


@contextmanager
def session(product: Product) -> Iterator[tuple[Server, ClientConnection]]:
    """A person at the page of a running server, before the first word."""
    with serving(product) as served, served.connect() as socket:
        tell(socket, {"type": "hello", "session": None, "since": 0})
        yield served, socket


def origins(found: Sequence[Record]) -> set[tuple[str, str, str]]:
    """Who let which module reach which host, as the journal has it."""
    return {
        (one.text("module"), one.text("host"), one.text("by"))
        for one in found
        if (one.kind, one.fields.get("op")) == ("host", "reach")
    }


def of(found: Sequence[Record], function: str) -> list[Record]:
    """The results of a function."""
    return [one for one in found if one.kind == "result" and one.text("function") == function]


def exit_status(result: Record) -> object:
    """That of a program that the shell ran."""
    data = result.fields["data"]
    assert isinstance(data, dict)
    return data["exit_status"]


CUT_OFF: Final = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--"]
"""Runs a command in a network of its own, in which there is nothing."""


def verifies(product: Product) -> None:
    """The session is derived anew from its journal by a process that has no network, when no server answers any more."""
    (journal,) = product.journals()
    ran = product.run("replay", str(journal), "--verify", inside=CUT_OFF)
    assert ran.status == 0, ran


# --- a repository: cloned, built, mended, committed ---------------------------------------------------

SOURCE: Final = r"""#include <stdio.h>

/* Prints how many numbers stand on standard input, one a line, and their mean. */
int main(void) {
    double sum = 0, value;
    int count = 0;
    while (scanf("%lf", &value) == 1) {
        sum += value;
        count++;
    }
    printf("%d %g\n", count, sum / count);
    return 0;
}
"""
MAKE: Final = "CFLAGS = -Wall -Werror -O1\ntally: tally.c\n\ntest: tally\n\tsh test.sh\n\n.PHONY: test\n"
TESTS: Final = """#!/bin/sh
failed=0
check() {
    got=$(printf "$1" | ./tally)
    [ "$got" = "$2" ] && echo "ok: $3" || { echo "FAILED: $3: expected '$2', got '$got'"; failed=1; }
}
check '1\\n2\\n6\\n' '3 3' 'three numbers'
check '5' '1 5' 'no newline at the end'
check '' '0 0' 'nothing at all'
exit $failed
"""
MENDING: Final = (
    "I clone it and see whether it builds.\n\n```git.clone\nhttp://code.test/team/tally.git\n```\n\n"
    "```shell.run\ncd tally && make && make test\n```",
    "With nothing to read it divides by nothing.\n\n```files.read path=tally/tally.c\n```",
    "~~~files.edit path=tally/tally.c\n<<<<<<<\nsum / count);\n=======\ncount ? sum / count : 0.0);\n>>>>>>>\n~~~\n\n"
    "```shell.run\nmake test\n```",
    "```git.switch path=tally create=true\nmend-empty-input\n```\n\n```git.diff path=tally\n```\n\n"
    "```git.commit path=tally\nPrint a mean of 0 where there are no numbers\n```",
    "It is mended on the branch mend-empty-input.",
)


def tally(folder: Path) -> Path:
    """A program in C with a bug that its own tests find, as a git server has it; gives the folder above it."""
    work = folder / "work"
    work.mkdir(parents=True)
    for name, text in {
        "tally.c": SOURCE,
        "Makefile": MAKE,
        "test.sh": TESTS,
        ".gitignore": "tally\n",
    }.items():
        (work / name).write_text(text, encoding="utf-8")
    git(work, "init")
    git(work, "add", "."), git(work, "commit", "-m", "Count, and take the mean")
    git(folder, "clone", "--bare", "work", "served/team/tally.git")
    return folder / "served"


@contextmanager
def listening(serve: Serve) -> Iterator[int]:
    """A server in a thread of its own; gives its port."""
    loop = asyncio.new_event_loop()
    opened = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield opened.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(opened.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(300)
        loop.close()


def test_a_repository_is_cloned_built_and_its_bug_mended_with_its_own_tests(
    stage: Stage, tmp_path: Path, backend: str
) -> None:
    product = stage.product(stage.endpoint({"/": MENDING}), IACT_SANDBOX=backend)
    equip(product.data, bubblewrap=backend == "bubblewrap")
    with listening(server(tally(tmp_path))) as port:
        (product.data / "iact.toml").write_text(f'[inside]\n"code.test:80" = "127.0.0.1:{port}"\n')
        with session(product) as (_, socket):
            reply = attended(
                socket,
                "http://code.test/team/tally.git fails its own tests. Please mend it, and commit it.",
                {"code.test": "once"},
            )
    assert reply == MENDING[-1]

    found = records(product)
    before, after = of(found, "shell.run")
    assert "FAILED: nothing at all: expected '0 0', got '0 -nan'" in before.body
    assert (before.body.count("ok: "), exit_status(before)) == (2, 2)
    assert (after.body.count("ok: "), exit_status(after)) == (3, 0)
    (shown,) = of(found, "git.diff")
    assert '-    printf("%d %g\\n", count, sum / count);\n+    printf(' in shown.body
    (journal,) = product.journals()
    clone = journal.parent / "workspace" / "tally"
    assert git(clone, "log", "-1", "--format=%s|%an|%D").strip() == (
        "Print a mean of 0 where there are no numbers|agent|HEAD -> mend-empty-input"
    )
    assert git(clone, "diff", "--name-only", "HEAD~").split() == ["tally.c"]
    assert git(clone, "status", "--short") == ""

    assert origins(found) == {("git", "code.test", "once")}
    assert [one.text("by") for one in hosts(product, "answer")] == ["user"]
    verifies(product)


# --- research: thirty pages, contradictions, citations ------------------------------------------------

QUESTION: Final = "When was the Hollin viaduct opened, how long is it, and who drew it? I want to see who says so, and who doesn't."
SAID: Final = {
    "opened": r"opened .*?(\d{4})", "length": r"(\d+) metres", "drawn by": r"[Dd]rawn by ([A-Z]\w+ [A-Z]\w+)"
}  # fmt: skip
"""How a value of each thing that was asked for is found in a sentence."""
PLACES: Final = ("archive.test", "forum.test", "guide.wiki.test", "news.test", "rails.wiki.test")
WRITTEN: Final = {
    ("opened", "1874"): ["Trains first ran when it opened on 3 May 1874.", "It was opened in 1874 by the mayor of Orm."],
    ("opened", "1876"): ["The viaduct was opened in June 1876, two years late."],
    ("length", "412"): ["It is 412 metres long, on 14 arches.", "At 412 metres it was the longest in the county."],
    ("length", "421"): ["Its 421 metres took four years."],
    ("drawn by", "Ada Quill"): ["It was drawn by Ada Quill.", "Drawn by Ada Quill, it bears her initials."],
}  # fmt: skip
"""What stands on pages about the Hollin viaduct; every other page is about another one."""


def world() -> dict[str, str]:
    """Thirty pages by address, six at each place; on eighteen of them stands something that was asked for."""
    pages = dict[str, str]()
    facts = [(topic, sentence) for (topic, _), sentences in WRITTEN.items() for sentence in sentences]
    for number in range(30):
        host, name = PLACES[number % 5], f"page-{number // 5}"
        about, said = "Hollow viaduct", ["The Hollow viaduct was opened in 1901.", "It is 98 metres long."]
        if number % 5 != 2 or number < 5:
            about = "Hollin viaduct"
            said = [facts[number % len(facts)][1]] if number < 18 else ["We walked there and it rained."]
        words = " ".join([f"A page of {host} about the {about}.", *said, "Nothing else is known to us here."])
        pages[f"http://{host}/{name}"] = (
            f"<html><head><title>{about}, {number}</title></head><body><nav>Home</nav>"
            f"<main><h1>The {about}</h1><p>{words}</p></main></body></html>"
        )
    return pages


class Web(ThreadingHTTPServer):
    """The pages, and a search server that knows them. `asked`: what was asked for, by address."""

    pages: dict[str, str]
    asked: Counter[str]

    def found(self, query: str, page: int) -> list[dict[str, object]]:
        """What a SearXNG server answers: ten at a time, those first in which most of the words stand."""
        words = query.lower().split()
        ranked = sorted(
            self.pages, key=lambda one: (-sum(word in self.pages[one].lower() for word in words), one)
        )
        return [
            {"title": re.findall("<title>(.*)</title>", self.pages[one])[0], "url": one, "content": "…", "engines": ["test"]}
            for one in ranked[page * 10 - 10 : page * 10]
        ]  # fmt: skip


class Answering(BaseHTTPRequestHandler):
    """Answers for every host, by the name that it was asked under."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Web)
        address = f"http://{self.headers['Host']}{self.path}"
        self.server.asked[address] += 1
        parts = urlsplit(address)
        if parts.hostname == "search.test":
            query = parse_qs(parts.query)
            kind, text = "application/json", json.dumps({
                "results": self.server.found(query["q"][0], int(query["pageno"][0]))
            })  # fmt: skip
        else:
            kind, text = "text/html", self.server.pages[address]
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return None


@contextmanager
def thirty_pages() -> Iterator[Web]:
    opened = Web(("127.0.0.1", 0), Answering)
    opened.pages, opened.asked = world(), Counter()
    threading.Thread(target=opened.serve_forever, daemon=True).start()
    try:
        yield opened
    finally:
        opened.shutdown()
        opened.server_close()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a page says about something that was asked for."""

    topic: str
    value: str
    sentence: str
    url: str


def claims(text: str, url: str) -> list[Claim]:
    """What the page at `url` says, if it is about the right viaduct."""
    if "Hollin viaduct" not in text:
        return []
    sentences = re.findall(r"[A-Z][^.\n]*\.", text)
    return [
        Claim(topic, hit[1], sentence, url)
        for sentence in sentences
        for topic, pattern in SAID.items()
        if (hit := re.search(pattern, sentence))
    ]


def written(found: Sequence[Claim]) -> str:
    """A report: each value with the sentences that say so and where they stand, and contradictions by name."""
    sources = sorted({one.url for one in found})
    lines = ["# The Hollin viaduct", ""]
    for topic in SAID:
        values = Counter(one.value for one in found if one.topic == topic)
        lines += [f"## {topic}", ""]
        if len(values) > 1:
            lines += [
                f"**Contradiction**: {', '.join(f'{value} ({n} pages)' for value, n in values.most_common())}",
                "",
            ]
        lines += [
            f'- {one.value}: "{one.sentence}" [{sources.index(one.url) + 1}]'
            for one in found
            if one.topic == topic
        ]
        lines += [""]
    return "\n".join([*lines, "## sources", "", *(f"{n}. {url}" for n, url in enumerate(sources, 1)), ""])


def faults(report: str, pages: Mapping[str, str]) -> list[str]:
    """The checker: what in a report does not stand where it is said to, and what it keeps silent about."""
    sources = dict(re.findall(r"^(\d+)\. (\S+)$", report, re.MULTILINE))
    wrong = list[str]()
    cited = set[tuple[str, str]]()
    for topic, part in re.findall(r"^## (.+)\n([^#]*)", report, re.MULTILINE):
        values = set[str]()
        for line in part.splitlines() if topic in SAID else []:
            if (hit := re.fullmatch(r'- (.+?): "(.+)" \[(\d+)\]', line)) is None:
                wrong += [f"no citation: {line}"] if line.startswith("-") else []
                continue
            value, sentence, number = hit.groups()
            values.add(value)
            page = pages.get(sources.get(number, ""), "")
            if sentence not in page or value not in sentence:
                wrong.append(f"not on page {number}: {line}")
            cited.add((topic, value))
        named = re.search(r"^\*\*Contradiction\*\*: (.+)$", part, re.MULTILINE)
        if len(values) > 1 and not (named and all(value in named[1] for value in values)):
            wrong.append(f"contradictions are not named: {topic}")
    there = {(one.topic, one.value) for url, text in pages.items() for one in claims(text, url)}
    return wrong + [f"kept silent about: {topic} {value}" for topic, value in sorted(there - cited)]


FETCHED: Final = re.compile(r"^(http://\S+\.test/page-\d)(?: \(.*\))?\n\n# .*\n\n(.*)", re.MULTILINE)


def researcher(request: Request) -> str:
    """A root that searches, divides what it found, and writes; readers that cite what stands on the pages."""
    text = "\n".join(content for _, content in request.messages)
    if request.agent != "/":
        if request.turn == 0:
            mine = re.findall(r"^- (http://\S+)$", request.last, re.MULTILINE)
            return "\n\n".join(f"```web.fetch\n{url}\n```" for url in mine)
        said = [one for url, page in FETCHED.findall(text) for one in claims(page, url)]
        return (
            "\n".join(f"{one.topic} | {one.value} | {one.sentence} | {one.url}" for one in said) or "Nothing."
        )
    if request.turn == 0:
        return "\n\n".join(f"```web.search page={page}\nHollin viaduct opened\n```" for page in (1, 2, 3))
    if request.turn == 1:
        urls = list(dict.fromkeys(re.findall(r'"url": "(http://[^"]+)"', text)))
        lists = ["\n".join(f"- {url}" for url in urls[start::3]) for start in range(3)]
        asked = [
            f"```CALL_ASYNC reader_{n} intent=0\nWhat do these say of the viaduct?\n{one}\n```"
            for n, one in enumerate(lists)
        ]
        return "\n\n".join([*asked, "```WAIT\n```"])
    if request.turn == 2:
        rows = re.findall(r"^([a-z ]+) \| (.+?) \| (.+?) \| (http://\S+)$", text, re.MULTILINE)
        return f"```files.write path=report.md\n{written([Claim(*row) for row in rows])}```"
    return "It is in report.md: most say 1874 and 412 metres, some 1876 and 421, and all who say so name Ada Quill."


def test_what_thirty_pages_say_is_cited_where_it_stands_and_contradictions_are_named(
    stage: Stage, backend: str
) -> None:
    product = stage.product(
        stage.endpoint(researcher), IACT_SANDBOX=backend, IACT_SEARCH="http://search.test/"
    )
    (product.data / "policy.toml").write_text(
        '[scope.default]\nfunctions = ["*"]\n[scope.default.egress]\nweb = ["*.wiki.test"]\n',
        encoding="utf-8",
    )
    with thirty_pages() as web:
        to = f"127.0.0.1:{web.server_address[1]}"
        names = "\n".join(f'"{host}:80" = "{to}"' for host in (*PLACES, "search.test"))
        (product.data / "iact.toml").write_text(f"[inside]\n{names}\n", encoding="utf-8")
        assert product.run("module", "allow", "web", "news.test").status == 0
        with session(product) as (_, socket):
            attended(socket, QUESTION, {"forum.test": "session", "archive.test": "once"})
        assert set(web.pages) <= set(web.asked)
        assert set(web.asked.values()) == {1}

    found = records(product)
    (journal,) = product.journals()
    report = (journal.parent / "workspace" / "report.md").read_text(encoding="utf-8")
    pages = {url: text for one in of(found, "web.fetch") for url, text in FETCHED.findall(one.body)}
    assert set(pages) == set(web.pages), (
        "every page is in the journal, so that it can be checked without a network"
    )
    assert {(one.topic, one.value) for url, text in pages.items() for one in claims(text, url)} == set(
        WRITTEN
    )
    assert faults(report, pages) == []
    assert "**Contradiction**: 1874 (" in report
    assert "**Contradiction**: 412 (" in report
    # The checker finds what it is there for.
    assert faults(report.replace("May 1874", "May 1875"), pages)
    assert faults(re.sub(r"\[1\]$", "[2]", report, flags=re.MULTILINE), pages)
    assert faults(report.replace("**Contradiction**: 412", "412"), pages) == [
        "contradictions are not named: length"
    ]
    assert "kept silent about: opened 1876" in faults(re.sub(".*1876.*\n", "", report), pages)

    assert origins(found) == {
        ("web", "search.test", "policy"), ("web", "guide.wiki.test", "policy"), ("web", "rails.wiki.test", "policy"),
        ("web", "news.test", "always"), ("web", "forum.test", "session"), ("web", "archive.test", "once"),
    }  # fmt: skip
    verifies(product)


# --- a service with a data base: written, tested, opened by its user -----------------------------------

SERVICE: Final = """\
import html, os, sqlite3
from contextlib import closing
from urllib.parse import parse_qs

DATABASE = os.environ.get("WATERED", "/tmp/watered.sqlite")
PAGE = "<title>Watered</title><h1>Watered</h1><form method=post><label>Plant <input name=plant></label> \\
<button>Watered</button></form><ul>{}</ul>"


def app(environ, start_response):
    with closing(sqlite3.connect(DATABASE)) as base, base:
        base.execute("CREATE TABLE IF NOT EXISTS watered (plant TEXT, at TEXT DEFAULT CURRENT_TIMESTAMP)")
        if environ["REQUEST_METHOD"] == "POST":
            form = parse_qs(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode())
            base.execute(f"INSERT INTO watered (plant) VALUES ('{form['plant'][0]}')")
            start_response("303 See Other", [("Location", "/")])
            return [b""]
        rows = base.execute("SELECT plant, count(*) FROM watered GROUP BY plant ORDER BY plant").fetchall()
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return [PAGE.format("".join(f"<li>{html.escape(plant)}: {n}</li>" for plant, n in rows)).encode()]
"""
CHECKS: Final = """\
import io, unittest
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults
from service import app


def ask(**form):
    body = urlencode(form).encode()
    environ = {"REQUEST_METHOD": "POST" if form else "GET", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
    setup_testing_defaults(environ)
    status = []
    text = b"".join(app(environ, lambda line, headers: status.append(line[:3]))).decode()
    return status[0], text


class Service(unittest.TestCase):
    def test_what_is_watered_is_counted(self):
        for _ in range(2):
            self.assertEqual(ask(plant="Ivy")[0], "303")
        self.assertIn("<li>Ivy: 2</li>", ask()[1])

    def test_any_name_will_do(self):
        ask(plant="Ada's <fern>")
        self.assertIn("<li>Ada&#x27;s &lt;fern&gt;: 1</li>", ask()[1])
"""
TRY: Final = "```shell.run\nrm -f watered.sqlite; WATERED=watered.sqlite python3 -m unittest\n```"
BUILDING: Final = (
    f"~~~files.write path=service.py\n{SERVICE}~~~\n\n~~~files.write path=test_service.py\n{CHECKS}~~~\n\n{TRY}",
    "A name with an apostrophe breaks the statement; it becomes a parameter.\n\n"
    "~~~files.edit path=service.py\n<<<<<<<\n(f\"INSERT INTO watered (plant) VALUES ('{form['plant'][0]}')\")\n=======\n"
    f'("INSERT INTO watered (plant) VALUES (?)", (form["plant"][0],))\n>>>>>>>\n~~~\n\n{TRY}\n\n'
    "```sql.query database=watered.sqlite\nSELECT plant, count(*) AS times FROM watered GROUP BY plant ORDER BY plant\n```",
    "```files.read path=service.py\n```",
    "```app.serve source=$read_1\n```",
)


def builder(request: Request) -> str:
    if request.turn < len(BUILDING):
        return BUILDING[request.turn]
    (address,) = set(re.findall(r"http://[0-9a-f]{16}\.localhost:\d+/", request.last))
    return f"Tick your plants off here: {address}"


def test_a_service_with_a_data_base_is_written_tested_and_opened_by_its_user(
    stage: Stage, backend: str
) -> None:
    product = stage.product(stage.endpoint(builder), IACT_SANDBOX=backend)
    with served(product) as server, page_of(server) as page:
        message = page.get_by_role("textbox", name="Message")
        message.fill("We forget who watered what. Could we have a small page where we tick it off?")
        message.press("Enter")
        link = page.get_by_role("log", name="Messages").locator("a[href*='.localhost:']").last
        with page.expect_popup() as popup:
            link.click(timeout=SLOW)
        window = popup.value
        app = window.frame_locator("iframe")
        expect(app.get_by_role("listitem")).to_have_count(0)
        for plant, times in (("Ivy", 1), ("Ada's <fern>", 1), ("Ivy", 2)):
            app.get_by_label("Plant").fill(plant)
            app.get_by_role("button", name="Watered").click()
            expect(app.get_by_text(f"{plant}: {times}", exact=True)).to_be_visible()
        window.reload()
        expect(app.get_by_role("listitem")).to_have_text(["Ada's <fern>: 1", "Ivy: 2"])
        assert window.evaluate("window.opener") is None
        address = window.url

    found = records(product)
    before, after = of(found, "shell.run")
    assert ("sqlite3.OperationalError" in before.body, exit_status(before)) == (True, 1)
    assert ("Ran 2 tests" in after.body, exit_status(after)) == (True, 0)
    (asked,) = of(found, "sql.query")
    assert "| Ivy | 2 |" in asked.body
    (opened,) = of(found, "app.serve")
    assert address in opened.body
    assert origins(found) == set(), "none of it needs a host"
    verifies(product)
