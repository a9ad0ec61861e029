"""The way of working of the next message, chosen in the composer."""

from __future__ import annotations

from playwright.async_api import expect

from tests.web.fake import FakeSession, node
from tests.web.test_page import run, stage


def test_a_way_of_working_is_chosen_and_nothing_of_a_draft_leaves_before_it_is_sent() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello.")
        session.show(node("/", "done"))
        async with stage(session) as scene:
            page = await scene.page("s")
            way = page.get_by_label("Mode")
            field = page.get_by_label("Message to the root agent")
            await expect(way).to_have_value("dialogue")
            await expect(page.get_by_label("Show me the plan first")).to_be_hidden()
            await way.select_option("auto")
            await field.fill("How large is data.csv?")
            await expect(page.locator("[data-role=mode-about]")).to_have_text(
                "Chosen for each message, depending on what it asks for"
            )
            await way.select_option("analyze")
            await page.get_by_label("Show me the plan first").check()
            await field.press("Enter")
            await session.called("say")
            assert session.calls == [("say", "How large is data.csv?", "analyze", "plan first")]

    run(test)


def test_while_the_root_is_at_work_what_is_said_goes_to_what_runs() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello.")
        session.show(node("/", "done"))
        async with stage(session) as scene:
            page = await scene.page("s")
            await page.get_by_label("Mode").select_option("reflect")
            session.show(node("/", "waiting"))
            await expect(page.get_by_label("Mode")).to_be_disabled()
            field = page.get_by_label("Message to the root agent")
            await field.fill("Stop.")
            await field.press("Enter")
            await session.called("say")
            assert session.calls[-1] == ("say", "Stop.")

    run(test)
