"""What is told of the state: all of it once, then what is different, and what has ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core.context.tail import BUDGET, Told, changes, tail
from iact.core.language import labels
from iact.core.language.variables import Table, text_value
from iact.core.records.parts import Seen

NOON = Seen("2026-11-21 12:00 UTC", "/workspace", ("a",))

names = st.sampled_from(["x", "y", "z"])
states = st.builds(
    Seen,
    st.sampled_from(["2026-11-21 12:00 UTC", "2026-11-21 12:07 UTC", "2026-11-22 12:00 UTC"]),
    st.sampled_from(["/a", "/b"]),
    st.lists(st.sampled_from(["one", "two"]), unique=True).map(tuple),
    st.none() | st.sampled_from([70, 80]),
)
steps = st.lists(st.tuples(states, st.dictionaries(names, st.integers(0, 2), max_size=3)), max_size=6)


def table(**values: str) -> Table:
    made = Table()
    for name, text in values.items():
        made.define(name, text_value(text))
    return made


def told(seen: Seen = NOON, variables: Table | None = None) -> Told:
    return Told(seen, (variables or Table()).bindings)


def test_nothing_is_said_where_nothing_is_different() -> None:
    assert changes(told(NOON, table(v="1")), NOON, table(v="1")) == ""


def test_the_time_of_the_same_day_is_said_without_the_day() -> None:
    assert (
        changes(told(), Seen("2026-11-21 12:01 UTC", "/workspace", ("a",)), Table())
        == "(state) time: 12:01 UTC"
    )
    tomorrow = Seen("2026-11-22 12:00 UTC", "/workspace", ("a",))
    assert changes(told(), tomorrow, Table()) == "(state) time: 2026-11-22 12:00 UTC"


def test_what_ended_is_said() -> None:
    alone = Seen(NOON.now, "/workspace")
    assert changes(told(), alone, Table()) == "(state) children at work: none"
    short = Seen(NOON.now, "/workspace", ("a",), 900)
    assert changes(told(), short, Table()) == "(state) only 900 tokens of your budget left"
    assert "not short any more" in changes(told(short), NOON, Table())


def test_a_variable_is_named_when_it_is_new_or_names_something_else() -> None:
    variables = table(kept="same", changed="old")
    before = told(NOON, variables)
    for name, text in {"kept": "same", "changed": "newer", "fresh": "1"}.items():
        variables.define(name, text_value(text))
    said = changes(before, NOON, variables)
    assert said == "(state) new variables: $fresh (text/plain, 1 B), $changed (text/plain, 5 B)"


def test_a_variable_that_a_label_of_the_message_names_is_not_named_again() -> None:
    variables = table(run_1="x", other="y")
    assert (
        changes(told(), NOON, variables, named={"run_1"}) == "(state) new variables: $other (text/plain, 1 B)"
    )
    assert changes(told(), NOON, table(run_1="x"), named={"run_1"}) == ""
    assert "$run_1" not in tail(NOON, variables, named={"run_1"})


def test_many_new_variables_are_counted() -> None:
    said = changes(told(), NOON, table(**{f"v_{n}": "x" for n in range(40)}))
    assert said.endswith("and 28 more")
    assert len(said) <= BUDGET


def read(paragraphs: Sequence[str]) -> dict[str, str]:
    """What a reader knows who takes the last word on each matter; variables by name."""
    known: dict[str, str] = {}
    for text in paragraphs:
        for part in text.removeprefix("(state) ").split("; ") if text else ():
            head, _, value = part.partition(": ")
            if "variables" in head:
                known.update(re.findall(r"\$(\w+) (\([^)]*\))", value))
            elif head == "time":
                day = value if value.startswith("2026") else f"{known['time'][:10]} {value}"
                known["time"] = day
            elif "budget" in head:
                known["budget"] = head if head.startswith("only") else ""
            else:
                known[head] = value
    return known


@given(states, steps)
@settings(deadline=None)
def test_changes_add_up_to_the_whole(first: Seen, following: list[tuple[Seen, dict[str, int]]]) -> None:
    variables = Table()
    said, last, seen = [tail(first, variables)], Told(first, 0), first
    for seen, defined in following:
        for name, size in defined.items():
            variables.define(name, text_value("x" * size))
        said.append(changes(last, seen, variables))
        last = Told(seen, variables.bindings)
    known = read(said)
    expected = {"time": seen.now, "working directory": seen.directory}
    expected |= {name: labels.describe(name, value).split(" ", 1)[1] for name, value in variables.items()}
    assert {key: known[key] for key in expected} == expected
    assert known.get("children at work", "none") == (
        ", ".join(f"`{agent}`" for agent in seen.running) or "none"
    )
    left = f"only {seen.tokens_left} tokens of your budget left" if seen.tokens_left is not None else ""
    assert known.get("budget", "") == left


def test_what_a_person_gave_and_what_was_named_comes_before_numbers() -> None:
    variables = Table()
    variables.define("orders", text_value("id\n", origin="the user"))
    variables.keep("code", text_value("print()", origin="the user"))
    variables.define("spec", text_value("x", origin="/"))
    for one in range(20):
        variables.keep("run", text_value(f"{one}\n{one}", origin="shell.run"))
    said = tail(NOON, variables)
    assert re.findall(r"\$(\w+)", said)[:5] == ["spec", "code_1", "orders", "run_20", "run_19"]
    assert said.endswith("and 11 more")


def test_a_quiet_name_is_in_no_list_and_still_a_name() -> None:
    variables = Table()
    before = told(variables=variables)
    assert variables.keep("write", text_value("Created x."), quiet=True) == "write_1"
    assert variables.keep("write", text_value("Created y."), quiet=True) == "write_2"
    assert "write" not in tail(NOON, variables)
    assert changes(before, NOON, variables) == ""
    assert variables["write_1"].text() == "Created x."
    variables.define("write_1", text_value("mine"))
    assert "$write_1" in tail(NOON, variables), "a name that is given again is told"
    assert "write_2" not in tail(NOON, variables.copy())
