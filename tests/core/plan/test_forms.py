"""Reading plans: forms, streaming, patterns, and what is wrong in a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core.plan.contracts import violation
from iact.core.plan.forms import (
    node_from_json,
    node_to_json,
    plan_text,
    read_form,
    read_plan,
    step_of,
)
from iact.core.plan.model import Contract, PlanError, PlanNode, make_plan
from iact.core.plan.pattern import Pattern
from iact.core.plan.protocol import FunctionInfo, StepSuccess
from iact.core.plan.step_reader import StepReader
from iact.core.plan.validate import PlanInvalid, check, find_cycle, levels
from iact.core.ports import JSON
from tests.core.plan.fakes import Functions
from tests.core.plan.random_plans import random_plan
from tests.rounds import rounds

AUDIT = """goal: Find out which of our hosts run a vulnerable kernel
steps:
  - {id: kernel,  call: shell.run, params: {command: "uname -r"}}
  - {id: ports,   call: shell.run, params: {command: "ss -ltn"}}
  - {id: cves,    agent: researcher, task: "CVEs affecting this kernel", refs: {version: {step: kernel, field: stdout}}}
  - {id: report,  agent: writer, task: "One page for the operator", after: [cves, ports]}
"""
"""The example of the design."""


def test_the_plan_of_the_design_is_read() -> None:
    plan = read_plan(AUDIT, id="audit")
    assert [(n.id, n.kind, n.call) for n in plan.nodes.values()] == [
        ("kernel", "tool", "shell.run"), ("ports", "tool", "shell.run"),
        ("cves", "agent", "researcher"), ("report", "agent", "writer"),
    ]  # fmt: skip
    assert plan.nodes["cves"].dependencies == ("kernel",)
    assert plan.nodes["report"].dependencies == ("cves", "ports")
    assert plan.goal.startswith("Find out")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps: [{id: a}]", "step 'a' needs either `call:`"),
        ("steps: [{id: a, call: f, agent: b, task: t}]", "step 'a' needs either `call:`"),
        ("steps: [{id: a, agent: b}]", "without a `task:`"),
        ("steps: [{id: a, call: f, retries: many}]", "step 'a' (number 1), field `retries`"),
        ("steps: [{id: a, call: f}, {id: b, call: f, imapct: 1}]", "step 'b' (number 2), field `imapct`"),
        ("steps: [{id: a, call: f}, {id: a, call: f}]", "two steps have the id 'a'"),
        ("steps: [{id: 'a/b', call: f}]", "field `id`"),
        ("steps: [{id: '-', call: f}]", "field `id`"),
        ("steps: [{id: a, call: f, intent: 0}]", "are for a step with `agent:`"),
        ("goal: [", "neither YAML nor JSON (line 2, column 1"),
        ("x: &a [1]\ny: *a", "YAML alias (*name)"),
        ("- 3", "step number 1"),
        ("hello", "a plan is a mapping"),
        ("{}", "neither a `goal` nor `steps`"),
        ("steps: [{id: a, call: f, join: first_of}]", "field `join`"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_the_place(text: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(text, id="p")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_and_a_list_of_steps_are_plans_too() -> None:
    assert list(read_plan('{"steps": [{"id": "a", "call": "f"}]}', id="p").nodes) == ["a"]
    assert list(read_plan("- {id: a, call: f}\n- {id: b, call: f}", id="p").nodes) == ["a", "b"]
    assert read_form("goal: x").goal == "x"


def test_nodes_survive_the_journal() -> None:
    import random

    for seed in range(200):
        for node in random_plan(random.Random(seed)).nodes.values():
            assert node_from_json(json.loads(json.dumps(node_to_json(node)))) == node


BLOCK = """Here is the plan:
```yaml
goal: g
steps:
  - id: a
    call: f
    params:
      list:
        - 1
        - 2
  - id: b
    call: f
    after: [a]
```
That's it.
"""
AS_JSON = '```json\n{"goal": "g", "steps": [{"id": "a", "call": "f", "params": {"t": "} ] \\" {"}},\n {"id": "b", "call": "f"}], "x": [{"id": "c"}]}\n```'


@pytest.mark.parametrize(
    ("text", "ids"),
    [(AUDIT, ["kernel", "ports", "cves", "report"]), (BLOCK, ["a", "b"]), (AS_JSON, ["a", "b"]),
     ("- {id: a, call: f}\n", []), ("steps:\n- {id: a,\n   call: f}\n- {id: b, call: f}", ["a", "b"])],
)  # fmt: skip
@settings(max_examples=rounds(10))
@given(data=st.data())
def test_steps_stream_in_whatever_pieces_they_come(text: str, ids: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=30)))
    reader = StepReader()
    steps = []
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        steps += reader.feed(text[begin:end])
    steps += reader.close()
    assert [step["id"] for step in steps if isinstance(step, dict)] == ids
    assert reader.text == text


def test_a_step_is_complete_with_its_closing_brace() -> None:
    reader = StepReader()
    at = AUDIT.index("}}") + 2
    assert reader.feed(AUDIT[: at - 1]) == []
    assert len(reader.feed(AUDIT[at - 1 : at])) == 1


@settings(max_examples=rounds(50))
@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    reader = StepReader()
    reader.feed(text)
    reader.close()


# --- validation ------------------------------------------------------------------------------------

SCHEMA: Mapping[str, JSON] = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["command"],
    "additionalProperties": False,
}
FUNCTIONS = Functions.of(
    FunctionInfo("shell.run", "Runs.", SCHEMA),
    FunctionInfo("shell.kill", "Kills.", impact=2),
    FunctionInfo("f"),
)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ("{id: a, call: shel.run, params: {command: x}}", "did you mean 'shell.run'?"),
        ("{id: a, call: nothing}", "not a function that you have"),
        ("{id: a, call: shell.run}", "needs the parameter 'command'"),
        ("{id: a, call: shell.run, params: {command: 3}}", "parameter 'command' of shell.run: 3 is not of type"),
        ("{id: a, call: shell.run, params: {command: x, m: 1}}", "'m' was unexpected"),
        ("{id: b, call: f}, {id: a, call: shell.run, params: {command: x}, refs: {m: {step: b}}}", "no parameter 'm'"),
        ("{id: b, call: f}, {id: a, call: shell.run, params: {command: x}, refs: {n: {step: b, template: 'v{}'}}}", "is integer"),
        ("{id: b, call: f}, {id: a, call: f, refs: {n: {step: b, template: v}}}", "no {} for the value"),
        ("{id: b, call: f}, {id: a, call: f, params: {n: 1}, refs: {n: {step: b}}}", None),
        ("{id: b, call: f}, {id: a, call: shell.run, params: {command: x}, refs: {command: {step: b}}}", "both"),
        ("{id: a, call: f, after: [a]}", "waits for itself"),
        ("{id: a, call: f}, {id: b, call: f, after: [a], join: any_of}", "at least two"),
        ("{id: a, call: f}, {id: b, call: f, after: [a, x], join: any_of}", "the others do not exist"),
        ("{id: a, call: f}, {id: c, call: f}, {id: b, call: f, after: [a, c], join: any_of, refs: {x: {step: a}}}", "may lose"),
        ("{id: a, call: f}, {id: b, call: f, refs: {x: {step: '*'}}}", "is not any_of"),
        ("{id: a, call: shell.kill}, {id: c, call: f}, {id: b, call: f, after: [a, c], join: any_of}", "not raced"),
        ("{id: a, call: f, contract: {}}", "no rule"),
        ("{id: a, call: f, contract: {regex: '(?=a)'}}", "not supported"),
        ("{id: a, call: f, contract: {schema: {type: 3}}}", "not valid"),
        ("{id: a, call: f, contract: {schema: {properties: {x: {pattern: '(a+)+$'}}}}}", "'pattern', which is not checked in a schema; use the `regex`"),
        ("{id: a, call: f, contract: {schema: {items: {format: date}}}}", "'format', which is not checked in a schema"),
        ("{id: a, call: f, contract: {schema: {uniqueItems: true}}}", "'uniqueItems', which is not checked here"),
        ("{id: a, call: f, contract: {schema: {anyOf: [{unevaluatedItems: false}]}}}", "'unevaluatedItems', which is not checked here"),
        ("{id: a, call: f, contract: {schema: {properties: {x: {minLenght: 3}}}}}", "did you mean 'minLength'?"),
        ("{id: a, call: f, contract: {schema: {dependentSchemas: {x: {$id: y}}}}}", "'$id', which is not checked here"),
        ("{id: a, call: f, contract: {schema: {properties: {format: {title: a, enum: [{format: 3}]}}}}}", None),
        ("{id: a, call: f, contract: {schema: {if: true, then: {required: [x]}, contains: {const: 1}, minContains: 2}}}", None),
        ("{id: a, call: f, after: [c]}, {id: b, call: f, after: [a]}, {id: c, call: f, after: [b]}", "a → b → c → a"),
    ],
)  # fmt: skip
def test_what_can_not_run_is_rejected(steps: str, says: str | None) -> None:
    plan = read_plan(f"steps: [{steps}]", id="p")
    if says is None:
        check(plan, FUNCTIONS)
        return
    with pytest.raises(PlanInvalid) as caught:
        check(plan, FUNCTIONS)
    assert says in str(caught.value)


def test_dangling_references_are_pruned_with_a_warning() -> None:
    plan = read_plan("steps: [{id: a, call: f, after: [gone], refs: {x: {step: lost}}}]", id="p")
    checked = check(plan, FUNCTIONS)
    assert checked.nodes["a"].dependencies == ()
    assert len(checked.warnings) == 2
    needed = read_plan("steps: [{id: a, call: shell.run, refs: {command: {step: lost}}}]", id="p")
    with pytest.raises(PlanInvalid, match="needs the parameter 'command'"):
        check(needed, FUNCTIONS)


@pytest.mark.parametrize("text", ["[" * 500_000, "- " * 500_000, '{"a":' * 150_000, "? " * 500_000])
def test_deep_nesting_is_refused_before_the_loader_in_c_meets_it(text: str) -> None:
    with pytest.raises(PlanError, match="nested more than 100 levels deep"):
        read_plan(text, id="p")


def test_steps_that_wait_for_each_other_are_in_no_wave() -> None:
    def step(id: str, *after: str) -> PlanNode:
        return PlanNode(id, call="f", after=after)

    def waves(*steps: PlanNode) -> dict[str, int]:
        return levels({one.id: one for one in steps})

    assert waves(step("c", "b"), step("a"), step("b", "a", "gone"), step("d")) == {
        "a": 0,
        "d": 0,
        "b": 1,
        "c": 2,
    }
    with pytest.raises(PlanInvalid, match="The steps a → c → b → a wait for each other; break the circle"):
        waves(step("a", "b"), step("b", "c"), step("c", "a"), step("d", "a"))
    with pytest.raises(PlanInvalid, match="Step 'a' waits for itself; take 'a' out"):
        waves(step("a", "a"))

    # Each step waits for all before it: as many paths as there are subsets of the steps.
    dense = [step(f"s{n}", *(f"s{before}" for before in range(n))) for n in range(200)]
    assert waves(*reversed(dense)) == {f"s{n}": n for n in range(200)}


def test_a_cycle_is_a_cycle() -> None:
    """Whatever is named really waits for the next, all around."""
    import dataclasses
    import random

    found = 0
    for seed in range(500):
        rng = random.Random(seed)
        nodes = dict(random_plan(rng).nodes)
        assert find_cycle(nodes) == []
        for _ in range(3):
            one, other = rng.choice(list(nodes)), rng.choice(list(nodes))
            nodes[one] = dataclasses.replace(nodes[one], after=tuple({*nodes[one].after, other}))
        cycle = find_cycle(nodes)
        for here, after in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            assert here in nodes[after].dependencies
        found += bool(cycle)
        if cycle:
            with pytest.raises(PlanInvalid) as caught:
                check(make_plan("p", nodes.values()))
            assert caught.value.cycle == tuple(cycle)
    assert found > 100


# --- patterns ----------------------------------------------------------------------------------------


@settings(max_examples=rounds(100))
@given(
    st.recursive(
        st.sampled_from(
            ["a", "b", ".", "[ab]", "[^a]", r"\d", "a?", "b*", "(?:ab)+", "a{2}", "b{1,3}", "^a", "b$"]
        ),
        lambda inner: (
            st.tuples(inner, inner).map("".join) | st.tuples(inner, inner).map("({0[0]}|{0[1]})".format)
        ),
        max_leaves=6,
    ),
    st.text("ab1\n", max_size=12),
)
def test_patterns_find_what_pythons_own_do(pattern: str, text: str) -> None:
    import re

    assert Pattern(pattern).found_in(text) == bool(re.search(pattern, text, re.MULTILINE))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\w+$", "grün"), (r"^[\w-]+$", "grü-n"), (r"\W", "ü"), (r"[^\w]", "ü"), (r"^[\s\S]$", "ü"), (r"\d", "٣"),
        (r"^\s$", "\u00a0"), (r"^[]\w]$", "]"), (r"^[^]a]$", "]"), (r"^[\]\w]$", "ü"), (r"\\w", "\\w"), (r"(?i)ÄB", "äb"),
    ],
)  # fmt: skip
def test_classes_know_every_alphabet(pattern: str, text: str) -> None:
    import re

    assert Pattern(pattern).found_in(text) == bool(re.search(pattern, text, re.MULTILINE))


def test_a_hostile_pattern_takes_linear_time() -> None:
    assert not Pattern("(a+)+$").found_in("a" * 100_000 + "b")
    assert Pattern("x").found_in("\ud800x"), "a text that has no encoding is read all the same"


@pytest.mark.parametrize("pattern", [r"(?=a)", r"(a)\1", "(a", "*", "[a", "((a{500}){500}){500}", "a" * 1001])
def test_a_pattern_that_cannot_be_used_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("text", "goal", "constraints", "task"),
    [
        ("goal: Compare: a and b", "Compare: a and b", (), ""),
        ('goal: Say "it": now', 'Say "it": now', (), ""),
        ("goal: x\nconstraints:\n  - Language: English only", "x", ("Language: English only",), ""),
        ("goal: x\nconstraints:\n  - Sources: reports: no others", "x", ("Sources: reports: no others",), ""),
        ("goal: x\nsteps:\n  - id: a\n    agent: b\n    task: Read this: it", "x", (), "Read this: it"),
    ],
)
def test_a_sentence_with_a_colon_needs_no_quotes(
    text: str, goal: str, constraints: tuple[str, ...], task: str
) -> None:
    read = read_plan(text, id="p")
    tasks = [node.task for node in read.nodes.values()]
    assert (read.goal, tuple(read.constraints), "".join(tasks)) == (goal, constraints, task)


def test_what_stands_beside_a_plan_is_said_to_stand_there() -> None:
    with pytest.raises(PlanError, match="`mode` is not a part of the plan: it is given beside it, as mode="):
        read_form("goal: Look\nmode: reflective\nsteps:\n- {id: a, call: f}")


def test_before_1_3_it_needed_them() -> None:
    with pytest.raises(PlanError, match="neither YAML nor JSON"):
        read_plan("goal: Compare: a and b", id="p", exact=True)


def test_what_can_not_be_read_with_quotes_either_is_refused_as_it_stands() -> None:
    with pytest.raises(PlanError, match=r"line 1"):
        read_plan("goal: Compare: a and b\nsteps:\n  - {id: a, call: [}", id="p")


def test_an_id_is_any_word_in_any_script() -> None:
    text = """
