"""`iact eval` from outside: a scripted endpoint, `kill -9`, budgets, the seven groups' tools in a container, and the
embedded model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from iact.evaluation.graph_tasks import GraphTask, tasks, wanted
from iact.evaluation.questions import chosen
from iact.evaluation.seven_groups import questions
from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.product import NO_MODULES, Product, Ran, containers_of, kill
from tests.endpoint import Endpoint
from tests.scripted import Gate, Reply, Request

NQ = (
    '{"question": "what is the capital of france", "answer": ["Paris"]}\n'
    '{"question": "where is the louvre", "answer": ["in Paris", "Paris"]}\n'
    '{"question": "who wrote faust", "answer": ["Goethe"]}\n'
)
ONE_BY_ONE = pytest.mark.no_prefix_law("each question is a session of its own at one endpoint")


def evaluated(product: Product, *arguments: str) -> tuple[Ran, dict[str, object]]:
    """The command with `--json`, and what it printed."""
    ran = product.run("eval", *arguments, "--json")
    assert "Traceback" not in ran.stderr, ran
    return ran, json.loads(ran.stdout) if ran.stdout else {}


def kept(out: Path) -> list[dict[str, object]]:
    """The runs that have a result, as they stand on disk."""
    lines = (out / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    return [one["run"] for one in map(json.loads, lines) if "run" in one]


@ONE_BY_ONE
def test_it_goes_on_after_a_kill_and_keeps_to_its_budget(stage: Stage, tmp_path: Path) -> None:
    gate = Gate()
    asked: list[str] = []

    def play(request: Request) -> Reply | str:
        said = "\n".join(text for _, text in request.messages)
        [question] = re.findall(r"capital of france|the louvre|wrote faust", said)[:1]
        asked.append(question)
        reply = "It is Paris.\n\nAnswer: Paris"
        if question == "the louvre" and not gate.arrived.done():
            return Reply(reply, gates={4: gate})
        return reply

    with Endpoint(play, crashes=True) as endpoint:
        prices = {"IACT_PRICE_PROMPT": "1000", "IACT_PRICE_COMPLETION": "2000"}
        product = stage.product(endpoint.url, **NO_MODULES)
        priced = Product(product.data, {**product.settings, **prices})
        (tmp_path / "NQ-open.dev.jsonl").write_text(NQ, encoding="utf-8")
        out = tmp_path / "out"
        given = ("nq_open", "--questions", str(tmp_path), "--ways", "react,G0", "--out", str(out))

        # What is missing is said before anything is asked.
        refused = product.run("eval", *given, "--budget", "1")
        assert (refused.status, "needs prices" in refused.sentence) == (2, True), refused
        nowhere = product.run("eval", "gsm8k", "--questions", str(tmp_path / "nowhere"))
        assert (nowhere.status, "grade-school-math" in nowhere.sentence) == (2, True), nowhere
        assert not asked

        # Killed while the third run's model writes; two are on disk.
        with priced.started("eval", *given) as process:
            assert gate.wait()
            assert len(kept(out)) == 2
            assert kill(process)
        gate.release()
        before = len(asked)

        # Too small a budget for all: it stops, with what it has.
        spent = sum(float(str(one["money"])) for one in kept(out))
        assert spent > 0
        ran, told = evaluated(priced, *given, "--budget", f"{spent * 1.9:.4f}")
        assert (ran.status, "used up" in ran.sentence) == (1, True), ran
        assert int(str(told["runs"])) < 6
        assert float(str(told["money"])) <= spent * 1.9
        assert all("france" not in one for one in asked[before:]), "what is done is not asked again"

        # With enough it goes on to the end, and from then on only prints.
        ran, told = evaluated(priced, *given, "--budget", "1000")
        assert (ran.status, told["runs"], told["of"]) == (0, 6, 6)
        before = len(asked)
        ran, again = evaluated(priced, *given)
        assert (ran.status, again) == (0, told)
        assert len(asked) == before
        assert "| react | all | 3 | 0.667 [" in product.run("eval", *given).stdout

        # Each question once more, beside what there is; the evaluation counts itself, too.
        ran, told = evaluated(priced, *given, "--repeat", "2", "--beside", str(out))
        assert (ran.status, told["runs"], told["of"]) == (0, 12, 12)
        plans, ahead = told["plans"], told["advantages"]
        assert isinstance(plans, dict)
        assert isinstance(ahead, dict)
        assert {arm: row["deviation"] for arm, row in plans.items()} == {"react": 0, "G0": 0}
        assert ahead["G0 − react"]["exact"] == [0, 0, 2]

        # Another question of the folder is not mixed with these.
        other = product.run("eval", *given[:3], "--ways", "react", "--out", str(out))
        assert (other.status, "other terms" in other.sentence) == (2, True), other

    ways = told["ways"]
    assert isinstance(ways, dict)
    assert [ways[arm]["all"]["exact"][0] for arm in ("react", "G0")] == [pytest.approx(2 / 3)] * 2
    runs = kept(out)
    assert [one["resumed"] for one in runs].count(True) >= 1
    assert len({(one["question"], one["arm"], one["repetition"]) for one in runs}) == 12
    # The journal of every run is there and whole, and its tokens are those of the table.
    for one in runs:
        records = journal_law(out / "data" / "sessions" / str(one["session"]) / "journal.md")
        reply = next(record for record in reversed(records) if record.kind == "reply")
        assert ("Answer: Paris" in reply.body) == (one["answer"] == "Paris")
    assert float(str(told["money"])) == pytest.approx(
        sum((int(str(one["prompt_tokens"])) + 2 * int(str(one["completion_tokens"]))) / 1000 for one in runs),
        rel=0.5,
    )


def _one_task() -> tuple[int, GraphTask]:
    """A seed that draws a task without troubles, with one source and one result."""
    by_id = {one.id: one for one in tasks()}
    for seed in range(200):
        [drawn] = chosen(questions(), 1, seed)
        task = by_id[drawn.id]
        if not task.troubles and len(task.steps) <= 3:
            return seed, task
    raise AssertionError("no seed draws such a task")


@ONE_BY_ONE
def test_a_loop_and_a_plan_call_the_tools_of_the_seven_groups(stage: Stage, tmp_path: Path) -> None:
    seed, task = _one_task()

    def call(number: int) -> str:
        step = task.steps[number]
        values = " ".join(f"'{wanted(task, one)}'" for one in step.inputs)
        return f"python3 tool.py {step.tool.name} {step.literal} {values}".strip()

    def play(request: Request) -> str:
        if request.agent == "/":
            if request.turn < len(task.steps):
                return f"```shell.run\n{call(request.turn)}\n```"
            said = re.findall(r"\S+#[0-9a-f]{10}", request.last)
            return f"Answer: {said[-1]}"
        steps = [
            {
                "id": f"s{n}",
                "call": "shell.run",
                "params": {"command": call(n)},
                "after": [f"s{n - 1}"] if n else [],
            }
            for n in range(len(task.steps))
        ]
        return json.dumps({"goal": "The value", "steps": steps})

    with Endpoint(play) as endpoint:
        product = stage.product(endpoint.url)
        out = tmp_path / "out"
        ran, told = evaluated(
            product, "seven_groups", "--ways", "G1,G4", "--limit", "1", "--seed", str(seed), "--out", str(out)
        )
    assert (ran.status, told["runs"]) == (0, 2), ran
    for one in kept(out):
        assert (one["exact"], one["status"], one["nodes"]) == (True, "ok", len(task.steps)), one
        assert wanted(task) in str(one["answer"])
    assert not containers_of(out / "data")


def test_the_embedded_model_takes_part(stage: Stage, tmp_path: Path) -> None:
    """That it works; how well that model does is not the point."""
    file = tmp_path / "mine.jsonl"
    file.write_text(
        '{"id": "os", "question": "Count the lines of /etc/os-release", "category": "shell"}\n',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    ran, told = evaluated(
        stage.product(IACT_EMBEDDED="1.5b"),
        "questions",
        "--questions",
        str(file),
        "--ways",
        "react",
        "--out",
        str(out),
    )
    assert (ran.status, told["runs"]) == (0, 1), ran
    [one] = kept(out)
    assert (one["status"], one["group"], one["exact"]) == ("ok", "shell", None), one
    assert int(str(one["completion_tokens"])) > 0
    assert str(one["answer"]).strip()
