"""A user shares with the agent what an app offers: only that, once they have said so, and labelled."""

from __future__ import annotations

import re

from playwright.sync_api import expect, sync_playwright

from iact.core.stored.replay import replay
from iact.core.tree.origin import strange
from tests.acceptance.conftest import Stage
from tests.acceptance.product import until
from tests.acceptance.test_browser import SLOW
from tests.acceptance.test_modules import say
from tests.acceptance.test_scenes import served, speak
from tests.sandbox.test_app_module import OFFERS
from tests.web.browser import ARGUMENTS, chromium

SECRET = "hunter2-canary-77"
SERVES = f"I serve it.\n\n```app.serve\n{OFFERS}```"


def test_a_user_shares_what_the_app_offers_and_the_agent_reads_it_then(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {"/": [SERVES, "Open it.", "I know nothing.", "```SHOW from_app\n```", "I have read it."]}
    )
    product = stage.product(endpoint)
    with served(product) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(SLOW)
        spoken = speak(product, server, "Serve it.")
        until(lambda: any(record.kind == "reply" for record in spoken.records()), "the answer")
        (result,) = [record for record in spoken.records() if record.kind == "result"]
        address = re.search(r"http://[0-9a-f]{16}\.localhost:\d+/", result.body)
        assert address is not None

        page.goto(address[0])
        app = page.frame_locator("iframe")
        app.locator("input").fill(SECRET)
        app.locator("button").click()
        expect(app.locator("p")).to_have_text("kept 1")
        say(spoken, server, "What did I type?")
        assert SECRET not in str(endpoint.requests)

        page.get_by_role("link", name="Share with the agent…").click()
        expect(page.locator("pre")).to_have_text(f"Typed: k={SECRET} <b>")
        page.get_by_role("button", name="Share").click()
        expect(page.locator("main")).to_contain_text("It is shared")
        say(spoken, server, "And now?")
        browser.close()

    assert "from_app.txt: file /workspace/from_app.txt and variable $from_app" in str(endpoint.requests[-2])
    assert f"Typed: k={SECRET} <b>" in str(endpoint.requests[-1])
    tree = replay(spoken.folder, verify=True).tree
    assert strange(tree, tree.root.labels) == {"upload"}
    assert not tree.said.holds(SECRET)
