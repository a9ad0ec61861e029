"""Kept plans with parameters: what can be left open, how it is marked, and how it is filled in."""

from __future__ import annotations

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.model import PlanError
from iact.core.plan.template import mark, offers, read_template
from iact.core.ports import JSON

PLAN = """\
goal: 'Count the words of reports/may.csv for "Bremen" and say the 3 longest.'
steps:
- {id: sort, call: shell.run, params: {command: "sort reports/may.csv | head -n 3 > out-3.txt; echo v3 1.3 30"}}
- {id: back, call: files.read, params: {path: out-3.txt, limit: 3}, contract: {regex: "may\\\\.csv"}, timeout: 3}
- {id: tell, agent: writer, task: "Write about Bremen in 3 lines.", after: [back]}
"""
MARKS = {"file": "reports/may.csv", "town": "Bremen", "count": "3"}


def test_what_is_marked_is_left_open_wherever_the_plan_works_on_it() -> None:
    template = read_template(mark(PLAN, MARKS))
    assert template.line == "file=… town=… count=…"
    assert template.goal == 'Count the words of {{file}} for "{{town}}" and say the {{count}} longest.'
    assert template.examples() == {"file": "reports/may.csv", "town": "Bremen", "count": 3}

    filled = template.fill({"file": "june.csv", "town": "Ulm: am See", "count": "5"}, name="words")
    plan = read_plan(filled, id="plan")
    assert plan.goal == 'Count the words of june.csv for "Ulm: am See" and say the 5 longest.'
    sort, back, tell = plan.nodes.values()
    assert sort.params["command"] == "sort june.csv | head -n 5 > out-5.txt; echo v3 1.3 30"
    assert back.params == {"path": "out-5.txt", "limit": 5}, "a number stays one"
    assert back.timeout == 3, "how a plan runs is no value that it works on"
    assert tell.task == "Write about Ulm: am See in 5 lines."


def test_the_values_that_a_plan_had_make_the_plan_that_was_kept() -> None:
    template = read_template(mark(PLAN, MARKS))
    assert read_plan(template.fill(MARKS, name="words"), id="plan") == read_plan(PLAN, id="plan")


def test_a_plan_without_parameters_is_used_byte_for_byte() -> None:
    text = 'steps: [{id: a, call: shell.run, params: {command: "docker ps --format {{Names}}"}}]\n'
    assert mark(text, {}) == text
    template = read_template(text)
    assert (template.fill({}, name="ps"), template.line) == (text, "")


def test_a_value_in_a_pattern_matches_itself_alone() -> None:
    text = (
        "steps: [{id: a, call: files.read, params: {path: may.csv}, contract: {regex: '^may\\.csv: [0-9]+'}}]"
    )
    filled = read_template(mark(text, {"file": "may.csv"})).fill({"file": "a+b.csv"}, name="x")
    node = read_plan(filled, id="plan").nodes["a"]
    assert (node.params["path"], node.contract.pattern) == ("a+b.csv", r"^a\+b\.csv: [0-9]+")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, 'needs values for file, count; write for example file="may.csv" count=3.'),
        ({"file": "a"}, "needs values for count; write for example count=3."),
        ({"file": "a", "count": "many"}, '`count` is a number, which "many" is not.'),
        ({"file": "a", "count": "3", "sorted": "perhaps"}, '`sorted` is yes or no, and not "perhaps".'),
        ({"file": "a", "count": "3", "colour": "red"}, "has no parameter 'colour'; it has file, count, sorted."),
        ({"file": "x" * 20_000, "count": "3"}, "at most 16384"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_values_is_one_sentence(values: dict[str, JSON], sentence: str) -> None:
    template = read_template(
        "parameters: {file: may.csv, count: 3, sorted: {default: true}}\n"
        'steps: [{id: a, call: shell.run, params: {command: "head -n {{count}} {{file}} # {{sorted}}"}}]'
    )
    with pytest.raises(PlanError) as error:
        template.fill(values, name="monthly")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_default_counts_if_no_value_is_given() -> None:
    template = read_template(
        "parameters: {n_lines: {default: 10}, loud: {default: false, about: whether it shouts}}\n"
        'steps: [{id: a, call: t.read, params: {lines: "{{n_lines}}", text: "{{ loud }}!"}}]'
    )

    def params(**values: JSON) -> JSON:
        return dict(read_plan(template.fill(values, name="x"), id="plan").nodes["a"].params)

    assert params() == {"lines": 10, "text": "false!"}
    assert params(n_lines="12", loud="ja") == {"lines": 12, "text": "true!"}


@pytest.mark.parametrize(
    ("marks", "sentence"),
    [
        ({"mode": "Bremen"}, "means something to PLAN already"),
        ({"two words": "Bremen"}, "can't name a parameter"),
        ({"town": "Ulm"}, 'The plan does not have "Ulm" in it'),
        ({"town": " "}, "is empty"),
        ({"town": "Bremen", "place": "Bremen"}, "can't be two parameters"),
        ({"part": "Brem"}, "does not have"),
    ],
)  # fmt: skip
def test_what_can_t_be_marked_is_one_sentence(marks: dict[str, str], sentence: str) -> None:
    with pytest.raises(PlanError) as error:
        mark(PLAN, marks)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("parameters: {file: a}\nsteps: [{id: a, call: t.read}]", "no place for the value of the parameter 'file'"),
        ("parameters: [file]\nsteps: [{id: a, call: t.read}]", "The plan's parameters can't be read"),
        ("parameters: {file: {kind: path}}\ngoal: Read {{file}}.", "The plan's parameters.file.kind can't be read"),
        ("parameters: {file: a}\nsteps: [{id: '{{file}} b.c', call: t.read}]", "an id is a word"),
    ],
)  # fmt: skip
def test_a_template_that_no_value_could_make_a_plan_of_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(PlanError) as error:
        read_template(text)
    assert sentence in str(error.value)


def test_files_names_and_numbers_of_a_plan_are_offered() -> None:
    offered = [(offer.name, offer.value) for offer in offers(PLAN)]
    assert offered == [
        ("file", "reports/may.csv"),
        ("path", "out-3.txt"),
        ("bremen", "Bremen"),
        ("number", "3"),
        ("number_2", "1.3"),
        ("number_3", "30"),
    ]
    for name, value in offered:
        assert f"{{{{{name}}}}}" in mark(PLAN, {name: value})


def test_values_are_found_and_marked_in_a_script_without_blanks() -> None:
    text = "goal: 请把报告.txt翻译成英文\nsteps: [{id: 读, call: files.read, params: {path: 报告.txt}}]"
    assert ("path", "报告.txt") in [(offer.name, offer.value) for offer in offers(text)]
    template = read_template(mark(text, {"file": "报告.txt"}))
    assert template.goal == "请把{{file}}翻译成英文"
    plan = read_plan(template.fill({"file": "总结.txt"}, name="x"), id="plan")
    assert (plan.goal, plan.nodes["读"].params["path"]) == ("请把总结.txt翻译成英文", "总结.txt")
