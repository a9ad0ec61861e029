"""What files and variables look like: a page without scripts, a PDF, formatted Markdown, long tables, spreadsheets."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from playwright.async_api import Page, expect

from iact.core.errors import UsageError
from iact.web.downloads import VIEWS, shown_html, view_of
from iact.web.looks import look_of, view_as
from tests.web.browser import SHARED, browsing
from tests.web.test_accessible_page import check
from tests.web.test_workspace_wire import worked

run = SHARED.run

REPORT = """<!doctype html>
<html><head><link rel="preconnect" href="https://elsewhere.example">
<meta http-equiv="refresh" content="0;url=https://elsewhere.example/"><base href="https://elsewhere.example/">
<style>h1 { color: rgb(1, 2, 3) }</style></head>
<body><h1>Report</h1><p>Of the year.</p><img src="https://elsewhere.example/a.png" alt="a picture">
<script>document.body.textContent = "scripts run";</script>
<iframe srcdoc="&lt;link rel=preconnect href=https://elsewhere.example>"></iframe>
<form action="https://elsewhere.example/"><input name="q"></form></body></html>
"""

PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F1 24 Tf 20 40 Td (A paper) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
"""

VIEWER = "has => Object.defineProperty(navigator, 'pdfViewerEnabled', { get: () => has })"
"""Browsers of tests may have no viewer, and then show an empty frame."""

NOTES = "# Findings\n\n| city | trees |\n|---|---:|\n| Bremen | 12 |\n\n- **one**\n- two <script>alert(1)</script>\n"


OTHER = '<worksheet><sheetData><row r="1"><c r="A1"><v>7</v></c></row></sheetData></worksheet>'


def spreadsheet(other: str = OTHER) -> bytes:
    """Two sheets: shared and inline strings, a number, a truth, a date, a gap; and `other`."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    files = {
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Trees &amp; more" '
        'sheetId="1" r:id="rId1"/><sheet name="Other" sheetId="2" r:id="rId2"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/>'
        '<Relationship Id="rId2" Target="/xl/worksheets/sheet2.xml"/></Relationships>',
        "xl/sharedStrings.xml": "<sst><si><t>city</t></si><si><r><t>Br</t></r><r><t>emen &lt;b&gt;</t></r></si></sst>",
        "xl/styles.xml": '<styleSheet><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c>'
        '<c r="B1" t="inlineStr"><is><t>trees</t></is></c><c r="D1" t="inlineStr"><is><t>day</t></is></c></row>'
        '<row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2"><v>12.5</v></c><c r="C2" t="b"><v>1</v></c>'
        '<c r="D2" s="1"><v>46023</v></c></row></sheetData></worksheet>',
        "xl/worksheets/sheet2.xml": other,
    }  # fmt: skip
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def filled(folder: Path) -> None:
    """Write files of each kind."""
    (folder / "report.html").write_text(REPORT)
    (folder / "paper.pdf").write_bytes(PDF)
    (folder / "findings.md").write_text(NOTES)
    rows = "\n".join(f'{number},"name, {number}",{number * number}' for number in range(1, 1_301))
    (folder / "squares.csv").write_text(f'n,"a ""name""",square\n{rows}\n')
    (folder / "odd.csv").write_text('"a" b,c\n"d,""e"\t,"f"\n')
    (folder / "trees.xlsx").write_bytes(spreadsheet())
    (folder / "broken.xlsx").write_bytes(b"PK\x03\x04 and nothing more")


async def opened(page: Page, path: str) -> None:
    """Show a file of the Files tab."""
    if await page.locator("dialog.file[open]").count():
        await page.locator("dialog.file > header button").click()
    await page.locator(f'#inspector-panel [data-path="{path}"]').click()
    await expect(page.locator("dialog.file")).to_be_visible()


