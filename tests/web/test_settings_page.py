"""Settings in a browser: how the page looks and speaks, which model answers, and where all that is found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from iact.choices import Choices
from iact.core.records.control import SetModels
from iact.core.stored.replay import replay
from iact.models.added import AddedEndpoint, AddedFile, AddedModels
from iact.sandbox.secrets import Secrets
from iact.settings import load
from iact.surroundings import ServerSurroundings
from iact.web.ports import Finding
from tests.core.session.fakes import replies, runtime
from tests.endpoint import Endpoint, Request
from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime

run = SHARED.run


async def ground(page: Page) -> str:
    """The colour behind everything."""
    found: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


LIGHT, DARK = "rgb(246, 246, 244)", "rgb(19, 20, 23)"


def test_a_look_and_a_language_are_chosen_kept_and_there_before_the_first_paint() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), FakeAround()) as scene:
            page = await scene.page(scheme="light")
            assert await ground(page) == LIGHT
            await page.get_by_role("button", name="Settings").click()
            await page.get_by_role("radio", name="Dark").check()
            assert await ground(page) == DARK
            await page.reload()
            # What the scripts of the page do comes later: the look is there with the document.
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
            assert await ground(page) == DARK
            await page.get_by_role("button", name="Settings").click()
            await expect(page.get_by_role("radio", name="Dark")).to_be_checked()
            await page.get_by_label("Language").select_option("de")
            await expect(page.get_by_role("button", name="Einstellungen")).to_be_visible()
            assert await page.evaluate("document.documentElement.lang") == "de"
            await page.get_by_role("button", name="Einstellungen").click()
            await page.get_by_role("radio", name="Wie das System").check()
            assert await ground(page) == LIGHT
            await page.get_by_label("Sprache").select_option("en")
            await expect(page.get_by_role("button", name="Settings")).to_be_visible()

    run(test)


def test_memory_modules_and_settings_are_one_button_away_at_any_width() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), FakeAround()) as scene:
            for width in (1280, 390):
                page = await scene.page(width=width)
                more = page.get_by_role("button", name="More", exact=True)
                for name in ("Memory", "Modules", "Settings"):
                    if width < 700:
                        await more.click()
                    await page.get_by_role("button", name=name, exact=True).click()
                    await expect(page.get_by_role("dialog", name=name)).to_be_visible()
                    await page.get_by_role("dialog", name=name).get_by_role("button", name="Close").click()
                    await expect(page.get_by_role("dialog", name=name)).to_be_hidden()

    run(test)


class OddMachine(FakeAround):
    """One on which something is missing that is needed, and something that is not."""

    def checks(self) -> Sequence[Finding]:
        return [
            Finding("engine", True, "Docker 29", ""),
            Finding("bubblewrap", True, "There is no bubblewrap.", "apt-get install bubblewrap"),
            Finding("image", False, "It is not built.", "iact image build"),
        ]


def test_nothing_is_said_to_work_above_what_would_mend_it() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), OddMachine()) as scene:
            page = await scene.page()
            await page.get_by_role("button", name="Settings").click()
            checks = page.locator(".checks li")
            await expect(checks).to_have_count(3)
            for index, badge in enumerate(("works", "not needed here", "does not work")):
                await expect(checks.nth(index).locator(".badge")).to_have_text(badge)

    run(test)


def test_a_model_is_chosen_tried_and_answers_the_next_message(tmp_path: Path) -> None:
    """The first answer is one model's, the second another's, in one session and without a restart."""
    theirs = "# my own notes stay\nlog = 'error' # quiet\n\n[bounds]\nturns = 30\n"
    (tmp_path / "iact.toml").write_text(theirs, encoding="utf-8")
    secret = "sk-not-to-be-seen-anywhere"

    async def test() -> None:
        script = {"/": ["I am the first.", "I am the second.", "I am the first again."]}
        with Endpoint(answered, api_key=secret, models=["big", "small"]) as endpoint:
            settings = load(data=str(tmp_path), environment={})
            async with runtime(tmp_path, replies(script)) as opened:
                session = await opened.open()
                await session.ask("Who are you?")
                around = ServerSurroundings(Choices(settings, opened.use_models))
                sent: list[str] = []
                async with browsing(opened, around) as scene:
                    page = await scene.page(session.id)
                    page.on(
                        "websocket",
                        lambda line: line.on("framereceived", lambda text: sent.append(str(text))),
                    )
                    await page.reload()
                    await page.get_by_role("button", name="Settings").click()
                    await page.get_by_role("button", name="Change the model for smart").click()
                    await page.get_by_label("Server address").fill(endpoint.url)
                    await page.get_by_role("button", name="Test").click()
                    status = page.locator(".role-form [role=status]")
                    await expect(status).to_contain_text("401")
                    await page.get_by_label("Key").fill(secret)
                    await page.get_by_role("button", name="Test").click()
                    await expect(status).to_contain_text("big, small")
                    await page.get_by_label("Model", exact=True).fill("big")
                    await page.get_by_label("Context length").fill("16384")
                    await page.get_by_label("Calls tools").select_option("tools")
                    await page.get_by_label("pictures").check()
                    await page.get_by_text("Price of a million tokens").click()
                    await page.get_by_label("Read", exact=True).fill("2.5")
                    await page.get_by_label("Written", exact=True).fill("10")
                    await page.get_by_role("button", name="Test").click()
                    await expect(status).to_contain_text("ready")
                    await page.get_by_role("button", name="Save").click()
                    row = page.locator("[data-model-role=smart]")
                    await expect(row).to_contain_text("big")
                    await expect(row).to_contain_text("key stored")
                    await expect(page.locator("[data-role=model]")).to_contain_text("big")
                    await (
                        page.get_by_role("dialog", name="Settings")
                        .get_by_role("button", name="Close")
                        .click()
                    )
                    await page.locator("[data-role=text]").fill("And now?")
                    await page.keyboard.press("Enter")
                    await expect(page.locator(".entry.reply").last).to_contain_text("the endpoint speaks")
                    assert session.records()[-1].body == "the endpoint speaks"
                    models = [
                        one.content.models for one in session.records() if isinstance(one.content, SetModels)
                    ]
                    assert [{name: terms.model for name, terms in one.items()} for one in models] == [
                        {"smart": "big"}
                    ]
                    # What is typed once is told to nobody: not to the page, nor to a journal, nor to the file.
                    assert sent
                    assert not any(secret in text for text in sent)
                    # Another address does not get the key of this one.
                    await page.get_by_role("button", name="Settings").click()
                    await page.get_by_role("button", name="Change the model for smart").click()
                    await page.get_by_label("Server address").fill(
                        endpoint.url.replace("127.0.0.1", "localhost")
                    )
                    await page.get_by_role("button", name="Test").click()
                    await expect(status).to_contain_text("401")
                    await page.keyboard.press("Escape")
                    journal = session.journal
            written = (tmp_path / "iact.toml").read_text(encoding="utf-8")
            assert written.startswith(theirs)
            assert 'model = "big"' in written
            smart = load(data=str(tmp_path), environment={}).models["smart"]
            assert (smart.context, smart.dialect, smart.takes) == (16384, "tools", ("image",))
            assert (smart.price_prompt, smart.price_cached, smart.price_completion) == (2.5, None, 10)
            assert Secrets(tmp_path).of(["MODEL_SMART_KEY"]) == {"MODEL_SMART_KEY": secret}
            assert secret not in written + journal.read_text(encoding="utf-8")
            replay(journal, verify=True)

    run(test)


def test_prices_of_a_model_that_is_not_named_are_counted(tmp_path: Path) -> None:
    """The form invites to leave the name empty where an endpoint has one model. Its prices count all the same."""

    async def test() -> None:
        with Endpoint(answered, models=["the-only-one"]) as endpoint:
            settings = load(data=str(tmp_path), environment={})
            async with runtime(tmp_path, replies({"/": ["I am the first."]})) as opened:
                session = await opened.open()
                await session.ask("Who are you?")
                around = ServerSurroundings(Choices(settings, opened.use_models))
                async with browsing(opened, around) as scene:
                    page = await scene.page(session.id)
                    cost = page.locator("#inspector-panel dt", has_text="Cost").locator("+ dd")
                    await expect(page.locator(".entry.reply")).to_have_count(1)
                    await expect(cost).to_have_count(0)

                    await page.get_by_role("button", name="Settings").click()
                    await page.get_by_role("button", name="Change the model for smart").click()
                    await page.get_by_label("Server address").fill(endpoint.url)
                    await page.get_by_text("Price of a million tokens").click()
                    await page.get_by_label("Read", exact=True).fill("30000")
                    await page.get_by_label("Written", exact=True).fill("60000")
                    await page.get_by_role("button", name="Save").click()
                    row = page.locator("[data-model-role=smart]")
                    await expect(row).to_contain_text("its only model at")
                    await page.keyboard.press("Escape")

                    await page.locator("[data-role=text]").fill("And now?")
                    await page.keyboard.press("Enter")
                    await expect(page.locator(".entry.reply").last).to_contain_text("the endpoint speaks")
                    await expect(cost).to_have_text(re.compile(r"^\d+\.\d\d$"))
                    assert float(await cost.inner_text()) > 0

    run(test)


def answered(request: Request) -> str:
    return "ready" if "Count from one" in request.last else "the endpoint speaks"


def test_first_messages_are_kept_offered_and_forgotten(tmp_path: Path) -> None:
    async def test() -> None:
        async with runtime(tmp_path, replies({"/": ["Yes."]})) as opened:
            around = ServerSurroundings(Choices(load(data=str(tmp_path), environment={}), opened.use_models))
            async with browsing(opened, around) as scene:
                page = await scene.page()
                field = page.locator("[data-role=text]")
                await field.fill("Look at the *log* of today\nand tell me what is new.")
                await page.keyboard.press("Control+k")
                await page.keyboard.type("save the text in the message")
                await page.keyboard.press("Enter")
                await expect(page.locator("[data-role=news]")).to_contain_text("choose it when you begin")
                # It is the server that keeps it: another browser has it, too.
                other = await scene.page(width=390)
                await other.get_by_role("button", name="Look at the log of today", exact=True).click()
                await expect(other.locator("[data-role=text]")).to_have_value(
                    "Look at the *log* of today\nand tell me what is new."
                )
                await page.keyboard.press("Control+k")
                await page.keyboard.type("begin with look")
                await page.keyboard.press("Enter")
                await expect(field).to_be_focused()
                await other.get_by_role("button", name="Forget the first message").click()
                await expect(other.locator(".kept")).to_have_count(0)
                assert (
                    Choices(load(data=str(tmp_path), environment={}), opened.use_models).first_messages()
                    == []
                )

    run(test)


def test_a_file_that_was_added_is_listed_and_answers_from_the_next_message_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IACT_EMBEDDED")
    added = tmp_path / "mine.gguf"
    added.write_bytes(b"GGUF, or nearly")
    model = AddedFile(
        kind="file", source=f"file:{added}", path=str(added), size=added.stat().st_size, sha256="0" * 64
    )
    gone = replace(model, path=str(tmp_path / "gone.gguf"))
    models = AddedModels(tmp_path)
    models.put("mine", model)
    models.put("gone", gone)

    async def test() -> None:
        settings = load(data=str(tmp_path), environment={"IACT_EMBEDDED": "1.5b"})
        async with runtime(tmp_path, replies({"/": ["I am the first."]})) as opened:
            around = ServerSurroundings(Choices(settings, opened.use_models))
            async with browsing(opened, around) as scene:
                page = await scene.page()
                await page.get_by_role("button", name="Settings").click()
                rows = page.locator("[data-role=model-files] li")
                await expect(rows).to_have_count(3)
                await expect(rows.nth(0)).to_contain_text("answers now")
                await expect(rows.nth(2)).to_contain_text("mine 15 B")
                await page.get_by_role("button", name="Use mine").click()
                await expect(rows.nth(2)).to_contain_text("answers now")
                await expect(rows.nth(0)).not_to_contain_text("answers now")

    run(test)
    assert load(data=str(tmp_path), environment={}).embedded == "mine"


def test_a_model_that_was_added_behind_an_endpoint_is_listed_and_chosen(tmp_path: Path) -> None:
    """Its key stays where it was put, and goes to nobody but its endpoint."""
    secret = "sk-of-the-added-one"
    with Endpoint(lambda request: "I am the added one.", api_key=secret, models=["theirs"]) as endpoint:
        added = AddedEndpoint(source="mistral", url=endpoint.url, model="theirs", key="ENDPOINT_WORK_KEY")
        gone = replace(added, url="http://127.0.0.1:9/v1", key="ENDPOINT_GONE_KEY")
        models = AddedModels(tmp_path)
        models.put("work", added)
        models.put("without-key", gone)
        Secrets(tmp_path).store("ENDPOINT_WORK_KEY", secret)

        async def test() -> None:
            settings = load(data=str(tmp_path), environment={})
            async with runtime(tmp_path, replies({"/": ["I am the first."]})) as opened:
                around = ServerSurroundings(Choices(settings, opened.use_models))
                async with browsing(opened, around) as scene:
                    page = await scene.page()
                    await page.get_by_role("button", name="Settings").click()
                    dialog = page.get_by_role("dialog", name="Settings")
                    rows = dialog.locator("[data-role=model-endpoints] li")
                    await expect(rows).to_have_count(2)
                    await expect(rows.nth(0)).to_contain_text(f"work theirs at {endpoint.url}")

                    await dialog.get_by_role("button", name="Use without-key").click()
                    await expect(dialog).to_contain_text("ENDPOINT_GONE_KEY is neither a variable")
                    await expect(rows.nth(0)).not_to_contain_text("answers now")

                    await dialog.get_by_role("button", name="Use work").click()
                    await expect(rows.nth(0)).to_contain_text("answers now")
                    await page.keyboard.press("Escape")
                    await page.locator("[data-role=text]").fill("Who are you?")
                    await page.keyboard.press("Enter")
                    await expect(page.locator(".entry[data-kind=reply]").last).to_contain_text(
                        "I am the added one."
                    )

        run(test)
    smart = load(data=str(tmp_path), environment={}).models["smart"]
    assert (smart.base_url, smart.model) == (endpoint.url, "theirs")
