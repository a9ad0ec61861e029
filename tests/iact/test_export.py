"""The exported page: all of a session, readable without scripts, and inert whatever the session holds."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, sync_playwright

from iact import export
from iact.core.errors import JournalCorrupt
from iact.core.journal import encode, read_journal
from iact.core.ports import JSON
from tests.acceptance.product import NO_MODULES, Product
from tests.core.session.fakes import replies, runtime
from tests.iact.recorded import record
from tests.records import opening_fields, raw_record
from tests.rounds import rounds
from tests.web.browser import ARGUMENTS, REPORT_VIOLATIONS, Wrongs, chromium

_VOID: Final = frozenset({"meta", "img", "hr", "br"})
_TAGS: Final = frozenset(
    [
        "html",
        "head",
        "title",
        "style",
        "body",
        "header",
        "footer",
        "nav",
        "main",
        "section",
        "article",
        "details",
        "summary",
        "div",
        "span",
        "p",
        "a",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "code",
        "pre",
        "blockquote",
        "em",
        "strong",
        "s",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "meta",
        "img",
        "hr",
        "br",
    ]
)
_ATTRIBUTES: Final = frozenset(
    [
        "class",
        "dir",
        "href",
        "id",
        "lang",
        "charset",
        "content",
        "name",
        "http-equiv",
        "open",
        "title",
        "aria-label",
        "rel",
        "target",
        "start",
        "tabindex",
        "alt",
        "src",
    ]
)
_PIXEL: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


PLACE: dict[str, JSON] = {"turn": 1, "action": 0}
"""Where an action of no turn stands."""


class Inspector(HTMLParser):
    """Fails on any tag, attribute or address that the page may not hold, and on tags that don't close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, tag
        for name, value in attributes:
            assert name in _ATTRIBUTES, (tag, name)
            if name == "href":
                assert re.match(r"#[ar]\d+$|https?://|mailto:", value or ""), value
            if name == "src":
                assert re.match(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$", value or ""), value
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.open)


def inspect(page: str) -> None:
    inspector = Inspector()
    inspector.feed(page)
    inspector.close()
    assert inspector.open == []


def session_of(folder: Path, *records: tuple[str, str, dict[str, JSON], str]) -> Path:
    """A journal written by hand: (kind, agent, fields, body) for each record behind the first."""
    folder.mkdir(parents=True, exist_ok=True)
    steps: dict[str, int] = {"/": 1}
    chain = [raw_record(1, "2026-01-01T00:00:00.000000Z", "open", "/", 1, "", opening_fields("1.0"))]
    data = b""
    for kind, agent, fields, body in records:
        steps[agent] = steps.get(agent, 0) + 1
        chain.append(
            raw_record(len(chain) + 1, "2026-01-01T00:00:01.000000Z", kind, agent, steps[agent], body, fields)
        )
    digest = "00000000"
    for one in chain:
        encoded, digest = encode(
            raw_record(one.n, one.at, one.kind, one.agent, one.step, one.body, one.fields, digest)
        )
        data += encoded
    (folder / "journal.md").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="module")
