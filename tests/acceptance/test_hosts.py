"""External hosts in the running product: no host is reached that no one allowed, and who allowed it is recorded.

The web is a server of the test, to which the setting `inside` maps names. Real containers reach it through the real
proxy.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect
from websockets.sync.client import ClientConnection

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_clearance import comes, records, serving, tell
from tests.rounds import short

FETCH = "```web.fetch\nhttp://docs.test/page\n```"
CURL = (
    "```shell.run language=python timeout=100\nimport urllib.request as r\n"
    "print(r.urlopen('https://docs.test/page', timeout=90).status)\n```"
)
"""What the shell's programs do: plain HTTP can't pass a proxy that knows CONNECT alone, so this asks for port 443."""

SHOWN = {
    "manifest": "allowed with the module",
    "policy": "allowed by the policy",
    "always": "allowed by you, always",
    "session": "allowed by you, for this session",
    "once": "allowed by you, once",
}


class Web(ThreadingHTTPServer):
    """Says hello, and remembers what it was asked."""

    asked: list[str]
    text = "Hello from docs.test"


@contextmanager
def web() -> Iterator[Web]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert isinstance(self.server, Web)
            self.server.asked.append(self.path)
            body = f"<title>A page</title><h1>{self.server.text}</h1>".encode()
            if self.path == "/leave":
                self.send_response(302)
                self.send_header("Location", "http://other.test/page")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = Web(("127.0.0.1", 0), Page)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def leads(product: Product, server: Web, *names: str) -> Product:
    """Lets names lead to the server."""
    to = f"127.0.0.1:{server.server_address[1]}"
    rows = "\n".join(f'"{name}" = "{to}"' for name in names)
    (product.data / "iact.toml").write_text(f"[inside]\n{rows}\n", encoding="utf-8")
    return product


def hosts(product: Product, op: str) -> list[Record]:
    return [one for one in records(product) if one.kind == "host" and one.text("op") == op]


def question(socket: ClientConnection, within: float = 120.0) -> int:
    """The record of the next question about a host, as the page gets it."""
    end = time.monotonic() + within
    while True:
        frame = json.loads(socket.recv(timeout=max(0.0, end - time.monotonic())))
        if (frame.get("type"), frame.get("kind"), frame.get("op")) == ("record", "host", "ask"):
            return int(frame["n"])


def replied(product: Product) -> Callable[[], bool]:
    return lambda: any(one.kind == "reply" and one.agent == "/" for one in records(product))


def results(product: Product) -> list[str]:
    return [one.body for one in records(product) if one.kind == "result"]


@pytest.mark.parametrize("backend", short(["docker"], of=["docker", "bubblewrap"]))
def test_a_person_allows_a_host_in_place_and_the_module_goes_on(stage: Stage, backend: str) -> None:
    """Once, for the session, by a command while it runs, and not at all: one session, one container, no restart."""
    script = {"/": [FETCH, FETCH, "```web.fetch\nhttp://docs.test/leave\n```", FETCH, "Over."]}
    with web() as server:
        product = leads(
            stage.product(stage.endpoint(script), IACT_SANDBOX=backend),
            server,
            "docs.test:80",
            "other.test:80",
        )
        with serving(product) as served, served.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "say", "text": "Look it up"})
            asked = question(socket)
            assert server.asked == [], "nothing is reached before somebody says yes"
            tell(socket, {"type": "clear", "call": asked, "allow": True, "for": "once"})
            asked = question(socket)
            tell(socket, {"type": "clear", "call": asked, "allow": True, "for": "session"})
            # The redirect leads to a host that nobody named so far; another process allows it.
            asked = question(socket)
            identity = records(product)[0].text("session")
            ran = product.run("module", "allow", "web", "other.test", "--session", identity, "--json")
            rows = json.loads(ran.stdout)
            assert {"module": "web", "host": "other.test", "by": "session"} in rows
            comes(replied(product), "the answer")
        assert [one.text("by") for one in hosts(product, "reach")] == ["once", "session", "session"]
        assert [one.text("by") for one in hosts(product, "answer")] == ["user", "user", "core"]
        assert all("Hello from docs.test" in one for one in results(product)), results(product)
        assert sum("starting the module web" in one.body for one in records(product)) <= 1
        shown = product.run("journal", "tail", str(next(iter(product.journals()))))
        assert "web reaches docs.test, allowed by once" in shown.stdout
    # Without any network, the session is what it was.
    journal = next(iter(product.journals()))
    assert product.run("replay", str(journal), "--verify").status == 0
    assert product.run("module", "hosts", "--json").stdout.strip() == "[]"


def test_a_no_is_a_failure_of_the_tool_and_a_policy_or_always_asks_nobody(
    stage: Stage, tmp_path: Path
) -> None:
    with web() as server:
        refused = leads(stage.product(stage.endpoint({"/": [FETCH, "Over."]})), server, "docs.test:80")
        with serving(refused) as served, served.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "say", "text": "Look it up"})
            tell(socket, {"type": "clear", "call": question(socket), "allow": False})
            comes(replied(refused), "the answer")
        assert server.asked == []
        (failed,) = (one for one in records(refused) if one.kind == "result")
        assert failed.text("status") == "error"
        assert "docs.test can't be reached from here." in failed.body

        allowed = leads(stage.product(stage.endpoint({"/": [FETCH, "Over."]})), server, "docs.test:80")
        assert "by you, always" in allowed.run("module", "allow", "web", "Docs.Test").stdout
        assert "Hello" in next(one.body for one in allowed.ask("Look").records if one.kind == "result")
        assert [one.text("by") for one in hosts(allowed, "reach")] == ["always"]

        listed = leads(stage.product(stage.endpoint({"/": [FETCH, "Over."]})), server, "docs.test:80")
        (listed.data / "policy.toml").write_text(
            '[scope.default]\nfunctions = ["*"]\n[scope.default.egress]\nweb = ["*.test"]\n', encoding="utf-8"
        )
        assert "Hello" in next(one.body for one in listed.ask("Look").records if one.kind == "result")
        assert [one.text("by") for one in hosts(listed, "reach")] == ["policy"]
        assert "by the policy, scope default" in listed.run("module", "hosts", "web").stdout

        wrong = listed.run("module", "allow", "web", "https://x/")
        assert (wrong.status, "is not a host" in wrong.sentence) == (2, True)


def test_the_shell_asks_too_and_what_it_was_told_is_from_outside_then(stage: Stage) -> None:
    """A program in the shell meets the same question; a name that leads to this machine stays refused."""
    with web() as server:
        product = leads(
            stage.product(stage.endpoint({"/": [CURL, "Over."]})), server
        )  # no name leads anywhere
        with serving(product) as served, served.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "say", "text": "Look it up"})
            asked = question(socket)
            tell(socket, {"type": "clear", "call": asked, "allow": True, "for": "session"})
            comes(replied(product), "the answer")
        assert [one.text("module") for one in hosts(product, "reach")] == ["shell"]
        assert "502" in results(product)[0], "allowed, and the name leads nowhere"


WAYS = """\
```shell.run language=python timeout=100
import http.server, threading, urllib.request as r

def ask(address):
    try:
        return r.urlopen(address, timeout=60).status
    except OSError as error:
        return error

for address in ("http://docs.test/page", "http://gone.test/", "https://gone.test/", "http://no.test/", "https://no.test/"):
    print(ask(address))
http.server.SimpleHTTPRequestHandler.log_message = lambda *_: None
here = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=here.serve_forever, daemon=True).start()
print(ask(f"http://localhost:{here.server_port}/"))
```"""


def test_a_host_that_nobody_allows_reads_like_one_that_does_not_answer(stage: Stage) -> None:
    """In the shell: plain HTTP passes to a host that is allowed, and this machine's own servers need no proxy."""
    with web() as server:
        product = leads(stage.product(stage.endpoint({"/": [WAYS, "Over."]})), server, "docs.test:80")
        for host in ("docs.test", "gone.test"):
            assert product.run("module", "allow", "shell", host).status == 0
        (said,) = (
            one.body.splitlines()
            for one in product.ask("Look", "--no-questions").records
            if one.kind == "result"
        )
        assert server.asked == ["/page"]

    reached, gone, gone_over_tls, no, no_over_tls, here = said
    assert (reached, here) == ("200", "200")
    assert "gone.test can't be reached from here" in gone
    assert "gone.test can't be reached from here" in gone_over_tls
    assert no == gone.replace("gone.test", "no.test")
    assert no_over_tls == gone_over_tls.replace("gone.test", "no.test")


