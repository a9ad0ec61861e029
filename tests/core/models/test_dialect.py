"""Function calls written back as action blocks: the language reads them as they were meant, whatever they hold."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import ModelGarbled
from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import Bound, Mistake, bind, split
from iact.core.language.scanner import Block, scan
from iact.core.language.variables import Table, text_value
from iact.core.models.dialect import ACT, FEEDBACK, ActionWriter, CallFragment
from iact.core.models.openai import ModelEndpoint, OpenAIModel
from iact.core.ports import JSON, ChatMessage, ModelProfile
from tests.core.models.clock import VirtualClock
from tests.core.models.conformance import Collected, collect
from tests.endpoint import Endpoint, Reply, Request

MESSAGES = [ChatMessage("system", "Act."), ChatMessage("user", "You are agent /, called by the user.")]


def written(*pieces: str | tuple[int, str]) -> str:
    """A reply from text and whole calls (number, arguments) in turn."""
    writer = ActionWriter()
    found: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            found += writer.feed(piece, [])
        else:
            found += writer.feed("", [CallFragment(piece[0], f"id{piece[0]}", "act", piece[1])])
    return "".join([*found, *writer.end()])


def act(action: JSON, arguments: JSON = None, body: JSON = None) -> str:
    fields = {"action": action, "arguments": arguments, "body": body}
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def blocks(text: str, *names: str) -> list[Block]:
    """The action blocks of a reply."""
    known = {"VAR", "SHOW", "CALL", *names}
    return [block for block in scan(text, lambda name: name in known).blocks if block.action]


def refused(text: str) -> str:
    """The sentence that the agent gets for the only action in a reply, which can't be read."""
    [block] = blocks(text)
    assert block.info.split()[0] == FEEDBACK
    mistake = split(block.info)
    assert isinstance(mistake, Mistake)
    return mistake.sentence


# --- the round trip -------------------------------------------------------------------------------

NAMES = st.from_regex(r"[A-Z][A-Z_]{0,8}|[a-z][a-z0-9_]{0,8}\.[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name != "VAR"
)
KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,9}", fullmatch=True)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\r")
SIGNS = st.sampled_from(
    [*"`~\"'\\$=,{}[]“” \t\n#<>-", "```", "~~~~", "\n```", "```BASH", "\n~~~\n", "<!--", "\n<pre>"]
)
TEXTS = st.lists(SIGNS | CHARACTERS, max_size=12).map("".join)
JSONS: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
WORDS = TEXTS.filter(lambda text: not re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", text)).filter(
    lambda text: bool(text.strip()) or "\n" not in text
)
TYPED: Mapping[str, st.SearchStrategy[JSON]] = {
    "string": WORDS,
    "integer": st.integers(-(10**18) + 1, 10**18 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9999, 9999),
    "boolean": st.booleans(),
    "array": st.lists(JSONS, max_size=3),
    "object": st.dictionaries(TEXTS, JSONS, max_size=3),
}
ARGUMENTS = st.dictionaries(
    KEYS.filter(lambda key: key not in ("body", "action", "arguments")),
    st.sampled_from(sorted(TYPED)).flatmap(lambda kind: TYPED[kind].map(lambda value: (kind, value))),
    max_size=4,
)


@given(NAMES, ARGUMENTS, TEXTS, st.integers(1, 9))
def test_scanning_and_binding_gives_back_what_was_called(
    name: str, arguments: dict[str, tuple[str, JSON]], body: str, size: int
) -> None:
    values = {key: value for key, (_, value) in arguments.items()}
    text = streamed(json.dumps({"action": name, "arguments": values, "body": body}), size)
    *defined, block = blocks(text, name)
    table = Table()
    for each in defined:
        table.define(each.info.split()[1], text_value(each.body))
    taken = split(block.info)
    assert not isinstance(taken, Mistake), taken
    schema: dict[str, JSON] = {key: {"type": kind} for key, (kind, _) in arguments.items()}
    properties: dict[str, JSON] = {**schema, "body": {"type": "string"}}
    spec = ActionSpec(name, "", {"type": "object", "properties": properties}, body="body")
    bound = bind(spec, taken[1], block.body, table)
    assert isinstance(bound, Bound), bound
    found = {**bound.arguments, **{key: value.text() for key, value in bound.attached.items()}}
    assert taken[0] == name
    assert found.pop("body", "") == (body if body.strip() else "")
    assert found == values
    assert all(type(found[key]) is type(value) for key, value in values.items() if isinstance(value, bool))
    assert scan(text, lambda word: word in (name, "VAR")).kept == text.rstrip()


