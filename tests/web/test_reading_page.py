"""The dialogue as a person reads it, in a real browser: their own words, code, formulas, the direction of a text."""

from __future__ import annotations

from playwright.async_api import expect

from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime, FakeSession, node

run = SHARED.run

MINE = "fix my_func_name in a*b*c and `code_x` <tag> $up_csv\n  second line\n- no list\n\n\n# no title"
FIRST = "fix my_func_name in a*b*c and `code_x` <tag> $up_csv"
ANSWER = """\
Done, with **one** change; the sum is $\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$.

$$
x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}
$$

- [x] renamed
- [ ] tested

```python
def my_func_name(a: int) -> str:
    return f"{a}"  # as before
```

```diff
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-def my_func(a):
+def my_func_name(a):
```

```mermaid
graph TD; A-->B
```

مرحبا بالعالم، هذه فقرة عربية.

1. عنصر
2. عنصر آخر
"""


def read_session(identity: str = "mine") -> FakeSession:
    """A message with every mark of Markdown in it, and an answer with all that is drawn."""
    session = FakeSession(identity)
    session.append("open", models={"smart": {"model": "scripted"}})
    session.append("say", body=MINE)
    session.append(
        "turn", body="I rename it.\n\n```shell.run\nfor f in *.py; do sed -i 's/a/b/' \"$f\"; done\n```\n"
    )
    session.append("control", body="only *.py, not *.pyi\n  please", op="inject", mode="deliver", by="user")
    session.append("reply", body=ANSWER, to="user", status="ok")
    session.show(node("/", "idle"))
    return session


def test_ones_own_text_is_as_typed_and_answers_are_drawn() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(read_session()), FakeAround()) as scene:
            page = await scene.page("mine")
            mine = page.locator(".entry.incoming .typed")
            # The very text, as the browser lays it out: stars, underscores, lines, indentation.
            assert await mine.evaluate("element => element.innerText") == MINE
            await expect(page.locator("[data-role=session-title]")).to_have_text(FIRST)
            await expect(page).to_have_title(f"{FIRST} · iact")
            told = page.locator(".entry.intervention .typed")
            assert await told.evaluate("element => element.innerText") == "only *.py, not *.pyi\n  please"
            reply = page.locator(".entry.reply")
            await expect(reply.locator("math")).to_have_count(2)
            assert await reply.locator("math mfrac").first.evaluate(
                "element => element.getBoundingClientRect().height > 10"
            )
            await expect(reply.locator(".task")).to_have_text(["☑", "☐"])
            await expect(reply.locator(".hl-new").last).to_have_text("+def my_func_name(a):\n")
            await expect(reply.locator(".code .language")).to_have_text(["python", "diff", "mermaid"])
            await expect(page.locator(".card.action .hl-k").first).to_be_visible()
            colours = await reply.locator(".code").first.evaluate(
                "block => new Set([...block.querySelectorAll('span')].map(one => getComputedStyle(one).color)).size"
            )
            assert colours >= 4
            for block in ("p:has-text('مرحبا')", "ol:has-text('عنصر')"):
                assert (
                    await reply.locator(block).evaluate("block => getComputedStyle(block).direction") == "rtl"
                )
            assert (
                await reply.locator(".code pre").first.evaluate("block => getComputedStyle(block).direction")
                == "ltr"
            )

    run(test)
