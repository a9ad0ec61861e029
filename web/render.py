"""Markdown to HTML: the one renderer, for the page and for exports.

Safe by what it can emit, not by cleaning up afterwards: raw HTML is off (escaped), an address is linked only if it is
http, https or mailto, an image is never loaded but named, no attribute but `class`, `dir`, `href`, `rel`, `target`,
`tabindex`, `start` and those of formulas (`web.formulas`) is ever written, and no id comes from content. The name of an
existing variable becomes a chip, a button with nothing but the name in it. The text direction is determined for each
block separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, LiteralString
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from iact.core.views.text import CALLS, DELIVERS, ActionBlock, IsAction, looks_like_action, mentions, pieces
from iact.web import formulas, parser
from iact.web.colours import coloured, diff, holds_diff, language_of
from iact.web.markup import NOTHING, Value, escaped, html, joined, legible, trusted
from iact.web.safe_text import shortened, without_escapes

_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_MARKDOWN_HEAD, _MARKDOWN_TAIL = 96_000, 16_000
_OUTPUT_HEAD, _OUTPUT_TAIL = 24_000, 8_000

Known = Mapping[str, object]
"""The variables of the agent whose text is rendered."""
NONE: Final[Known] = {}


def _rule(template: LiteralString, /, *values: Value, attributes: Markup = NOTHING) -> str:
    """HTML for the library, which joins its pieces as ordinary strings."""
    return str(html(template, *values, attributes=attributes))


class _Renderer(RendererHTML):
    """Overrides of the rules that would write an address, a style or a language name."""

    def link_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        address = str(tokens[index].attrGet("href") or "")
        opened = env.setdefault("links", [])
        if not _allowed(address):
            opened.append(("", address))
            return _rule('<span class="dead-link">')
        opened.append((_host(address), address))
        return _rule('<a href="{}" rel="noopener noreferrer nofollow" target="_blank">', address)

    def link_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        host, address = env["links"].pop()
        if not host:
            return _rule(' <span class="address">{}</span></span>', address)
        shown = tokens[index - 1].content if tokens[index - 1].type == "text" else ""
        if host in shown:
            return _rule("</a>")
        return _rule('</a> <span class="address">{}</span>', host)

    def image(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[index]
        caption = self.renderInlineAsText(token.children or [], options, env)
        address = str(token.attrGet("src") or "")
        return _rule(
            '<span class="embed"><span class="unloaded t">picture, not loaded</span> '
            '<span class="embed-caption">{}</span> <span class="address">{}</span></span>',
            caption,
            address,
        )

    def text(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        # A button inside a link could not be pressed.
        return str(with_chips(tokens[index].content, NONE if env.get("links") else env["known"]))

    def fence(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return str(code_block(tokens[index].content, tokens[index].info.strip()))

    def code_block(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return str(code_block(tokens[index].content))

    def _aligned(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        # The standard rule writes style="text-align:…", which the page's content security policy forbids.
        token = tokens[index]
        side = str(token.attrGet("style") or "").removeprefix("text-align:")
        cls = html(' class="{}"', side) if side in ("left", "right", "center") else NOTHING

        # A header without text names nothing, and a screen reader would announce that for each cell below it.
        if token.tag == "th" and tokens[index + 1].content.strip():
            return _rule("<th{attributes}>", attributes=cls)
        return _rule("<td{attributes}>", attributes=cls)

    td_open = _aligned
    th_open = _aligned

    def th_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return _rule("</th>\n") if tokens[index - 1].content.strip() else _rule("</td>\n")

    def table_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        direction = html(' dir="auto"') if tokens[index].attrGet("dir") else NOTHING
        return _rule('<div class="table" tabindex="0"{attributes}><table>', attributes=direction)

    def table_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return _rule("</table></div>")

    def formula(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[index]
        is_block = token.info == "block"
        formula = parser.in_spare_time(lambda: formulas.mathml(token.content, block=is_block))
        if formula is None:
            formula = formulas.as_written(token.markup)

        if token.block:
            return _rule('<div class="formula" tabindex="0">{}</div>', formula)
        return str(formula)

    def task(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        if tokens[index].info == "done":
            return _rule('<span class="task done">☑</span> ')
        return _rule('<span class="task">☐</span> ')


_BLOCKS: Final = frozenset(
    (
        "paragraph_open",
        "heading_open",
        "bullet_list_open",
        "ordered_list_open",
        "blockquote_open",
        "table_open",
    )
)
_TASK: Final = re.compile(r"\[([ xX])\] (?=\S)")


def _directed(state: StateCore) -> None:
    """Set each block's direction from its own first letter."""
    for token in state.tokens:
        if token.level == 0 and token.type in _BLOCKS:
            token.attrSet("dir", "auto")


