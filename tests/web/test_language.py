"""The page speaks its reader's language: every word of ours has a line in each language, and a browser says them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, expect

from docs.reference import sentences
from tests.web import words
from tests.web.browser import SHARED, browsing
from tests.web.fake import LABEL, FakeAround, FakeRuntime, node
from tests.web.scene import busy_session

run = SHARED.run

ROOT: Final = Path(__file__).parents[2]
_VALUE: Final = re.compile(r"\{\w+\}")
ENGLISH: Final = re.compile(
    r"\b(the|is|are|of|and|with|which|what|this|that|your|you|nothing|there|it|for)\b", re.I
)
"""Words that every English sentence has one of, and German has none of."""

_UNSAID: Final = re.compile(
    # What is no text for people: names of classes, elements, events, keys and modules; faults of our own.
    r"(className|id|type|dateTime|class|d|viewBox|keys): $"
    r"|className: [^,]*$"
    r"|\b(part|querySelector(All)?|closest|matches|addEventListener|Event|Error|getItem|fetch|includes|import|matchMedia)\($"
    r"|(===|!==) $|\bfrom $|\bimport $|\bkeys: $|classList\.\w+\(.*$|look: .*$"
)
_WORDS: Final = re.compile(r"[A-Za-z]{2,}[ ,.:;…]+[A-Za-z]{2}|^[A-Z][a-z]+")
_TECHNICAL: Final = re.compile(r"[a-z]+(\.[a-z]+)+$|export [A-Z_]+=")
"""Types of messages, and lines for a shell."""

_ALLOWED: Final = frozenset(
    {
        ("palette.js", "Alt+Shift+\0"),  # names of keys
        ("language.js", "English"),  # languages, in their own words
        ("language.js", "Deutsch"),
        *(
            ("spreadsheet.js", name)
            for name in (  # files, elements and attributes of a workbook
                "xl/workbook.xml",
                "xl/_rels/workbook.xml.rels",
                "xl/sharedStrings.xml",
                "xl/styles.xml",
                "Relationship",
                "Id",
                "Target",
            )
        ),
    }
)
"""Literals that look like words of ours and are none, by script."""


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_every_text_of_the_page_has_its_line_and_no_other(language: str) -> None:
    lines = words.lines(language)
    wanted = {**sentences.of_scripts(), **dict.fromkeys(sentences.of_the_page(), "index.html")}
    missing = [f"{where}: {text}" for text, where in wanted.items() if text not in lines]
    assert not missing, f"{language}.json has no line for:\n" + "\n".join(missing)
    assert [text for text in lines if text not in wanted] == [], "the page no longer says this"


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_every_sentence_of_the_server_has_its_line(language: str) -> None:
    """What only models, logs or the terminal read has none: docs/reference/sentences.py says what that is."""
    lines = {**words.lines(language, server=True), **words.lines(language)}
    missing = [f"{where}: {text}" for text, where in sentences.of_server().items() if text not in lines]
    assert not missing, f"{language}.server.json has no line for:\n" + "\n".join(missing)


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_every_line_for_the_server_is_one_that_it_says(language: str) -> None:
    said = "\n".join(
        path.read_text(encoding="utf-8")
        for room in ("web", "iact", "core", "sandbox", "hippocampus", "ext_modules", "accounts")
        for path in (ROOT / room).rglob("*.py")
    )
    # Sentences are broken into several literals in the sources.
    said = re.sub(r'"\s*\n?\s*f?"', "", said)
    whole = sentences.of_server()
    unsaid = [
        key
        for key in words.lines(language, server=True)
        if key not in whole
        and not all(part.strip(" '") in said for part in _VALUE.split(key))
        and key.replace(" ", "_") not in said
    ]
    assert unsaid == []


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("language", words.LANGUAGES)
def test_lines_are_sorted_and_keep_their_values(language: str, server: bool) -> None:
    lines = words.lines(language, server=server)
    each = [line.rstrip(",") for line in words.source(language, server=server).splitlines()[1:-1]]
    assert [next(iter(json.loads(f"{{{line}}}"))) for line in each] == sorted(lines)
    for key, line in lines.items():
        values = set(_VALUE.findall(key))
        for category, text in {"other": line}.items() if isinstance(line, str) else line.items():
            found = set(_VALUE.findall(text))
            assert found == values or (category != "other" and found < values), key


def test_no_text_goes_around_the_languages() -> None:
    """Every literal of a script that looks like words for people is given to `t` or `plural`."""
    found = []
    for script in sentences.SCRIPTS:
        source = script.read_text(encoding="utf-8")
        for line, before, text in words.strings(source):
            plain = text.replace("\0", "")
            if (
                _TECHNICAL.match(plain)
                or _WORDS.search(plain) is None
                or _UNSAID.search(before)
                or (script.name, text) in _ALLOWED
            ):
                continue
            if re.search(r"\b(t|plural)\([^\"]*$", before) or re.search(r"\bplural\([^;]*$", before):
                continue
            found.append(f"{script.name}:{line}: {plain}")
    assert found == [], "Say it with t(…):\n" + "\n".join(found)


def test_the_scan_sees_what_goes_around() -> None:
    source = (
        'setText(a, `You have ${count} of them`); // a comment with "Words in it"\n'
        'el("p", {}, "Nothing waits."); const found = /^"No text"/.exec("id");'
    )
    texts = [text for _, _, text in words.strings(source) if _WORDS.search(text)]
    assert texts == ["You have \0 of them", "Nothing waits."]


def test_a_language_is_chosen_by_the_browser_and_waits_for_no_english() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(busy_session()), FakeAround()) as scene:
            english = await scene.page()
            assert await english.evaluate("document.documentElement.lang") == "en"
            fetched = (
                "performance.getEntriesByType('resource').filter(e => e.name.includes('/languages/')).length"
            )
            assert await english.evaluate(fetched) == 0
            page = await scene.page("demo", locale="de-AT")
            assert await page.evaluate("document.documentElement.lang") == "de"
            assert await page.evaluate(fetched) == 2
            await expect(page.get_by_role("tab", name="Agenten")).to_be_visible()
            # Dates and numbers are the reader's, too.
            assert (
                await page.evaluate("import('/static/js/base/format.js').then(m => m.tokens(1234))") == "1,2k"
            )
            french = await scene.page(locale="fr-FR")
            assert await french.evaluate("document.documentElement.lang") == "en"

    run(test)


_OF_THE_FAKE: Final = frozenset({finding.detail for finding in FakeAround().checks()})


async def english_on(page: Page) -> list[str]:
    """What stands on a German page in English and is ours: not what agents, files and people said."""
    texts: list[str] = await page.evaluate(
        """() => {
        // What people, agents and files say, and what the fake product around the server does.
        const foreign = '.md, pre, code, kbd, .examples, .model, [data-role=answers], .journal, .suggestion, .at-work, [data-role=session-title], '
          + '.session-row .title, .session-more, [data-role=replay-what], .rows, .snippet';
        const found = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
          const element = walker.currentNode.parentElement;
          if (element.closest(foreign) || !element.checkVisibility()) continue;
          found.push(walker.currentNode.nodeValue.trim());
        }
        for (const name of ['title', 'placeholder', 'aria-label'])
          for (const element of document.querySelectorAll(`[${name}]`))
            if (!element.closest(foreign)) found.push(element.getAttribute(name));
        return found.filter(Boolean);
        }"""
    )
    german = words.lines("de")
    ours = {key for key, line in german.items() if line != key and re.search("[a-z]{2}", key)}
    left = {text.replace(LABEL, "") for text in texts} - _OF_THE_FAKE
    return sorted(text for text in left if text in ours or ENGLISH.search(text))


def test_a_german_page_has_no_english_sentence_of_ours() -> None:
    async def test() -> None:
        session = busy_session()
        async with browsing(FakeRuntime(session), FakeAround()) as scene:
            found: dict[str, list[str]] = {}
            first = await scene.page(locale="de-DE")
            await expect(first.locator(".empty")).to_be_visible()
            found["first page"] = await english_on(first)
            page = await scene.page("demo", locale="de-DE")
            await expect(page.locator(".card.result")).to_be_visible()
            session.show(node("/", "thinking"), node("/a", "waiting", doing="waiting for /b"))
            await expect(page.locator("[data-path='/a']").filter(has_text="wartet auf /b")).to_be_visible()
            for tab in ("facts", "context", "variables", "memory", "gate", "records"):
                await page.locator(f"[data-tab={tab}]").click()
                await expect(page.locator("[data-role=inspector]")).not_to_be_empty()
                found[tab] = await english_on(page)
            await page.locator("[data-role=sessions]").click()
            await page.locator(".session-more").first.click()
            await expect(page.locator(".session-actions")).to_be_visible()
            found["sessions"] = await english_on(page)
            await page.keyboard.press("Control+f")
            await expect(page.locator("[data-role=find]")).to_be_visible()
            found["find"] = await english_on(page)
            await page.keyboard.press("Escape")
            for opened in ("modules-open", "settings-open", "palette-open"):
                await page.locator(f"[data-role={opened}]").click()
                await expect(page.locator("dialog[open]")).to_be_visible()
                found[opened] = await english_on(page)
                await page.keyboard.press("Escape")
            await page.locator("[data-role=replay-open]").click()
            await expect(page.locator("[data-role=replay]")).to_be_visible()
            found["replay"] = await english_on(page)
            assert {view: texts for view, texts in found.items() if texts} == {}

    run(test)
