"""The page's one line to the server, in a browser, with sockets that do what the test says."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from playwright.async_api import expect

from iact.core.records.record import Record
from iact.web.server import WebServer
from tests.web.browser import SHARED
from tests.web.dialling import dial, run, send, until
from tests.web.fake import FakeRuntime, FakeSession
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


UPLOADING: Final = """
    sockets[0].opens();
    const announced = connection.announce({ name: "a", size: 9 * PIECE });
    sockets[0].says({ type: "ok", id: sockets[0].asked.at(-1).id });
    const line = await announced;
    let lost = "";
    const sending = (async () => {
        for (let n = 1; n <= 9; n++) await connection.sendBytes(new ArrayBuffer(PIECE), line, n * PIECE);
    })().catch((error) => { lost = error.code; });
    await settle();
    const seen = [sockets[0].pieces];
"""


def test_at_most_four_pieces_of_a_file_are_on_their_way() -> None:
    async def test() -> None:
        script = f"""
            {UPLOADING}
            sockets[0].says({{ type: "uploading", arrived: PIECE, taken: 0 }});
            await settle();
            seen.push(sockets[0].pieces);
            sockets[0].says({{ type: "uploading", arrived: 3 * PIECE, taken: 3 * PIECE }});
            await settle();
            seen.push(sockets[0].pieces);
            sockets[0].says({{ type: "uploading", arrived: 9 * PIECE, taken: 9 * PIECE }});
            await sending;
            return [...seen, sockets[0].pieces, lost];
        """
        assert await outcome(script) == [5, 5, 8, 9, ""]

    SHARED.run(test)


def test_a_file_does_not_go_on_on_another_line() -> None:
    async def test() -> None:
        script = f"""
            {UPLOADING}
            sockets[0].onclose();
            connection.open();
            sockets[1].opens();
            await sending;
            return [...seen, sockets[1].pieces, lost];
        """
        assert await outcome(script) == [5, 0, "offline"]

    SHARED.run(test)


def test_a_file_that_the_server_refuses_in_the_middle_is_given_up() -> None:
    async def test() -> None:
        script = f"""
            {UPLOADING}
            const {{ id }} = sockets[0].asked.at(-1);
            sockets[0].says({{ type: "error", id, code: "usage", message: "The archive can't be stored." }});
            await sending;
            return [...seen, lost];
        """
        assert await outcome(script) == [5, "usage"]

    SHARED.run(test)


def test_the_server_tells_that_bytes_arrive_while_they_wait_behind_a_request() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await send(client, type="upload", name="a.txt", size=3, id=2)
            await until(client, type="ok", id=2)
            goes_on = asyncio.Event()

            async def takes_long(path: str) -> Record:
                await goes_on.wait()
                return session.append("notice", level="warning", code="x")

            session.stop_calls = takes_long  # type: ignore[method-assign]
            await send(client, type="calls.stop", path="/", id=3)
            await client.send(b"abc")
            arrived = (await until(client, type="uploading"))[-1]
            assert arrived == {"type": "uploading", "arrived": 3, "taken": 0}
            goes_on.set()
            taken = (await until(client, type="uploading"))[-1]
            assert taken == {"type": "uploading", "arrived": 3, "taken": 3}

    run(test)


# --- long messages

MESSAGE: Final = """
    const { Uploads } = await import("/static/js/composer/uploads.js");
    const asked = [];
    const store = { chosen: 1, past: false, session: { id: before } };
    const line = {
        announce: async () => { meanwhile(store); },
        sendBytes: async () => undefined,
        request: async (type) => { asked.push(type); },
    };
    const uploads = new Uploads(line, () => undefined, store);
    const said = uploads.message("x".repeat(300_000), {}).catch((error) => asked.push(error.message));
    await said;
    return asked;
"""


@pytest.mark.parametrize(
    ("before", "meanwhile", "asked"),
    [
        ('"s"', "", ["say"]),
        ('"s"', "store.session = { id: 't' };", ["You opened another session; the message was not sent."]),
        # A file that was attached before has opened the new session.
        ("null", "store.session = { id: 's' };", ["say"]),
        ("null", "store.chosen = 2;", ["You opened another session; the message was not sent."]),
    ],
    ids=["the same", "another", "new", "another instead of a new one"],
)
def test_a_long_message_goes_to_the_session_that_it_was_written_for(
    before: str, meanwhile: str, asked: list[str]
) -> None:
    async def test() -> None:
        async with stage(FakeSession("s")) as scene:
            page = await scene.page("s")
            script = f"const before = {before}, meanwhile = (store) => {{ {meanwhile} }}; {MESSAGE}"
            assert await page.evaluate(f"async () => {{ {script} }}") == asked

    SHARED.run(test)


def test_a_message_that_is_long_only_as_it_is_sent_goes_like_a_file() -> None:
    """Each of its quotes and line breaks has two bytes on its way."""

    async def test() -> None:
        async with stage(FakeSession("s")) as scene:
            page = await scene.page("s")
            sent = MESSAGE.replace('"x".repeat(300_000)', "'\"\\n'.repeat(70_000)")
            script = f"const before = 's', meanwhile = () => asked.push('a file'); {sent}"
            assert await page.evaluate(f"async () => {{ {script} }}") == ["a file", "say"]

    SHARED.run(test)
