"""An Inspect model in a role of a session. It is called through Inspect, so Inspect's log, cache and limits apply."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelUsage,
)
from inspect_ai.util import LimitExceededError

from iact.core.errors import ModelError
from iact.core.ports import ChatMessage as OwnMessage
from iact.core.ports import (
    ModelEvent,
    ModelProfile,
    ReasoningDelta,
    StreamEnd,
    TextDelta,
    Usage,
    UsageReport,
)

_CUT: Final = ("max_tokens", "model_length")


class InspectModel:
    """`core.ports.Model` using an Inspect model. The reply arrives in one piece."""

    def __init__(self, model: Model, *, context: int) -> None:
        self._model = model
        self._profile = ModelProfile(str(model), context, f"{model}, asked through Inspect")
        self.limit: LimitExceededError | None = None
        """The limit of the sample that this model hit, if any."""

    @property
    def profile(self) -> ModelProfile:
        """See `Model.profile`."""
        return self._profile

    async def stream(
        self, messages: Sequence[OwnMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        """See `Model.stream`.

        Raises:
            ModelError: a limit of the sample was hit, which is then in `limit`, or Inspect's retries ran out.
        """
        try:
            output = await self._model.generate(
                [_message(one) for one in messages], config=GenerateConfig(max_tokens=max_tokens)
            )
        except LimitExceededError as error:
            self.limit = error
            raise ModelError(f"The sample's {error.type} limit was reached.") from error
        except Exception as error:
            raise ModelError(f"{self._model} gave no reply: {str(error) or type(error).__name__}.") from error
        if output.error or not output.choices:
            raise ModelError(f"{self._model} gave no reply: {output.error or 'it is empty'}.")
        for event in _parts(output.choices[0].message):
            yield event
        if output.usage is not None:
            yield UsageReport(_usage(output.usage))
        yield StreamEnd("length" if output.stop_reason in _CUT else "stop")

    async def warm(self) -> None:
        """Do nothing: Inspect has the model ready."""

    async def close(self) -> None:
        """Do nothing: Inspect owns the model and closes it."""


def _message(one: OwnMessage) -> ChatMessage:
    match one.role:
        case "system":
            return ChatMessageSystem(content=one.content)
        case "assistant":
            return ChatMessageAssistant(content=one.content)
        case _:
            return ChatMessageUser(content=one.content)


def _parts(message: ChatMessageAssistant) -> list[ModelEvent]:
    if isinstance(message.content, str):
        return [TextDelta(message.content)]
    thought = "".join(part.reasoning for part in message.content if isinstance(part, ContentReasoning))
    said = "".join(part.text for part in message.content if isinstance(part, ContentText))
    return [*([ReasoningDelta(thought)] if thought else []), TextDelta(said)]


def _usage(used: ModelUsage) -> Usage:
    """The usage in iact's terms. Inspect counts cached input tokens separately from other input tokens."""
    cached = used.input_tokens_cache_read or 0
    return Usage(
        used.input_tokens + cached + (used.input_tokens_cache_write or 0), cached, used.output_tokens
    )
