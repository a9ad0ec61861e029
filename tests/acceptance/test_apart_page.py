"""Two users on one server, each with their own browser. One user's data never reaches the other, in any list, search,
recall, count, error, download or waiting question, and neither can answer for the other. The same is tested again after
the server was killed. Each test first checks that the owner does see the data; otherwise it would prove nothing.

The rights for each message are tested in `tests/web/test_rights.py` and `test_rights_served.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Page, expect
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.conftest import Stage
from tests.acceptance.members import bearer, token_of
from tests.acceptance.product import Product, Server, kill
from tests.acceptance.test_clearance import asking
from tests.acceptance.test_people_page import (
    browsing,
    more,
    open_session,
    person,
    say,
    signed_in,
    with_people,
)
from tests.acceptance.test_scenes import served
from tests.endpoint import Endpoint, Request
from tests.web.browser import Wrongs

SECRET: Final = "plover77"
WISH: Final = f"Please always use the code {SECRET} for the launch of the rocket."
MISSING: Final = "20260101-000000-0badf00d"

TASK: Final = re.compile(r"Do this: (recall|make \S+)")

ASK: Final = """([messages]) => new Promise((done, failed) => {
    const socket = new WebSocket(`ws://${location.host}/ws`), told = [];
    const next = () => told.length < messages.length
        ? socket.send(JSON.stringify({ ...messages[told.length], id: 1 + told.length })) : (socket.close(), done(told));
    socket.onopen = next;
    socket.onerror = () => failed(new Error("no connection"));
    socket.onmessage = ({ data }) => {
        const frame = JSON.parse(data);
        if (frame.id !== 1 + told.length || !["ok", "error"].includes(frame.type)) return;
        told.push(frame);
        next();
    };
})"""
"""A script in somebody's own page, with their cookie, that sends what no button sends."""


def asked(page: Page, *messages: Mapping[str, object]) -> list[dict[str, Any]]:
    """What is said to each of these messages on a connection of its own."""
    found: list[dict[str, Any]] = page.evaluate(ASK, [list(messages)])
    return found


def answers(request: Request) -> str:
    """Whatever somebody has done is done once, and then told; what it brings may quote what was said before."""
    said = [
        (n, found[1]) for n, (_, content) in enumerate(request.messages) if (found := TASK.search(content))
    ]
    if not said:
        return "Noted."
    task = said[-1][1]
    began = next(n for n, one in said if one == task)
    if any(role == "assistant" for role, _ in request.messages[began:]):
        return "That is all."
    if task == "recall":
        return "I look.\n\n```RECALL code for the launch of the rocket\n```"
    return f"I make it.\n\n```shell.run\ntouch {task.removeprefix('make ')}\n```"


def of(endpoint: Endpoint, text: str) -> str:
    """All that was sent to a model in the session of whoever said this."""
    sent = ["\n".join(content for _, content in one.messages) for one in endpoint.requests]
    return "\n".join(one for one in sent if text in one)


def remembered(page: Page, query: str) -> str:
    """What the dialog of memories says to a search."""
    more(page, "memories-open")
    dialog = page.get_by_role("dialog", name="Memory")
    dialog.get_by_role("searchbox").fill(query)
    page.keyboard.press("Enter")
    news = dialog.get_by_role("status")
    expect(news).not_to_have_text("Searching …")
    found = dialog.inner_text()
    dialog.get_by_role("button", name="Close").click()
    return found


def searched(page: Page, query: str) -> str:
    """What the column of sessions shows for a search in all of them, once it has read all."""
    if not page.locator("#side-sessions").is_visible():
        page.locator("[data-role=sessions]").click()
    page.locator("[data-role=sessions-search]").fill(query)
    column = page.locator("[data-role=sessions-list]")
    expect(column.locator(".hit, .empty").first).to_be_visible()
    expect(column.get_by_text("still loading")).to_be_hidden()
    found = column.inner_text()
    page.locator("[data-role=sessions-search]").fill("")
    expect(column.locator(".hit, .empty")).to_have_count(0)
    return found


