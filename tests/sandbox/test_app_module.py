"""Ephemeral apps: what is typed into one lives in its process, is seen nowhere else, and ends with it."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

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
                program = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")[2:3]
                open(f"/proc/{pid}/{name}", "rb").close()
                if program and program[0].endswith(b"runner.py") and int(pid) != os.getpid():
                    seen.append(f"{pid}/{name}")
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


@pytest.fixture(scope="module")
def app_module(loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend) -> AnyInstance:
    return loop.run(backend.start(host, "app", session="one", workspace=workspace))


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
            caller, other = Caller(client, "/a"), Caller(client, "/b")
            app = await served(caller, FORM)
            assert await asyncio.to_thread(ask, app_module, app, "GET") == (200, "kept 0")
            assert await asyncio.to_thread(ask, app_module, app, "POST", "/", SECRET) == (200, "kept 1")
            assert (await asyncio.to_thread(ask, app_module, app, "POST", "/fail", SECRET))[0] == 500
            spy = await served(other, SPY)
            assert await asyncio.to_thread(ask, app_module, spy, "GET") == (200, "[]")
            told = await caller.text("stop")
            assert SECRET not in await printed(app_module) + told
            assert app_module.open_app(app) is None
            assert "NotOffered" in await caller.error("stop")
            again = await served(caller, FORM)
            assert await asyncio.to_thread(ask, app_module, again, "GET") == (200, "kept 0")
            for each in (caller, other):
                await each.text("stop")

    loop.run(scenario())


async def browse(url: str, host: str | None = None, sent: str = "") -> tuple[str, dict[str, str], str]:
    """A request as a browser makes it: status line, headers, body."""
    name, port = url.removeprefix("http://").rstrip("/").split(":")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    head = f"{'POST' if sent else 'GET'} / HTTP/1.1\r\nHost: {host or f'{name}:{port}'}\r\nContent-Length: {len(sent)}"
    writer.write(f"{head}\r\nConnection: keep-alive\r\n\r\n{sent}".encode())
    async with asyncio.timeout(300):
        answer = (await reader.read()).decode()
    writer.close()
    top, _, body = answer.partition("\r\n\r\n")
    status, *lines = top.split("\r\n")
    return status, {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}, body


def test_the_user_opens_an_app_at_an_origin_of_its_own(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            caller = Caller(client, "/user")
            outcome = await caller.outcome("serve", {"source": FORM})
            assert isinstance(outcome, Completed)
            url, app = str(outcome.data["url"]), str(outcome.data["app"])
            assert re.fullmatch(rf"http://{app}\.localhost:\d+/", url)
            status, headers, body = await browse(url)
            assert (status.split()[1], body) == ("200", "kept 0")
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"
            assert (await browse(url, sent=SECRET))[2] == "kept 1"
            port = url.rstrip("/").rpartition(":")[2]
            for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"{'0' * 16}.localhost:{port}", f"{app}.localhost:1",
                         f"{app}.localhost.evil.example:{port}", f"evil-{app}.localhost:{port}"):  # fmt: skip
                assert (await browse(url, host))[0].split()[1] == "404", host
            await caller.text("stop")
            assert (await browse(url))[0].split()[1] == "404"

    loop.run(scenario())


def test_a_real_browser_opens_it_and_types(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    page_of_the_app = FORM.replace("text/plain", "text/html").replace(
        'f"kept {len(kept)}"',
        'f"<p>kept {len(kept)}</p><form method=post><input type=password name=k><button>Keep</button></form>"',
    )

    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client, async_playwright() as playwright:
            caller = Caller(client, "/real")
            outcome = await caller.outcome("serve", {"source": page_of_the_app})
            assert isinstance(outcome, Completed)
            browser = await playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = await browser.new_page()
            await page.goto(str(outcome.data["url"]), timeout=PATIENCE)
            await page.fill("input", SECRET, timeout=PATIENCE)
            await page.click("button", timeout=PATIENCE)
            await expect(page.locator("p")).to_have_text("kept 1", timeout=PATIENCE)
            await browser.close()
            await caller.text("stop")

    loop.run(scenario())


def test_an_app_that_can_not_serve_says_why(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            caller = Caller(client, "/c")
            assert "must define a WSGI application" in await caller.error("serve", source="x = 1")
            assert "ZeroDivisionError" in await caller.error("serve", source="1 / 0")
            assert "NotOffered" in await caller.error("stop")

    loop.run(scenario())


def test_apps_are_bounded_and_end_by_themselves(loop: asyncio.Runner, app_module: AnyInstance) -> None:
    dying = FORM + "\nimport os, threading\nthreading.Timer(0.2, os._exit, [0]).start()\n"

    async def scenario() -> None:
        async with ModuleClient(app_module.target) as client:
            callers = [Caller(client, f"/many/{number}") for number in range(5)]
            for caller in callers[:4]:
                await served(caller, FORM)
            assert "no more can be at once" in await callers[4].error("serve", source=FORM)
            for caller in callers[:4]:
                await caller.text("stop")
            app = await served(callers[4], dying)
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
