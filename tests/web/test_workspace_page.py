"""A person sees the files that agents made, as they are and as they were; what changed; fetches and mentions them."""

from __future__ import annotations

import io
import re
import struct
import wave
import zlib
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.async_api import expect

from iact.core.stored.fork import STORE
from iact.sandbox.workspace.versions import GitVersions
from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime
from tests.web.test_accessible_page import check
from tests.web.test_files_page import saved
from tests.web.test_workspace_wire import worked

run = SHARED.run


def png(width: int, height: int) -> bytes:
    """A blue picture."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + b"\x20\x60\xb0" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    )


def test_files_are_listed_shown_compared_fetched_and_mentioned(tmp_path: Path) -> None:
    runtime, session = worked(tmp_path)
    workspace = session.journal.parent / "workspace"
    (workspace / "<img src=x onerror=alert(1)>\u202etxt.exe").write_text("<script>alert(2)</script>")
    (workspace / "image.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(3)</script></svg>"
    )

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s")
            await page.get_by_role("tab", name="Files").click()
            panel = page.locator("#inspector-panel")
            rows = panel.locator(".workspace-files > li")
            # Folders first; what the newest call changed is marked, and what leads away is a link.
            await expect(rows.first).to_contain_text("out2 entries")
            await expect(panel.locator(".fresh")).to_have_count(2)
            await expect(panel.locator('[data-path="away"]')).to_contain_text("link")
            await expect(panel).to_contain_text("‹U+202E›txt.exe")
            await check(page, "files")
            await panel.locator("summary").click()
            await expect(panel.locator('[data-path="out/t.csv"]')).to_be_visible()
            await panel.get_by_label("Filter files by name").fill("T.C")
            await expect(panel.locator(".workspace-file")).to_have_count(1)
            await panel.get_by_label("Filter files by name").fill("")
            await page.screenshot(path=tmp_path / "files.png")

            # A table is shown as one, text as text, whatever it says; a link is not followed.
            dialog = page.locator("dialog.file")
            await panel.locator('[data-path="out/t.csv"]').click()
            await expect(dialog.locator("tbody tr")).to_have_count(2)
            await expect(dialog.locator("tbody tr").first).to_have_text("2024<b>3</b>")
            await check(page, "a table")
            await page.keyboard.press("Escape")
            await panel.locator('[data-path="page.html"]').click()
            await expect(dialog.locator("pre")).to_have_text("<script>alert(1)</script>")
            # It is shown in a frame, where its script does nothing.
            await expect(page.frame_locator("dialog.file iframe").locator("script")).to_have_count(1)
            browser.wrongs.forgive("Blocked script execution")
            await page.keyboard.press("Escape")
            await panel.locator('[data-path="image.svg"]').click()
            await expect(dialog.locator("pre")).to_contain_text("alert(3)")
            await expect(dialog.locator("svg, img, iframe")).to_have_count(0)
            await page.keyboard.press("Escape")
            await panel.locator('[data-path="away"]').click()
            await expect(dialog).to_contain_text("A link to /etc/passwd. Links are not followed.")
            await expect(dialog).not_to_contain_text("root:")
            await page.keyboard.press("Escape")
            await panel.locator('[data-path="late.bin"]').click()
            await expect(dialog).to_contain_text("Binary file. Download it to view it.")
            assert await saved(page, dialog.get_by_role("button", name="Download").click) == (
                "late.bin",
                b"\0\xff",
            )
            await page.keyboard.press("Escape")

            # What a call changed; then another version, and the change since the beginning.
            await panel.get_by_label("By time of change").check()
            await expect(panel.locator(".workspace-change")).to_have_count(3)
            await check(page, "changes")
            await panel.locator(".workspace-change").first.get_by_role("button", name="notes.md").click()
            await expect(dialog.locator("tr.removed")).to_contain_text("# One")
            await expect(dialog.locator("tr.added")).to_contain_text("# Two")
            await check(page, "a change")
            await page.screenshot(path=tmp_path / "change.png")
            await dialog.get_by_label("Changes since").select_option("0")
            await expect(dialog.locator("tr.removed")).to_have_count(0)
            await expect(dialog.locator("tr.added")).to_contain_text("# Two")
            await dialog.get_by_label("Changes since").select_option("-")
            await dialog.get_by_label("Version").select_option("2")
            await expect(dialog.locator("pre")).to_have_text("# One\n")
            name, content = await saved(page, dialog.get_by_role("button", name="Download").click)
            assert (name, content) == ("notes.md", b"# One\n")

            # This version of the file, and no other file, is put back once that is confirmed; and so is the later one.
            others = (workspace / "page.html").read_text()
            put_back = dialog.locator(".file-restore button")
            for version, text in (("2", "# One\n"), ("4", "# Two\n")):
                await dialog.get_by_label("Version").select_option(version)
                await expect(put_back).to_have_text("Restore this version")
                await check(page, "a version that can be restored")
                await put_back.click()
                await expect(put_back).to_have_text("Put this file back?")
                await put_back.click()
                status = dialog.get_by_role("status")
                await expect(status).to_contain_text("This file is again as it was after shell.run")
                await expect(dialog.locator("pre")).to_have_text(text)
                await expect(put_back).to_have_count(0)
                assert (workspace / "notes.md").read_text() == text
            assert (workspace / "page.html").read_text() == others
            await page.screenshot(path=tmp_path / "restored.png")

            # Mention puts the path into the field; nothing is sent.
            field = page.get_by_label("Message to the root agent")
            await dialog.get_by_role("button", name="Mention").click()
            await expect(field).to_be_focused()
            await expect(field).to_have_value("`notes.md` ")

            name, content = await saved(page, panel.get_by_role("button", name="Download all").click)
            assert name == "s.zip"
            with ZipFile(io.BytesIO(content)) as archive:
                assert archive.testzip() is None
                assert archive.read("out/t.csv").startswith(b"year,sum")
                assert "away" not in archive.namelist()

            # Another call: the list is as it is then, without a reload.
            (workspace / "fresh.txt").write_text("new")
            session.append("result", function="shell.run", status="ok")
            await panel.get_by_label("All files").check()
            await expect(panel.locator('[data-path="fresh.txt"]')).to_be_visible()

    run(test)


def test_files_that_a_reply_names_open_and_pictures_are_shown(tmp_path: Path) -> None:
    runtime, session = worked(tmp_path)
    workspace = session.journal.parent / "workspace"
    (workspace / "out" / "plot.png").write_bytes(png(40, 20))
    kept = GitVersions().keep(workspace, session.journal.parent / STORE)
    session.append("result", function="shell.run", status="ok", version=kept)
    session.append(
        "reply", "/", to="user", status="ok",
        body="See notes.md, `out/t.csv` and [the page](page.html); /etc/passwd and nothing.md are none.\n\n"
        "![the plot](out/plot.png)\n\n![away](../secret.png)\n\n```\nnotes.md\n```\n",
    )  # fmt: skip
    (workspace / "notes.md").write_text("# Three\n")
    later = GitVersions().keep(workspace, session.journal.parent / STORE)
    session.append("result", "/coder", function="shell.run", status="ok", version=later)

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s")
            reply = page.locator(".entry.reply")
            await expect(reply.locator("p .file-link")).to_have_text(
                ["notes.md", "out/t.csv", "the page", "out/plot.png"]
            )
            picture = reply.get_by_role("img", name="the plot")
            await expect(picture).to_be_visible()
            assert await picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 40
            await expect(reply.locator("img")).to_have_count(1)
            await check(page, "files in a reply")
            await page.screenshot(path=tmp_path / "reply.png")
            # What opens is the file as it was when that was written.
            await reply.get_by_role("button", name="notes.md").click()
            dialog = page.get_by_role("dialog", name="notes.md")
            await expect(dialog.locator("pre")).to_have_text("# Two\n")
            await dialog.get_by_label("Version").select_option("now")
            await expect(dialog.locator("pre")).to_have_text("# Three\n")
            await page.keyboard.press("Escape")
            # Looking back, the files are those of then.
            await page.get_by_role("tab", name="Files").click()
            panel = page.locator("#inspector-panel")
            await expect(panel).to_contain_text("As they are now.")
            await page.get_by_role("button", name="Replay", exact=True).click()
            await page.locator("[data-role=replay-number]").fill("2")
            await page.keyboard.press("Enter")
            await expect(panel).to_contain_text("As they were after shell.run")
            await expect(panel.locator(".workspace-file")).to_have_count(1)
            await panel.get_by_role("button", name="notes.md").click()
            await expect(dialog.locator("pre")).to_have_text("# One\n")
            await expect(dialog.get_by_label("Version").locator("option")).to_have_count(1)
            await page.keyboard.press("Escape")
            await page.locator("[data-role=replay-close]").click()
            await expect(panel).to_contain_text("As they are now.")

    run(test)


@pytest.mark.parametrize("width", [1280, 390])
def test_figures_stand_under_the_call_that_made_them(width: int, tmp_path: Path) -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), FakeAround()) as browser:
            page = await browser.page("replay:cleaned", width=width, height=900)
            await page.locator("[data-role=replay-last]").click()
            figures = page.locator(".outcome .figures")
            await expect(figures).to_have_count(1)
            await figures.scroll_into_view_if_needed()
            pictures = figures.locator("img.picture")
            await expect(pictures).to_have_count(2)
            await expect(pictures.first).to_have_attribute("alt", "figure-1.png, made by python.run")
            await expect(figures.locator(".chip")).to_have_text(["$figure_1", "$figure_2"])
            for picture in await pictures.all():
                await expect(picture).not_to_have_js_property("naturalWidth", 0)
                box = await picture.bounding_box()
                assert box is not None
                assert box["width"] <= width
                assert box["height"] <= 400, "a call's figures do not push its answer out of sight"
            await check(page, "figures")
            await page.screenshot(path=tmp_path / "figures.png")

    run(test)


def wav(seconds: float) -> bytes:
    """A silent recording."""
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(1)
        recording.setframerate(8_000)
        recording.writeframes(b"\x80" * int(8_000 * seconds))
    return file.getvalue()


@pytest.mark.parametrize("width", [1280, 390])
def test_what_a_reply_embeds_is_played_shown_or_a_card_of_its_file(tmp_path: Path, width: int) -> None:
    runtime, session = worked(tmp_path)
    out = session.journal.parent / "workspace" / "out"
    (out / "tune.wav").write_bytes(wav(1.5))
    (out / "film.webm").write_bytes(b"\x1a\x45\xdf\xa3" + b"\0" * 20 + b"webm" + b"\0" * 99)
    (out / "long.csv").write_text("year,sum\n" + "2024,3\n" * 30)
    (out / "report.pdf").write_bytes(b"%PDF-1.7\n\0\xff")
    kept = GitVersions().keep(session.journal.parent / "workspace", session.journal.parent / STORE)
    session.append("result", function="shell.run", status="ok", version=kept)
    session.append(
        "reply", "/", to="user", status="ok",
        body="![the tune](out/tune.wav)\n\n![the film](out/film.webm)\n\n![the figures](out/long.csv)\n\n"
        "![the report](out/report.pdf)\n\n![](http://127.0.0.1:1/away.mp3)\n",
    )  # fmt: skip

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s", width=width, height=900)
            reply = page.locator(".entry.reply")
            tune, film, figures, report, away = [reply.locator(".embed").nth(at) for at in range(5)]
            player = tune.locator("audio")
            await expect(player).to_be_visible()
            await expect(player).to_have_attribute("aria-label", "the tune")
            await expect(player).to_have_js_property("duration", 1.5)
            await expect(tune.locator(".facts")).to_have_text(re.compile("WAV · 11.8 kB"))
            await expect(film).to_contain_text("This browser can't play it.")
            # Of a table its first rows, and how many there are.
            await expect(figures.locator("tbody tr")).to_have_count(5)
            await expect(figures).to_contain_text("25 more rows; open the file to see them.")
            await expect(report.locator(".facts")).to_have_text("PDF · 11 B")
            for card in (tune, film, figures, report):
                await expect(card.locator(".unloaded")).to_be_hidden()
            assert await saved(page, report.get_by_role("button", name="Download").click) == (
                "report.pdf",
                b"%PDF-1.7\n\0\xff",
            )
            # Nothing of another site is ever fetched.
            await expect(away).to_contain_text("picture, not loaded")
            await expect(away.locator("audio, video, img, button")).to_have_count(0)
            await check(page, "embeds")
            await page.screenshot(path=tmp_path / "embeds.png", full_page=True)

            await tune.get_by_role("button", name="out/tune.wav").click()
            dialog = page.get_by_role("dialog", name="out/tune.wav")
            await expect(dialog.locator("audio")).to_be_visible()
            await check(page, "a recording")

    run(test)


def test_files_on_a_phone_and_by_keyboard(tmp_path: Path) -> None:
    runtime, _ = worked(tmp_path)

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s", width=390, height=780, scheme="dark")
            await page.get_by_role("button", name="Details", exact=True).click()
            tabs = page.get_by_role("tablist", name="Details")
            # All tabs stand in one row, whichever is chosen.
            await page.get_by_role("tab", name="Overview").focus()
            heights = set()
            for _ in range(await tabs.get_by_role("tab").count()):
                heights.add(await tabs.evaluate("(row) => row.getBoundingClientRect().height"))
                chosen = tabs.locator('[aria-selected="true"]')
                await expect(chosen).to_be_in_viewport(ratio=0.95)
                await page.keyboard.press("ArrowRight")
            assert len(heights) == 1, heights
            await page.get_by_role("tab", name="Files").click()
            panel = page.locator("#inspector-panel")
            await expect(panel.locator(".workspace-file").first).to_be_visible()
            await check(page, "files on a phone")
            await page.screenshot(path=tmp_path / "narrow.png")
            await panel.locator("summary").focus()
            await page.keyboard.press("Enter")
            await expect(panel.locator('[data-path="out/t.csv"]')).to_be_visible()
            for _ in range(2):
                await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")
            dialog = page.get_by_role("dialog", name="out/t.csv")
            await expect(dialog.locator("tbody tr")).to_have_count(2)
            await check(page, "a file on a phone")
            await page.screenshot(path=tmp_path / "narrow-file.png")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await page.keyboard.press("Escape")
            await expect(panel.locator('[data-path="out/t.csv"]')).to_be_focused()

    run(test)
