"""docs/tutorial.md is played step by step, with the real product: what it says to write, to press and to see is there.

Step 2 is played by the model on board, the rest by a scripted one.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance import tutorial
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Server
from tests.acceptance.test_browser import keep_screenshot, page_of
from tests.acceptance.test_scenes import served
from tests.endpoint import Endpoint

_ON_BOARD = 540_000
"""Milliseconds for an answer of the model on board, beside other tests."""


def _end(server: Server) -> None:
    """End a server as `Ctrl C` does."""
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(300) == 0


def test_the_first_task_is_done_by_the_model_on_board(stage: Stage) -> None:
    endpoint = stage.endpoint(tutorial.TutorialModel())
    product = stage.product(IACT_EMBEDDED="1.5b")
    product.settings.pop("IACT_MODEL")
    with served(product) as server, page_of(server) as page:
        expect(page.locator(".suggestion")).to_have_count(3)
        expect(page.locator(".examples li")).not_to_have_count(0)
        page.set_default_timeout(_ON_BOARD)
        page.get_by_role("button", name=tutorial.SQUARES).click()
        page.keyboard.press("Enter")
        expect(page.locator(".dialogue .by-small")).to_be_visible(timeout=_ON_BOARD)
        expect(page.locator(".dialogue")).to_contain_text(re.compile(r"\b100\b"))
        tutorial.connect(page, endpoint.url)
        expect(page.locator("[data-role=model]")).to_contain_text("scripted")


@pytest.mark.no_prefix_law("several sessions and a branch ask the same scripted model")
def test_the_rest_is_done_as_it_says(stage: Stage, tmp_path: Path) -> None:
    model = tutorial.TutorialModel()
    with Endpoint(model) as endpoint:
        _play_the_rest(stage, model, endpoint.url, tmp_path)
    endpoint.assert_used()


def _play_the_rest(stage: Stage, model: tutorial.TutorialModel, url: str, folder: Path) -> None:
    product = stage.product(IACT_MEMORY="on")
    product.settings.pop("IACT_MODEL")
    home = folder / "home"
    home.mkdir()

    def picture(page: Page, name: str) -> None:
        keep_screenshot(page, name, folder)

    with served(product) as server, page_of(server) as page:
        tutorial.connect(page, url)
        tutorial.first_task(page)
        expect(page.locator("[data-role=model]")).to_contain_text("scripted")
    [first] = product.journals()

    with tutorial.serving_in_folder(product, home) as server:
        with page_of(server) as page:
            tutorial.in_a_folder(page, model, home / "tutorial", picture)
            tutorial.taken_back(page, first.parent / "workspace")
            tutorial.remembered(page)
        _end(server)

    session = first.parent.name
    for line in tutorial.commands(10):
        ran = product.run(*line.replace("SESSION", session).split()[1:])
        assert ran.status == 0, ran
        assert ran.stdout


def test_a_provider_is_added_on_the_command_line(stage: Stage) -> None:
    endpoint = stage.endpoint({})
    product = stage.product()
    product.settings.pop("IACT_MODEL")
    added, used = [line.split()[1:] for line in tutorial.commands(3) if line.startswith("iact")]
    ran = product.run(*added, "--url", endpoint.url, "--model", "scripted", stdin="a scripted key\n")
    assert (ran.status, ran.stdout) == (0, "openai\n"), ran
    assert product.run(*used).status == 0
    assert "scripted" in product.run("model", "list").stdout
