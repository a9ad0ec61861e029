"""A person receives another installation's session: views it on the page, can't continue it, and adopts it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_browser import SLOW, page_of
from tests.acceptance.test_review_page import accessible
from tests.acceptance.test_scenes import served, shell
from tests.snapshot import snapshot


def sent(stage: Stage, product: Product) -> Path:
    """A session that another installation made, among `product`'s own; gives its folder there."""
    endpoint = stage.endpoint({"/": [shell("echo from elsewhere > kept.txt"), "It is written down."]})
    answer = stage.product(endpoint).ask("Write something down.", "--intent", "2")
    folder = answer.journal.parent
    target = product.data / "sessions" / folder.name
    target.parent.mkdir(parents=True)
    return folder.rename(target)


def test_a_session_from_elsewhere_is_shown_as_such_and_adopted(stage: Stage, tmp_path: Path) -> None:
    endpoint = stage.endpoint({"/": [shell("cat kept.txt; echo and here > mine.txt"), "It says so."]})
    product = stage.product(endpoint)
    folder = sent(stage, product)
    before = snapshot(folder)
    with served(product) as server, page_of(server) as page:
        page.locator("[data-role=sessions]").click()
        listed = page.locator("[data-role=sessions-list] li")
        expect(listed).to_have_count(1)
        expect(listed.locator(".badge")).to_have_text("from elsewhere")
        accessible(page)
        page.screenshot(path=tmp_path / "foreign-list.png")
        listed.get_by_role("button").first.click()

        # It is shown to look at: what was said and done is there, and nothing can be said or changed.
        dialogue = page.get_by_role("log", name="Messages")
        expect(dialogue).to_contain_text("It is written down.")
        bar = page.get_by_role("region", name="Replay")
        expect(bar.locator("[data-role=replay-badge]")).to_be_visible()
        expect(bar).to_contain_text("It has no seals of this installation")
        expect(page.locator("[data-role=text]")).to_be_hidden()
        expect(bar.locator("[data-role=replay-fork]")).to_be_hidden()
        accessible(page)
        page.screenshot(path=tmp_path / "foreign.png")
        page.set_viewport_size({"width": 390, "height": 780})
        expect(bar.get_by_role("button", name="Adopt")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        accessible(page)
        page.screenshot(path=tmp_path / "foreign-narrow.png")
        page.set_viewport_size({"width": 1360, "height": 860})

        # Adopted, it is a session of one's own, which works in a copy of the files.
        bar.get_by_role("button", name="Adopt").click()
        expect(bar).to_be_hidden()
        message = page.get_by_role("textbox", name="Message")
        expect(message).to_be_editable()
        page.screenshot(path=tmp_path / "adopted.png")
        message.fill("What does it say?")
        message.press("Enter")
        expect(dialogue).to_contain_text("It says so.", timeout=SLOW)
        expect(dialogue).to_contain_text("You adopted this session")
        page.screenshot(path=tmp_path / "adopted-answer.png")
        adopted = page.url.rpartition("#")[2]
        assert adopted != folder.name
        accessible(page)
    assert snapshot(folder) == before
    own = product.data / "sessions" / adopted
    assert (own / "workspace" / "kept.txt").read_text() == "from elsewhere\n"
    assert (own / "workspace" / "mine.txt").read_text() == "and here\n"
    results = [record for record in read_journal(own).records if record.kind == "result"]
    assert results[-1].body == "from elsewhere\n"