def streamed(arguments: str, size: int) -> str:
    """One call whose arguments come in pieces of `size` characters."""
    writer = ActionWriter()
    found = list(writer.feed("", [CallFragment(0, "id", "act", "")]))
    for start in range(0, len(arguments), size):
        found += writer.feed("", [CallFragment(0, arguments=arguments[start : start + size])])
    return "".join([*found, *writer.end()])


@given(st.lists(TEXTS | st.tuples(st.integers(0, 2), TEXTS), max_size=8))
def test_anything_at_all_is_written_and_no_call_is_lost(pieces: list[str | tuple[int, str]]) -> None:
    text = written(*pieces)
    assert len(text) >= sum(len(piece) for piece in pieces if isinstance(piece, str))


@given(TEXTS, TEXTS)
def test_whatever_text_stands_before_a_call_is_a_block_of_its_own(before: str, body: str) -> None:
    text = written(before, (0, act("t.read", {"n": 1}, body)))
    assert text.startswith(before)
    last = blocks(text, "t.read")[-1]
    assert (last.info, last.closed) == ("t.read n=1", True)
    assert last.body == body


@pytest.mark.parametrize(
    "before",
    [
        "So:\n\n```python\nprint(1)",
        "So:\n\n`````\n```\n~~~",
        "~~~~ text\n~~~",
        "<!-- a thought",
        "<pre>\n\nx",
        "<script>",
        "<?php",
        "<![CDATA[ x",
        "<!DOCTYPE",
        "<div>\n<p",
        "- an item\n\n  ```\n  code",
        "> a quote\n> ```\n> code",
        "1. one\n   - two\n     <!-- x",
        "a line\r\n```\r\ncode",
        "| a | b |\n|---|---|",
        "trailing\n",
        "\n\n\n",
        " ",
    ],
)
def test_what_a_text_leaves_open_does_not_swallow_the_call(before: str) -> None:
    text = written(before, (0, act("t.a", {}, "one")), (1, act("t.b", {}, "two")))
    assert [(block.info, block.body) for block in blocks(text, "t.a", "t.b")] == [
        ("t.a", "one"),
        ("t.b", "two"),
    ]


# --- order and streaming --------------------------------------------------------------------------


def test_text_passes_at_once() -> None:
    writer = ActionWriter()
    assert list(writer.feed("Let me", [])) == ["Let me"]
    assert list(writer.feed(" see.", [])) == [" see."]
    assert list(writer.end()) == []


def test_text_and_calls_keep_their_order() -> None:
    text = written("First.", (0, act("t.a")), "\n", (1, act("t.b", {"x": 1})), "Last.")
    assert text == "First.\n\n```t.a\n```\n\n\n```t.b x=1\n```\nLast."


def test_parallel_calls_whose_pieces_alternate() -> None:
    one, two = act("t.a", {"x": "one"}), act("t.b", {"x": "two"})
    writer = ActionWriter()
    found: list[str] = []
    found += writer.feed("", [CallFragment(0, "a", "act", one[:5]), CallFragment(1, "b", "act", two[:7])])
    found += writer.feed("", [CallFragment(1, arguments=two[7:])])
    found += writer.feed("", [CallFragment(0, arguments=one[5:])])
    text = "".join([*found, *writer.end()])
    assert [block.info for block in blocks(text, "t.a", "t.b")] == ['t.a x="one"', 't.b x="two"']


def test_calls_that_all_have_the_same_number_are_told_apart_by_their_ids() -> None:
    writer = ActionWriter()
    found = [*writer.feed("", [CallFragment(0, "a", "act", act("t.a"))])]
    found += writer.feed("", [CallFragment(0, "b", "act", act("t.b"))])
    assert "".join(found) == "```t.a\n```\n"
    assert "".join([*found, *writer.end()]) == "```t.a\n```\n\n```t.b\n```\n"


def test_text_waits_for_a_call_that_is_not_complete() -> None:
    whole = act("t.a")
    writer = ActionWriter()
    found = list(writer.feed("", [CallFragment(0, "a", "act", whole[:6])]))
    found += writer.feed("Then.", [])
    assert found == []
    found += writer.feed("", [CallFragment(0, arguments=whole[6:])])
    assert "".join([*found, *writer.end()]) == "```t.a\n```\nThen."


