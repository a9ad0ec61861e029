"""Question sets as their authors publish them, what counts as right, intervals, and the tools of the seven groups."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from iact.cli.evaluation import SETS as NAMED
from iact.core.errors import UsageError
from iact.evaluation import seven_groups
from iact.evaluation.graph_tasks import needed, tasks, value, wanted
from iact.evaluation.kept import FILE, EvalRun, open_kept, runs_in
from iact.evaluation.questions import SETS, EvalQuestion, answer_of, chosen, exact, f1, load
from iact.evaluation.report import (
    advantage_table,
    advantages,
    differences,
    mean,
    plan_rows,
    plan_table,
    rows,
    share,
    tables,
)

PUBLISHED = {
    "trivia_qa": '{"Data": [{"Question": "Who?", "QuestionId": "tc_1", "Answer": {"Aliases": ["Sunset Blvd"], '
    '"NormalizedAliases": ["sunset blvd"], "Value": "Sunset Boulevard"}}]}',
    "nq_open": '{"question": "who got it first", "answer": ["Wilhelm", "Conrad"]}\n',
    "strategy_qa": '[{"qid": "ab", "term": "x", "question": "Did he?", "answer": true, "facts": []}]',
    "gsm8k": '{"question": "How many?", "answer": "9 + 9 = <<9+9=18>>18\\n#### 1,018"}\n',
    "aqua_rat": '{"question": "Which?", "options": ["A)21", "B)5"], "rationale": "r", "correct": "B"}\n',
    "hotpot_qa": '[{"_id": "5a", "question": "Where?", "answer": "Kansas", "type": "bridge", "level": "hard"}]',
    "gaia": '{"task_id": "c6", "Question": "What?", "Level": 2, "Final answer": "right", "file_name": ""}\n'
    '{"task_id": "c7", "Question": "What is in it?", "Level": 1, "Final answer": "x", "file_name": "c7.xlsx"}\n',
    "questions": '{"question": "Say something."}\n{"id": "b", "question": "Which?", "answer": ["one"], "category": "c"}\n',
}
ANSWERS = {
    "trivia_qa": ("Sunset Boulevard", "Sunset Blvd", "sunset blvd"),
    "nq_open": ("Wilhelm", "Conrad"),
    "strategy_qa": ("yes",),
    "gsm8k": ("1,018",),
    "aqua_rat": ("B",),
    "hotpot_qa": ("Kansas",),
    "gaia": ("right",),
    "questions": (),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_published_file_is_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / SETS[name].files[-1]
    file.write_text(PUBLISHED[name], encoding="utf-8")
    found = load(name, tmp_path)
    assert found == load(name, file)
    assert len(found) == (2 if name == "questions" else 1)
    assert found[0].answers == ANSWERS[name]


def test_the_command_names_every_set() -> None:
    assert set(NAMED) == {"seven_groups", *SETS}
    assert PUBLISHED.keys() == SETS.keys()


def test_what_is_missing_or_another_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"hotpot_dev_fullwiki_v1\.json .*hotpotqa\.github\.io"):
        load("hotpot_qa", tmp_path)
    (tmp_path / "other.json").write_text('{"Data": 1}', encoding="utf-8")
    for name in ("hotpot_qa", "trivia_qa", "gsm8k"):
        with pytest.raises(UsageError, match="is not in the format of"):
            load(name, tmp_path / "other.json")
    (tmp_path / "two.jsonl").write_text(
        '{"id": 1, "question": "a"}\n{"id": 1, "question": "b"}\n', encoding="utf-8"
    )
    with pytest.raises(UsageError, match="the same id"):
        load("questions", tmp_path / "two.jsonl")


def test_the_same_questions_are_drawn_again() -> None:
    some = [EvalQuestion(str(n), f"{n}?", ()) for n in range(100)]
    first = chosen(some, 10, 42)
    assert first == chosen(some, 10, 42) != chosen(some, 10, 43)
    assert [int(one.id) for one in first] == sorted(int(one.id) for one in first)
    assert chosen(some, 200, 42) == some


def question(kind: str, *answers: str) -> EvalQuestion:
    return replace(EvalQuestion("q", "?", answers), kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "reply", "right"),
    [
        (question("text", "The Eiffel Tower"), "It is tall.\n\nAnswer: Eiffel tower.", True),
        (question("text", "NYC", "New York"), "**Answer:** New York", True),
        (question("text", "New York"), "Answer: York", False),
        (question("text", "No_Name"), "Answer: no name", True),
        (question("number", "18"), "Answer: $18.0 each", True),
        (question("number", "1,018"), "Answer: 1018", True),
        (question("number", "18"), "Answer: none", False),
        (question("yes_no", "yes"), "Answer: Yes, he did", True),
        (question("yes_no", "no"), "Answer: unknown", False),
        (question("letter", "B"), "Answer: (b) 5", True),
        (question("letter", "B"), "Answer: Because", False),
        (question("contains", "load:sales#1"), "The value is load:sales#1, as wanted.", True),
        (question("text", "two"), "Answer: one\nAnswer: two", True),
        (question("text", "x"), "", False),
    ],
)
def test_what_counts_as_right(asked: EvalQuestion, reply: str, right: bool) -> None:
    assert exact(reply, asked) is right


def test_agreement_by_words() -> None:
    """PTR's equation 41; the best of several answers counts, and words count as often as they stand there."""
    asked = question("text", "the red red house", "a boat")
    assert f1("Answer: red house", asked) == pytest.approx(2 * 2 / (2 + 3))
    assert f1("Answer: red red red", asked) == pytest.approx(2 * 2 / (3 + 3))
    assert f1("Answer: boat", asked) == 1
    assert f1("Answer: tree", asked) == 0
    assert f1("Answer: 18", question("number", "18")) == 1
    assert answer_of("No line says so.") == "No line says so."