def opened(session: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page in a real browser, from a file; at the end nothing may have gone wrong in it."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(export.page(session), encoding="utf-8")
    wrongs = Wrongs(f"file://{file.parent}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_init_script(REPORT_VIOLATIONS)
        page = context.new_page()
        page.on("pageerror", wrongs.script_error)
        page.on("console", lambda message: wrongs.console(message.type, message.text))
        page.on("request", lambda request: wrongs.request(request.url))
        page.goto(f"file://{file}")
        yield page
        browser.close()
    assert wrongs.found == []


def test_the_tree_leads_to_every_agents_dialogue(opened: Page) -> None:
    links = opened.locator("nav.tree a")
    assert links.locator(".name").all_inner_texts() == ["root", "writer", "checker", "counter"]
    for link in links.all():
        target = link.get_attribute("href") or ""
        assert opened.locator(target).count() == 1
    nested = opened.locator("nav.tree ul ul ul .name")
    assert nested.all_inner_texts() == ["checker"]


def test_a_dialogue_holds_what_was_said_in_it_in_order(opened: Page) -> None:
    writer = opened.locator("section.agent", has=opened.get_by_role("heading", name="/writer", exact=True))
    sources = writer.locator(".entry-head .from").all_inner_texts()
    assert sources == [
        "Root agent, its caller",
        "/writer",
        "/writer",
        "/writer/checker, its reply",
        "You",
        "/writer → /",
    ]
    assert writer.locator(".incoming strong").inner_text() == "one"
    assert writer.locator(".card.action .function").all_inner_texts() == ["READ", "WRITE"]
    assert "a long line of a large result" in writer.locator(".card.result").first.inner_text()
    assert "a careful <b>writer</b>" in writer.inner_text()


def test_an_intervention_says_where_it_was_read(opened: Page, session: Path) -> None:
    records = read_journal(session).records
    injected = next(one for one in records if one.text("op") == "inject")
    reader = next(
        one
        for one in records
        if injected.n in (one.fields.get("took") or []) and one.n > injected.n  # type: ignore[operator]
    )
    receipt = opened.locator(f"#r{injected.n} .receipt")
    assert receipt.inner_text() == f"read at record {reader.n}"
    assert "Mention <i>the network</i>." in opened.locator(f"#r{injected.n}").inner_text()


def test_what_agents_never_saw_is_marked(opened: Page, session: Path) -> None:
    decisions = [one for one in read_journal(session).records if one.kind == "gate"]
    shown = opened.locator(".unseen")
    assert shown.count() == len(decisions)
    assert shown.locator(".why").all_inner_texts() == ["gate, never shown to agents"] * len(decisions)
    denied = next(one for one in decisions if not one.fields["allow"])
    assert "t.destroy" in opened.locator(f"#r{denied.n}").inner_text()
    assert opened.locator(f"#r{denied.n} .badge.denied").count() == 1


def test_hostile_text_is_text(opened: Page) -> None:
    assert opened.title() == "Describe the <b>sandbox</b> & count."
    assert opened.locator("script, img, iframe, base, form, link").count() == 0
    assert '<script>document.title = "owned"</script>' in opened.locator("main").inner_text()
    assert "\u202e" not in opened.content()
    assert "\x1b" not in opened.content()


def test_it_fits_a_phone_and_paper(opened: Page) -> None:
    opened.set_viewport_size({"width": 360, "height": 740})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    opened.emulate_media(media="print")
    heights = "[...document.querySelectorAll('.code pre, .output pre')].every(e => e.scrollHeight <= e.clientHeight + 1)"
    assert opened.evaluate(heights)
    opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    assert opened.get_by_text("As far as I can see.").first.is_visible()
    opened.emulate_media(media="screen")
    opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    opened.set_viewport_size({"width": 1280, "height": 900})


def test_it_is_light_and_dark(opened: Page) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)
        grounds.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
    opened.emulate_media(color_scheme="light")
    assert len(grounds) == 2


def test_the_policy_allows_nothing_but_its_own_style_and_images(session: Path) -> None:
    page = export.page(session)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1] == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    # The policy comes before anything that it is about.
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<body>")
    inspect(page)


def test_the_page_up_to_a_record_holds_nothing_of_later_ones(session: Path) -> None:
    page = export.page(session, at=5)
    assert "checker" not in page
    assert f"5 of {len(read_journal(session).records)}" in page
    inspect(page)


def test_an_answer_that_was_first_a_turn_is_shown_once(tmp_path: Path) -> None:
    """Its actions stay in the entry of the turn; the text is the reply's (`dialogue.css`, tests/web)."""
    script = replies({"/": ["It is so.\n\n```VAR v\n1\n```", "It goes on."]})

    async def main() -> Path:
        async with runtime(tmp_path, script) as opened:
            session = await opened.open()
            await session.ask("Is it so?")
            await session.ask("And then?")
            return session.journal.parent

    # The browser of the other tests leaves a running loop in this thread.
    with ThreadPoolExecutor(1) as apart:
        folder = apart.submit(asyncio.run, main()).result()
    page = export.page(folder)
    assert page.count('<article class="entry own replied"') == 1
    assert page.count('<article class="entry own reply"') == 2