# --- what models get wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "info"),
    [
        ('{"action": "t.a", "arguments": "{\\"x\\": 1}"}', "t.a x=1"),
        ('{"action": "t.a", "arguments": ""}', "t.a"),
        ('{"action": "t.a", "x": 1}', "t.a x=1"),
        ('{"action": "t.a", "arguments": {"x": null, "y": "$run_1"}}', "t.a y=$run_1"),
        ("{'action': 't.a', 'arguments': {'x': True,},}", "t.a x=true"),
        ('{"action": "t.a", "arguments": {"x": [1, {"y": "`"}]}}', 't.a x=[1, {"y": "`"}]'),
        ('{"action": "t.a", "arguments": {"x": "a \\"b\\" \\\\n c"}}', 't.a x="a \\"b\\" \\\\n c"'),
    ],
)
def test_what_was_meant_is_written(arguments: str, info: str) -> None:
    [block] = blocks(written((0, arguments)), "t.a")
    assert block.info == info


def test_lines_in_an_argument_become_a_variable() -> None:
    text = written((0, act("t.a", {"x": "one\ntwo"}, "body")), (1, act("t.a", {"x": "three\nfour"})))
    assert [(block.info, block.body) for block in blocks(text, "t.a")] == [
        ("VAR x_1", "one\ntwo"),
        ("t.a x=$x_1", "body"),
        ("VAR x_2", "three\nfour"),
        ("t.a x=$x_2", ""),
    ]


def test_a_body_that_is_no_text_is_written_as_json() -> None:
    [block] = blocks(written((0, act("t.a", body={"x": [1]}))), "t.a")
    assert block.body == '{"x": [1]}'


def test_half_a_character_is_replaced() -> None:
    assert written((0, '{"action": "t.a", "body": "\\ud800é"}')) == "```t.a\n\ufffdé\n```\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"action": "t.a", "body": "rm -rf', "no complete JSON object"),
        ("", "no complete JSON object"),
        ("[1]", "no complete JSON object"),
        ('{"arguments": {}}', "names no action"),
        ('{"action": 5}', "names no action"),
        ('{"action": "two words"}', "names no action"),
        ('{"action": "t.a", "arguments": [1]}', "are no object"),
        ('{"action": "t.a", "arguments": "x"}', "are no object"),
        ('{"action": "t.a", "arguments": {"a b": 1}}', "a b"),
        ('{"action": "`\\n```t.a\\n```"}', "names no action"),
    ],
)
def test_a_call_that_can_not_be_written_comes_back_as_feedback(arguments: str, said: str) -> None:
    assert said in refused(written("Well.", (0, arguments)))


@given(TEXTS, TEXTS)
def test_a_broken_call_never_becomes_an_action(name: str, arguments: str) -> None:
    writer = ActionWriter()
    text = "".join([*writer.feed("", [CallFragment(0, "i", f"no{name}", arguments)]), *writer.end()])
    assert "there is no function" in refused(text)


def native(
    name: str, arguments: str, listed: str = "- `shell.run`: Run bash.\n- `my_tools.do_it`: Do it."
) -> str:
    """The reply that consists of one call of a function by its own name."""
    sent = [
        *MESSAGES,
        ChatMessage(
            "user", f"Functions you can use:\n{listed}\n- rarely needed: `git` versions; open a file."
        ),
    ]
    writer = ActionWriter(sent)
    return "".join([*writer.feed("", [CallFragment(0, "i", name, arguments)]), *writer.end()])


@pytest.mark.parametrize(
    ("name", "arguments", "info"),
    [
        ("shell.run", '{"script": "ls", "timeout": 20}', 'shell.run script="ls" timeout=20'),
        ("shell_run", '{"script": "ls"}', 'shell.run script="ls"'),
        ("shell__run", '{"script": "ls"}', 'shell.run script="ls"'),
        ("functions.shell.run", '{"script": "ls"}', 'shell.run script="ls"'),
        ("functions.shell_run", '{"arguments": {"script": "ls"}}', 'shell.run script="ls"'),
        ("my_tools_do_it", "{}", "my_tools.do_it"),
        ("git_commit", '{"message": "Go."}', 'git.commit message="Go."'),
        ("git.commit", "", "git.commit"),
        ("CALL", '{"name": "coder", "message": "Fix it."}', 'CALL name="coder" message="Fix it."'),
        ("show", '{"name": "$run_1"}', "SHOW name=$run_1"),
        ("call_async", '{"name": "a", "message": "b"}', 'CALL_ASYNC name="a" message="b"'),
        ("functions.act", '{"action": "shell_run", "arguments": {"script": "ls"}}', 'shell.run script="ls"'),
    ],
)
def test_a_function_called_by_its_own_name_is_called(name: str, arguments: str, info: str) -> None:
    known = {"shell.run", "my_tools.do_it", "git.commit", "CALL_ASYNC"}
    [block] = blocks(native(name, arguments), *known)
    assert (block.info, block.body, block.closed) == (info, "", True)


