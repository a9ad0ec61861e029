"""Windows of 4,096 to 1,000,000 tokens, summaries of every kind, and endpoints that restart, through the real product.

The endpoints enforce their windows as vLLM does: messages and limit of the reply together.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.journal import read_journal
from iact.core.language.labels import HEADINGS, SUMMARIZE
from iact.core.records.control import SetModels
from iact.core.records.dialogue import Compress, Discard
from iact.core.records.dialogue import Reply as SaidReply
from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Answer
from tests.command import Command
from tests.endpoint import Endpoint, HttpError, Reply, Request

SUMMARY = "\n".join(f"{heading}: what there is to say" for heading in HEADINGS)
CUT = "The history that stood here was"

Say = Callable[[Request], Reply | str]


def asks_for_summary(request: Request) -> bool:
    return request.last.startswith(SUMMARIZE)


def was_cut(request: Request) -> bool:
    return any(CUT in content for role, content in request.messages if role == "user")


def worker(piece: int, summary: Reply | str = SUMMARY) -> Say:
    """An agent that writes `piece` characters each turn until its history was cut."""

    def say(request: Request) -> Reply | str:
        if asks_for_summary(request):
            return summary
        if was_cut(request):
            return "Done."
        return f"```VAR part_{request.turn}\n{'word ' * (piece // 5)}\n```"

    return say


class Strict:
    """An endpoint's window, enforced. `refused`: how many requests did not fit."""

    def __init__(self, window: int, say: Say, sentence: str = "") -> None:
        self.window = window
        self.refused = 0
        self._say = say
        self._sentence = sentence or (
            "This model's maximum context length is {window} tokens. However, you requested {total} tokens ({prompt} in "
            "the messages, {limit} in the completion). Please reduce the length of the messages or completion."
        )

    def __call__(self, request: Request) -> Reply | str:
        limit = request.body["max_tokens"]
        assert isinstance(limit, int)
        prompt = request.prompt_tokens
        if prompt + limit <= self.window:
            return self._say(request)

        self.refused += 1
        said = self._sentence.format(window=self.window, total=prompt + limit, prompt=prompt, limit=limit)
        return Reply(error=HttpError(400, {"error": {"message": said, "type": "BadRequestError"}}))


def _port(endpoint: Endpoint) -> int:
    return int(endpoint.url.rpartition(":")[2].partition("/")[0])


def _compressions(answer: Answer) -> list[str]:
    return [record.body for record in answer.records if isinstance(record.content, Compress)]


