"""The catalogue of modules in the page: look, add, approve as it was looked at, remove."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import expect

from iact.core.ports import CatalogueEntry
from iact.core.views.known_modules import KnownModule
from tests.core.session.fakes import MANIFEST
from tests.web.browser import browsing
from tests.web.fake import FakeAround, FakeRuntime
from tests.web.test_page import run, stage


def test_modules_are_looked_at_added_approved_and_removed(tmp_path: Path) -> None:
    source = tmp_path / "weather.py"
    source.write_text("# a module\n")

    async def test() -> None:
        async with stage() as scene:
            entry = CatalogueEntry("t", "ab" * 32, "agent", "For <b>tests</b>.", MANIFEST.to_proto())
            scene.runtime.catalogue["t"] = KnownModule(entry, MANIFEST, frozenset({"read"}))
            shipped = CatalogueEntry("shell", "cd" * 32, "shipped", "Runs commands.", MANIFEST.to_proto())
            every = frozenset(one.name for one in MANIFEST.functions)
            scene.runtime.catalogue["shell"] = KnownModule(shipped, MANIFEST, every)
            page = await scene.page()
            await page.get_by_role("button", name="Modules").click()
            dialog = page.get_by_role("dialog", name="Modules")
            rows = dialog.locator("[data-role=modules-list] > li")
            await expect(rows).to_have_count(2)
            assert not scene.runtime.known, "a look at the modules begins no session"
            await expect(rows.nth(0)).to_contain_text("1 of 5 approved")
            await expect(rows.nth(1)).to_contain_text("built in")
            await rows.nth(1).locator("summary").click()
            await expect(rows.nth(1).get_by_role("button", name="Remove")).to_have_count(0)
            await rows.nth(0).locator("summary").click()
            await expect(rows.nth(0)).to_contain_text("SHA-256 abababababababab…")
            await expect(rows.nth(0)).to_contain_text("t.destroy")
            await rows.nth(0).get_by_role("button", name="Approve t.write").click()
            await expect(rows.nth(0)).to_contain_text("2 of 5 approved")
            await expect(dialog.get_by_role("status")).to_have_text("t.write is approved.")
            await rows.nth(0).get_by_role("button", name="Approve all of it").click()
            await expect(rows.nth(0).locator("summary .badge")).to_have_text("approved")
            await dialog.get_by_label("Add a module").fill(str(source))
            await page.keyboard.press("Enter")
            await expect(rows).to_have_count(3)
            await expect(rows.nth(2)).to_contain_text("weather")
            await expect(rows.nth(2)).to_contain_text("has not run here yet")
            await rows.nth(2).locator("summary").click()
            await rows.nth(2).get_by_role("button", name="Remove").click()
            await expect(rows).to_have_count(3)
            await rows.nth(2).get_by_role("button", name="Really remove it?").click()
            await expect(rows).to_have_count(2)
            await dialog.get_by_label("A Python file with a module").set_input_files(str(source))
            await expect(rows).to_have_count(3)
            await expect(rows.nth(2)).to_contain_text("weather")
            assert scene.runtime.catalogue["weather"].entry.name == "weather"
            await rows.nth(2).locator("summary").click()
            await rows.nth(2).get_by_role("button", name="Remove").click()
            await rows.nth(2).get_by_role("button", name="Really remove it?").click()
            await expect(rows).to_have_count(2)
            large = tmp_path / "large.py"
            large.write_bytes(b"#" * 200_000)
            await dialog.get_by_label("A Python file with a module").set_input_files(str(large))
            await expect(dialog.get_by_role("status")).to_contain_text("large.py is larger than")
            await dialog.get_by_label("Add a module").fill(str(tmp_path / "gone"))
            await page.keyboard.press("Enter")
            await expect(dialog.get_by_role("status")).to_contain_text("There is no module at")
            assert "weather" not in scene.runtime.catalogue

    run(test)


def test_the_lockdown_is_a_command_and_seen_by_everyone() -> None:
    async def test() -> None:
        async with stage() as scene:
            session = await scene.runtime.open(None)
            session.append("say", body="Go.")
            one, other = await scene.page(session.id), await scene.page(session.id)
            await one.keyboard.press("Control+k")
            await one.keyboard.type("tools off")
            await one.keyboard.press("Enter")
            await expect(other.locator("[data-role=lockdown]")).to_be_visible()
            await other.get_by_role("button", name="Switch on").click()
            await expect(one.locator("[data-role=lockdown]")).to_be_hidden()
            assert session.calls == [("lockdown", "True"), ("lockdown", "False")]

    run(test)


def test_secrets_are_stored_and_removed_and_never_shown() -> None:
    async def test() -> None:
        around = FakeAround()
        async with browsing(FakeRuntime(), around) as scene:
            page = await scene.page()
            await page.get_by_role("button", name="Modules").click()
            part = page.locator("[data-role=own-secrets]")
            await expect(part).to_contain_text("You have stored no secrets.")
            await expect(part.locator("[data-role=secret-lent]")).to_have_count(0)  # there is one user
            await part.get_by_label("Name, such as API_KEY").fill("API_KEY")
            await part.get_by_label("Value").fill("xyzzy of mine")
            await page.keyboard.press("Enter")
            remove = part.get_by_role("button", name="Remove: API_KEY")
            await expect(remove).to_be_visible()
            assert around.secrets.own == {"API_KEY": "xyzzy of mine"}
            await expect(part.get_by_label("Value")).to_have_value("")
            assert "xyzzy" not in await page.content()
            around.secrets.own.clear()
            await remove.click()
            status = page.get_by_role("dialog", name="Modules").get_by_role("status")
            await expect(status).to_contain_text("There is no secret")

    run(test)
