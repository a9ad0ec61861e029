"""Debian's Firefox for tests, driven over WebDriver BiDi, which it speaks by itself (w3c.github.io/webdriver-bidi).

Playwright drives only a Firefox that it has changed. What is needed here is little: go to an address, ask the page, type
and click as a person does, and hear of errors.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect

PATIENCE: Final = 300.0
_PREFERENCES: Final = """\
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.disabledForTesting", true);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("extensions.update.enabled", false);
user_pref("ui.prefersReducedMotion", 1);
user_pref("remote.active-protocols", 1);
"""
KEYS: Final = {
    "Enter": "\ue007",
    "Tab": "\ue004",
    "Escape": "\ue00c",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}


def firefox() -> str:
    """The browser's path. Its absence is an error, not a reason to skip: `make setup` installs it."""
    found = shutil.which("firefox-esr") or shutil.which("firefox")
    assert found, "There is no Firefox; install it with: apt-get install firefox-esr"
    return found


class Firefox:
    """One window. `errors`: what scripts threw, and errors and warnings that the page logged."""

    def __init__(self, line: ClientConnection) -> None:
        self.errors: list[str] = []
        self._line = line
        self._context = ""
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0

    async def listen(self) -> None:
        """Take what comes, until the browser is gone."""
        async for frame in self._line:
            message = json.loads(frame)
            if message["type"] == "event":
                if message["method"] == "log.entryAdded" and message["params"]["level"] in ("error", "warn"):
                    self.errors.append(str(message["params"]["text"]))
                continue
            waiting = self._waiting.pop(message.get("id", 0), None)
            if waiting is not None:
                waiting.set_result(message)

    async def command(self, method: str, **parameters: object) -> Any:
        """Have it do something; gives the result."""
        self._number += 1
        answered = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._line.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        message = await asyncio.wait_for(answered, PATIENCE)
        assert message["type"] == "success", message
        return message["result"]

    async def begin(self) -> None:
        """Get ready."""
        await self.command("session.new", capabilities={})
        await self.command("session.subscribe", events=["log.entryAdded"])
        tree = await self.command("browsingContext.getTree")
        self._context = tree["contexts"][0]["context"]

    async def size(self, width: int, height: int) -> None:
        """The window is so large."""
        viewport = {"width": width, "height": height}
        await self.command("browsingContext.setViewport", context=self._context, viewport=viewport)

    async def go(self, url: str) -> None:
        """Load an address."""
        await self.command("browsingContext.navigate", context=self._context, url=url, wait="complete")

    async def ask(self, expression: str) -> Any:
        """What an expression gives in the page, as JSON."""
        told = await self.command(
            "script.evaluate", expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self._context}, awaitPromise=True,
        )  # fmt: skip
        assert told["type"] == "success", told
        text = told["result"].get("value")
        return None if text is None else json.loads(text)

    async def until(self, condition: str) -> None:
        """Wait until an expression is true in the page, looking at every frame."""
        reached = await self.ask(
            f"new Promise((done) => {{ const end = performance.now() + {PATIENCE * 1000}; const look = () => "
            f"({condition}) ? done(true) : performance.now() > end ? done(false) : requestAnimationFrame(look); look(); }})"
        )
        assert reached, f"waited in vain for: {condition}"

    async def keys(self, *keys: str) -> None:
        """Press keys: text is typed letter by letter, names of keys (Enter, Tab) are pressed as such."""
        strokes: list[dict[str, str]] = []
        for key in keys:
            for letter in [KEYS[key]] if key in KEYS else key:
                strokes += [{"type": "keyDown", "value": letter}, {"type": "keyUp", "value": letter}]
        actions = [{"type": "key", "id": "keyboard", "actions": strokes}]
        await self.command("input.performActions", context=self._context, actions=actions)

    async def click(self, selector: str) -> None:
        """Click the middle of what a selector finds first."""
        await self.until(f"document.querySelector({json.dumps(selector)})?.getClientRects().length")
        x, y = await self.ask(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); found.scrollIntoView({{block: 'center'}}); "
            "const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2].map(Math.round); })()"
        )
        moves: list[dict[str, object]] = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        actions = [{"type": "pointer", "id": "mouse", "actions": moves}]
        await self.command("input.performActions", context=self._context, actions=actions)


@asynccontextmanager
async def opened(folder: Path, languages: str = "") -> AsyncIterator[Firefox]:
    """A Firefox with a profile of its own in `folder`, which ends with this. `languages`: what its user reads."""
    profile = folder / "firefox"
    profile.mkdir()
    reads = f'user_pref("intl.accept_languages", "{languages}");\n' if languages else ""
    (profile / "user.js").write_text(_PREFERENCES + reads, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        firefox(), "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(profile),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "MOZ_DISABLE_CONTENT_SANDBOX": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while (found := re.search(rb"listening on (ws://\S+)", await process.stderr.readline())) is None:
                assert process.returncode is None, "Firefox ended"
        async with (
            connect(f"{found[1].decode()}/session", max_size=None, proxy=None) as line,
            asyncio.TaskGroup() as tasks,
        ):
            browser = Firefox(line)
            listening = tasks.create_task(browser.listen())
            await browser.begin()
            yield browser
            listening.cancel()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
