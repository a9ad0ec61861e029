"""What a person finds after a reply that is no answer, and that a plan's report is read once."""

from __future__ import annotations

from playwright.async_api import expect

from iact.core.ports import JSON
from tests.web.fake import FakeSession, node
from tests.web.test_accessible_page import check
from tests.web.test_model_page import written
from tests.web.test_page import run, stage

LIMIT = "The bound of 2 turns for one task was reached.\n\nLast answer before the limit:\n\nHalf of it."


def limited() -> FakeSession:
    """A session whose root was ended by the bound of its turns, after two of its own and one of a child."""
    session = FakeSession("s")
    session.append("say", body="Count all of it.")
    for agent, prompt in (("/", 9_000), ("/child", 4_000), ("/", 11_000)):
        usage: dict[str, JSON] = {"prompt": prompt, "cached": 0, "completion": 500}
        session.append("turn", agent, "Counting.", usage=usage, model="large")
    session.append("reply", body=LIMIT, to="user", status="bound", bound="turns")
    session.show(node("/", "done"))
    return session


def test_work_goes_on_where_a_limit_ended_it_and_what_it_took_is_said() -> None:
    async def test() -> None:
        session = limited()
        async with stage(session) as scene:
            for width in (1280, 390):
                page = await scene.page("s", width=width)
                after = page.locator(".after-reply")
                await expect(after).to_contain_text("So far it took 3 model replies, 25.5k tokens")
                await expect(after).to_contain_text("going on may take as much again.")
                await check(page, f"after a limit, {width} wide")
            german = await scene.page("s", locale="de-DE")
            await expect(german.locator(".after-reply")).to_contain_text("Bisher brauchte es 3 Antworten")

            button = after.get_by_role("button", name="Continue")
            await button.focus()
            await page.keyboard.press("Enter")
            await session.called("say")
            assert session.calls[-1] == ("say", "Continue where you stopped.")
            # What was offered once is not offered beside what followed.
            await expect(after).to_be_hidden()

    run(test)


def test_a_limit_that_needs_more_tokens_first_offers_no_continue() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Count all of it.")
        session.append("reply", body="The budget is used up.", to="user", status="bound", bound="tokens")
        session.show(node("/", "done"))
        async with stage(session) as scene:
            page = await scene.page("s")
            await expect(page.locator(".entry.reply")).to_contain_text("Token limit reached")
            await expect(page.locator(".after-reply")).to_have_count(0)

    run(test)


def test_a_model_that_failed_leads_to_its_settings() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello.")
        session.append(
            "reply",
            body="No model is configured for the role 'smart'; set IACT_MODEL or IACT_MODEL_SMART.",
            to="user",
            status="failed",
            fault="unreachable",
        )
        session.show(node("/", "failed"))
        async with stage(session) as scene:
            page = await scene.page("s")
            await page.get_by_role("button", name="Model settings").click()
            dialog = page.get_by_role("dialog", name="Settings")
            await expect(dialog.get_by_label("Provider")).to_be_focused()

    run(test)


def test_a_plan_s_report_is_read_once() -> None:
    report = "The plan failed at its first step.\n\n- measure: the disk is gone"

    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Measure it.", way={"mode": "static"})
        session.append("reply", "/plan", report, to="/", status="failed", plan="failed")
        session.append("reply", body=report, to="user", status="failed", plan="failed")
        session.show(node("/", "failed"))
        async with stage(session) as scene:
            page = await scene.page("s")
            said = page.locator(".entry p:visible", has_text="The plan failed at its first step.")
            await expect(said).to_have_count(1)
            await expect(page.locator(".entry.own.reply")).to_contain_text("measure: the disk is gone")
            # Both are in the journal; looking back, the plan's own comes first.
            await page.get_by_role("button", name="Replay", exact=True).click()
            await page.get_by_role("button", name="Previous entry").click()
            await expect(said).to_have_count(1)
            await expect(page.locator(".entry.child")).to_contain_text("measure: the disk is gone")

    run(test)


def test_what_only_looks_like_a_report_stays() -> None:
    """Two agents may say the same; only what is passed on without a model is hidden."""

    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Ask it.")
        session.append("reply", "/child", "Forty-two.", to="/", status="ok")
        session.append("reply", "/", "Forty-two.", to="user", status="ok", **written("large"))
        session.show(node("/", "done"))
        async with stage(session) as scene:
            page = await scene.page("s")
            await expect(page.locator(".entry p:visible", has_text="Forty-two")).to_have_count(2)

    run(test)
