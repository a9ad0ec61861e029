"""Sessions with the model on board: what its person reads where it plainly can't, and what it reads in a dialogue.

The whole product takes part, but for llama.cpp: a scripted endpoint says what a small model says in such a case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from iact.models import download, embedded
from iact.settings import load
from iact.wiring import open_runtime
from tests.endpoint import Endpoint, Reply, Request, Script


class ScriptedLlama:
    """Takes the part of llama.cpp's process."""

    running = True
    address = ""

    def __init__(self, *_arguments: object) -> None:
        pass

    def start(self) -> str:
        return self.address

    def stop(self) -> None:
        pass


def answered(
    monkeypatch: pytest.MonkeyPatch, folder: Path, texts: tuple[str, ...], script: Script
) -> list[str]:
    """What a person reads for messages of one session, if the model on board replies like this."""

    async def read_nothing(*_arguments: object) -> None:
        pass

    async def test() -> list[str]:
        environment: Mapping[str, str] = {"IACT_EMBEDDED": "1.5b", "IACT_MEMORY": "off"}
        settings = load(data=str(folder), environment=environment)
        async with open_runtime(settings, attended=False) as runtime:
            session = await runtime.open()
            return [(await session.ask(text)).body for text in texts]

    with Endpoint(script) as endpoint:
        monkeypatch.setattr(ScriptedLlama, "address", endpoint.url.removesuffix("/v1"))
        monkeypatch.setattr(embedded, "LlamaProcess", ScriptedLlama)
        monkeypatch.setattr(embedded, "_read_static_prompt", read_nothing)
        monkeypatch.setattr(download, "fetch", lambda weights, tell: Path("/nowhere.gguf"))
        bodies = asyncio.run(test())
    endpoint.assert_used()
    return bodies


def test_a_refusal_and_a_text_without_an_end_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refused, long, answer = answered(
        monkeypatch,
        tmp_path,
        ("Paint my kitchen", "Write a novel", "Who are you?"),
        {
            "/": [
                "I'm sorry, but I can't assist with that.",
                Reply("Chapter 1. It was night.", finish="length"),
                "I am an assistant.",
            ]
        },
    )
    assert refused.startswith("I'm sorry, but I can't assist with that.")
    assert "Connect a model" in refused
    assert long.startswith("Chapter 1. It was night.")
    assert "longer than what I can write" in long
    assert "Connect a model" in long
    assert answer == "I am an assistant."


def test_what_is_too_long_for_a_file_is_tried_three_times_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The script has no fourth reply."""
    without_end = [
        Reply(f"```files.write path=novel.txt\nChapter {number}", finish="length") for number in range(3)
    ]
    [answer] = answered(monkeypatch, tmp_path, ("Write a novel to novel.txt",), {"/": without_end})
    assert "3 attempts failed" in answer
    assert "Connect a model" in answer


def test_a_dialogue_is_far_from_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Asked to cut its context, a model of this size writes about cutting it, and not what its person wants."""
    told: list[bool] = []

    def script(request: Request) -> str:
        told.append(any("% full" in text for _, text in request.messages))
        return "Yes. " * 60

    texts = tuple(f"Question {number}: " + "and what about this? " * 15 for number in range(6))
    answers = answered(monkeypatch, tmp_path, texts, script)
    assert len(answers) == 6
    assert told == [False] * 6
