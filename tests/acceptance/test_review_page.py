"""A person reviews agents' changes in a live directory: a rename, a mode, a binary file, thousands of files, 200 MB."""

from __future__ import annotations

import json
import stat
from importlib.resources import files
from pathlib import Path
from typing import Final

from playwright.sync_api import Locator, Page, expect

from tests.acceptance.conftest import Stage
from tests.acceptance.product import until
from tests.acceptance.test_browser import SLOW, keep_screenshot, page_of
from tests.acceptance.test_live import pending, project
from tests.acceptance.test_scenes import served, shell
from tests.rounds import LONG

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
RUN: Final = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(one => one.nodes.map(node => `${one.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""

MANY: Final = 5000 if LONG else 1200
WORK: Final = f"""sed -i 's/two/TWO/' notes.txt; printf 'four\\n' >> notes.txt
mv src/main.py src/program.py
chmod 755 victim
head -c 300 /dev/urandom > picture.bin; rm logo.bin
mkdir many; cd many; for i in $(seq -w 1 {MANY}); do echo "file $i" > f$i.txt; done; cd ..
truncate -s 200M huge.bin; echo end >> huge.bin"""


def accessible(page: Page) -> None:
    """axe finds nothing in what is shown."""
    page.evaluate(f"{AXE}\n; undefined")
    assert page.evaluate(RUN) == []


def test_a_person_reviews_many_changes_by_mouse_and_by_keyboard(stage: Stage, tmp_path: Path) -> None:
    mine = project(tmp_path)
    (mine / "logo.bin").write_bytes(bytes(range(256)))
    endpoint = stage.endpoint({"/": [shell(WORK), "Done."]})
    product = stage.product(endpoint)
    ran = product.run("run", "--json", "--workspace", str(mine), "Go.")
    assert ran.status == 0, ran
    report = json.loads(ran.stdout)
    session = report["session"]
    assert len(report["pending"]) == MANY + 8
    with served(product) as server, page_of(server) as page:
        page.set_default_timeout(SLOW)
        page.goto(f"http://127.0.0.1:{server.port}/#{session}")
        page.reload()
        bar = page.locator("[data-role=review-bar]")
        expect(bar).to_contain_text(
            f"{MANY + 8:,} changes in your directory wait for your review.", timeout=SLOW
        )
        accessible(page)
        bar.get_by_role("button", name="Review").click()
        dialog = page.get_by_role("dialog", name="Changes to review")
        expect(dialog.locator("[data-role=review-total]")).to_have_text(f"{MANY + 8:,} changes", timeout=SLOW)
        assert page.locator(".review-row").count() < 100, "only what is in sight stands in the page"
        diff = dialog.get_by_role("region", name="Content of the change")

        row(page, "notes.txt").click()
        expect(diff.locator("tr.removed .text")).to_have_text(["two"])
        expect(diff.locator("tr.added .text")).to_have_text(["TWO", "four"])
        expect(diff.locator("tr.added .number")).to_have_text(["", "2", "", "4"])
        expect(row(page, "notes.txt").locator(".review-lines")).to_have_text("+2 −1")
        accessible(page)
        keep_screenshot(page, "review.png", tmp_path)

        row(page, "src/program.py").click()
        expect(diff).to_contain_text("Renamed from src/main.py")
        row(page, "victim").click()
        expect(diff).to_contain_text("mode 0644 → 0755")
        row(page, "picture.bin").click()
        expect(diff.locator(".review-text")).to_contain_text("binary", ignore_case=True)
        row(page, "huge.bin").click()
        expect(diff.locator(".review-text")).to_contain_text("Too large to show")

        page.keyboard.press("End")
        expect(dialog.locator("[aria-current=true]")).to_contain_text("src/program.py")
        page.keyboard.press(" ")
        page.keyboard.press("Home")
        expect(dialog.locator("[aria-current=true]")).to_be_focused()
        expect(dialog.locator("[aria-current=true]")).to_contain_text("logo.bin")
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(dialog.locator("[aria-current=true]")).to_contain_text("src/main.py")
        page.keyboard.press(" ")
        expect(dialog.locator("[data-role=review-total]")).to_have_text(f"2 of {MANY + 8:,} selected")
        page.keyboard.press("a")
        expect(dialog.get_by_role("group", name="Are you sure?")).to_contain_text("1 added, 1 deleted")
        page.keyboard.press("Enter")
        expect(dialog.locator("[data-role=review-news]")).to_have_text("2 changes are in your directory now.")
        assert not (mine / "src" / "main.py").exists()
        assert (mine / "src" / "program.py").read_text() == "print('hello')\n"

        page.set_viewport_size({"width": 390, "height": 780})
        row(page, "notes.txt").click()
        expect(diff.locator("tr.added .text")).to_have_text(["TWO", "four"])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        accessible(page)
        keep_screenshot(page, "review-narrow.png", tmp_path)
        row(page, "notes.txt").press(" ")
        (mine / "notes.txt").write_text("by the user\n")
        dialog.get_by_role("button", name="Apply selected").click()
        dialog.get_by_role("button", name="Yes, apply").click()
        expect(dialog.locator("[data-role=review-news]")).to_contain_text(
            "changed again after you looked at it"
        )
        expect(row(page, "notes.txt")).to_contain_text("conflict")
        assert (mine / "notes.txt").read_text() == "by the user\n"

        dialog.get_by_role("checkbox", name="Select all changes").check()
        expect(dialog.get_by_role("button", name="Discard all")).to_be_visible()
        dialog.get_by_role("checkbox", name="Select all changes").uncheck()
        dialog.get_by_role("button", name="Apply all").click()
        sure = dialog.get_by_role("group", name="Are you sure?")
        sure.get_by_role("checkbox").check()
        dialog.get_by_role("button", name="Yes, apply").click()
        expect(dialog.locator("[data-role=review-total]")).to_have_text(
            "No changes are waiting.", timeout=SLOW
        )
        expect(bar).to_be_hidden()
        until(lambda: (mine / "huge.bin").exists(), "the large file")
    assert pending(product, session) == {}
    assert (mine / "notes.txt").read_text() == "one\nTWO\nthree\nfour\n"
    assert (mine / "huge.bin").stat().st_size == (200 << 20) + 4
    assert stat.S_IMODE((mine / "victim").stat().st_mode) == 0o755
    assert len(list((mine / "many").iterdir())) == MANY
    assert not (mine / "logo.bin").exists()


def row(page: Page, path: str) -> Locator:
    """The row of a path, brought into sight by the list itself."""
    found = page.locator(f'.review-row[data-path="{path}"] .review-path')
    for _ in range(400):
        if found.count():
            break
        scroll = page.locator("[data-role=review-rows]")
        moved = scroll.evaluate(
            "(one) => { const at = one.scrollTop; one.scrollTop += one.clientHeight; return one.scrollTop !== at; }"
        )
        if not moved:
            scroll.evaluate("(one) => { one.scrollTop = 0; }")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return found