def nothing_of_it(page: Page, server: Server, session: str, call: int) -> None:
    """Of a session of somebody else's that is full of the word, nothing comes up here."""
    expect(page.locator("[data-role=waiting-count]")).to_be_hidden()
    expect(page.locator("[data-role=waiting-bar]")).to_be_hidden()
    expect(page.locator("[data-role=approvals]")).to_be_hidden()
    assert "No session matches." in searched(page, SECRET)
    assert SECRET not in remembered(page, "code for the launch of the rocket")
    assert SECRET not in remembered(page, "")
    assert session not in page.content()
    more(page, "account-open")
    account = page.locator("[data-role=account-dialog]")
    expect(account).to_contain_text("No sessions are shared with you.")
    assert "ada" not in account.inner_text()
    page.get_by_role("button", name="Close").click()

    # By guessing, in messages that no button sends: as what does not exist, and nothing of it is done.
    tries: list[dict[str, object]] = [
        {"type": "hello", "session": session}, {"type": "open", "journal": session},
        {"type": "session.archive", "session": session}, {"type": "session.delete", "sessions": [session]},
        {"type": "session.rename", "session": session, "title": "mine"},
    ]  # fmt: skip
    for one in tries:
        (told,), (of_none,) = (
            asked(page, json.loads(json.dumps(one).replace(session, name))) for name in (session, MISSING)
        )
        assert json.dumps(told).replace(session, "S") == json.dumps(of_none).replace(MISSING, "S"), one
    heard = asked(
        page,
        {"type": "hello", "session": None},
        {"type": "sessions"},
        {"type": "clear", "call": call, "allow": True, "digest": "0" * 16},
    )
    assert heard[2]["type"] == "error"
    assert SECRET not in json.dumps(heard)
    open_session(page, server, session)
    expect(page.get_by_text("There is no session").first).to_be_visible()
    assert SECRET not in page.content()
    page.goto(f"http://127.0.0.1:{server.port}/")


@pytest.mark.no_prefix_law("two people talk to one model, and nothing orders what they say")
def test_nothing_of_anothers_comes_up_and_nobody_answers_for_another(stage: Stage) -> None:
    with Endpoint(answers) as endpoint:
        product = asking(stage.product(endpoint, IACT_MEMORY="on", IACT_MEMORY_BUDGET="30"))
        with_people(product, "ada", "bob")
        _apart(product, endpoint)


def figures(server: Server, token: str) -> dict[str, float]:
    """What a scraper reads of the whole server, over all users, where there are no labels."""
    address = f"http://127.0.0.1:{server.port}/metrics"
    answer = httpx.get(address, headers=bearer(token), timeout=300, trust_env=False)
    assert answer.status_code == 200, answer
    assert not any(name in answer.text for name in ("ada", "bob", SECRET))
    found = [one for family in text_string_to_metric_families(answer.text) for one in family.samples]
    return {one.name: one.value for one in found if not one.labels}