def test_the_lines_of_a_native_call_reach_the_function() -> None:
    text = native("shell_run", json.dumps({"script": "cd /tmp\nls"}))
    assert [(block.info, block.body) for block in blocks(text, "shell.run")] == [
        ("VAR script_1", "cd /tmp\nls"),
        ("shell.run script=$script_1", ""),
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("open_browser", '{"url": "x"}'), ("web.fetch", '{"url": "x"}'), ("shell_run", '{"script')],
)
def test_a_call_that_means_nothing_here_is_answered_with_what_to_write(name: str, arguments: str) -> None:
    said = refused(native(name, arguments))
    assert said.startswith("Nothing was run: ")
    assert name in said
    assert "`act`" in said
    assert "SHOW" not in said


# --- over the wire ----------------------------------------------------------------------------------


def ask(*replies: Reply) -> tuple[Collected, list[Request]]:
    async def run(url: str) -> Collected:
        model = OpenAIModel(
            ModelEndpoint(url=url, key="k", dialect="tools"),
            profile=ModelProfile("scripted", 8192),
            clock=VirtualClock(),
            rng=random.Random(1),
        )
        try:
            return await collect(model, MESSAGES)
        finally:
            await model.close()

    with Endpoint({"/": replies}) as endpoint:
        found = asyncio.run(run(endpoint.url))
    endpoint.assert_used()
    return found, endpoint.requests


def deltas(number: int, arguments: str, size: int) -> list[dict[str, JSON]]:
    """One call as an endpoint streams it."""
    head: JSON = {
        "index": number,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "act", "arguments": ""},
    }
    found: list[dict[str, JSON]] = [{"tool_calls": [head]}]
    for start in range(0, len(arguments), size):
        piece: JSON = {"index": number, "function": {"arguments": arguments[start : start + size]}}
        found.append({"tool_calls": [piece]})
    return found


def reply(text: str, calls: Sequence[str]) -> Reply:
    streamed = [delta for number, call in enumerate(calls) for delta in deltas(number, call, 3)]
    return Reply(text, deltas=streamed, finish="tool_calls")


def test_calls_over_the_wire_become_blocks() -> None:
    calls = [act("shell.run", {"timeout": 20}, "ls\n```\nx"), act("CALL", {"name": "coder"}, "Fix it.")]
    found, requests = ask(reply("Let me look.", calls))
    assert found.text == (
        'Let me look.\n\n````shell.run timeout=20\nls\n```\nx\n````\n\n```CALL name="coder"\nFix it.\n```\n'
    )
    assert found.ends == ["stop"]
    assert requests[0].body["tools"] == [ACT]
    assert found.usage is not None


def test_a_call_without_any_text_is_not_an_empty_reply() -> None:
    found, _ = ask(reply("", [act("QUERY")]))
    assert found.text == "```QUERY\n```\n"


def test_calls_of_an_attempt_that_broke_off_are_void() -> None:
    broken = Reply("", deltas=deltas(0, act("t.a"), 5), finish=None)
    found, _ = ask(broken, reply("", [act("t.b")]))
    assert found.text == "```t.b\n```\n"
    assert len(found.restarts) == 1


def test_a_call_that_is_not_one_is_garbage() -> None:
    wrong = Reply("", deltas=[{"tool_calls": [{"index": 0, "function": {"name": 5, "arguments": {}}}]}])
    with pytest.raises(ModelGarbled, match="wrong form"):
        ask(wrong, wrong)


def test_no_function_is_offered_in_the_ordinary_dialect() -> None:
    async def run(url: str) -> Collected:
        model = OpenAIModel(
            ModelEndpoint(url=url, key="k"),
            profile=ModelProfile("m", 8192),
            clock=VirtualClock(),
            rng=random.Random(1),
        )
        try:
            return await collect(model, MESSAGES)
        finally:
            await model.close()

    with Endpoint({"/": ["Hello."]}) as endpoint:
        assert asyncio.run(run(endpoint.url)).text == "Hello."
    assert "tools" not in endpoint.requests[0].body
