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
        (
            "<table><tr><th><th>low<th>high</tr><tr><td>adult<td>84<td>112</tr></table>",
            "|  | low | high |\n|---|---|---|\n| adult | 84 | 112 |",
        ),
        (
            "<table><tr><td rowspan=2>A</td><td>1</td></tr><tr><td>2</td></tr><tr><td colspan=2>end</td></tr></table>",
            "| A | 1 |\n|---|---|\n| A | 2 |\n| end |  |",
        ),
        (
            "<table><tr><td><p>a</p><p>b</p></td><td><ul><li>c<li>d</ul></td></tr></table>",
            "| a b | c d |\n|---|---|",
        ),
        ("<table><tr><td>x<td><table><tr><td>y</table></table>", "x\n\n| y |\n|---|"),
        (f"<table><tr><td><p>{'a' * 601}</p><p>b</p></td></tr></table>", f"{'a' * 601}\n\nb"),
        ("<script>alert('<p>x</p>')</script><style>p {}</style><p>a</p>", "a"),
        ("<svg><text>x</text></svg><noscript>y</noscript><template><p>z</p></template>a", "a"),
        ("<nav>menu</nav><main><p>text</p></main><footer>f</footer>", "text"),
        ("<nav>menu</nav><article><p>text", "text"),
        ("<nav>menu</nav><main></main>", "menu"),
        (
            "<nav>menu</nav><main><h1>h</h1><article>a</article>b<article>c</article></main>",
            "# h\n\na\n\nb\n\nc",
        ),
        ("<nav>menu</nav><article>a</article><div>junk</div><article>b</article>", "a\n\nb"),
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


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<nav><a href=x>X</a></nav><p>Everything is kept where nothing is marked as main.", ""),
        (
            "<header>Us<nav><a href=/x>X</a> <a href=/y><b>Y</b></a> <a href=/x>X again</a></nav></header>"
            "<main>text<aside>kept</aside></main><aside>Ad</aside><aside>Ad</aside><footer>(c)</footer>",
            "a header, 2 asides, a footer\n"
            "Navigation: [X](https://example.com/x), [**Y**](https://example.com/y)",
        ),
        ("<article><article>a</article><article>b</article></article><nav>n</nav>", "navigation"),
        ("<header><nav>menu</nav></header><main>text</main>", "navigation"),
        ("<article>a</article>12345<article>b</article>", "5 characters of other text"),
        ("<main>text</main><article>other</article>", "an article"),
        (
            "<main><form><input name=q><input type=hidden><input type=submit><select><option>a</select></form>"
            "<iframe src=/map></iframe></main>",
            "2 fields of a form, 1 frame (https://example.com/map)",
        ),
        (f"<nav>{'<a href=/x>x</a>' * 30}</nav><main>m</main>", "\nNavigation: [x](https://example.com/x)"),
        (
            "<nav><a href=/x>X</a></nav><main><a href=/1>1</a> <a href=/2>2</a> <a href=/3>3</a></main>",
            "navigation with 1 link",
        ),
        ("<nav>" + "".join(f"<a href=/{n}>x</a>" for n in range(30)) + "</nav><main>m</main>", "navigation with 30 links"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_counted(html: str, expected: str) -> None:
    assert convert(html, BASE).left_out == expected


TAGS = st.sampled_from(
    ["<p>", "</p>", "<ul>", "<li>", "</li>", "</ul>", "<ol start=x>", "<blockquote>", "</blockquote>", "<pre>", "</pre>",
     "<table>", "<tr>", "<td rowspan=3>", "<td colspan=99999>", "</tr>", "<nav>", "</nav>", "</table>", "<main>", "</main>", "<a href='x'>", "</a>", "<script>", "</script>",
     "<head>", "<body>", "<!--", "-->", "<![CDATA[", "&#x0;", "&", "<", "\0", "text", "`", "<br>", "<title>"]
)  # fmt: skip


@given(st.lists(TAGS, max_size=60))
def test_any_page_is_some_text(parts: list[str]) -> None:
    assert "\0" not in text("".join(parts))


@pytest.mark.parametrize(
    "piece",
    [
        "<div>",
        "<ul><li>",
        "<blockquote>",
        "<a href=x>",
        "<table><tr><td>",
        "<b>",
        "</p>",
        "<nav>",
        "<tr><td rowspan=50>",
        "<article>",
    ],
)
def test_deep_pages_take_linear_time(piece: str) -> None:
    begun = time.process_time()
    assert "end" in text(piece * 50_000 + "end")
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("<article>x</article>", "3 characters of other text"),
        ("<aside>x</aside><main>m</main>", "50000 asides, 3 characters of other text"),
        (
            "<nav><a href=/x>x</a></nav><main>m</main>",
            "3 characters of other text\nNavigation: [x](https://example.com/x)",
        ),
    ],
)
def test_the_parts_of_a_page_are_counted_in_linear_time(piece: str, expected: str) -> None:
    begun = time.process_time()
    assert convert(piece * 50_000 + "<div>end</div>", BASE).left_out == expected
    assert time.process_time() - begun < 20