@pytest.mark.parametrize("window", [4096, 8192, 16_384, 131_072])
def test_a_window_that_is_set_right_is_never_exceeded(stage: Stage, window: int) -> None:
    strict = Strict(window, worker(window // 6))
    product = stage.product(stage.endpoint(strict), IACT_CONTEXT=str(window), **NO_MODULES)
    answer = product.ask("Write parts.")
    assert (answer.status, answer.reply) == ("done", "Done.")
    assert _compressions(answer) == [SUMMARY]
    assert strict.refused == 0
    assert product.ask("Again?", session=answer.session).reply == "Done."


@pytest.mark.parametrize("window", [4096, 8192, 16_384, 131_072])
def test_an_endpoints_word_about_its_window_is_believed_and_kept(stage: Stage, window: int) -> None:
    strict = Strict(window, worker(window // 6))
    endpoint = stage.endpoint(strict)
    product = stage.product(endpoint, IACT_CONTEXT="200000", **NO_MODULES)
    answer = product.ask("Write parts.")
    assert (answer.status, answer.reply) == ("done", "Done.")
    assert strict.refused == 1
    learnt = [record.content for record in answer.records if isinstance(record.content, SetModels)]
    assert [(one.by, one.models["smart"].context) for one in learnt] == [("core", window)]

    [kept] = json.loads((product.data / "windows.json").read_text(encoding="utf-8")).values()
    assert kept == window
    replay(answer.journal, verify=True)

    # The next session starts right. It is asked at the same address, by which its window is known.
    endpoint.stop()
    again = Strict(window, worker(window // 6))
    with Endpoint(again, port=_port(endpoint)):
        assert product.ask("Write other parts.").reply == "Done."
    assert again.refused == 0


@pytest.mark.parametrize(
    "sentence",
    [
        "The decoder prompt (length {prompt}) is longer than the maximum model length of {window}.",
        "request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it",
        "prompt is too long: {prompt} tokens > {window} maximum",
        "Please reduce the length of the messages or completion.",
    ],
)
def test_a_full_history_is_cut_when_its_window_turns_out_smaller(stage: Stage, sentence: str) -> None:
    """The endpoint has had room for a long history, and is started again with a smaller window."""

    def much(request: Request) -> str:
        return f"```VAR w{request.turn}\n{'word ' * 3000}\n```" if request.turn < 5 else "So far."

    strict = Strict(131_072, much)
    endpoint = stage.endpoint(lambda request: strict(request))
    product = stage.product(endpoint, IACT_CONTEXT="131072", **NO_MODULES)
    answer = product.ask("Write much.")
    assert answer.reply == "So far."

    strict = Strict(8192, lambda request: SUMMARY if asks_for_summary(request) else "Still here.", sentence)
    went_on = product.ask("And now?", session=answer.session)
    assert (went_on.status, went_on.reply) == ("done", "Still here.")
    assert _compressions(went_on)
    assert strict.refused <= 8
    last = endpoint.requests[-1]
    assert "Write much." in str(last.messages)
    assert "And now?" in last.last


BAD: dict[str, Reply | str] = {
    "empty": Reply(""),
    "only thoughts": Reply("<think>What was it that I did?</think>"),
    "reasoning and nothing else": Reply("", reasoning="What was it that I did?"),
    "ten thousand words": SUMMARY + "\n" + "word " * 10_000,
    "no heading": "Many parts were written.",
    "an action": "```VAR wrong\nThis must not run.\n```",
}


@pytest.mark.parametrize("name", BAD)
def test_no_summary_ends_a_session(stage: Stage, name: str) -> None:
    endpoint = stage.endpoint(worker(3000, BAD[name]))
    product = stage.product(endpoint, IACT_CONTEXT="8192", **NO_MODULES)
    answer = product.ask("Write parts. Mind the RULE: never stop.")
    assert (answer.status, answer.reply) == ("done", "Done.")
    assert _compressions(answer) == [""]
    first = endpoint.requests[-1].messages[1][1]
    assert CUT in first
    assert "Mind the RULE: never stop." in first
    assert "What you did:" in first or "$part_0" in first

    # It goes on, also with a person's wish for another cut, and verifies.
    assert product.ask("And now?", session=answer.session).reply == "Done."
    tree = replay(answer.journal, verify=True).tree
    assert "wrong" not in tree.root.table
    refused = [one.content for one in answer.records if isinstance(one.content, Discard)]
    assert {one.reason for one in refused} <= {"summary", "restart"}


def test_a_window_of_a_million(stage: Stage) -> None:
    strict = Strict(1_000_000, worker(110_000, SUMMARY))
    endpoint = stage.endpoint(strict)
    product = stage.product(endpoint, IACT_CONTEXT="1000000", **NO_MODULES)
    (product.data / "iact.toml").write_text("[bounds]\ntokens = 90000000\n", encoding="utf-8")
    answer = product.ask("Write parts.")
    assert (answer.status, answer.reply) == ("done", "Done.")
    assert strict.refused == 0
    assert _compressions(answer) == [SUMMARY]
    sizes = [request.prompt_tokens for request in endpoint.requests]
    assert max(sizes) > 700_000, "it is cut only when the window is nearly full"
    limits = [request.body["max_tokens"] for request in endpoint.requests]
    assert all(isinstance(limit, int) and limit >= 32_768 for limit in limits)


def test_an_endpoint_that_goes_away_and_comes_back(stage: Stage, tmp_path: Path) -> None:
    """A server process is killed in the middle of a reply and started again while the agent waits for it."""
    gone = stage.endpoint({"/": [Reply("Half of a reply, and", hang_after=8)]})
    port = _port(gone)
    product = stage.product(gone, **NO_MODULES)
    with Command(
        ["run", "--json", "Say it."], env=product.environment, cwd=tmp_path,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert gone.wait_for(1)
        gone.stop()
        told = next(line for line in process.stderr if "can't be reached" in line)
        assert "Waiting: attempt" in told

        with Endpoint({"/": ["The whole reply."]}, port=port) as back:
            output, _ = process.communicate(timeout=300)
        back.assert_used()
    assert process.returncode == 0
    report = json.loads(output)
    assert report["reply"] == "The whole reply."
    [reply] = [one.content for one in read_journal(Path(report["journal"])).records if one.kind == "reply"]
    assert isinstance(reply, SaidReply)
    assert reply.generation is not None
    assert [one.state for one in reply.generation.waits].count("retrying") >= 2


def test_a_plan_learns_the_window_of_its_model(stage: Stage) -> None:
    """A planner is asked with a limit that its endpoint has no room for; the next question fits at once."""
    asked: list[str] = []

    def say(request: Request) -> str:
        asked.append(request.last)
        if len(asked) == 1:
            return "steps: [{id: a, ask: Say hello.}]"
        return (
            '{"achieved": true, "confidence": 0.9, "final_answer": "Hello."}'
            if "achieved" in request.last
            else "Hello."
        )

    strict = Strict(8192, say)
    product = stage.product(stage.endpoint(strict), IACT_CONTEXT="131072", **NO_MODULES)
    ran = product.run("plan", "run", "--goal", "Say hello.", "--json")
    assert strict.refused == 1, ran
    assert len(asked) > 1
