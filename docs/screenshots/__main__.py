"""Takes all screenshots of the page for the documentation again: make screenshots

The page and its server are real. Most pictures show the same session, that of `tests.web.scene`. Those of the tutorial
are taken while it is played with the whole product.
"""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import Final

from playwright import sync_api
from playwright.async_api import Page, expect

from docs.screenshots.moving import take_moving
from iact.core.gate.effects import Effect
from iact.core.ports import FileChange, FileState
from iact.core.tree.live_folder import PendingChange
from tests.acceptance import tutorial
from tests.acceptance.product import Product
from tests.acceptance.test_browser import page_of
from tests.endpoint import Endpoint
from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime, FakeSession
from tests.web.scene import busy_session

HERE: Final = Path(__file__).parent
WIDTH, HEIGHT = 1360, 860


def _asks(session: FakeSession) -> None:
    """Make an agent's call wait for approval."""
    session.append(
        "clearance", "/analyst/checker", op="ask", turn=900, action=0, function="mail.send", rule="provenance", impact=2,
        why="It sends something out.", reason="The call has impact 2 and is touched by tool:web.fetch.", user="you",
        params={"to": "ann@example.com", "text": "The figures of 2025, checked.\n" + "year, revenue\n" * 12},
        provenance={"to": ["user"], "text": ["model", "tool:web.fetch"]}, read=["tool:web.fetch"],
        attached={"text": {"media": "text/plain", "size": 223}},
    )  # fmt: skip


def _changes(session: FakeSession) -> None:
    """Make changes of the user's directory wait for a review."""
    before, after = FileState("file", 0o644, 14, "a" * 64), FileState("file", 0o644, 19, "b" * 64)
    for change in (
        FileChange("notes.txt", "modify", before, after),
        FileChange("data/old.csv", "delete", before, None),
        FileChange("src/main.py", "modify", before, after),
        FileChange(".envrc", "add", None, after),
    ):
        effect = Effect(2, "It changes a file that this session did not make.")
        reason = "The changes have impact 2, and the intent of / is 1."
        session.effects.waiting[change.path] = PendingChange(
            change, effect, 7, "impact", reason, (3,), ("/analyst",), frozenset({"model"})
        )
    hunk = "@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n three\n+four\n"
    for path in ("notes.txt", "src/main.py"):
        session.effects.diffs[path] = f"--- a/{path}\n+++ b/{path}\n{hunk}"


async def _session(page: Page, session: FakeSession) -> None:
    await expect(page.locator(".entry")).not_to_have_count(0)


async def _approval(page: Page, session: FakeSession) -> None:
    _asks(session)
    await expect(page.get_by_role("region", name="Approvals")).to_be_visible()
    await expect(page.get_by_role("button", name="Deny", exact=True)).to_be_enabled()


async def _review(page: Page, session: FakeSession) -> None:
    await page.locator("[data-role=review-open]").click()
    await expect(page.locator(".diff-hunk")).to_be_visible()


PICTURES: Final = {"session.png": _session, "approval.png": _approval, "review.png": _review}


async def take(name: str, folder: Path = HERE) -> None:
    """Take one picture."""
    session = busy_session()
    if name == "review.png":
        _changes(session)
    async with browsing(FakeRuntime(session), FakeAround()) as opened:
        page = await opened.page("demo", width=WIDTH, height=HEIGHT)
        await PICTURES[name](page, session)
        await expect(page.locator(".awaited")).to_have_count(0)
        await page.mouse.move(0, 0)
        await page.screenshot(path=folder / name)
        opened.wrongs.found.clear()


def play_the_tutorial(folder: Path = HERE) -> None:
    """Take the pictures of the tutorial, in a home and a data directory that are gone afterwards."""

    def picture(page: sync_api.Page, name: str) -> None:
        page.mouse.move(0, 0)
        page.screenshot(path=folder / name)

    model = tutorial.TutorialModel()
    with tempfile.TemporaryDirectory() as place, Endpoint(model) as endpoint:
        home = Path(place)
        data = home / "data"
        data.mkdir()
        product = Product.at(data, endpoint, IACT_MODEL="a-model")
        with tutorial.serving_in_folder(product, home) as server:
            with page_of(server) as page:
                tutorial.in_a_folder(page, model, home / "tutorial", picture)
            server.process.send_signal(signal.SIGINT)
            server.process.wait(300)


def main() -> None:
    """Take all pictures."""

    async def all_of_them() -> None:
        for name in PICTURES:
            await take(name)
        await take_moving(HERE)

    SHARED.run(all_of_them)
    SHARED.close()
    play_the_tutorial()


if __name__ == "__main__":
    main()