def made(arm: str, number: int, right: bool, **other: float) -> EvalRun:
    base = EvalRun(
        question=f"q{number}", arm=arm, session="s", group="a" if number % 2 else "b", status="ok", bound="", exact=right,
        f1=float(right), seconds=1.0, resumed=False, model_calls=2, nodes=1, prompt_tokens=90, cached_tokens=0,
        completion_tokens=10, money=0.5, bytes=10, answer="x",
    )  # fmt: skip
    return replace(base, **other)  # type: ignore[arg-type]


def test_intervals() -> None:
    assert share(8, 10) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)  # Wilson's, as tables have it
    assert share(0, 10)[1] == 0
    assert share(0, 10)[2] == pytest.approx(0.2775, abs=1e-4)
    values = [float(n % 7) for n in range(70)]
    middle, low, high = mean(values)
    assert low < middle < high
    assert mean(values) == (middle, low, high)
    assert (high - low) / 2 == pytest.approx(1.96 * 2 / 70**0.5, rel=0.1)


def test_tables_tell_groups_and_what_is_gained() -> None:
    runs = [made("react", n, n < 4) for n in range(10)] + [
        made("profile", n, n < 7, seconds=3.0) for n in range(10)
    ]
    runs[-1] = replace(runs[-1], resumed=True, seconds=917.0)
    found, gained = rows(runs), differences(runs)
    printed = tables(found, gained, priced=True)
    assert "| react | all | 10 | 0.400 [0.168, 0.687] |" in printed
    assert "| profile | a | 5 |" in printed
    assert "| profile − react | 0.300 [" in printed
    assert "2.0 [2.0, 2.0]" in printed, "a run that was ended meanwhile has no time"
    assert "917" not in printed
    assert "| cost ratio |" in printed
    ratio = gained["profile − react"]
    assert isinstance(ratio, dict)
    assert ratio["cost_ratio"] == 1.0, "both cost the same"
    assert "| 5.0000 |" in printed
    assert "money" not in tables(found, gained, priced=False)


def test_groups_are_compared_with_the_first_loop_and_with_the_group_before() -> None:
    """Graph Harness, section 8.2: the gain of each part, and the total."""
    runs = [made(f"G{group}", n, n < group) for group in range(7) for n in range(10)]
    gained = differences(runs)
    assert list(gained) == [
        "G0 − G1", "G2 − G1", "G3 − G1", "G4 − G1", "G5 − G1", "G6 − G1", "G3 − G2", "G4 − G3", "G5 − G4", "G6 − G5",
    ]  # fmt: skip
    row = gained["G5 − G4"]
    assert isinstance(row, dict)
    assert isinstance(row["exact"], list)
    assert row["exact"][0] == pytest.approx(0.1)