SLOW = """\
```shell.run language=python timeout=2
import subprocess, sys, urllib.error, urllib.request
beat = subprocess.Popen(["bash", "-c", "while sleep 0.25; do echo beat; done"])
try:
    urllib.request.urlopen("https://docs.test/page", timeout=90)
except urllib.error.URLError as error:
    print("answered", error)
beat.kill()
```"""
"""Asks for a host, and counts in the meantime: twenty beats are more than twice its time."""


@pytest.mark.parametrize("backend", short(["bubblewrap"], of=["docker", "bubblewrap"]))
def test_a_scripts_clock_stands_while_a_person_is_asked(stage: Stage, backend: str) -> None:
    """Its own limit, and the core's for the call, which is five seconds longer: both are over before the answer."""
    product = stage.product(
        stage.endpoint({"/": [SLOW, "```shell.run timeout=1\nsleep 60\n```", "Over."]}),
        IACT_SANDBOX=backend,
    )
    with serving(product) as served, served.connect() as socket:
        tell(socket, {"type": "hello", "session": None, "since": 0})
        tell(socket, {"type": "say", "text": "Look it up"})
        asked, beats = 0, 0
        while not asked or beats < 32:
            frame = json.loads(socket.recv(timeout=120.0))
            if (frame.get("type"), frame.get("kind"), frame.get("op")) == ("record", "host", "ask"):
                asked = int(frame["n"])
            beats += str(frame).count("beat") if asked and frame.get("type") == "output" else 0
        tell(socket, {"type": "clear", "call": asked, "allow": True, "for": "once"})
        comes(replied(product), "the answer")
    waited, slept = (one for one in records(product) if one.kind == "result")
    assert "answered" in waited.body, waited.body
    assert waited.fields["data"] == {"exit_status": 0, "cwd": "/workspace", "timed_out": False, "left_out": 0}
    assert "did not end within 1 s" in slept.body
    journal = next(iter(product.journals()))
    assert product.run("replay", str(journal), "--verify").status == 0


