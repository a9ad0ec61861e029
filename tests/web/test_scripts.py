"""The page's scripts as files: loading one changes nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from playwright.async_api import Route

from tests.web.test_page import run, stage

SCRIPTS: Final = Path(__file__).parents[2] / "web" / "static" / "js"
_STARTS: Final = ("main.js", "early.js")
"""The two that act when they are loaded: one starts the page, one runs before it and is no module."""

_WATCH: Final = """
globalThis.acts = [];
for (const [owner, name] of [[EventTarget.prototype, "addEventListener"], [globalThis, "fetch"], [globalThis, "setTimeout"],
    [globalThis, "setInterval"], [globalThis, "requestAnimationFrame"], [Storage.prototype, "setItem"], [history, "pushState"]]) {
  const real = owner[name];
  owner[name] = function (...given) { acts.push(name); return real.apply(this, given); };
}
globalThis.WebSocket = class { constructor() { acts.push("WebSocket"); } };
if (globalThis.trustedTypes) trustedTypes.createPolicy = name => { acts.push(`policy ${name}`); };
"""
_LOAD: Final = """async paths => {
  const seen = new MutationObserver(() => {});
  seen.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  acts.length = 0;
  const found = {};
  for (const path of paths) {
    await import(path);
    const all = [...acts.splice(0), ...seen.takeRecords().map(one => `changes ${one.target.nodeName}`)];
    if (all.length) found[path] = all;
  }
  return found;
}"""


async def _nothing(route: Route) -> None:
    await route.fulfill(body="", content_type="text/javascript")


def test_loading_a_script_does_nothing_until_the_page_is_started() -> None:
    async def test() -> None:
        paths = sorted(
            f"/static/js/{file.relative_to(SCRIPTS).as_posix()}"
            for file in SCRIPTS.rglob("*.js")
            if file.name not in _STARTS
        )
        assert len(paths) > 50
        async with stage() as scene:
            context = await scene.browser.new_context()
            await context.request.get(scene.server.url)
            page = await context.new_page()
            await page.add_init_script(_WATCH)
            await page.route(re.compile(r"/static/js/main\.js\?v="), _nothing)
            await page.goto(f"http://127.0.0.1:{scene.server.port}/")
            assert await page.evaluate(_LOAD, paths) == {}
            # The same watch sees what the start of the page does.
            await page.evaluate("import('/static/js/main.js?again')")
            assert "WebSocket" in await page.evaluate("acts")

    run(test)
