"""The browser in its container: a form from its opening to a picture of what came of it, step by step."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.core.modules.client import Completed, ModuleClient, StateChange
from iact.core.modules.manifest import Manifest
from iact.sandbox import DockerHost
from iact.sandbox.docker.host import DockerInstance
from iact.sandbox.images.payload import package_folder
from tests.sandbox.backends import ALL
from tests.sandbox.calling import need_bubblewrap, until
from tests.sandbox.inside import Caller, called, hosting, hosting_on
from tests.sandbox.outside import PUBLIC, echo, internet

BROWSER = package_folder("ext_modules") / "browser"
SERVER = '''
import http.server, urllib.parse
FORM = """<!doctype html><title>Order</title><h1>Order</h1><form method=post action=/order>
<label>Name <input name=name required></label>
<label>Size <select name=size><option>small</option><option>large</option></select></label>
<label><input type=checkbox name=gift> Gift</label><button>Send</button></form>
<a href="/plain">Elsewhere</a>"""
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer("<!doctype html><title>Plain</title><p>Nothing to fill in." if self.path == "/plain" else FORM)
    def do_POST(self):
        given = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        told = " ".join(f"{name}={values[0]}" for name, values in sorted(given.items()))
        self.answer(f"<!doctype html><title>Thanks</title><p>Ordered: {told}</p>")
    def answer(self, page):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
'''
OFFERED = {
    "closed": {"open"},
    "page": {"open", "read", "click", "screenshot", "back", "close"},
    "form": {"open", "read", "click", "screenshot", "back", "close", "fill", "submit"},
}
ARGUMENTS = {"click": {"target": "x"}, "fill": {"target": "x", "value": "y"}}


@pytest.fixture(scope="module")
def browser(loop: asyncio.Runner, host: DockerHost, workspace: Path) -> Iterator[DockerInstance]:
    instance = loop.run(host.start("browser", session="one", workspace=workspace, report=print))
    instance.container.exec_run(["python3", "-c", SERVER], detach=True)
    yield instance
    loop.run(instance.stop())


async def offers(caller: Caller, manifest: Manifest, state: str) -> None:
    """Exactly the functions of `state` are offered: by the manifest, and by what happens to the others."""
    named = {each.name for each in manifest.functions if not each.states or state in each.states}
    assert named == OFFERED[state]
    for function in {each.name for each in manifest.functions} - named:
        assert "NotOffered" in await caller.error(function, **ARGUMENTS.get(function, {}))


def reference(page: str, what: str) -> str:
    """The reference of an element in what `read` gave."""
    found = re.search(rf"{re.escape(what)}.*\[ref=(\w+)\]", page)
    assert found, page
    return found[1]


def test_a_form_step_by_step(loop: asyncio.Runner, browser: DockerInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(browser.target) as client:
            manifest, caller = await client.describe(), Caller(client, "/a")
            await offers(caller, manifest, "closed")

            async def opened() -> bool:
                return isinstance(await caller.outcome("open", {"url": "http://127.0.0.1:8000/"}), Completed)

            await until(opened, seconds=60)  # the server inside comes up beside us
            await offers(caller, manifest, "form")
            page = await caller.text("read")
            assert await caller.text("fill", target=reference(page, 'textbox "Name"'), value="Ada & Co")
            await caller.text("fill", target="Size", value="large")
            await caller.text("fill", target="Gift", value="true")
            sent = await caller.outcome("submit", {})
            assert isinstance(sent, Completed)
            assert "Ordered: gift=on name=Ada & Co size=large" in sent.output
            assert sent.state == StateChange("page", (), "the page is now http://127.0.0.1:8000/order")
            await offers(caller, manifest, "page")
            assert "Ordered: gift=on" in await caller.text("read", form="text")
            shot = await caller.outcome("screenshot", {})
            assert isinstance(shot, Completed)
            assert [(each.name, each.media) for each in shot.artifacts] == [("page.png", "image/png")]
            picture = caller.artifacts[shot.artifact or ""]
            assert picture.startswith(b"\x89PNG\r\n")
            assert int.from_bytes(picture[16:20]) == 1280
            assert "Order" in await caller.text("back")
            await caller.text("click", target="Elsewhere")

            async def elsewhere() -> bool:
                return "Nothing to fill in" in await caller.text("read")

            await until(elsewhere)
            await caller.text("close")
            await offers(caller, manifest, "closed")

    loop.run(scenario())


def test_what_goes_wrong_is_told(loop: asyncio.Runner, browser: DockerInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(browser.target) as client:
            caller = Caller(client, "/b")
            page = "<title>T</title><form><input name=n required><button>Go</button></form>"
            assert "textbox" in await caller.text("open", html=page)
            assert "The field n is not right" in await caller.error("submit")
            assert "Nothing on the page is called 'e999'" in await caller.error("click", target="e999")
            assert "Give either url or html" in await caller.error("open")
            for url in (
                "file:///etc/passwd",
                "file:///workspace/../etc/passwd",
                "javascript:1",
                "chrome://gpu",
                "data:text/html,x",
            ):
                assert "can't be opened" in await caller.error("open", url=url)
            assert "example.com can't be reached from here" in await caller.error(
                "open", url="https://example.com/"
            )

    loop.run(scenario())


def test_agents_have_pages_and_cookies_of_their_own(
    loop: asyncio.Runner, browser: DockerInstance, workspace: Path
) -> None:
    (workspace / "mine.html").write_text("<title>Mine</title><p>local file", encoding="utf-8")

    async def scenario() -> None:
        async with ModuleClient(browser.target) as client:
            one, two = Caller(client, "/one"), Caller(client, "/two")
            await asyncio.gather(one.text("open", html="<p>first"), two.text("open", html="<p>second"))
            assert "first" in await one.text("read", form="text")
            assert "second" in await two.text("read", form="text")
            assert "local file" in await two.text("open", url="file:///workspace/mine.html")
            assert "first" in await one.text("read", form="text")

    loop.run(scenario())


def test_only_what_was_granted_is_reached(loop: asyncio.Runner, tmp_path: Path, workspace: Path) -> None:
    async def scenario() -> None:
        async with internet(echo, {"a.example": [PUBLIC], "evil.example": [PUBLIC]}) as world:
            async with hosting(tmp_path, outside=world.outside) as host:
                instance = await host.start(
                    "browser", session="s", workspace=workspace, report=print, egress=("a.example:443",)
                )
                async with ModuleClient(instance.target) as client:
                    caller = Caller(client)
                    assert "ERR_SSL" in await caller.error(
                        "open", url="https://a.example/"
                    )  # reached: it only echoes
                    away = await caller.error("open", url="https://evil.example/")
                    assert "evil.example can't be reached from here" in away
            assert {line.target for line in world.lines if line.status == 200} == {"a.example:443"}
            assert {line.target for line in world.lines if line.status != 200} == {"evil.example:443"}

    loop.run(scenario())


@pytest.mark.skipif(os.geteuid() != 0, reason="without control groups it can't be bounded and run at once")
def test_it_runs_without_an_engine(loop: asyncio.Runner, tmp_path: Path) -> None:
    """The page is served by the module itself, since nothing else runs in its name spaces."""
    need_bubblewrap()
    shipped, workspace = tmp_path / "shipped", tmp_path / "workspace"
    workspace.mkdir()
    shutil.copytree(BROWSER, shipped / "browser", ignore=shutil.ignore_patterns("__pycache__"))
    with (shipped / "browser" / "module.py").open("a", encoding="utf-8") as source:
        source.write(f"\nimport subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {SERVER!r}])\n")

    async def scenario() -> None:
        async with hosting_on(ALL["bubblewrap"], tmp_path / "data", shipped=shipped) as host:
            instance = await ALL["bubblewrap"].start(host, "browser", session="s", workspace=workspace)
            async with called(instance) as caller:
                page = await caller.text("open", url="http://127.0.0.1:8000/")
                assert 'heading "Order"' in page
                await caller.text("fill", target=reference(page, "textbox"), value="Ada")
                shot = await caller.outcome("screenshot", {})
                assert isinstance(shot, Completed)
                assert caller.artifacts[shot.artifact or ""].startswith(b"\x89PNG")

    loop.run(scenario())
