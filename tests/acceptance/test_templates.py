"""A plan is saved with parameters by a command, and used three times: by a command, by an agent, and on the page."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Ran, until
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_plans import replayed
from tests.acceptance.test_scenes import served
from tests.acceptance.test_ways import ALL, Model
from tests.endpoint import Request

USED = "```PLAN again from=pair first=uno count=2\n```"


class Agent(Model):
    """A model whose agent uses the saved plan that it is asked for."""

    def __call__(self, request: Request) -> str:
        if request.agent and "with my plan pair" in request.last:
            self.asked.append("agent")
            return USED
        return super().__call__(request)


STEPS = """\
steps:
  - {id: first, call: shell.run, params: {command: "printf '%s\\\\n' one | head -n 3"}}
  - {id: second, call: shell.run, params: {command: "echo behind one"}, after: [first]}
"""


def test_a_plan_with_parameters_is_used_by_a_command_by_an_agent_and_on_the_page(stage: Stage) -> None:
    product = stage.product(stage.endpoint(Agent({**ALL, "Plan the steps": STEPS})))
    session = product.ask("Hello.").session
    (journal,) = product.journals()

    def replies() -> int:
        return sum(record.kind == "reply" for record in read_journal(journal.parent).records)

    def command(*arguments: str) -> Ran:
        verb, *rest = arguments
        return product.run("plan", verb, "--session", session, "--agent", "/plan", *rest)

    with served(product) as server:
        before = replies()
        said = product.run("say", "--session", session, "--mode", "static", "Say one.")
        assert said.status == 0, said
        until(lambda: replies() >= before + 2, "the plan's end")

        # It is saved with what may be left open: what is offered, and what is asked for.
        fixed = command("save", "fixed")
        assert "--parameter one=one" in fixed.stderr, fixed
        assert "--parameter number=3" in fixed.stderr
        wrong = command("save", "pair", "--parameter", "first=two")
        assert (wrong.status, "The plan does not have" in wrong.sentence) == (2, True), wrong
        kept = command("save", "pair", "--parameter", "first=one", "--parameter", "count=3")
        assert kept.status == 0, kept

        # An agent.
        before = replies()
        said = product.run("say", "--session", session, "--wait", "Go on with my plan pair.")
        assert said.status == 0, said
        assert replies() == before + 2

        # The page.
        with page_of(server) as page:
            page.goto(page.url.partition("#")[0] + f"#{session}")
            page.keyboard.press("Control+k")
            page.get_by_role("combobox", name="Search commands and agents").fill("pair")
            page.get_by_role("option", name="Run the plan pair after you review it").click()
            form = page.get_by_role("dialog", name="Run the plan pair")
            form.get_by_label("first").fill("eins")
            form.get_by_role("button", name="Show the plan").click()
            expect(form).to_be_hidden()
            pane = page.locator("#inspector-panel")
            expect(pane.get_by_role("list", name="Steps")).to_contain_text("first")
            pane.get_by_role("button", name="Start").click()
            expect(pane.locator(".plan-outcome")).to_have_text("It finished: its goal is reached.")

    results = [record.body for record in read_journal(journal.parent).records if record.kind == "result"]
    printed = [body for body in results if "\n" in body and "behind" not in body]
    assert results[:2] == ["one\n", "behind one\n"]
    assert results[2:4] == ["uno\n", "behind uno\n"]
    assert "eins\n" in printed
    assert "behind eins\n" in results
    replayed(product, journal)

    # A command.
    described = json.loads(product.run("plan", "templates", "pair", "--json").stdout)
    assert [(one["name"], one["kind"], one["was"]) for one in described["parameters"]] == [
        ("first", "text", "one"),
        ("count", "number", 3),
    ]
    ran = product.run("plan", "run", "--from", "pair", "first=un", "count=1", "--json")
    assert json.loads(ran.stdout)["nodes"]["second"]["output"] == "behind un\n", ran
    missing = product.run("plan", "run", "--from", "pair", "count=1")
    assert missing.status == 2
    assert missing.sentence.endswith(
        "The plan template 'pair' needs values for first; write for example first=\"one\"."
    )