def test_a_page_is_the_same_for_whoever_reads_it_again_in_a_session_that_goes_on_too(stage: Stage) -> None:
    """Another agent, another process with another container, and a fork: only who wants it fetched again gets news."""
    fresh = FETCH.replace("web.fetch", "web.fetch fresh=true")
    script = {
        "/": [FETCH, "```CALL reader\nRead it.\n```", "Over.", FETCH, "Again.", fresh, FETCH, "Anew."],
        "/reader": [FETCH, "Read."],
    }
    with web() as server:
        product = leads(stage.product(stage.endpoint(script)), server, "docs.test:80")
        product.run("module", "allow", "web", "docs.test")
        first = product.ask("Look it up")
        at = len(first.records)
        server.text = "Something else"
        product.ask("And now?", session=first.session)
        branch = stage.endpoint({"/": [FETCH, "Branched."]})
        beside = replace(product, settings={**product.settings, "OPENAI_BASE_URL": branch.url})
        forked = beside.run(
            "journal", "fork", first.session, "--at", str(at), "--say", "Once more", "--json"
        ).answer()
        assert "Hello" in next(one.body for one in forked.records[at:] if one.kind == "result")
        assert server.asked == ["/page"], "it was fetched once"
        anew = product.ask("Is it still so?", session=first.session)
        assert server.asked == ["/page"] * 2
    found = [one.body for one in anew.records if one.text("function") == "web.fetch" and one.kind == "result"]
    assert ["Hello" in one for one in found] == [True, True, True, False, False], found
    assert ["as it was at" in one for one in found] == [False, True, True, False, True]
    for one in product.journals():
        assert product.run("replay", str(one), "--verify").status == 0