def _tasks(state: StateCore) -> None:
    """Turn `[ ]` and `[x]` at the beginning of list items into checkboxes."""
    for before, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if before.type != "list_item_open" or paragraph.type != "paragraph_open" or not inline.children:
            continue

        first = inline.children[0]
        mark = _TASK.match(first.content) if first.type == "text" else None
        if mark is None:
            continue

        first.content = first.content[mark.end() :]
        state_of_task = "" if mark.group(1) == " " else "done"
        inline.children.insert(0, Token("task", "", 0, info=state_of_task))
        before.attrSet("class", "has-task")


_ADDRESS: Final = re.compile(r"(?<!\w)https?://[^\s<>\"]{1,2000}")
_AFTER: Final = ".,;:!?…'*_~|]}’”»。，、；：！？）」』"
"""Characters that end a sentence and not an address."""


def _addresses(state: StateCore) -> None:
    """Link bare addresses in text, too: agents write addresses without marking them."""
    for inline in state.tokens:
        if not inline.children or not any("://" in token.content for token in inline.children):
            continue

        links = 0
        """How many links are open: an address in one is not linked again."""
        tokens: list[Token] = []
        for token in inline.children:
            if token.type in ("link_open", "link_close"):
                links += token.nesting

            if token.type == "text" and not links:
                tokens += _linked(token, state.md)
            else:
                tokens.append(token)

        inline.children = tokens


def _linked(token: Token, markdown_it: MarkdownIt) -> Iterator[Token]:
    """A piece of text, split at the addresses in it."""
    text = token.content
    begin = 0
    """Where the text after the last address begins."""
    for match in _ADDRESS.finditer(text):
        address = match[0][: _end(match[0])]
        if not _allowed(address) or "@" in urlsplit(address).netloc:
            continue  # the part before an @ is not the host, but looks like one

        target = markdown_it.normalizeLink(address)
        yield Token("text", "", 0, content=text[begin : match.start()])
        yield Token("link_open", "a", 1, attrs={"href": target})
        yield Token("text", "", 0, content=address)
        yield Token("link_close", "a", -1)
        begin = match.start() + len(address)

    # Without any address, the token stays the one that it is.
    yield Token("text", "", 0, content=text[begin:]) if begin else token


def _end(address: str) -> int:
    """Where an address ends in the text up to the next blank: before punctuation and unbalanced closing brackets."""
    end = len(address)
    unopened = address.count(")") - address.count("(")
    while address[end - 1] in _AFTER or (address[end - 1] == ")" and unopened > 0):
        unopened -= address[end - 1] == ")"
        end -= 1

    return end


def _allowed(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.netloc or parts.scheme == "mailto")


def _host(address: str) -> str:
    parts = urlsplit(address)
    return parts.hostname or parts.path


_PARSER: Final = parser.build(_Renderer)
_PARSER.core.ruler.push("tasks", _tasks)
_PARSER.core.ruler.push("directed", _directed)
_PARSER.core.ruler.push("addresses", _addresses)


def blocks(text: str) -> list[Token]:
    """The blocks of a text, without what is in them: each with the lines that it takes."""
    tokens: list[Token] = []
    _PARSER.block.parse(text, _PARSER, {}, tokens)
    return tokens


UNFORMATTED: Final = "This text is too complex to format; it is shown as it was written."


def markdown(text: str, known: Known = NONE) -> Markup:
    """HTML of untrusted Markdown. Very long text loses its middle, and says so."""
    head, left_out, tail = shortened(text, head=_MARKDOWN_HEAD, tail=_MARKDOWN_TAIL)
    if not left_out:
        return _markdown(head, known)
    return joined((_markdown(head, known), _gap(left_out), _markdown(tail, known)))


def _markdown(text: str, known: Known) -> Markup:
    try:
        # The library escapes text, and its rules above write the rest.
        return legible(trusted(parser.render(_PARSER, without_escapes(text), {"known": known})))
    except (RecursionError, ValueError, parser.TooComplex):
        return unformatted(text)


def unformatted(text: str) -> Markup:
    """Text that the parser can't take, or not in time, as it is; without its middle if it is very long."""
    head, left_out, tail = shortened(text, head=_MARKDOWN_HEAD, tail=_MARKDOWN_TAIL)
    gap = joined((_gap(left_out), _raw(tail))) if left_out else NOTHING
    return html('<p class="gap t">{}</p>{}{}', UNFORMATTED, _raw(head), gap)


def _raw(text: str) -> Markup:
    return html('<pre class="raw"{attributes}>{}</pre>', text, attributes=_stop(text))


