"""The comparison's endpoint answers all frameworks alike, and a framework that is not available is left out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.environments import Unavailable, interpreter
from benchmarks.peers import __main__ as peers
from benchmarks.peers.endpoint import (
    DOWN,
    FAN,
    LOOK,
    PART,
    WHEN_TOLD,
    Prompts,
    as_blocks,
    as_message,
    reply_to,
    task_of,
)
from benchmarks.tree.measure import DONE
from iact.core.language.scanner import scan

TOOLS = {"read": "text", "call": "input", "final_answer": "answer"}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


SAID = {"role": "assistant", "content": "…"}


def test_the_newest_task_counts_and_the_turns_since() -> None:
    messages = [user(LOOK.format(count=3)), SAID, user(DOWN.format(count=5)), SAID, user("a result"), SAID]
    task, turn = task_of(messages)
    assert (task.kind, task.number, turn) == ("down", 5, 2)


def test_the_last_task_of_a_message_counts() -> None:
    """Our opening may tell the goal of the whole before the child's own task."""
    task, _ = task_of(
        [user(f"{FAN.format(count=9, how=WHEN_TOLD)}\n{PART.format(number=4, how='after 50 ms')}")]
    )
    assert (task.kind, task.number, task.how) == ("part", 4, "after 50 ms")


def test_text_in_parts_is_read_too_and_no_task_is_refused() -> None:
    assert (
        task_of([{"role": "user", "content": [{"type": "text", "text": LOOK.format(count=2)}]}])[0].number
        == 2
    )
    with pytest.raises(ValueError, match="no message holds a task"):
        task_of([user("Hello.")])


@pytest.mark.parametrize(
    ("task", "calls"),
    [
        (LOOK.format(count=2), [1, 1, 0]),
        (FAN.format(count=3, how=WHEN_TOLD), [3, 0]),
        (DOWN.format(count=2), [1, 0]),
        (DOWN.format(count=0), [0]),
        (PART.format(number=1, how=WHEN_TOLD), [0]),
    ],
)
def test_so_many_calls_are_made_turn_by_turn(task: str, calls: list[int]) -> None:
    known, _ = task_of([user(task)])
    replies = [reply_to(known, turn) for turn in range(len(calls))]
    assert [len(reply.calls) for reply in replies] == calls
    assert replies[-1].text == DONE


def test_both_forms_of_a_reply_hold_the_same_calls() -> None:
    said = reply_to(task_of([user(FAN.format(count=3, how=WHEN_TOLD))])[0], 0)
    blocks = scan(as_blocks(said), lambda name: True).blocks
    assert [block.body.strip() for block in blocks] == [*(text for _, text in said.calls), ""]
    calls = as_message(said, 0, TOOLS)["tool_calls"]
    assert isinstance(calls, list)
    given = [json.loads(call["function"]["arguments"])["input"] for call in calls]
    assert given == [text for _, text in said.calls]


def test_an_answer_goes_to_the_function_that_takes_it() -> None:
    answer = reply_to(task_of([user(LOOK.format(count=0))])[0], 0)
    assert "tool_calls" not in as_message(answer, 0, {"read": "text"})
    assert "final_answer" in json.dumps(as_message(answer, 0, TOOLS))


def test_what_stood_in_the_same_place_is_counted() -> None:
    seen, first = Prompts(), [user("a" * 10)]
    size = len(json.dumps(first[0])) + len("null")
    seen.take("one", {}, first)
    assert (seen.sent, seen.same, seen.cached) == (size, 0, 0)
    seen.take("one", {}, [*first, user("b")])
    assert (seen.same, seen.cached) == (size, size)
    before = seen.same
    seen.take("two", {}, [user("a" * 9 + "c")])  # another dialogue: only the cache of any request counts
    assert seen.same == before
    assert seen.cached == size + len("null") + len('{"content": "') + 9
    seen.take("one", {"tools": ["new"]}, [*first, user("b"), user("d")])
    assert seen.same == before, "a tool that joins stands in front of everything"


def test_packages_that_cannot_be_installed_leave_one_framework_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path)
    monkeypatch.setattr("venv.create", lambda *given, **options: None)
    monkeypatch.setattr("subprocess.run", refuse)
    with pytest.raises(Unavailable, match=r"openai-agents.* can't be installed"):
        interpreter("openai_agents")
    assert environments.installed("openai_agents") == []
    assert "openai_agents is left out" in capsys.readouterr().out
    run = peers.Run("http://127.0.0.1:1", ["ours", "openai_agents"])
    assert run.one("openai_agents", "steps", 1, tmp_path) == {}
    assert "can't be installed" in run.failed["openai_agents"]


def test_an_environment_is_made_once_and_again_for_other_versions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[object] = []
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path)

    def create(place: Path, **options: object) -> None:
        place.mkdir(parents=True, exist_ok=True)
        made.append(place)

    monkeypatch.setattr("venv.create", create)
    monkeypatch.setattr("subprocess.run", lambda *given, **options: None)
    assert interpreter("smolagents") == interpreter("smolagents")
    assert len(made) == 1
    monkeypatch.setattr(environments, "PACKAGES", {"smolagents": ("smolagents==0",)})
    interpreter("smolagents")
    assert len(made) == 2


def test_a_measurement_that_fails_has_a_row_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens at this address, so the process of the plain loop fails."""
    run = peers.Run("http://127.0.0.1:1", ["floor"])
    made = run.one("floor", "steps", 1, tmp_path)
    assert made == {}
    assert "Connection error" in run.failed["floor steps 1"]
    peers.show(run, peers.SHORT)
    assert capsys.readouterr().out.count("This was not measured.") == 5
    run.keep("floor", ("down", peers.SHORT.levels[0]), {"cpu_ms": 7.0}, "cpu_ms")
    peers.show(run, peers.SHORT)
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| plain loop"))
    assert row == "| plain loop, no framework | – | – | 7.0 | – | 4 |"


def test_what_is_kept_of_several_rounds_is_the_best() -> None:
    run = peers.Run("", ["ours"])
    for value in (3.0, 2.0, 4.0):
        run.keep("ours", ("fan", 5), {"makespan": value}, "makespan")
    run.keep("ours", ("fan", 5), {}, "makespan")
    assert run.get("ours", "fan", 5, "makespan") == 2.0
    assert run.get("ours", "down", 5, "makespan") is None


def test_a_part_of_the_comparison_runs_over_http(tmp_path: Path) -> None:
    """The plain loop, as a process of its own against the real endpoint; the frameworks do the same."""
    with peers.endpoint() as url:
        run = peers.Run(url, ["floor"])
        for what in ("down", "agents"):
            assert run.one("floor", what, 3, tmp_path), run.failed
        run.take(1, "steps", 4, "wall", seen=True)
    assert run.get("floor", "steps", 4, "came") == 4
    assert run.get("floor", "steps", 4, "requests") == 7.0