def test_an_image_that_a_tool_made_stands_in_the_page(tmp_path: Path) -> None:
    digest = hashlib.sha256(_PIXEL).hexdigest()
    stored: dict[str, JSON] = {"sha256": digest, "size": len(_PIXEL)}
    folder = session_of(
        tmp_path,
        ("say", "/", {}, "Draw."),
        (
            "result",
            "/",
            {**PLACE, "function": "plot.draw", "status": "skipped", "media": "image/png", "blob": stored},
            "",
        ),
        (
            "result",
            "/",
            {**PLACE, "function": "x", "status": "skipped", "media": "image/svg+xml", "blob": stored},
            "",
        ),
    )
    assert "<img" not in export.page(folder)
    (folder / "blobs").mkdir()
    (folder / "blobs" / digest).write_bytes(_PIXEL)
    page = export.page(folder)
    assert page.count("<img") == 1
    assert base64.b64encode(_PIXEL).decode() in page
    inspect(page)


_KINDS = st.sampled_from(["say", "notice", "gate", "discard", "compress", "future", "control", "select"])
_NASTY = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "</title><script>",
            "</style>",
            '"><img src=x onerror=alert(1)>',
            "${title} $style $$",
            "-->",
            "```\n</div>",
        ]
    ),
)


def said(kind: str, text: str) -> dict[str, JSON]:
    """Fields that a record of this kind can have, with a text wherever one can stand."""
    usage: JSON = {"prompt": 1, "cached": 0, "completion": 1}
    fields: Mapping[str, dict[str, JSON]] = {
        "say": {},
        "notice": {"level": "warning", "code": text},
        "gate": {**PLACE, "function": text, "allow": False, "by": "impact", "impact": 1, "reason": text},
        "discard": {"reason": "pause", "usage": usage},
        "compress": {"role": text, "model": text, "usage": usage},
        "control": {"op": "later", "mode": text, "by": text},
        "select": {**PLACE, "function": text, "took": []},
    }
    return fields.get(kind, {"function": text, "reason": text})


@settings(max_examples=rounds(15), deadline=None)
@given(parts=st.lists(st.tuples(_KINDS, _NASTY, _NASTY), max_size=6))
def test_no_text_breaks_out_of_its_place(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, str, str]]
) -> None:
    records = [(kind, "/", said(kind, field), body) for kind, field, body in parts]
    inspect(export.page(session_of(tmp_path_factory.mktemp("nasty"), *records)))


def test_the_command_writes_a_file_or_standard_output(session: Path, tmp_path: Path) -> None:
    product = Product.at(session.parent.parent, **NO_MODULES)
    shown = product.run("journal", "html", session.name)
    assert (shown.status, shown.stderr) == (0, "")
    assert shown.stdout == export.page(session)
    written = product.run("journal", "html", str(session), "-o", str(tmp_path / "page.html"))
    assert (written.status, written.stdout) == (0, "")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == shown.stdout
    refused = product.run("journal", "html", session.name, "-o", str(tmp_path / "no" / "page.html"))
    assert refused.status == 2
    assert "can't be written" in refused.sentence


# --- damage


def _with_a_long_result(data: Path) -> Path:
    """The journal of a session with one result in a file of its own."""
    script = replies({"/": [f"```READ\n{'a line of many words ' * 1500}\n```", "It is read."]})

    async def main() -> Path:
        async with runtime(data, script, chunk=4096) as opened:
            session = await opened.open()
            await session.ask("Read it.")
            return session.journal

    # The browser of the other tests leaves a running loop in this thread.
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, main()).result()


def test_a_page_of_a_damaged_session_says_what_it_lacks(tmp_path: Path) -> None:
    journal = _with_a_long_result(tmp_path)
    assert "was lost" not in export.page(journal)
    assert "unfinished record" not in export.page(journal)

    (blob,) = (journal.parent / "blobs").iterdir()
    blob.unlink()
    journal.write_bytes(journal.read_bytes()[:-40])

    n = next(one.n for one in read_journal(journal).records if one.kind == "result")
    page = export.page(journal)
    assert f'The content of a value was lost in <a href="#r{n}">record {n}</a>.' in page
    assert re.search(r"The last [\d,]+ bytes of the journal are an unfinished record, left out here\.", page)
    assert "was lost" not in export.page(journal, at=n - 1), "what the page doesn't show is not lacking"


def test_a_session_that_cannot_be_read_has_a_sentence_and_no_page(tmp_path: Path) -> None:
    journal = _with_a_long_result(tmp_path)
    whole = journal.read_bytes()
    place = whole.index(b"Read it.")
    journal.write_bytes(whole[:place] + bytes(4) + whole[place + 4 :])

    with pytest.raises(JournalCorrupt, match=r"Record \d+ at byte \d+ is damaged"):
        export.page(journal)
