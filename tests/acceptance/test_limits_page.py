"""Limits on the page: a spent budget can be raised in place; cut off, failed, denied and unknown results say so."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import TimeoutError, expect

from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_scenes import served
from tests.endpoint import Endpoint, Reply, Request
from tests.web.test_accessible_page import flaws

LONG = "word " * 1500
SUMMARY = "Task: They asked questions.\nDecided: nothing\nDone: answers\nOpen: nothing\nWhere: nowhere"


def answers(request: Request) -> Reply | str:
    """Short questions get long answers, until the tokens end; a summary is one line."""
    asked = request.last
    if "Cut me" in asked:
        return Reply("It goes on and", finish="length")
    if "Continue exactly" in asked:
        return "on and on."
    if "no such thing" in asked:
        return "There is none, I see." if "There is no function" in asked else "```shell.nope\nthing\n```\n"
    if "There is no function" in asked:
        return "There is none, I see."
    if "ummar" in asked and "Question" not in asked:
        return SUMMARY
    return Reply(f"Answer {request.turn}. {LONG}", completion=1_700_000 if "a dear one" in asked else None)


def test_limits_are_said_and_dealt_with_in_place(stage: Stage) -> None:
    product = stage.product(stage.endpoint(answers))
    (product.data / "iact.toml").write_text("[bounds]\ntokens = 60000\n", encoding="utf-8")
    with served(product) as server, page_of(server) as page:
        field = page.locator("#composer-text")
        bar = page.locator(".budget-bar")
        last = page.locator(".entry.reply").last

        field.fill("Cut me off.")
        page.keyboard.press("Enter")
        expect(last).to_contain_text("cut off at the length limit")
        expect(page.locator("[data-role=agent-state]")).to_have_text("cut off at the length limit")
        last.get_by_role("button", name="Continue").click()
        expect(last).to_contain_text("on and on.")
        field.fill("Do no such thing.")
        page.keyboard.press("Enter")
        expect(last).to_contain_text("There is none, I see.")
        expect(page.locator(".entry .notice.error")).to_contain_text("There is no function shell.nope.")
        expect(bar).to_have_count(0)

        for number in range(20):
            before = page.locator(".entry.reply").count()
            try:
                field.fill(f"Question {number}?", timeout=10_000)
            except TimeoutError:
                break  # the limit is known a moment after the reply, and then the field is gone
            page.keyboard.press("Enter")
            expect(page.locator(".entry.reply")).to_have_count(before + 1)
            if number == 0 or not bar.count() or bar.get_attribute("data-over") != "true":
                continue
            break
        expect(bar).to_contain_text("Token limit reached")
        expect(field).to_be_hidden()
        assert flaws(page) == []
        waiting = page.locator(".entry.reply").filter(has_text="was not answered")
        expect(page.locator(".entry.reply").last).not_to_contain_text("Last answer")
        count = waiting.count()
        # Who works with the keyboard alone is at the first choice now, and then at the field again.
        expect(bar.get_by_role("button", name="Add 60.0k")).to_be_focused()
        page.keyboard.press("Enter")
        expect(field).to_be_visible()
        expect(page.locator(".dialogue")).to_contain_text("You added 60,000 tokens to this session's budget")
        expect(field).to_be_focused()
        if count:
            expect(last).to_contain_text("Answer")
        field.fill("Question, one more?")
        page.keyboard.press("Enter")
        expect(last).to_contain_text("Answer")
        (journal,) = product.journals()
    replay(journal.parent, verify=True)


@pytest.mark.no_prefix_law  # what was compressed begins anew
def test_a_long_session_is_compressed_and_begun_anew_from_a_summary(stage: Stage) -> None:
    """Both are offered once most of the tokens are used; what is begun anew holds the summary, for a person to send."""
    endpoint = Endpoint(answers)  # one of its own: there are two sessions, and one of them begins anew
    with endpoint:
        product = stage.product(endpoint, **NO_MODULES)
        compressed_and_begun_anew(endpoint, product)


def compressed_and_begun_anew(endpoint: Endpoint, product: Product) -> None:
    with served(product) as server, page_of(server) as page:
        field = page.locator("#composer-text")
        bar = page.locator(".budget-bar")
        field.fill("Question, a dear one?")
        page.keyboard.press("Enter")
        expect(bar).to_contain_text("1.7M of 2.0M tokens used")
        expect(field).to_be_visible()
        assert flaws(page) == []
        bar.get_by_role("button", name="Compress").click()
        expect(bar.get_by_role("alert")).to_have_text("There is not enough history to compress yet.")
        # A new session can begin from what was said all the same.
        dear = page.url
        bar.get_by_role("button", name="New session from a summary").click()
        expect(field).to_have_value(
            re.compile(
                r"^From an earlier session.\n\nI said: Question, a dear one\?\n\nYou answered: Answer 0\. word",
                re.DOTALL,
            )
        )
        assert not endpoint.requests[1:]
        page.goto(dear)
        for number in range(4):
            field.fill(f"Question {number}?")
            page.keyboard.press("Enter")
            expect(page.locator(".entry.reply")).to_have_count(number + 2)
        bar.get_by_role("button", name="Compress").click()
        expect(page.locator(".dialogue")).to_contain_text("They asked questions.")
        expect(bar.get_by_role("button", name="Compress")).to_be_enabled()
        assert bar.get_by_role("alert").inner_text() == ""
        before = page.url
        bar.get_by_role("button", name="New session from a summary").click()
        expect(field).to_have_value(re.compile("They asked questions"))
        expect(page.locator(".entry")).to_have_count(0)
        asked = sum("Question" not in one.last for one in endpoint.requests)
        assert asked == 1, "what was compressed just now is not summarized again"
        page.keyboard.press("Enter")
        expect(page.locator(".entry.reply")).to_have_count(1)
        assert page.url != before
    for journal in product.journals():
        replay(journal.parent, verify=True)


def test_a_budget_that_ends_says_what_to_do_on_the_command_line(stage: Stage) -> None:
    product = stage.product(stage.endpoint(answers), **NO_MODULES)
    (product.data / "iact.toml").write_text("[bounds]\ntokens = 60000\n", encoding="utf-8")
    first = product.ask("Question 0?")
    told = ""
    for number in range(1, 20):
        ran = product.run("run", "--session", first.session, f"Question {number}?")
        told += ran.stderr
        if ran.status:
            break
    assert re.search(r"note: [\d,]+ of this session's 60,000 tokens are used; add some with: iact run", told)
    assert "word word" not in ran.stdout or "not answered" not in ran.sentence
    assert f"iact run --session {first.session} --add-tokens 1000000 TASK." in ran.sentence
    again = product.ask("Question, once more?", "--add-tokens", "60000", session=first.session)
    assert again.reply.startswith("Answer")


def test_a_budget_of_money_is_raised_where_it_ended(stage: Stage) -> None:
    product = stage.product(stage.endpoint(answers))
    settings = "price_prompt = 100\nprice_completion = 1000\n[bounds]\nmoney = 10\n"
    (product.data / "iact.toml").write_text(settings, encoding="utf-8")
    with served(product) as server, page_of(server) as page:
        field = page.locator("#composer-text")
        bar = page.locator(".budget-bar")
        for number in range(20):
            field.fill(f"Question {number}?")
            page.keyboard.press("Enter")
            reply = page.locator(".entry.reply").nth(number)
            expect(reply).to_contain_text(re.compile("Answer|could cost"))
            if "could cost" in reply.inner_text():
                break
        expect(page.locator(".entry.reply").last).to_contain_text("This session may cost 10.00")
        expect(page.locator("[data-role=agent-state]")).to_have_text("budget of money reached")
        expect(bar).to_contain_text(re.compile(r"Budget used up: \d\.\d\d of 10.00"))
        bar.get_by_role("button", name="Add 10.00").click()
        expect(page.locator(".dialogue")).to_contain_text("You added 10.00 to this session's budget")
        expect(page.locator(".entry.reply").last).to_contain_text("Answer")
        (journal,) = product.journals()
    replay(journal.parent, verify=True)
    (product.data / "iact.toml").write_text("[bounds]\nmoney = 10\n", encoding="utf-8")
    ran = product.run("run", "Hello.")
    assert ran.status == 2
    assert "needs prices" in ran.stderr
