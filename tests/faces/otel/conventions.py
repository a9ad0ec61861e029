"""The attributes that the conventions for generative AI have for each of our spans, and their requirement levels.

From `model/gen-ai/spans.yaml` of open-telemetry/semantic-conventions-genai at 002c8a6 (August 2026), including the
additions for spans whose provider is OpenAI, as ours is. No Python package contains the registry, so it is copied here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

Level: TypeAlias = Literal["required", "conditional", "recommended", "opt-in"]
"""`conditional`: required if it applies, or if it is at hand."""
LEVELS: Final[Sequence[Level]] = get_args(Level)

Attributes: TypeAlias = Mapping[str, Level]


def _of(level: Level, *names: str) -> Attributes:
    return dict.fromkeys(names, level)


_OPERATION: Final = _of("required", "gen_ai.operation.name")
_PROVIDER: Final = _of("required", "gen_ai.provider.name")
_MODEL: Final = _of("conditional", "gen_ai.request.model")
_ERROR: Final = _of("conditional", "error.type")
_ADDRESS: Final = {**_of("recommended", "server.address"), **_of("conditional", "server.port")}
_USAGE: Final = _of(
    "recommended",
    *(f"gen_ai.usage.{one}input_tokens" for one in ("", "cache_read.", "cache_creation.", "text.", "image.", "audio.", "video.")),
    *(f"gen_ai.usage.{one}output_tokens" for one in ("", "text.", "audio.")),
)  # fmt: skip
_CONTENT: Final = _of(
    "opt-in", "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions"
)  # fmt: skip
_ASKED: Final = {
    **_of("recommended", *(f"gen_ai.request.{one}" for one in ("max_tokens", "temperature", "top_p", "stop_sequences", "frequency_penalty", "presence_penalty"))),
    **_of("conditional", "gen_ai.request.choice.count", "gen_ai.request.seed", "gen_ai.output.type", "gen_ai.conversation.id"),
    **_of("recommended", "gen_ai.response.finish_reasons"),
}  # fmt: skip
_AGENT: Final = _of(
    "conditional", *(f"gen_ai.agent.{one}" for one in ("id", "name", "description", "version"))
)

_MEMORY: Final = {
    **_OPERATION, **_ERROR, **_ADDRESS,
    **_of("conditional", "gen_ai.provider.name", "gen_ai.memory.store.id", "gen_ai.memory.record.id"),
    **_of("recommended", "gen_ai.memory.record.count"),
    **_of("opt-in", "gen_ai.memory.query.text", "gen_ai.memory.records"),
}  # fmt: skip

SPANS: Final[Mapping[str, Attributes]] = {
    "create_agent": {
        **_OPERATION, **_PROVIDER, **_MODEL, **_ERROR, **_ADDRESS, **_AGENT, **_of("opt-in", "gen_ai.system_instructions"),
    },
    "invoke_agent": {
        **_OPERATION, **_PROVIDER, **_MODEL, **_ERROR, **_USAGE, **_CONTENT, **_ASKED, **_AGENT,
        **_of("conditional", "gen_ai.data_source.id"),
    },
    "chat": {
        **_OPERATION, **_PROVIDER, **_MODEL, **_ERROR, **_ADDRESS, **_USAGE, **_CONTENT, **_ASKED,
        **_of("conditional", "gen_ai.request.top_k", "gen_ai.request.stream"),
        **_of(
            "recommended", "gen_ai.response.id", "gen_ai.response.model", "gen_ai.response.time_to_first_chunk",
            "gen_ai.usage.reasoning.output_tokens",
        ),
        **_of("required", "gen_ai.request.model"),  # these are what OpenAI's spans have beside the others
        **_of("conditional", "openai.request.service_tier", "openai.response.service_tier"),
        **_of("recommended", "openai.response.system_fingerprint", "openai.api.type"),
    },
    "invoke_workflow": {
        **_OPERATION, **_ERROR, **_of("conditional", "gen_ai.workflow.name"),
        **_of("opt-in", "gen_ai.input.messages", "gen_ai.output.messages"),
    },
    "plan": {**_OPERATION, **_ERROR, **_of("conditional", "gen_ai.agent.id", "gen_ai.agent.name")},
    "execute_tool": {
        **_OPERATION, **_ERROR, **_of("required", "gen_ai.tool.name"),
        **_of("recommended", "gen_ai.tool.call.id", "gen_ai.tool.description", "gen_ai.tool.type"),
        **_of("opt-in", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
    },
    "search_memory": _MEMORY,
    "create_memory": _MEMORY,
}  # fmt: skip

ABSENT: Final[Mapping[str, Sequence[str]]] = {
    "a journal names no endpoint": ("server.address", "server.port"),
    "a journal has the sum of tokens and those from a cache, and distinguishes no other kinds": (
        *(f"gen_ai.usage.{one}" for one in (
            "cache_creation.input_tokens", "text.input_tokens", "image.input_tokens", "audio.input_tokens", "video.input_tokens",
            "text.output_tokens", "audio.output_tokens", "reasoning.output_tokens",
        )),
    ),
    "they are on the `chat` spans below, and would be counted twice": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.output_tokens",
        "gen_ai.response.finish_reasons",
    ),
    "a model's parameters are not recorded with its turn": (
        *(f"gen_ai.request.{one}" for one in (
            "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "frequency_penalty", "presence_penalty",
            "choice.count", "seed",
        )),
        "gen_ai.output.type",
    ),
    "what an endpoint reports about itself is not recorded": (
        "gen_ai.response.id", "gen_ai.response.model", "openai.request.service_tier", "openai.response.service_tier",
        "openai.response.system_fingerprint", "openai.api.type",
    ),
    "what a model was sent is not recorded; `iact context` derives it from the records": (
        "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.tool.definitions",
    ),
    "a plan's output is on its `invoke_agent`": ("gen_ai.output.messages",),
    "an agent has a name and a path, and no more": ("gen_ai.agent.description", "gen_ai.agent.version"),
    "does not exist: agents have modules, and one memory, which is part of iact": (
        "gen_ai.data_source.id", "gen_ai.memory.store.id", "gen_ai.provider.name",
    ),
    "a search finds several records, and a new record gets its id later": ("gen_ai.memory.record.id",),
    "the query is a model's own text, which `iact journal tail` shows": ("gen_ai.memory.query.text",),
    "it is the same for every call; `iact module describe` prints it": ("gen_ai.tool.description",),
    "the first two can't fail on their own, and memory failed in none of the journals": ("error.type",),
}  # fmt: skip
"""Why an attribute is missing on one span or several."""


def table(met: Mapping[str, set[str]]) -> str:
    """How many attributes each span has of those that it may have, and which it has not. `met`: by operation."""
    lines = ["| span | required | required if it applies | recommended | opt-in |", "|---|---|---|---|---|"]
    for operation, wanted in SPANS.items():
        counts = []
        for level in LEVELS:
            names = {name for name, its in wanted.items() if its == level}
            counts.append(f"{len(names & met[operation])} of {len(names)}" if names else "–")
        lines.append(f"| `{operation}` | {' | '.join(counts)} |")
    lines += ["", "| missing | on | why |", "|---|---|---|"]
    for reason, absent in ABSENT.items():
        without = [one for one, wanted in SPANS.items() if {*absent} & wanted.keys() - met[one]]
        on = ", ".join(f"`{one}`" for one in without)
        lines.append(f"| {', '.join(f'`{one}`' for one in absent)} | {on} | {reason} |")
    return "\n".join(lines)