def test_plans_tell_recoveries_contracts_width_circles_and_how_much_success_varies() -> None:
    """Graph Harness, sections 8.1 and 8.4."""
    plans = [made("G6", n, True, retries=1, versions=2, contracts=2, held=1, width=n + 1) for n in range(3)]
    plans.append(replace(made("G6", 3, False, versions=1), bound="replans"))
    again = [replace(one, repetition=2, exact=one.question == "q0") for one in plans]
    loops = [made("G1", n, True) for n in range(4)]

    found = plan_rows([*plans, *again, *loops])

    assert list(found) == ["G6"], "a loop has no plan, and was not repeated"
    row = found["G6"]
    assert isinstance(row, dict)
    figures = {name: figure[0] for name, figure in row.items() if isinstance(figure, list)}
    assert figures == pytest.approx(
        {"recoveries": 1.5, "versions": 1.75, "contracts_held": 0.5, "width": 1.5, "bound": 0.25}
    )
    # Two of four questions were right once and wrong once.
    assert row["deviation"] == pytest.approx(2 * 0.7071 / 4, abs=1e-4)
    assert "| G6 | 8 | 1.5 [" in plan_table(found)
    assert plan_table({}) == ""


def test_advantages_are_counted_over_evaluations() -> None:
    """Profile-Then-Reason, section 3.2."""
    one = [made("react", n, False) for n in range(4)] + [
        made("profile", n, True, seconds=2.0) for n in range(4)
    ]
    other = [made("react", n, False) for n in range(4)] + [made("profile", n, False) for n in range(4)]
    found = advantages([one, other, one])
    assert found == {
        "profile − react": {"exact": [2, 0, 1], "seconds": [0, 2, 1], "tokens": [0, 0, 3], "money": [0, 0, 3]}
    }
    assert "| profile − react | 2, 0, 1 | 0, 2, 1 | 0, 0, 3 | 0, 0, 3 |" in advantage_table(found, 3)


def test_what_was_kept_is_there_again_and_half_a_line_is_not(tmp_path: Path) -> None:
    terms = {"set": "x"}
    kept = open_kept(tmp_path, terms)
    for number in (1, 2, 3):
        kept.begin((f"q{number}", "react", 1), f"s{number}")
    kept.end(made("react", 1, True))
    kept.cut(("q2", "react", 1), 0.25, 40)
    with (tmp_path / FILE).open("a") as stream:
        stream.write('{"run": {"question": "q3", "ar')
    for _ in range(2):
        again = open_kept(tmp_path, terms)
        assert list(again.done) == [("q1", "react", 1)]
        assert again.begun == {("q3", "react", 1): "s3"}
        assert (again.money, again.tokens) == (0.75, 140)
    again.end(made("react", 3, False))
    assert len(open_kept(tmp_path, terms).done) == 2
    assert [one.question for one in runs_in(tmp_path)] == ["q1", "q3"]
    with pytest.raises(UsageError, match="contains no evaluation"):
        runs_in(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"other terms \(set\)"):
        open_kept(tmp_path, {"set": "y"})


def test_the_program_of_a_task_gives_what_is_wanted(tmp_path: Path) -> None:
    """Every kind of trouble, without the seconds that tools take."""
    asked = {one.id: one for one in seven_groups.questions()}
    kinds: set[str] = set()
    for task in tasks():
        new = {trouble.kind for trouble in task.troubles.values()} - kinds
        if not new and task.troubles:
            continue
        kinds |= new
        file = tmp_path / task.id / "tool.py"
        file.parent.mkdir()
        file.write_text(
            asked[task.id].program.replace("time.sleep(", "print(end='') or abs("), encoding="utf-8"
        )
        given: dict[str, str] = {}
        for step in task.steps:
            inputs = [given[one] for one in step.inputs]
            for _ in range(4):
                ran = subprocess.run(
                    [sys.executable, str(file), step.tool.name, needed(task, step), *inputs], capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                if ran.returncode == 0:
                    break
                assert "Try again" in ran.stderr, ran
            given[step.id] = ran.stdout.strip()
            assert given[step.id] == value(step.tool.name, needed(task, step), tuple(inputs))
        assert exact(f"It is {given[task.steps[-1].id]}.", asked[task.id])
        assert given[task.steps[-1].id] == wanted(task)
        if kinds == {"flaky", "moved", "upstream"}:
            return
    raise AssertionError(f"no task has each kind of trouble: {json.dumps(sorted(kinds))}")
