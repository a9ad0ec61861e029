"""A tool whose container is lost in the middle of a call: its output stays, and the page says what happened."""

from __future__ import annotations

import re

import docker
from playwright.sync_api import expect

from iact.core.stored.replay import replay
from iact.sandbox import owner
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_browser import SLOW, page_of
from tests.acceptance.test_control import shell
from tests.acceptance.test_scenes import served


def lost(product: Product) -> bool:
    """Kill the container in which the script runs, as an engine does that has no memory left; whether there was one."""
    client = docker.from_env()
    try:
        label = f"{owner.OWNER}={owner.data_digest(product.data)}"
        for container in client.containers.list(filters={"label": label}):
            if any("sleep 4325" in row[1] for row in container.top(ps_args="-eo pid,args")["Processes"]):
                container.kill()
                return True
        return False
    finally:
        client.close()


def test_a_tool_that_is_lost_keeps_what_it_printed_and_the_next_call_starts_it_again(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                shell("echo tick 1; echo tick 2; sleep 4325"),
                "It was lost.",
                shell("echo here again; exit 3"),
                "It ended with 3.",
            ]
        }
    )
    product = stage.product(endpoint)
    with served(product) as server, page_of(server) as page:
        field = page.locator("#composer-text")
        field.fill("Count.")
        field.press("Enter")
        expect(page.locator(".drafts")).to_contain_text(re.compile(r"tick 1\s+tick 2"), timeout=SLOW)
        assert lost(product)
        expect(page.locator(".entry.reply")).to_contain_text("It was lost.", timeout=SLOW)
        card = page.locator(".card.action").first
        said = page.locator(".entry .notice").filter(has_text=re.compile("started again at the next"))
        expect(said).to_contain_text(re.compile(r"\bshell\b"))
        expect(said).not_to_contain_text("no longer answers")
        expect(card).to_contain_text(re.compile(r"tick 1\s+tick 2"))
        expect(card.locator(".outcome .badge")).to_have_text("did not finish")

        field.fill("Once more.")
        field.press("Enter")
        again = page.locator(".card.action").nth(1)
        expect(page.locator(".entry.reply").last).to_contain_text("It ended with 3.", timeout=SLOW)
        expect(again).to_contain_text("here again")
        expect(again.locator(".outcome")).to_contain_text("exit 3")
        expect(again.locator(".outcome .badge")).to_have_text("failed")
        # A stranger to the day knows when it was, and how long it took.
        day = page.evaluate("new Intl.DateTimeFormat('en-US', {dateStyle: 'medium'}).format(new Date())")
        for when in page.locator(".entry .when").all():
            assert day in (when.get_attribute("title") or ""), when.get_attribute("title")
    (journal,) = product.journals()
    replay(journal.parent, verify=True)
