"""A step of a plan that is the person's, and a result that they must accept: on the page, by command, for programs."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import until
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_plans import replayed
from tests.acceptance.test_scenes import served
from tests.acceptance.test_ways import ALL, Model

LETTER = """\
goal: Write a letter and have it signed
steps:
  - id: draft
    call: shell.run
    params: {command: "echo Dear all | tee letter.txt"}
    contract: {by: person, judgement: Is the tone right?}
  - {id: sign, by: person, task: Sign letter.txt., after: [draft]}
  - {id: file, call: shell.run, refs: {command: {step: sign, template: "echo 'signed {}' >> letter.txt; cat letter.txt"}}}
"""


def begin(page: Page) -> None:
    """Have a plan written first, put the letter in its place, and start it."""
    page.locator("[data-role=way]").select_option("static")
    page.locator("[data-role=plan-first]").check()
    page.locator("#composer-text").fill("Write the letter.")
    page.keyboard.press("Enter")
    card = page.locator(".plan-card")
    actions = card.locator(".plan-actions button")
    actions.nth(1).click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_role("textbox").fill(LETTER)
    dialog.locator("button.primary").click()
    expect(dialog).to_be_hidden()
    expect(card).to_contain_text("letter.txt")
    actions.nth(0).click()
    expect(card).to_be_hidden()


def test_a_person_accepts_a_result_and_does_a_step_on_the_page(stage: Stage) -> None:
    product = stage.product(stage.endpoint(Model(ALL)))
    with served(product) as server, page_of(server) as page:
        begin(page)
        bar = page.get_by_role("region", name="Approvals")
        expect(bar).to_contain_text("A result waits for your yes")
        expect(bar).to_contain_text("Is the tone right?")
        expect(bar).to_contain_text("Dear all")
        wish = bar.get_by_role("textbox", name="What should be changed")
        wish.fill("Less stiff")
        expect(bar.get_by_role("button", name="Have it changed")).to_be_visible()
        wish.fill("")
        page.locator('[data-path="/plan"] > .node').click()
        page.get_by_role("tab", name="Plan").click()
        expect(page.get_by_role("list", name="Steps")).to_contain_text(
            "It waits until you accept its result."
        )
        bar.get_by_role("button", name="Accept the result").click()

        expect(bar).to_contain_text("A step of the plan is yours")
        expect(bar).to_contain_text("Sign letter.txt.")
        expect(page.get_by_role("list", name="Steps")).to_contain_text("you accepted its result")
        bar.get_by_role("textbox", name="What came of it").fill("on 3 May")
        bar.get_by_role("button", name="It is done").click()
        expect(page.locator(".plan-outcome")).to_have_text("It finished: its goal is reached.")
    (journal,) = product.journals()
    assert (journal.parent / "workspace" / "letter.txt").read_text() == "Dear all\nsigned on 3 May\n"
    replayed(product, journal)


def test_where_nobody_is_there_a_program_is_told_what_was_not_done(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(stage.endpoint(Model(ALL)))
    file = tmp_path / "letter.yaml"
    file.write_text(LETTER, encoding="utf-8")
    for command in ("check", "graph", "explain"):
        assert product.run("plan", command, str(file)).status == 0
    assert "sign is yours" in product.run("plan", "explain", str(file)).stdout

    ran = product.run("plan", "run", str(file), "--json")
    told = json.loads(ran.stdout)
    assert told["verdict"]["reached"] == "partly", "other steps ran, and what was promised is missing"
    assert told["verdict"]["missing"]["draft"] == "What was promised of its result was not checked."
    assert [one["kind"] for one in told["undecided"]] == ["form"]
    assert ran.status == 3
    (journal,) = product.journals()
    until(lambda: read_journal(journal.parent).records[-1].kind == "close", "the end")
    replayed(product, journal)