@pytest.mark.parametrize(("width", "locale"), [(1280, "en-US"), (390, "de-DE")])
def test_files_look_like_what_they_are(tmp_path: Path, width: int, locale: str) -> None:
    runtime, session = worked(tmp_path)
    filled(session.journal.parent / "workspace")

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s", width=width, locale=locale, scheme="dark")
            if width < 500:
                await page.locator('[data-drawer="inspector"]').click()
            await page.locator("#tab-files").click()
            dialog = page.locator("dialog.file")

            # A page, without scripts and without anything from elsewhere.
            await opened(page, "report.html")
            frame = page.frame_locator("dialog.file iframe")
            await expect(frame.locator("h1")).to_have_text("Report")
            await expect(frame.locator("h1")).to_have_css("color", "rgb(1, 2, 3)")
            await expect(frame.locator("body")).not_to_contain_text("scripts run")
            await expect(frame.locator("link, meta, base, iframe")).to_have_count(0)
            # With a frame in it, axe takes the dialog for none, and what is behind it for readable.
            await expect(dialog.locator("iframe")).to_have_attribute("title", "report.html")
            await page.screenshot(path=tmp_path / f"page-{width}.png")
            browser.wrongs.forgive(
                "Blocked script execution", "Content Security Policy", "POLICY", "elsewhere.example"
            )

            await opened(page, "findings.md")
            await expect(dialog.locator(".look h1")).to_have_text("Findings")
            await expect(dialog.locator(".look td").first).to_have_text("Bremen")
            await expect(dialog.locator(".look script")).to_have_count(0)
            await expect(dialog.locator("details pre")).to_contain_text("# Findings")

            # A long table: a part at a time, and only what is asked for.
            await opened(page, "squares.csv")
            rows = dialog.locator("tbody tr")
            await expect(rows).to_have_count(200)
            await expect(dialog.locator("th").nth(1)).to_have_text('a "name"')
            await expect(rows.first.locator("td").nth(1)).to_have_text("name, 1")
            await expect(dialog.locator("[role=status]").last).to_contain_text(
                "1,300" if locale == "en-US" else "1.300"
            )
            await dialog.get_by_role(
                "button", name="Next rows" if locale == "en-US" else "Nächste Zeilen"
            ).click()
            await expect(rows.first.locator("td").first).to_have_text("201")
            await dialog.get_by_role("searchbox").fill("NAME, 1234")
            await expect(rows).to_have_count(1)
            await expect(rows.first.locator("td").last).to_have_text(str(1234 * 1234))
            await check(page, "a long table")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

            # What follows quotes belongs to no cell.
            await opened(page, "odd.csv")
            await expect(dialog.locator("th")).to_have_text(["a", "c"])
            await expect(rows.first.locator("td")).to_have_text(['d,"e', "f"])

            await opened(page, "trees.xlsx")
            await expect(dialog.locator("th")).to_have_text(["city", "trees", "", "day"])
            await expect(rows.first.locator("td")).to_have_text(["Bremen <b>", "12.5", "TRUE", "2026-01-01"])
            await dialog.get_by_label("Sheet" if locale == "en-US" else "Blatt").select_option("Other")
            await expect(dialog.locator("th")).to_have_text(["7"])
            await check(page, "a spreadsheet")
            await page.screenshot(path=tmp_path / f"sheet-{width}.png")

            await opened(page, "broken.xlsx")
            await expect(dialog.locator(".file-content [role=alert]")).to_contain_text(
                "can't be read" if locale == "en-US" else "lässt sich nicht lesen"
            )

    run(test)


def test_sheets_can_be_chosen_again_and_again_within_the_bound(tmp_path: Path) -> None:
    """Each sheet is unpacked once: three times 24 MB would be more than is unpacked at most."""
    runtime, session = worked(tmp_path)
    files = session.journal.parent / "workspace"
    wide = (
        f"<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet><!--{' ' * (24 << 20)}-->"
    )
    (files / "two.xlsx").write_bytes(spreadsheet(wide))

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s")
            await page.locator("#tab-files").click()
            await opened(page, "two.xlsx")
            dialog = page.locator("dialog.file")
            await expect(dialog.locator("th").first).to_have_text("city")
            for _ in range(3):
                await dialog.get_by_label("Sheet").select_option("Other")
                await expect(dialog.locator("th")).to_have_text(["1"])
                await dialog.get_by_label("Sheet").select_option("Trees & more")
                await expect(dialog.locator("th").first).to_have_text("city")

    run(test)


