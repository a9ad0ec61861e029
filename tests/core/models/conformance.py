"""What every implementation of `core.ports.Model` must do.

Each check takes a model that is ready to reply with text to `messages`, and fails with an AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from iact.core.ports import ChatMessage, Model, StreamEnd, StreamRestart, TextDelta, Usage, UsageReport


@dataclass(slots=True)
class Collected:
    """A whole stream: the text that counts, the last usage, how it ended, and every restart."""

    text: str = ""
    usage: Usage | None = None
    ends: list[str] = field(default_factory=list)
    restarts: list[StreamRestart] = field(default_factory=list)


async def collect(
    model: Model, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
) -> Collected:
    """Read one stream to its end."""
    found = Collected()
    async with aclosing(model.stream(messages, max_tokens=max_tokens)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    assert text, "a delta must not be empty"
                    assert not found.ends, "nothing comes after the end"
                    found.text += text
                case StreamRestart():
                    found.text = ""
                    found.restarts.append(event)
                case UsageReport(usage):
                    found.usage = usage
                case StreamEnd(finish):
                    found.ends.append(finish)
    return found


async def check_profile(model: Model) -> None:
    profile = model.profile
    assert profile.name
    assert profile.context > 0
    assert profile == model.profile, "a profile does not change"


async def check_whole_reply(model: Model, messages: Sequence[ChatMessage]) -> None:
    found = await collect(model, messages)
    assert found.text.strip()
    assert found.ends == ["stop"]
    assert found.usage is not None, "usage is reported, or estimated"
    assert found.usage.prompt_tokens > 0
    assert found.usage.completion_tokens > 0
    assert 0 <= found.usage.cached_tokens <= found.usage.prompt_tokens


async def check_prefix_is_cached(model: Model, messages: Sequence[ChatMessage]) -> None:
    await collect(model, messages)
    again = await collect(model, messages)
    assert again.usage is not None
    assert again.usage.cached_tokens >= again.usage.prompt_tokens // 2, (
        "the same prompt again is mostly cached"
    )


async def check_early_close(model: Model, messages: Sequence[ChatMessage]) -> None:
    """Closing after the first delta works, leaves a usage, and the model goes on serving."""
    usage: Usage | None = None
    async with aclosing(model.stream(messages)) as events:
        heard = False
        async for event in events:
            if isinstance(event, UsageReport):
                usage = event.usage
            heard = heard or isinstance(event, TextDelta)
            if heard and usage is not None:
                break
    assert usage is not None
    assert usage.prompt_tokens > 0
    assert (await collect(model, messages)).ends == ["stop"]


async def check_unused_stream(model: Model, messages: Sequence[ChatMessage]) -> None:
    """A stream that is closed before it is read does nothing."""
    await model.stream(messages).aclose()


async def check_length_limit(model: Model, messages: Sequence[ChatMessage]) -> None:
    found = await collect(model, messages, max_tokens=3)
    assert found.ends == ["length"]


async def check_everything(model: Model, messages: Sequence[ChatMessage]) -> None:
    await check_profile(model)
    await check_unused_stream(model, messages)
    await check_whole_reply(model, messages)
    await check_prefix_is_cached(model, messages)
    await check_early_close(model, messages)
