"""The page in Firefox: what a person does most, with no error in it, on a wide and on a narrow window."""

from __future__ import annotations

from pathlib import Path

from iact.web.server import WebServer
from tests.web.dialling import run
from tests.web.fake import FakeAround
from tests.web.firefox import opened
from tests.web.test_workspace_wire import worked


def test_the_main_way_in_firefox(tmp_path: Path) -> None:
    runtime, session = worked(tmp_path)

    async def test() -> None:
        async with WebServer(runtime, product=FakeAround()) as server, opened(tmp_path) as browser:
            await browser.size(1280, 800)
            await browser.go(server.url)
            await browser.go(f"http://127.0.0.1:{server.port}/#s")
            await browser.until("document.querySelector('[data-role=connection]')?.dataset.state === 'open'")
            await browser.until("document.querySelectorAll('.entry').length > 0")

            # A message, typed and sent; the answer comes, formatted.
            await browser.click("#composer-text")
            await browser.keys("What is in notes.md?", "Enter")
            await browser.until("document.querySelector('#composer-text').value === ''")
            assert ("say", "What is in notes.md?") in [one[:2] for one in session.calls]
            session.append("reply", body="It says **two**; see notes.md.", to="user", status="ok")
            await browser.until("document.querySelector('.entry.reply strong')?.textContent === 'two'")

            # Files, a file, and what changed in it.
            await browser.click('[data-tab="files"]')
            await browser.click('.workspace-file[data-path="notes.md"]')
            await browser.until("document.querySelector('dialog.file pre')?.textContent === '# Two\\n'")
            await browser.keys("Escape")
            await browser.until("!document.querySelector('dialog.file').open")

            # The timeline, the records, looking back, the palette by keyboard.
            await browser.click('[data-tab="timeline"]')
            await browser.until(
                "document.querySelectorAll('.timeline-track').length > 0 || document.querySelector('.timeline')"
            )
            await browser.click("[data-role=replay-open]")
            await browser.until("!document.querySelector('[data-role=replay]').hidden")
            await browser.keys("Escape")
            await browser.until("document.querySelector('[data-role=replay]').hidden")
            await browser.click("[data-role=palette-open]")
            await browser.until("document.querySelector('dialog.palette').open")
            await browser.keys("details: overview", "Enter")
            await browser.until(
                "document.querySelector('[data-tab=facts]').getAttribute('aria-selected') === 'true'"
            )

            # On a phone's width nothing is wider than the window, and the details come as a drawer.
            await browser.size(390, 780)
            await browser.until("document.documentElement.scrollWidth <= innerWidth")
            await browser.click('[data-drawer="inspector"]')
            await browser.until("document.querySelector('#inspector-pane').classList.contains('open')")
            assert browser.errors == []

    run(test)