def test_a_pdf_is_shown_by_the_browser(tmp_path: Path) -> None:
    runtime, session = worked(tmp_path)
    filled(session.journal.parent / "workspace")

    async def test() -> None:
        async with browsing(runtime) as browser:
            for has_viewer in (False, True):
                page = await browser.page("s")
                await page.evaluate(VIEWER, has_viewer)
                await page.locator("#tab-files").click()
                if not has_viewer:
                    await opened(page, "paper.pdf")
                    await expect(page.locator(".file-content .nothing")).to_contain_text("shows no PDFs")
                    continue

                async with page.expect_response("**/view/pdf/*") as waiting:
                    await opened(page, "paper.pdf")
                response = await waiting.value
                assert response.status == 200
                assert response.headers["content-type"] == "application/pdf"
                assert "sandbox" not in response.headers["content-security-policy"]
                await expect(page.locator("dialog.file iframe")).to_be_visible()

    run(test)


def test_what_is_looked_at_has_a_policy_of_its_own_and_is_there_once(tmp_path: Path) -> None:
    runtime, session = worked(tmp_path)
    filled(session.journal.parent / "workspace")

    async def test() -> None:
        async with browsing(runtime) as browser:
            page = await browser.page("s")
            await page.locator("#tab-files").click()
            async with page.expect_response("**/view/html/*") as waiting:
                await opened(page, "report.html")
            response = await waiting.value
            policy = response.headers["content-security-policy"]
            assert policy.startswith("sandbox; default-src 'none'; ")
            assert "allow-" not in policy
            assert "script-src" not in policy
            assert response.headers["x-dns-prefetch-control"] == "off"
            assert response.headers["x-content-type-options"] == "nosniff"
            again = await page.request.get(response.url)
            assert again.status == 404
            browser.wrongs.forgive(
                "Blocked script execution", "Content Security Policy", "POLICY", "elsewhere.example"
            )

    run(test)


@pytest.mark.parametrize(
    ("name", "media", "start", "is_text", "look"),
    [
        ("a.pdf", "", b"%PDF-1.7", False, "pdf"),
        ("a.txt", "", b"%PDF-1.7", True, "pdf"),
        ("a.pdf", "application/pdf", b"no", True, None),
        ("a.HTML", "", b"<p>", True, "html"),
        ("page_1", "text/html; charset=utf-8", b"<p>", True, "html"),
        ("a.html", "", b"\0", False, None),
        ("a.md", "", b"# A", True, "markdown"),
        ("a.csv", "", b"a,b", True, "table"),
        ("a.xlsx", "", b"PK\x03\x04", False, "sheet"),
        ("a.zip", "", b"PK\x03\x04", False, None),
        ("a.py", "", b"print()", True, None),
    ],
)
def test_the_first_bytes_say_what_it_is(
    name: str, media: str, start: bytes, is_text: bool, look: str | None
) -> None:
    assert look_of(name, media, start, is_text=is_text) == look


def test_only_pages_and_pdfs_have_a_frame() -> None:
    assert view_as("html", 10) == "html"
    assert view_as("pdf", 1 << 40) == "pdf"
    with pytest.raises(UsageError, match="too long"):
        view_as("html", 1 << 40)
    for other in ("table", "markdown", "sheet", None):
        with pytest.raises(UsageError, match="can't be shown here"):
            view_as(other, 10)
    assert [view_of(f"/view/{kind}/abc") for kind in (*VIEWS, "svg", "")] == ["html", "pdf", None, None]
    assert view_of("/download/html/abc") is None


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<LINK rel=preconnect href=//x>", "<x-LINK rel=preconnect href=//x>"),
        ("<meta http-equiv=refresh>", "<x-meta http-equiv=refresh>"),
        ("<base\nhref=//x>", "<x-base\nhref=//x>"),
        (
            '<iframe srcdoc="&lt;link rel=preconnect href=//x>">',
            '<x-iframe srcdoc="&lt;link rel=preconnect href=//x>">',
        ),
        ("<b>linked</b>", "<b>linked</b>"),
        ("\ufeff<p>a\0b", "<p>a\ufffdb"),
    ],
)
def test_nothing_of_a_page_looks_up_a_name(written: str, shown: str) -> None:
    assert shown_html(written.encode()) == shown.encode()


def test_a_page_in_another_encoding_is_read_as_utf_8() -> None:
    """A byte order mark would outweigh the header, and hide what reaches out."""
    assert b"<link" not in shown_html("<link rel=preconnect href=//x>".encode("utf-16"))
    assert b"\xff\xfe" not in shown_html("<link>".encode("utf-16"))
