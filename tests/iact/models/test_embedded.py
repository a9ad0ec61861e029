"""The model on board with the real llama.cpp and its real file. How well it answers is measured elsewhere."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from iact.core.clock import SystemClock
from iact.core.errors import ModelUnreachable
from iact.core.language import labels
from iact.core.models.structured import structured
from iact.core.ports import ChatMessage
from iact.models.embedded import EmbeddedModel
from iact.models.prompt import STATIC
from iact.models.weights import select
from tests.core.models import conformance
from tests.core.models.conformance import collect

OPENING = STATIC.examples[0].content.partition("\n\nMessage from")[0]
"""What stands at the head of a first message in the product, too: with another list of functions, the model invents sizes
that it had to look up."""

PROMPT = (ChatMessage("system", STATIC.system), *STATIC.examples)


def asked(text: str) -> list[ChatMessage]:
    """The context of a first message."""
    message = labels.message("the user", text, {})
    return [*PROMPT, ChatMessage("user", f"{OPENING}\n\n{message}\n\n(state) time: 2026-11-21 02:31 UTC")]


def made() -> EmbeddedModel:
    return EmbeddedModel(clock=SystemClock(), rng=random.Random(1), selection=select("1.5b"))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def model(loop: asyncio.Runner) -> Iterator[EmbeddedModel]:
    found = made()
    yield found
    loop.run(found.close())


def test_conforms(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    context = asked("Say good night")
    loop.run(conformance.check_everything(model, context))
    loop.run(conformance.check_length_limit(model, context))


def test_it_writes_an_action(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    reply = loop.run(collect(model, asked("How big is /usr/bin?"))).text
    assert reply.startswith("```shell.run\n")
    assert "/usr/bin" in reply


def test_the_static_prompt_is_cached_from_the_start(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    loop.run(model.warm())
    found = loop.run(collect(model, asked("Which shell is mine?"), max_tokens=4))
    assert found.usage is not None
    assert found.usage.cached_tokens >= found.usage.prompt_tokens * 0.8


def test_the_memory_is_released_when_idle_and_taken_again(loop: asyncio.Runner) -> None:
    async def test() -> None:
        one = EmbeddedModel(clock=SystemClock(), rng=random.Random(1), selection=select("1.5b"), idle=0.01)
        await one.warm()
        while one.loaded:  # noqa: ASYNC110 - a timer releases it
            await asyncio.sleep(0.02)
        assert (await collect(one, asked("Say yes"), max_tokens=4)).text
        await one.close()

    loop.run(test())


class Colours(BaseModel):
    """For a verdict that a model of this size can give, its form being enforced."""

    colour: Literal["red", "green", "blue"]
    parts: list[int] = Field(min_length=2, max_length=3)


def test_a_structured_verdict_is_served_natively(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    question = [ChatMessage("user", "Which colour has the sky, and what are two small numbers?")]
    for _ in range(2):
        outcome = loop.run(structured(model, question, Colours, max_tokens=80))
        assert outcome.step == "native"
        assert len(outcome.value.parts) in (2, 3)
        assert outcome.usage.prompt_tokens > 0


def test_making_one_loads_nothing_and_says_what_it_is() -> None:
    before = threading.active_count()
    one = made()
    assert "small model on board" in one.profile.label
    asyncio.run(one.close())
    assert threading.active_count() == before
    code = "import iact.models.embedded, sys; sys.exit('xllamacpp' in sys.modules or 'openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_turned_off_it_says_why_there_is_no_answer() -> None:
    one = EmbeddedModel(clock=SystemClock(), rng=random.Random(1), selection=select("off"))
    with pytest.raises(ModelUnreachable, match="iact model add"):
        asyncio.run(collect(one, asked("hi")))


def test_a_process_that_used_it_ends_at_once_and_prints_nothing() -> None:
    """No thread of llama.cpp keeps the process, also when nobody closed the model; its logs stay quiet."""
    code = (
        "import asyncio\n"
        "from tests.iact.models.test_embedded import asked, made\n"
        "from tests.core.models.conformance import collect\n"
        "asyncio.run(collect(made(), asked('hello'), max_tokens=4))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
