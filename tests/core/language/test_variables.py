"""Variables: passed by name, renamed on a clash, mentioned only if they exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry, UnknownFunction
from iact.core.language.grammar import Argument, Bound, Mistake, bind, split
from iact.core.language.variables import Table, Value, mentions, rename, text_value

names = st.sampled_from(["a", "a_2", "a_3", "run_1", "data", "ab"])


def unread(content: str) -> Value:
    """A value whose bytes must not be looked at."""

    def load() -> bytes:
        raise AssertionError("the content was read")

    return Value(text_value(content).sha256, len(content), "text/plain", load)


def table(**values: str) -> Table:
    found = Table()
    for name, value in values.items():
        found.define(name, text_value(value))
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see $a and $b", ["a", "b"]),
        ("$b before $a, $b again", ["b", "a"]),
        ("costs $5, in $HOME, $unknown", []),
        ("($a), $a. `$a` $a's", ["a"]),
        ("$ab $a_2 $á $a\u0301", ["a"]),
        ("$aé", []),
        ("US$a", ["a"]),
        ("$$a", ["a"]),
        ("${a} $ a $", []),
        ("```\n$a\n```", ["a"]),
        ("![plot]($a)", ["a"]),
        ("", []),
    ],
)
def test_only_names_that_exist_are_mentions(text: str, found: list[str]) -> None:
    assert list(mentions(text, table(a="1", b="2"))) == found


def test_renaming_touches_mentions_only_and_all_at_once() -> None:
    assert rename("$a $b $ab a $a.", {"a": "b", "b": "a"}) == "$b $a $ab a $b."
    assert rename("$a", {"a": "a"}) == "$a"


def test_the_clash_rule() -> None:
    receiver = table(data="old")
    assert receiver.receive("data", text_value("old")) == "data"
    assert receiver.receive("data", text_value("new")) == "data_2"
    assert receiver.receive("data", text_value("new")) == "data_2"
    assert receiver.receive("data", text_value("newer")) == "data_3"
    assert receiver.receive("data_2", text_value("other")) == "data_2_2"
    assert receiver["data"].text() == "old"


@given(
    st.dictionaries(names, st.sampled_from("xyz")),
    st.dictionaries(names, st.sampled_from("xyz")),
    st.lists(names),
)
def test_a_message_means_the_same_to_its_receiver(
    have: dict[str, str], sent: dict[str, str], said: list[str]
) -> None:
    sender, receiver = table(**sent), table(**have)
    text = " ".join(f"${name}" for name in said)
    arrived = {name: receiver.receive(name, value) for name, value in mentions(text, sender).items()}
    heard = rename(text, arrived).split()
    for word, name in zip(heard, said, strict=True):
        if name in sender:
            assert receiver[word[1:]] == sender[name]
        else:
            assert word == f"${name}"
    for name, content in have.items():
        assert receiver[name].text() == content


def test_numbered_names_are_never_given_twice() -> None:
    variables = table(run_2="taken")
    assert [variables.keep("run", text_value(str(at))) for at in range(3)] == ["run_1", "run_3", "run_4"]
    assert variables.number("a b/c") == "a_b_c_1"


def test_a_copied_table_goes_its_own_way() -> None:
    first = table(a="1")
    second = first.copy()
    second.keep("run", text_value("x"))
    assert "run_1" not in first
    assert first.number("run") == "run_1"


def test_passing_a_value_never_reads_it() -> None:
    big = unread("x" * 1_000_000)
    sender, receiver = Table(), Table()
    sender.define("big", big)
    assert receiver.receive("big", mentions("look at $big", sender)["big"]) == "big"
    spec = ActionSpec("t.f", "", parameters={"type": "object", "properties": {"data": {"type": "string"}}})
    bound = bind(spec, (Argument("data", "big", "reference"),), None, receiver)
    assert isinstance(bound, Bound)
    assert bound.attached["data"] is big


def test_a_long_variable_is_not_read_as_a_number() -> None:
    spec = ActionSpec("t.f", "", parameters={"type": "object", "properties": {"count": {"type": "integer"}}})
    mistake = bind(spec, (Argument("count", "big", "reference"),), None, {"big": unread("1" * 1_000_000)})
    assert mistake == Mistake("`t.f` was not run: parameter `count` expects integer; $big is too long.")


@pytest.mark.parametrize(
    ("media", "is_text"),
    [
        ("text/csv", True), ("text/plain; charset=utf-8", True), ("application/json", True),
        ("application/ld+json", True), ("application/x-yaml", True), ("application/x-gzip", False),
        ("application/x-tar", False), ("image/png", False), ("application/octet-stream", False), ("", False),
    ],
)  # fmt: skip
def test_which_types_are_text(media: str, is_text: bool) -> None:
    assert text_value("x", media=media).is_text is is_text


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert Value("", 1, "text/plain", lambda: b"\xff").text() == "\ufffd"
    assert text_value("\ud800").load() == b"?"


@given(st.text())
def test_any_info_line_is_read_or_refused_with_a_sentence(info: str) -> None:
    taken = split(info)
    if isinstance(taken, Mistake):
        assert taken.sentence.endswith(".")
    else:
        assert taken[0] == (info.split(None, 1) or [""])[0]


@given(st.text(st.characters(exclude_characters="\n")))
def test_a_quoted_value_comes_back_as_it_was_meant(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    assert split(f'SHOW name="{escaped}"') == ("SHOW", (Argument("name", value, "quoted"),))


@given(
    st.lists(
        st.sampled_from(['"', "'", "$a", "x", "=", ",", " ", "\\", "[", "{", "1", "“"]), max_size=12
    ).map("".join)
)
def test_any_arguments_bind_or_give_a_sentence(arguments: str) -> None:
    taken = split(f"CALL {arguments}")
    if not isinstance(taken, Mistake):
        bound = bind(CORE_ACTIONS["CALL"], taken[1], "message", table(a="1"))
        assert isinstance(bound, Bound) or bound.sentence.startswith("`CALL` was not run: ")


def test_deeply_nested_json_is_a_mistake_and_no_crash() -> None:
    taken = split("t.f x=" + "[" * 100_000)
    assert not isinstance(taken, Mistake)
    spec = ActionSpec("t.f", "", parameters={"type": "object", "properties": {"x": {"type": "array"}}})
    assert isinstance(bind(spec, taken[1], None, {}), Mistake)


REGISTRY = Registry(
    [
        ActionSpec("files.read", ""),
        ActionSpec("files.write", "", alias="WRITE"),
        ActionSpec("shell.run", "", alias="CALL"),
        *CORE_ACTIONS.values(),
    ]
)


@pytest.mark.parametrize(
    ("name", "action"),
    [("files.read", True), ("WRITE", True), ("files.delete", True), ("other.x", False), ("SQL", False), ("read", False),
     ("files.", False), (".read", False), ("files.a.b", False), ("FILES.READ", False), ("", False)],
)  # fmt: skip
def test_what_counts_as_an_action(name: str, action: bool) -> None:
    assert REGISTRY.is_action(name) is action
    assert (REGISTRY.find(name) is not None) is action


def test_an_alias_never_hides_a_core_action() -> None:
    assert REGISTRY.find("CALL") is CORE_ACTIONS["CALL"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("files.raed", ("files.read", "files.write")),
        ("files.zzz", ("files.read", "files.write")),
        ("shell.exec", ("shell.run",)),
    ],
)
def test_the_nearest_names_of_an_unknown_function(name: str, nearest: tuple[str, ...]) -> None:
    assert REGISTRY.find(name) == UnknownFunction(name, nearest)