SCOUT = """\
import socket
from ext_modules.sdk import Module

module = Module("scout", "Looks.", keywords=["scout"])

@module.function(impact=0, summary="Tell how the proxy answers")
def reach(target: str) -> str:
    with socket.create_connection(("127.0.0.1", 3128), 20) as proxy:
        proxy.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
        return proxy.recv(4096).decode().split("\\r\\n")[0]
"""


def test_who_allowed_each_host_is_in_the_journal_and_on_the_page(stage: Stage, tmp_path: Path) -> None:
    """All ways in one session: with a module's approval, by the policy, always, in this session, once, and not at all."""
    ways = ("manifest", "policy", "always", "session", "once")
    folder = tmp_path / "scout"
    folder.mkdir()
    (folder / "module.py").write_text(SCOUT, encoding="utf-8")
    needs = '[needs]\nworkspace = "none"\negress = ["manifest.test:80"]\n'
    (folder / "module.toml").write_text(
        f'name = "scout"\nsummary = "Looks."\nversion = "1"\n{needs}', encoding="utf-8"
    )
    calls = [
        "```scout.reach target=manifest.test:80\n```",
        *(f"```web.fetch\nhttp://{one}.test/page\n```" for one in (*ways[1:], "refused")),
    ]
    with web() as server:
        product = leads(
            stage.product(stage.endpoint({"/": [*calls, "Over."]})),
            server,
            *(f"{one}.test:80" for one in (*ways, "refused")),
        )
        (product.data / "policy.toml").write_text(
            '[scope.default]\nfunctions = ["*"]\n[scope.default.egress]\nweb = ["policy.test"]\n',
            encoding="utf-8",
        )
        for done in (
            product.run("module", "add", str(folder)),
            product.agree("module", "approve", "scout"),
            product.run("module", "allow", "web", "always.test"),
        ):
            assert done.status == 0, done
        with serving(product) as served, served.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "say", "text": "Look everywhere"})
            for lasts in ("session", "once"):
                tell(socket, {"type": "clear", "call": question(socket), "allow": True, "for": lasts})
            tell(socket, {"type": "clear", "call": question(socket), "allow": False})
            comes(replied(product), "the answer")
            with page_of(served) as page:
                (journal,) = product.journals()
                page.goto(f"http://127.0.0.1:{served.port}/#{journal.parent.name}")
                for host, words in SHOWN.items():
                    expect(page.locator(".dialogue")).to_contain_text(f"{host}.test {words}")
        assert server.asked == ["/page"] * 4
    reached = {one.text("host"): one.text("by") for one in hosts(product, "reach")}
    assert reached == {f"{one}.test": one for one in ways}
    assert [one.text("lasts") for one in hosts(product, "answer")] == ["session", "", ""]
    assert [one.fields["allow"] for one in hosts(product, "answer")] == [True, True, False]
    told = product.run("journal", "tail", str(journal)).stdout
    for one in ways:
        assert f"{one}.test, allowed by {one}" in told
    assert product.run("replay", str(journal), "--verify").status == 0