steps:
  - {id: 首先, call: f}
  - {id: "दूसरा कदम", call: f, after: 首先}
  - {id: größe, call: f, refs: {x: {step: "दूसरा कदम"}}}
  - {id: 4, call: f, after: [größe]}
"""
    nodes = read_plan(text, id="p").nodes
    assert list(nodes) == ["首先", "दूसरा-कदम", "größe", "4"]
    assert nodes["größe"].dependencies == ("दूसरा-कदम",)
    assert dict(read_plan(plan_text("", nodes.values()), id="p").nodes) == dict(nodes)


def test_an_agent_step_says_what_its_agent_may_do_and_should_use() -> None:
    text = (
        "steps: [{id: a, agent: who, task: Look., intent: 0, scope: 'files.* web.fetch', tools: [web.fetch]}]"
    )
    node = read_plan(text, id="p").nodes["a"]
    assert (node.intent, node.scope, node.tools) == (0, ("files.*", "web.fetch"), ("web.fetch",))
    assert node_from_json(node_to_json(node)) == node
    assert read_plan(str({"steps": [step_of(node)]}), id="p").nodes["a"] == node


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "1" * 5_000 + "x"])
def test_an_output_that_can_not_be_read_as_json_has_not_kept_its_schema(text: str) -> None:
    contract = Contract(schema={"type": "array"})
    assert "is not JSON" in str(violation(contract, StepSuccess(text)))
