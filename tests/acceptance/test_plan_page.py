"""A person views, changes, starts, repairs and stores a plan, in a browser and by commands, with real modules."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Ran, until
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_plans import replayed
from tests.acceptance.test_scenes import served
from tests.acceptance.test_ways import ALL, Model

CHANGED = """\
goal: Say one and two.
steps:
  - {id: one, call: shell.run, params: {command: "echo one"}}
  - {id: two, call: shell.run, params: {command: "cat two.txt"}}
"""
LEFT_OUT = (
    '{"failure": "no such file", "cause": "nobody wrote it", "action": "skip", "confidence": 0.9, '
    '"skip": true, "reason": "The rest stands without it."}'
)


def test_a_plan_is_looked_at_changed_started_mended_and_kept(stage: Stage) -> None:
    model = Model({**ALL, "A step failed": LEFT_OUT})
    product = stage.product(stage.endpoint(model))
    with served(product) as server, page_of(server) as page:
        page.locator("[data-role=way]").select_option("static")
        page.locator("[data-role=plan-first]").check()
        page.locator("#composer-text").fill("Say one and two.")
        page.keyboard.press("Enter")
        expect(page.locator('[data-path="/plan"] > .node')).to_contain_text("It waits for you to start it.")
        page.locator('[data-path="/plan"] > .node').click()
        page.get_by_role("tab", name="Plan").click()
        pane = page.locator("#inspector-panel")
        expect(pane.locator(".plan-outcome")).to_have_text("It waits for you to start it.")
        expect(pane.locator(".plan-facts")).to_contain_text("Run the plan as written")

        pane.get_by_role("button", name="Edit steps").click()
        dialog = page.get_by_role("dialog", name="Edit the plan")
        field = dialog.get_by_role("textbox")
        expect(field).to_have_value(re.compile("echo two"))
        field.fill("steps: [{id: one, call: nobody.knows}]")
        dialog.get_by_role("button", name="Save as a new version").click()
        expect(dialog).to_contain_text("nobody.knows")
        field.fill(CHANGED)
        dialog.get_by_role("button", name="Save as a new version").click()
        expect(dialog).to_be_hidden()
        expect(pane).to_contain_text("Version 2 of 2")

        pane.get_by_role("button", name="Start").click()
        steps = pane.get_by_role("list", name="Steps")
        expect(steps.locator("li").filter(has_text="one").first).to_contain_text("executed")
        again = pane.get_by_role("button", name="Try again step two")
        expect(again).to_be_visible()
        (journal,) = product.journals()
        Path(journal.parent / "workspace" / "two.txt").write_text("two\n", encoding="utf-8")
        again.click()
        expect(pane.locator(".plan-outcome")).to_have_text("It finished: its goal is reached.")

        pane.get_by_role("button", name="Save as a template").click()
        form = page.get_by_role("dialog", name="Save this plan")
        form.get_by_role("textbox", name="Name", exact=True).fill("greeting")
        form.get_by_role("button", name="Save", exact=True).click()
        expect(form).to_be_hidden()
        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill("greeting")
        expect(page.get_by_role("option", name="Run the plan greeting after you review it")).to_be_visible()
    assert (product.data / "plans" / "greeting.yaml").is_file()
    results = [one.body for one in read_journal(journal.parent).records if one.kind == "result"]
    assert results[-1] == "two\n"
    replayed(product, journal)


def test_a_plan_that_waits_is_a_card_in_the_dialogue(stage: Stage) -> None:
    product = stage.product(stage.endpoint(Model(ALL)))
    with served(product) as server, page_of(server) as page:
        page.locator("[data-role=way]").select_option("static")
        page.locator("[data-role=plan-first]").check()
        page.locator("#composer-text").fill("Say one and two.")
        page.keyboard.press("Enter")
        card = page.get_by_role("region", name="A plan that waits for you")
        steps = card.get_by_role("list", name="Steps")
        expect(steps).to_contain_text("command: echo one")
        expect(steps).to_contain_text("command: echo two")

        card.get_by_role("button", name="Change steps").click()
        dialog = page.get_by_role("dialog", name="Edit the plan")
        dialog.get_by_role("textbox").fill(CHANGED.replace("cat two.txt", "echo 2"))
        dialog.get_by_role("button", name="Save as a new version").click()
        expect(dialog).to_be_hidden()
        expect(steps).to_contain_text("command: echo 2")

        card.get_by_role("button", name="Start").click()
        expect(card).to_be_hidden()
        (journal,) = product.journals()
        until(lambda: read_journal(journal.parent).records[-1].kind == "reply", "the end")

        page.locator("#composer-text").fill("Say one and two again.")
        page.keyboard.press("Enter")
        expect(steps).to_contain_text("command: echo two")
        card.get_by_role("button", name="Cancel plan").click()
        expect(card).to_be_hidden()
    results = [one.body for one in read_journal(journal.parent).records if one.kind == "result"]
    assert sorted(results) == ["2\n", "one\n"], "nothing of the cancelled plan ran"


def test_a_plan_is_looked_at_changed_started_mended_and_kept_by_commands(stage: Stage) -> None:
    model = Model({**ALL, "A step failed": LEFT_OUT})
    product = stage.product(stage.endpoint(model))
    session = product.ask("Hello.").session
    with served(product):

        def command(*arguments: str, stdin: str = "") -> Ran:
            verb, *rest = arguments
            return product.run("plan", verb, "--session", session, "--agent", "/plan", *rest, stdin=stdin)

        said = product.run(
            "say", "--session", session, "--mode", "static", "--plan-first", "Say one and two."
        )
        assert said.status == 0, said
        shown = ""
        while "echo two" not in shown:
            shown = command("show").stdout
        refused = command("edit", "-", stdin="steps: [{id: one, call: nobody.knows}]")
        assert refused.status == 2, refused
        assert "nobody.knows" in refused.sentence
        assert command("edit", "-", stdin=CHANGED).status == 0
        assert "cat two.txt" in command("show").stdout
        started = product.agree("plan", "start", "--session", session, "--agent", "/plan")
        assert started.status == 0, started
        (journal,) = product.journals()
        until(lambda: sum(one.kind == "reply" for one in read_journal(journal.parent).records) > 2, "the end")
        (journal.parent / "workspace" / "two.txt").write_text("two\n", encoding="utf-8")
        assert command("retry", "--step", "two").status == 0
        until(lambda: read_journal(journal.parent).records[-1].kind == "reply", "the second end")
        assert command("save", "greeting").stdout.strip() == str(product.data / "plans" / "greeting.yaml")
    assert json.loads(product.run("plan", "templates", "--json").stdout) == ["greeting"]
    ran = product.run("plan", "run", "--from", "greeting", "--json")
    assert json.loads(ran.stdout)["nodes"]["one"]["output"] == "one\n", ran
    missing = product.run("plan", "run", "--from", "greetings")
    assert (missing.status, "there are: greeting" in missing.sentence) == (2, True)
    replayed(product, journal)
