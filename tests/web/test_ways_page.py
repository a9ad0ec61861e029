"""The way of working of the next message, chosen in the composer."""

from __future__ import annotations

from playwright.async_api import expect

from tests.web.fake import FakeSession, node
from tests.web.test_page import run, stage


def test_a_way_of_working_is_chosen_and_auto_says_before_sending_what_it_would_choose() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello.")
        session.show(node("/", "done"))
        async with stage(session) as scene:
            page = await scene.page("s")
            way = page.get_by_label("Way of working")
            field = page.get_by_label("Message to the root agent")
            await expect(way).to_have_value("dialogue")
            await expect(page.get_by_label("Plan first")).to_be_hidden()
            await way.select_option("auto")
            await field.fill("How large is data.csv?")
            await expect(page.locator("[data-role=foreseen]")).to_have_text(
                "Auto would choose dialogue. It is one action."
            )
            await way.select_option("analyze")
            await page.get_by_label("Plan first").check()
            await field.press("Enter")
            await session.called("say")
            assert session.calls[-1] == ("say", "How large is data.csv?", "analyze", "plan first")

    run(test)


def test_while_the_root_is_at_work_what_is_said_goes_to_what_runs() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello.")
        session.show(node("/", "done"))
        async with stage(session) as scene:
            page = await scene.page("s")
            await page.get_by_label("Way of working").select_option("reflect")
            session.show(node("/", "waiting"))
            await expect(page.get_by_label("Way of working")).to_be_disabled()
            field = page.get_by_label("Message to the root agent")
            await field.fill("Stop.")
            await field.press("Enter")
            await session.called("say")
            assert session.calls[-1] == ("say", "Stop.")

    run(test)
