"""The page shows current activity with a clock: retries, rate limits, thinking, writing, waiting for children."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_scenes import served
from tests.endpoint import Gate, HttpError, Reply

CALLS = "```CALL_ASYNC left\nLook left.\n```\n\n```CALL_ASYNC right\nLook right.\n```\n\n```WAIT\n```\n"


def test_what_goes_on_is_said_with_its_clock(stage: Stage) -> None:
    thinks, writes, left, right = Gate(), Gate(), Gate(), Gate()
    endpoint = stage.endpoint(
        {
            "/": [
                Reply(error=HttpError(429, "slow down", {"retry-after": "50"})),
                Reply(
                    "Here it is. " * 20, reasoning="First I count the words.", gates={0: thinks, 80: writes}
                ),
                CALLS,
                "Both looked.",
            ],
            "/left": [Reply("Nothing there.", gates={4: left})],
            "/right": [Reply("A wall.", gates={4: right})],
        }
    )
    with served(stage.product(endpoint, **NO_MODULES)) as server, page_of(server) as page:
        line = page.locator(".live-line")
        field = page.get_by_label("Message to the root agent")
        root = page.locator('[data-path="/"] > .node .node-doing')

        field.fill("Go.")
        page.keyboard.press("Enter")
        expect(line).to_contain_text(re.compile(r"Rate limited, attempt 2 of 10, next in (4[0-9]|50) s"))
        expect(line).to_contain_text("answers HTTP 429: slow down")
        expect(root).to_have_text(re.compile("^Rate limited, attempt 2 of 10, next in"))
        page.reload()  # whoever comes later is told, too
        expect(line).to_contain_text(re.compile(r"Rate limited, attempt 2 of 10, next in [1-4]?[0-9] s"))
        line.get_by_role("button", name="Stop").click()
        expect(line).to_be_hidden()

        field.fill("Go on.")
        page.keyboard.press("Enter")
        assert thinks.wait()
        expect(line).to_have_text(re.compile(r"^Model thinking · 0:0[1-9]"))
        thought = page.locator(".entry.draft details.thinking")
        expect(thought.locator("pre")).to_be_hidden()
        thought.locator("summary").click()
        expect(thought.locator("pre")).to_have_text("First I count the words.")
        thinks.release()
        assert writes.wait()
        expect(line).to_have_text(re.compile(r"^Model writing · 0:[01][0-9] · \d+ tokens/s"))
        expect(root).to_have_text(re.compile("^Model writing"))
        writes.release()
        expect(line).to_be_hidden()
        kept = page.locator(".entry.reply details").filter(has_text="Thinking")
        kept.locator("summary").click()
        expect(kept).to_contain_text("First I count the words.")

        field.fill("Look both ways.")
        page.keyboard.press("Enter")
        assert left.wait()
        assert right.wait()
        expect(line).to_have_text(re.compile(r"^Waiting for left, right \(2 of 2\) · longest 0:\d\d"))
        left.release()
        expect(line).to_have_text(re.compile(r"^Waiting for right \(1 of 2\) · 0:\d\d"))
        right.release()
        expect(page.locator(".entry.reply").last).to_contain_text("Both looked.")
        expect(line).to_be_hidden()
        assert "First I count" not in str([request.messages for request in endpoint.requests])