def _apart(product: Product, endpoint: Endpoint) -> None:
    wrongs = Wrongs("")
    scraper = token_of(product, "ada", "admin")
    with browsing() as browser:
        with served(product) as server:
            wrongs.origin = f"http://127.0.0.1:{server.port}"
            ada = signed_in(person(browser, wrongs), server, "ada")
            bob = signed_in(person(browser, wrongs), server, "bob")
            say(ada, WISH)
            expect(ada.locator(".entry.reply")).to_contain_text("Noted.")
            session = str(ada.evaluate("location.hash.slice(1).split(/[?&/]/)[0]"))
            say(bob, "Are you there?")
            expect(bob.locator(".entry.reply")).to_contain_text("Noted.")
            (hers,) = (product.data / "users").glob(f"*/sessions/{session}")

            # What waits for her leave waits for hers alone.
            say(ada, f"Do this: make {SECRET}.txt")
            asks = ada.locator("[data-role=approvals]")
            expect(asks).to_contain_text(f"touch {SECRET}.txt")
            call = _asked_in(hers.joinpath("journal.md").read_text())
            assert "waits for you" in searched(ada, SECRET)
            waiting = figures(server, scraper)
            assert (waiting["iact_questions_waiting"], waiting["iact_sessions_at_work"]) == (1, 1)
            assert waiting["iact_sessions_open"] >= 2
            assert waiting["iact_connections"] >= 2
            nothing_of_it(bob, server, session, call)
            assert not (hers / "workspace" / f"{SECRET}.txt").exists()
            expect(asks).to_contain_text(f"touch {SECRET}.txt")
            ada.get_by_role("button", name="Approve", exact=True).click()
            expect(asks).to_be_hidden()
            expect(ada.locator(".entry.reply").last).to_contain_text("That is all.")
            assert (hers / "workspace" / f"{SECRET}.txt").exists()
            after = figures(server, scraper)
            assert after["iact_questions_waiting"] == after["iact_sessions_at_work"] == 0
            assert after["iact_modules_running"] >= 1

            # His own call is asked of him, not of her; and her leave was none for him.
            say(bob, "Do this: make other.txt")
            expect(bob.locator("[data-role=approvals]")).to_contain_text("touch other.txt")
            expect(asks).to_be_hidden()
            bob.get_by_role("button", name="Deny", exact=True).click()
            expect(bob.locator(".entry.reply").last).to_contain_text("That is all.")
            assert not [*(product.data / "users").glob("*/sessions/*/workspace/other.txt")]

            # What she lays ready to be downloaded, nobody else fetches, who knows its address or not.
            greeted = {"type": "hello", "session": session}
            for message in ({"type": "file.download", "path": f"{SECRET}.txt"}, {"type": "export"}):
                href = asked(ada, greeted, message)[1]["href"]
                path = f"http://127.0.0.1:{server.port}{href}"
                assert bob.context.request.get(path).status == 404
                assert bob.context.request.get(path.replace("/download/", "/download/0")).status == 404
                assert ada.context.request.get(path).status == 200

            _recalls(ada, bob, server, endpoint)
            for context in browser.contexts:
                context.close()
            kill(server.process)

        with served(product) as server:
            wrongs.origin = f"http://127.0.0.1:{server.port}"
            ada = signed_in(person(browser, wrongs), server, "ada")
            bob = signed_in(person(browser, wrongs), server, "bob")
            assert SECRET in searched(ada, SECRET)
            assert SECRET in remembered(ada, "code for the launch of the rocket")
            nothing_of_it(bob, server, session, call)
            for context in browser.contexts:
                context.close()
    wrongs.forgive("401", "404")
    wrongs.forgive_lost_line()
    assert wrongs.found == []


def _recalls(ada: Page, bob: Page, server: Server, endpoint: Endpoint) -> None:
    """Her agents recall in another session what she said; his don't, though he asks for the same in the same words."""
    assert SECRET in remembered(ada, "code for the launch of the rocket")
    for page, name in ((ada, "ada"), (bob, "bob")):
        page.goto("about:blank")
        page.goto(f"http://127.0.0.1:{server.port}/")
        say(page, f"I am {name}. Do this: recall")
        expect(page.locator(".entry.reply")).to_contain_text("That is all.")
    assert SECRET in of(endpoint, "I am ada.")
    assert "I am bob." in of(endpoint, "I am bob.")
    assert SECRET not in of(endpoint, "I am bob.")


def _asked_in(journal: str) -> int:
    """The number of the question that waits in a session."""
    lines = [
        json.loads(line[len("<!-- iact ") : -len(" -->")])
        for line in journal.splitlines()
        if line.startswith("<!-- iact {")
    ]
    (found,) = (one["n"] for one in lines if one.get("kind") == "clearance" and one.get("op") == "ask")
    return int(found)
