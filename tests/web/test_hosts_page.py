"""A module wants to reach a host: the page asks in place, and the dialog of modules says which hosts are allowed."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from iact.core.ports import CatalogueEntry
from iact.core.views.known_modules import KnownModule
from tests.core.session.fakes import WEB
from tests.web.fake import FakeSession
from tests.web.scene import busy_session
from tests.web.test_page import run, stage


def ask(session: FakeSession, host: str = "docs.python.org", port: int = 443) -> int:
    return session.append(
        "host", "/analyst/checker", op="ask", module="web", host=host, port=port, seconds=600
    ).n


@pytest.mark.parametrize("lasts", ["once", "session", "always"])
def test_a_host_is_asked_about_and_a_yes_says_for_how_long(lasts: str) -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = ask(session)
            await expect(bar).to_contain_text("Allow web to reach docs.python.org? Asked by")
            await expect(bar).to_contain_text("the module can send data there and receive data from there")
            await bar.get_by_label("Remember:").select_option(lasts)
            await bar.get_by_role("button", name="Approve").click()
            await expect(bar).to_be_hidden()
            assert session.calls[-1] == ("clear_host", str(asked), "True", lasts)

    run(test)


def test_a_question_about_a_host_outlives_the_answer_of_its_agent_and_can_be_denied() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = ask(session, "odd.example", 8443)
            await expect(bar).to_contain_text("odd.example:8443")
            session.append("reply", "/analyst/checker", body="I could not.", status="ok")
            await expect(bar).to_be_visible()
            await bar.get_by_role("button", name="Deny").click()
            await expect(bar).to_be_hidden()
            assert session.calls[-1] == ("clear_host", str(asked), "False", "once")
            session.append("host", op="reach", module="web", host="docs.python.org", port=443, by="policy")
            await expect(page.locator("body")).to_contain_text("docs.python.org")

    run(test)


def test_the_dialog_of_modules_allows_hosts_and_takes_them_back() -> None:
    async def test() -> None:
        session = busy_session()
        session.hosts = [{"module": "web", "host": "*.debian.org", "by": "policy"}]
        async with stage(session) as scene:
            entry = CatalogueEntry("web", "cd" * 32, "shipped", "Outside.", WEB.to_proto())
            scene.runtime.catalogue["web"] = KnownModule(entry, WEB, frozenset({"fetch"}))
            page = await scene.page("demo")
            await page.get_by_role("button", name="Modules").click()
            dialog = page.get_by_role("dialog", name="Modules")
            await dialog.locator("[data-module=web] summary").click()
            web = dialog.locator("[data-module=web]")
            await expect(web).to_contain_text("*.debian.org")
            await expect(web).to_contain_text("allowed by the policy")
            await expect(web.get_by_role("button", name="Revoke *.debian.org")).to_have_count(0)
            await web.get_by_label("Host that web may reach").fill("docs.python.org")
            await web.get_by_label("For how long").select_option("always")
            await web.get_by_role("button", name="Allow", exact=True).click()
            await expect(web).to_contain_text("allowed by you, always")
            assert session.calls[-1] == ("allow_hosts", "web", "docs.python.org", "True", "False")
            await web.get_by_role("button", name="Revoke docs.python.org").click()
            await expect(web).not_to_contain_text("docs.python.org")

    run(test)
