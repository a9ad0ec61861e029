"""The page's one line to the server, in a browser, with sockets that do what the test says."""

from __future__ import annotations

from typing import Final

from playwright.async_api import expect

from tests.web.browser import SHARED
from tests.web.fake import FakeSession
from tests.web.test_page import stage

FAKE: Final = """
    const sockets = [], timers = [];
    const settle = async () => { for (let i = 0; i < 20; i++) await Promise.resolve(); };
    class FakeSocket {
        static OPEN = 1;
        readyState = 0;
        sent = [];
        constructor() { sockets.push(this); }
        send(what) { this.sent.push(what); }
        close() { this.readyState = 3; }
        opens() { this.readyState = 1; this.onopen(); }
        says(message) { this.onmessage({ data: JSON.stringify(message) }); }
        get asked() { return this.sent.filter((what) => typeof what === "string").map((what) => JSON.parse(what)); }
        get pieces() { return this.sent.filter((what) => typeof what !== "string").length; }
    }
    const { Connection, PIECE } = await import("/static/js/state/connection.js");
    window.WebSocket = FakeSocket;
    window.setTimeout = (run) => timers.push(run);
    window.clearTimeout = (number) => { delete timers[number - 1]; };
    const nothing = () => undefined;
    const connection = new Connection({ hello: () => ["hello", {}], message: nothing, state: nothing, refused: nothing });
    connection.open();
"""


async def outcome(script: str) -> object:
    """What a script makes of a connection with fake sockets."""
    async with stage(FakeSession("s")) as scene:
        page = await scene.page("s")
        await expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")
        result: object = await page.evaluate(f"async () => {{ {FAKE} {script} }}")
        return result


def test_a_page_that_is_looked_at_while_it_asks_whether_it_is_refused_has_one_socket() -> None:
    async def test() -> None:
        script = """
            let answer;
            window.fetch = () => new Promise((done) => { answer = done; });
            sockets[0].onclose();
            dispatchEvent(new Event("online"));
            answer({ status: 200 });
            await settle();
            for (const timer of [...timers]) timer?.();
            return sockets.length;
        """
        assert await outcome(script) == 2

    SHARED.run(test)


def test_only_one_connection_is_looked_after() -> None:
    async def test() -> None:
        script = """
            const looking = new Set();
            let next = 1;
            window.setInterval = () => { looking.add(next); return next++; };
            window.clearInterval = (number) => looking.delete(number);
            sockets[0].opens();
            connection.open();
            sockets[1].opens();
            return looking.size;
        """
        assert await outcome(script) == 1

    SHARED.run(test)