def code_block(text: str, info: str = "", *, language: str = "") -> Markup:
    """A code block; the first word of `info` is shown as its language. `language`: its language, if none should be
    shown."""
    named = info.split(None, 1)[0] if info else ""
    label = html('<span class="language">{}</span>', named) if named else NOTHING
    return html(
        '<div class="code">{}<pre{attributes}><code>{}</code></pre></div>',
        label,
        legible(coloured(text, named or language)),
        attributes=_stop(text),
    )


def _stop(text: str) -> Markup:
    """Make a block focusable with the Tab key if it may need scrolling at some width."""
    lines = text.split("\n")
    may_scroll = len(lines) > 12 or max(map(len, lines)) > 36
    return html(' tabindex="0"') if may_scroll else NOTHING


def output(text: str) -> Markup:
    """A tool's output as preformatted text; diffs are coloured."""
    head, left_out, tail = shortened(without_escapes(text), head=_OUTPUT_HEAD, tail=_OUTPUT_TAIL)
    as_html = diff if holds_diff(head) else escaped

    content = _printed(head, as_html)
    if left_out:
        content = joined((content, _gap(left_out), _printed(tail, as_html)))
    return html('<div class="output">{}</div>', content)


def _printed(text: str, as_html: Callable[[str], Markup]) -> Markup:
    return html("<pre{attributes}>{}</pre>", legible(as_html(text)), attributes=_stop(text))


def typed(text: str, known: Known = NONE) -> Markup:
    """A person's text exactly as written: every character and every line; only names of variables become chips."""
    head, left_out, tail = shortened(text.replace("\r\n", "\n"), head=_MARKDOWN_HEAD, tail=_MARKDOWN_TAIL)
    if not left_out:
        return _typed(head, known)
    return joined((_typed(head, known), _gap(left_out), _typed(tail, known)))


def _typed(text: str, known: Known) -> Markup:
    return html('<div class="typed" dir="auto">{}</div>', legible(with_chips(text, known)))


def _gap(left_out: int) -> Markup:
    # The page's own script fetches them; without it, as in an export, the button is not shown.
    return html(
        '<p class="gap"><span class="t">{left_out:,} characters hidden</span> '
        '<button class="link show-all t">Show all</button></p>',
        left_out=left_out,
    )


def aside(words: str) -> Markup:
    """One of our own sentences next to a dialogue, which the page translates."""
    return html('<p class="aside t">{}</p>', words)


def folded(words: str, inside: Markup) -> Markup:
    """Content that is shown when it is unfolded. `words`: our own, as in `aside`."""
    return html('<details class="quiet"><summary class="t">{}</summary> {}</details>', words, inside)


def with_chips(text: str, known: Known) -> Markup:
    """Text as HTML in which each mention of a known variable is a chip; not yet `legible`."""
    names = mentions(text, known)
    if not names:
        return escaped(text)

    # Every second piece is a mention.
    pieces = re.split(rf"(\$(?:{'|'.join(names)})(?!\w))", text)
    return joined(
        html('<button class="chip">{}</button>', escaped(piece)) if place % 2 else escaped(piece)
        for place, piece in enumerate(pieces)
    )


def reply_with_actions(text: str, is_action: IsAction = looks_like_action, known: Known = NONE) -> Markup:
    """HTML of a model's text: prose as Markdown, each action block as a card."""
    return joined(
        markdown(piece, known) if isinstance(piece, str) else _card(piece, known)
        for piece in pieces(text, is_action)
    )


def _card(block: ActionBlock, known: Known) -> Markup:
    has_body = bool(block.body.strip())
    is_call = block.name in CALLS
    look = "call" if is_call else "action"
    if block.name == DELIVERS:
        # What it holds is shown as the reply (dialogue.css).
        look = "action-answer" if has_body else "action-answer-word"

    # An agent's message to another is Markdown; what a function takes is shown as it is.
    if is_call:
        body = markdown(block.body, known)
    else:
        body = code_block(block.body, language=_language(block))

    return html(
        '<section class="card {look}"><header><span class="function">{name}</span> '
        '<span class="arguments">{arguments}</span></header>{content}</section>',
        look=look,
        name=block.name,
        arguments=legible(with_chips(without_escapes(block.arguments), known)),
        content=html('<div class="card-body">{}</div>', body) if has_body else NOTHING,
    )


_LANGUAGES: Final = {"BASH": "bash", "PLAN": "yaml", "DEPLOY": "python"}
_PATH: Final = re.compile(r"[\w./~-]+\.\w{1,12}")


def _language(block: ActionBlock) -> str:
    """The language of an action's body, according to its name or a file's name."""
    if block.name.startswith("shell."):
        return "bash"
    if block.name.startswith("files."):
        path = _PATH.search(block.arguments)
        return language_of(path.group()) if path else ""
    return _LANGUAGES.get(block.name, "")
