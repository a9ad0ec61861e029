"""HTML to Markdown: what a reader needs stays, what could run goes, and no page makes it fail."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_modules.web.markdown import convert

BASE = "https://example.com/a/b"


def text(html: str) -> str:
    return convert(html, BASE).text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>Title</h2><p>One\n  two</p>", "## Title\n\nOne two"),
        ("<p>a<br>b</p>", "a\nb"),
        ("plain &amp; simple &lt;b&gt;", "plain & simple <b>"),
        ("<p>a <b>bold</b> <em>word</em> <code>x = 1</code></p>", "a **bold** *word* `x = 1`"),
        ('<a href="/c?d=1#e">link</a>', "[link](https://example.com/c?d=1#e)"),
        ('<a href="c(1)">link</a>', "[link](https://example.com/a/c%281%29)"),
        ('<a href="javascript:alert(1)">link</a>', "link"),
        ('<a href="java\nscript:alert(1)">link</a>', "link"),
        ('<a href="data:text/html,x">link</a> <a href="http://[">b</a>', "link b"),
        ('<img src="x" alt="A cat"><img src="y">', "[image: A cat]"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ('<ol start="3"><li>a</li><li>b</li></ol>', "3. a\n4. b"),
        ("<blockquote><p>a</p><p>b</p></blockquote><p>c</p>", "> a\n>\n> b\n\nc"),
        ("<pre>a\n  b\n</pre>", "```\na\n  b\n```"),
        ("<pre><code>```\nx</code></pre>", "````\n```\nx\n````"),
        ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
        (
            "<table><tr><th>a</th><th>b|c</th></tr><tr><td>1</td><td>2</td></tr></table>",
            "| a | b\\|c |\n|---|---|\n| 1 | 2 |",
        ),
        ("<script>alert('<p>x</p>')</script><style>p {}</style><p>a</p>", "a"),
        ("<svg><text>x</text></svg><noscript>y</noscript><template><p>z</p></template>a", "a"),
        ("<nav>menu</nav><main><p>text</p></main><footer>f</footer>", "text"),
        ("<nav>menu</nav><article><p>text", "text"),
        ("<nav>menu</nav><main></main>", "menu"),
        ("<head><meta><body>a", "a"),
        ("<p>a</b></i></p></div>b", "a\n\nb"),
        ("", ""),
    ],
)
def test_conversion(html: str, expected: str) -> None:
    assert text(html) == expected


def test_the_title_is_one_line() -> None:
    page = convert("<title>A\n &amp; B</title><title>C</title><body>x", BASE)
    assert (page.title, page.text) == ("A & B", "x")


TAGS = st.sampled_from(
    ["<p>", "</p>", "<ul>", "<li>", "</li>", "</ul>", "<ol start=x>", "<blockquote>", "</blockquote>", "<pre>", "</pre>",
     "<table>", "<tr>", "<td>", "</tr>", "</table>", "<main>", "</main>", "<a href='x'>", "</a>", "<script>", "</script>",
     "<head>", "<body>", "<!--", "-->", "<![CDATA[", "&#x0;", "&", "<", "\0", "text", "`", "<br>", "<title>"]
)  # fmt: skip


@given(st.lists(TAGS, max_size=60))
def test_any_page_is_some_text(parts: list[str]) -> None:
    assert "\0" not in text("".join(parts))


@pytest.mark.parametrize(
    "piece", ["<div>", "<ul><li>", "<blockquote>", "<a href=x>", "<table><tr><td>", "<b>", "</p>"]
)
def test_deep_pages_take_linear_time(piece: str) -> None:
    begun = time.process_time()
    assert "end" in text(piece * 50_000 + "end")
    assert time.process_time() - begun < 20
