"""A module asks the person: the page shows its words as such, takes what is filled in, and sends nothing else."""

from __future__ import annotations

from playwright.async_api import Locator, expect

from iact.core.ports import JSON
from tests.web.fake import FakeSession
from tests.web.scene import busy_session
from tests.web.test_page import run, stage

FIELDS: list[JSON] = [
    {"name": "guest", "kind": "text", "title": "Your <b>name</b>", "required": True, "description": "As in the passport"},
    {"name": "nights", "kind": "integer", "default": 2, "least": 1.0, "most": 30.0},
    {"name": "rate", "kind": "number"},
    {"name": "breakfast", "kind": "boolean", "default": True},
    {"name": "room", "kind": "choice", "choices": ["s", "d"], "titles": ["Single", "Double"], "default": "s"},
    {"name": "wishes", "kind": "choices", "choices": ["quiet", "view"], "default": ["view"]},
]  # fmt: skip


def ask(session: FakeSession, url: str = "") -> int:
    """A question of a module: a form, or an address."""
    return session.append(
        "form",
        "/analyst/checker",
        op="ask",
        call=3,
        function="inn.book",
        seconds=600,
        message="Which room? <img src=x onerror=alert(1)>",
        fields=[] if url else FIELDS,
        url=url,
    ).n


def test_a_form_is_filled_in_and_what_was_filled_in_is_sent() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = ask(session)
            await expect(bar).to_contain_text("inn.book asks you something")
            await expect(bar.get_by_role("heading")).to_have_text("A module asks you")
            await expect(bar).to_contain_text("Which room? <img src=x onerror=alert(1)>")
            await expect(bar.locator("img")).to_have_count(0)
            await expect(bar).to_contain_text("Your answer goes to this module, which may send it on")
            await expect(bar.get_by_label("Remember:")).to_be_hidden()
            name = bar.get_by_label("Your <b>name</b> (needed)")
            await expect(name).to_have_accessible_description("As in the passport")
            await name.fill("Ada <script>")
            await expect(bar.get_by_label("nights")).to_have_value("2")
            await bar.get_by_label("nights").fill("3")
            await bar.get_by_label("breakfast").uncheck()
            await bar.get_by_label("room").select_option("Double")
            await bar.get_by_role("group", name="wishes").get_by_label("quiet").check()
            await bar.get_by_role("button", name="Send the answer").click()
            await expect(bar).to_be_hidden()
            values = {
                "guest": "Ada <script>", "nights": 3, "breakfast": False, "room": "d", "wishes": ["quiet", "view"],
            }  # fmt: skip
            assert session.calls[-1] == ("answer_form", str(asked), "accept", str(values))

    run(test)


def test_a_person_need_not_answer_and_what_they_typed_stays_with_them() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = ask(session)
            await bar.get_by_label("Your <b>name</b> (needed)").fill("Ada")
            await bar.get_by_role("button", name="Don't answer").click()
            await expect(bar).to_be_hidden()
            assert session.calls[-1] == ("answer_form", str(asked), "decline", "{}")

    run(test)


def test_an_address_is_a_link_that_the_person_opens_and_no_other_is_one() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = ask(session, url="https://pay.example/7")
            link: Locator = bar.get_by_role("link", name="Open the address in a new tab")
            await expect(link).to_have_attribute("href", "https://pay.example/7")
            await expect(link).to_have_attribute("rel", "noreferrer")
            await expect(bar).to_contain_text("https://pay.example/7")
            await bar.get_by_role("button", name="I opened it").click()
            await expect(bar).to_be_hidden()
            assert session.calls[-1] == ("answer_form", str(asked), "accept", "{}")
            ask(session, url="javascript:alert(1)")
            await expect(bar).to_contain_text("javascript:alert(1)")
            await expect(bar.get_by_role("link")).to_have_count(0)

    run(test)


def test_a_question_stands_until_it_is_answered_whatever_its_agent_says() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = ask(session)
            await expect(bar).to_be_visible()
            session.append("reply", "/analyst/checker", body="I could not.", status="ok")
            await expect(bar).to_be_visible()
            session.append("form", op="answer", ask=asked, decision="cancel", by="core")
            await expect(bar).to_be_hidden()

    run(test)


def test_a_tool_of_the_front_end_is_shown_and_can_be_answered_in_its_place() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = session.append(
                "form",
                op="ask",
                call=4,
                function="FRONTEND",
                seconds=600,
                message="/ calls the tool showMap",
                fields=[{"name": "result", "kind": "text", "title": "Result", "required": True}],
                tool={"name": "showMap", "arguments": {"place": "<img src=x onerror=alert(1)>"}},
            ).n
            await expect(bar.get_by_role("heading")).to_have_text("A tool is called")
            await expect(bar).to_contain_text("showMap")
            await expect(bar).to_contain_text("<img src=x onerror=alert(1)>")
            await expect(bar.locator("img")).to_have_count(0)
            await bar.get_by_label("Result (needed)").fill("shown")
            await bar.get_by_role("button", name="Send the answer").click()
            await expect(bar).to_be_hidden()
            assert session.calls[-1] == ("answer_form", str(asked), "accept", str({"result": "shown"}))

    run(test)
