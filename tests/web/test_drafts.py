"""A reply is formatted while a model writes it, and nothing of it moves when its record comes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.async_api import Page, expect

from iact.core.stored.store import SessionStore
from iact.core.views.events import Delta
from iact.core.views.text import looks_like_action
from iact.web.draft import finished, formatted
from iact.web.render import reply_with_actions
from iact.web.render_pool import RenderPool
from iact.web.render_tasks import SHORT, answer, draft_html, draft_question, question_in
from iact.web.server import WebServer
from tests.web.browser import SHARED
from tests.web.dialling import dial, run, send, until
from tests.web.fake import FakeRuntime, FakeSession, node
from tests.web.long import long_journal
from tests.web.test_page import stage

REPLY = """\
# Two cities

Some **bold** text 🎉🎉
goes on, with a [link](https://example.org/x).

- one
- two 🧭

  a paragraph of the second
- [ ] three

| city | people |
|---|--:|
| Bremen | 570,000 |

```shell.run
df -h

du -sh
```
> quoted
> text

    indented

    still indented

Setext
------
~~~python
print(1)
~~~
1. first
2. second

The end of $it.
"""


def in_pieces(text: str, ends: list[int]) -> str:
    """The HTML that a client shows that asks each time the text has grown up to one of `ends`."""
    done, html, rest = 0, "", ""
    for end in ends:
        made = formatted(text[done:end], looks_like_action, {"it": 1})
        done, html, rest = done + made.closed, html + made.html, made.open
    return html + rest


@given(st.lists(st.integers(1, len(REPLY)), max_size=30))
def test_wherever_it_is_cut_the_same_html_comes_out(cuts: list[int]) -> None:
    whole = reply_with_actions(REPLY, looks_like_action, {"it": 1})
    assert in_pieces(REPLY, [*sorted(cuts), len(REPLY)]) == whole


BLOCKS = (
    "# a\n",
    "b\nc\n",
    "- d\n",
    "  e\n",
    "1. f\n",
    "> g\n",
    "```x.y\nh\n```\n",
    "```\ni\n",
    "```\n",
    "| j |\n|--|\n",
)
LINES = (
    *BLOCKS,
    "\n",
    "\n",
    "***\n",
    "    k\n",
    "===\n",
    "---\n",
    "**l\n",
    "m**\n",
    "| n |\n",
    "~~~\n",
    "$$\n",
    "x^2\n",
)


@given(st.lists(st.sampled_from(LINES), max_size=12).map("".join), st.lists(st.integers(0, 80), max_size=8))
def test_whatever_it_holds_the_same_html_comes_out(text: str, cuts: list[int]) -> None:
    ends = [*sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert in_pieces(text, ends).split() == reply_with_actions(text, looks_like_action, {"it": 1}).split()


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("", 0),
        ("A paragraph", 0),
        ("A paragraph\n", 0),
        ("A paragraph\n\n", 12),
        ("# A heading", 0),
        ("# A heading\n", 12),
        ("- an item\n\n", 0),  # another may follow
        ("- an item\n\nNot an item\n", 11),
        ("```\ncode\n", 0),
        ("```\ncode\n```\n", 13),
        ("| a |\n|---|\n| 1 |\n", 0),
        ("| a |\n|---|\n| 1 |\n\n", 18),
    ],
)
def test_a_block_is_finished_when_nothing_can_change_it(text: str, closed: int) -> None:
    assert finished(text) == closed


def test_a_long_draft_is_formatted_in_a_process_of_its_own() -> None:
    text = f"{REPLY}\n{'word ' * SHORT}"
    question = draft_question(text, looks_like_action, {"it": 1})
    assert not question.is_short
    assert question_in(json.loads(json.dumps(question.to_json()))) == question
    pool = RenderPool(processes=1)
    try:
        made = draft_html(asyncio.run(pool.render(question)))
    finally:
        pool.close()
    assert made.closed == len(REPLY)
    assert made == draft_html(answer(question))
    assert '<section class="card action">' in made.html
    assert draft_html(None).open == ""


def test_it_is_counted_in_characters() -> None:
    assert formatted("# 🎉🎉\nOn", looks_like_action, {}).closed == len("# 🎉🎉\n") == 5


async def shown(page: Page) -> str:
    return await page.locator(".entry.draft .entry-body").inner_html()


def test_the_page_shows_it_formatted_before_its_record_comes() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Compare two cities.")
        session.show(node("/", "thinking"))
        async with stage(session) as scene:
            page = await scene.page("s")
            draft = page.locator(".entry.draft .entry-body")
            session.write("/", REPLY[:60])
            await expect(draft.locator("h1")).to_have_text("Two cities")
            await expect(draft.locator("strong")).to_have_text("bold")

            session.write("/", REPLY[60 : REPLY.index("du -sh")])
            await expect(draft.locator("td")).to_have_text(["Bremen", "570,000"])
            await expect(draft.locator(".draft-code pre")).to_have_text("df -h")

            session.write("/", REPLY[REPLY.index("du -sh") :])
            await expect(draft.locator("ol li")).to_have_count(2)
            await expect(draft.locator("p").last).to_have_text("The end of $it.")
            before = await shown(page)
            session.append("turn", body=REPLY)
            await expect(page.locator(".entry.draft")).to_have_count(0)
            assert before == await page.locator(".entry[data-kind=turn] .entry-body").inner_html()

    SHARED.run(test)


def test_a_reply_that_begins_again_is_shown_from_its_beginning() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Go.")
        session.show(node("/", "thinking"))
        async with stage(session) as scene:
            page = await scene.page("s")
            draft = page.locator(".entry.draft .entry-body")
            session.write("/", "The **first** attempt")
            await expect(draft.locator("strong")).to_have_text("first")
            session.emit(Delta("/", "A **second** one", restart=True))
            await expect(draft.locator("strong")).to_have_text("second")
            await expect(draft).to_have_text("A second one")

    SHARED.run(test)


def test_a_character_is_never_sent_in_halves() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Go.")
        session.show(node("/", "thinking"))
        async with stage(session) as scene:
            page = await scene.page("s")
            asked = await page.evaluate(
                """async () => {
                    const { Draft } = await import("/static/js/dialogue/draft.js");
                    const asked = [];
                    const parent = document.body.appendChild(document.createElement("div"));
                    const draft = new Draft(parent, "/", async (agent, text) => {
                        asked.push(text);
                        return { closed: 0, html: "", open: "<p>open</p>" };
                    });
                    draft.show(`a${"🎉".repeat(9000)}`);
                    return asked.map((text) => [text.length, text.isWellFormed()]);
                }"""
            )
            assert asked == [[15_999, True]]

    SHARED.run(test)


DRAFT: Final = """
    const { Draft } = await import("/static/js/dialogue/draft.js");
    const asked = [], pauses = [], timers = [];
    let now = 0;
    const settle = async () => { for (let i = 0; i < 20; i++) await Promise.resolve(); };
    performance.now = () => now;
    window.setTimeout = (run, pause) => { timers.push(run); pauses.push(pause); };
    const parent = document.body.appendChild(document.createElement("div"));
    const drafted = (answer) => new Draft(parent, "/", async (agent, text) => {
        asked.push(text);
        return answer(text);
    });
"""


async def outcome(script: str) -> object:
    """What a script makes of a draft, with clocks that it sets."""
    async with stage(FakeSession("s")) as scene:
        page = await scene.page("s")
        result: object = await page.evaluate(f"async () => {{ {DRAFT} {script} }}")
        return result


def test_a_server_that_takes_long_is_asked_less_often() -> None:
    async def test() -> None:
        script = """
            const draft = drafted(() => { now += 1000; return { closed: 0, html: "", open: "<p>open</p>" }; });
            draft.show("a");
            await settle();
            return pauses;
        """
        assert await outcome(script) == [3000]

    SHARED.run(test)


def test_a_line_that_is_lost_does_not_end_it() -> None:
    async def test() -> None:
        script = """
            const draft = drafted((text) => {
                if (asked.length === 1) throw Object.assign(new Error("Not connected."), { code: "offline" });
                return { closed: 0, html: "", open: "<p><b>open</b></p>" };
            });
            draft.show("a");
            await settle();
            timers[0]();
            await settle();
            return [asked, parent.querySelector("b")?.textContent, pauses[0] > 1000];
        """
        assert await outcome(script) == [["a", "a"], "open", True]

    SHARED.run(test)


def test_code_that_is_too_long_for_a_request_stays_and_what_follows_is_formatted() -> None:
    async def test() -> None:
        script = """
            const draft = drafted(() => ({ closed: 0, html: "", open: "<p><b>behind</b></p>" }));
            const code = "word 🎉\\n".repeat(4000);
            draft.show("```text\\n" + code);
            await settle();
            const before = parent.querySelectorAll(".draft-code").length;
            draft.show("```text\\n" + code + "```\\nbehind");
            await settle();
            const shown = [...parent.querySelectorAll(".draft-code pre")].map((one) => one.textContent + "\\n" === code);
            return [before, shown, asked, parent.querySelector("b")?.textContent];
        """
        assert await outcome(script) == [1, [True], ["behind"], "behind"]

    SHARED.run(test)


def test_nothing_is_formatted_in_a_stored_session(tmp_path: Path) -> None:
    stored = long_journal(tmp_path / "sessions", 60).parent.name

    async def test() -> None:
        runtime = FakeRuntime()
        runtime.store = SessionStore(tmp_path)
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="open", journal=stored, id=1)
            await until(client, type="ok", id=1)
            await send(client, type="format", agent="/", text="# a", id=2)
            assert (await until(client, type="error", id=2))[-1]["code"] == "usage"

    run(test)
