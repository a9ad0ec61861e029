"""The small model on board on the page: how far it is before it can answer, which answers are its own, and the way to
another model."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from iact.core.ports import JSON
from iact.models.board import BoardState
from iact.models.presets import PRESETS
from iact.models.weights import LARGE
from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime, FakeSession, node

run = SHARED.run

WHY = "Neither model on board fits this machine: less than 1.2 GB of memory or disk are free. Free some, or connect a model."


def line(page: Page) -> Locator:
    """How far the model is, above the dialogue."""
    return page.locator("[data-role=board]")


def test_the_page_says_how_far_the_model_is_and_can_be_used_meanwhile() -> None:
    async def test() -> None:
        runtime, around = FakeRuntime(), FakeAround()
        report = around.board.reporter()
        report(BoardState("downloading", 312_400_000, LARGE.size))
        async with browsing(runtime, around) as scene:
            page = await scene.page()
            await expect(line(page)).to_contain_text("is being downloaded")
            await expect(line(page)).to_contain_text("312 of 1,117 MB")
            await page.reload()
            await expect(line(page)).to_contain_text("312 of 1,117 MB")
            report(BoardState("downloading", 700_000_000, LARGE.size))
            await expect(line(page)).to_contain_text("700 of 1,117 MB")
            await page.locator("[data-role=text]").fill("Hello")
            await page.keyboard.press("Enter")
            await expect(page.locator(".entry.incoming")).to_contain_text("Hello")
            await expect(line(page)).to_contain_text("700 of 1,117 MB")

            german = await scene.page(locale="de-DE")
            await expect(line(german)).to_contain_text("700 von 1.117 MB")
            report(BoardState("loading"))
            await expect(line(page)).to_contain_text("is being loaded")
            await expect(page.get_by_label("Download of the small model")).to_be_hidden()
            report(BoardState("ready"))
            for one in (page, german):
                await expect(line(one)).to_be_hidden()

    run(test)


def test_a_model_that_can_not_come_says_why_and_leads_to_another() -> None:
    async def test() -> None:
        around = FakeAround()
        around.board.reporter()(BoardState("failed", why=WHY))
        async with browsing(FakeRuntime(), around) as scene:
            german = await scene.page(locale="de-DE")
            await expect(line(german)).to_contain_text(
                "Keines der mitgelieferten Modelle passt auf diesen Rechner"
            )
            page = await scene.page()
            await expect(line(page)).to_contain_text(WHY)
            await expect(page.locator(".welcome-model")).to_be_visible()
            await page.get_by_role("button", name="Connect a model").click()
            dialog = page.get_by_role("dialog", name="Settings")
            provider = dialog.get_by_label("Provider")
            await expect(provider).to_be_focused()
            titles = await provider.locator("option").all_inner_texts()
            assert titles[1:] == [one.title for one in PRESETS]
            for one in PRESETS:
                await provider.select_option(one.name)
                await expect(dialog.get_by_label("Server address")).to_have_value(one.url)
                if one.keys:
                    await expect(dialog).to_contain_text(f"A key is made at {one.keys}.")
            await dialog.get_by_label("Model", exact=True).fill("small-but-mine")
            await dialog.get_by_role("button", name="Save").click()
            await expect(dialog.locator("[data-model-role=smart]")).to_contain_text("small-but-mine")
            around.board.clear()
            await expect(line(page)).to_be_hidden()

    run(test)


def written(model: str) -> dict[str, JSON]:
    """The fields of a text that a model wrote."""
    return {
        "model": model, "role": "smart", "context": "0" * 64, "took": [], "seen": {"now": "2026-03-04 05:06 UTC"},
        "usage": {"prompt": 1, "cached": 0, "completion": 1}, "ms": 1, "first_ms": 1, "finish": "stop",
    }  # fmt: skip


SMALL: dict[str, JSON] = {
    "model": LARGE.name, "context": 8192, "prompt": "0" * 64, "static": {"system": "s", "examples": []},
}  # fmt: skip


def mixed_session() -> FakeSession:
    """The small model answered first; then a person connected another."""
    session = FakeSession("s")
    session.append("open", models={"smart": SMALL})
    session.append("say", body="Who are you?")
    session.append("reply", "/", "I am small.", to="user", **written(LARGE.name))
    session.append("say", body="And how many?")
    turn = session.append("turn", "/", "Two.", **written(LARGE.name))
    session.append("reply", "/", "Two.", to="user", of=turn.n)
    session.append(
        "control",
        op="models",
        by="user",
        models={"smart": {"model": "large", "context": 9000, "prompt": "1" * 64}},
    )
    session.append("say", body="And now?")
    session.append("reply", "/", "I am large.", to="user", **written("large"))
    session.show(node("/"))
    return session


def test_each_answer_of_the_small_model_is_marked_and_no_other() -> None:
    async def test() -> None:
        runtime = FakeRuntime()
        session = mixed_session()
        runtime.known[session.id] = session
        async with browsing(runtime, FakeAround()) as scene:
            for width in (1280, 390):
                page = await scene.page(session.id, width=width)
                replies = page.locator(".entry[data-kind=reply]")
                await expect(replies).to_have_count(3)
                await expect(replies.nth(2)).to_contain_text("I am large.")
                marks = [await one.locator(".by-small").count() for one in await replies.all()]
                assert marks == [1, 1, 0]
            german = await scene.page(session.id, locale="de-DE")
            mark = german.locator(".by-small").first
            await expect(mark).to_contain_text(re.compile("kleine mitgelieferte Modell.*irrt oft"))
            await mark.get_by_role("button", name="Ein Modell verbinden").click()
            await expect(
                german.get_by_role("dialog", name="Einstellungen").get_by_label("Anbieter")
            ).to_be_focused()

    run(test)


def test_the_first_answer_of_a_new_session_is_marked() -> None:
    """A page follows a new session before its first record is durable, which says that its model is small."""

    async def test() -> None:
        runtime = FakeRuntime()
        session = FakeSession("s")
        session.show(node("/"))
        runtime.known[session.id] = session
        async with browsing(runtime, FakeAround()) as scene:
            page = await scene.page(session.id)
            session.append("open", models={"smart": SMALL})
            session.append("say", body="Hello")
            session.append("reply", "/", "Hello!", to="user", **written(LARGE.name))
            await expect(page.locator(".entry[data-kind=reply] .by-small")).to_have_count(1)

    run(test)