MCP = """\
import json, socket, sys

TOOL = {"name": "look", "description": "Looks whether a host can be reached.", "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"host": {"type": "string"}}, "required": ["host"]}}

def look(host):
    with socket.create_connection(("127.0.0.1", 3128), 90) as proxy:
        proxy.sendall(f"CONNECT {host}:80 HTTP/1.1\\r\\n\\r\\n".encode())
        said = proxy.recv(4096).decode().split("\\r\\n")[0]
        if " 200" not in said:
            return said
        proxy.sendall(b"GET /page HTTP/1.0\\r\\n\\r\\n")
        return b"".join(iter(lambda: proxy.recv(4096), b"")).decode()

for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), {"jsonrpc": "2.0", "id": asked.get("id")}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "lookout", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [TOOL]}
    elif method == "tools/call":
        text = look(asked["params"]["arguments"]["host"])
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "not here"}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("backend", short(["bubblewrap"], of=["docker", "bubblewrap"]))
def test_an_mcp_server_reaches_what_a_person_allows_and_nothing_else(
    stage: Stage, tmp_path: Path, backend: str
) -> None:
    folder = tmp_path / "lookout"
    folder.mkdir()
    (folder / "server.py").write_text(MCP, encoding="utf-8")
    (folder / "module.toml").write_text(
        'name = "lookout"\nsummary = "Looks out."\n\n[mcp]\ncommand = ["python3", "/module/server.py"]\n\n'
        '[needs]\nworkspace = "none"\negress = ["*"]\n',
        encoding="utf-8",
    )
    calls = [f"```lookout.look host={one}.test\n```" for one in ("docs", "other", "docs")]
    with web() as server:
        product = leads(
            stage.product(stage.endpoint({"/": [*calls, "Over."]}), IACT_SANDBOX=backend),
            server,
            "docs.test:80",
            "other.test:80",
        )
        for done in (
            product.run("module", "add", str(folder), seconds=300),
            product.run("module", "check", "lookout", seconds=300),
            product.agree("module", "approve", "lookout", seconds=300),
        ):
            assert done.status == 0, done
        with serving(product) as served, served.connect() as socket:
            tell(socket, {"type": "hello", "session": None, "since": 0})
            tell(socket, {"type": "say", "text": "Look out"})
            tell(socket, {"type": "clear", "call": question(socket), "allow": True, "for": "session"})
            tell(socket, {"type": "clear", "call": question(socket), "allow": False})
            comes(replied(product), "the answer")
        assert server.asked == ["/page"] * 2
    found = results(product)
    assert ["Hello from docs.test" in one for one in found] == [True, False, True], found
    assert "can't be reached from here" in found[1]
    assert [(one.text("module"), one.text("by")) for one in hosts(product, "reach")] == [
        ("lookout", "session")
    ]
    (journal,) = product.journals()
    assert product.run("replay", str(journal), "--verify").status == 0


OTHERS = """
[scope.default]
functions = ["*"]
others = ["shell.run"]
[scope.default.egress]
web = ["docs.test"]
shell = ["docs.test:443"]
[[scope.default.nobody]]
function = "shell.run"
then = "deny"
"""
TOUCH = "```shell.run\ntouch {}\n```"
PRINTS = (
    "```shell.run language=python timeout=100\nimport http.client, os, sys, urllib.parse\n"
    "proxy = urllib.parse.urlsplit(os.environ['https_proxy'])\n"
    "page = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=90)\n"
    "page.set_tunnel('docs.test', 443)\npage.request('GET', '/page')\n"
    "sys.exit(page.getresponse().read().decode())\n```"
)


def test_what_an_error_prints_of_a_page_comes_from_outside(stage: Stage) -> None:
    """The words of a page in an error of the web module, and in one of a script's: each taints whoever read it, and other
    people meet what the next call does."""
    script = {
        "/": ["```CALL_ASYNC reader\nRead.\n```\n```CALL_ASYNC coder\nRead.\n```\n```WAIT\n```", "Over."],
        "/reader": [
            "```web.fetch\nhttp://docs.test/leave\n```",
            TOUCH.format("late"),
            "Done.",
        ],
        "/coder": [TOUCH.format("sooner"), PRINTS, TOUCH.format("later"), "Done."],
    }
    with web() as server:
        product = leads(
            stage.product(stage.endpoint(script), IACT_CLEARANCE_SECONDS="1"),
            server,
            "docs.test:80",
            "docs.test:443",
        )
        (product.data / "policy.toml").write_text(OTHERS, encoding="utf-8")
        answer = product.ask("Look it up", "--intent", "2")
    printed = {agent: "".join(one.body for one in answer.records if one.kind == "result" and one.agent == agent)
               for agent in ("/reader", "/coder")}  # fmt: skip
    assert "other.test" in printed["/reader"]
    assert server.text in printed["/coder"]
    denied = {
        one.agent: one.text("reason")
        for one in answer.records
        if one.kind == "gate" and not one.fields["allow"]
    }
    assert "tool:web.fetch" in denied["/reader"]
    assert "is touched by tool:shell.run." in denied["/coder"]
    made = {one.name for one in answer.workspace.iterdir()}
    assert "sooner" in made, "what nothing from outside has touched is not asked about"
    assert not made & {"late", "later"}
