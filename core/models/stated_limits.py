"""What an endpoint says about its limits when it refuses a request as too long.

There is no field for it in the protocol: each server has a sentence of its own, and most have changed it more than
once. `SENTENCES` holds those in use, each with the server that says it and an example that was seen. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

LEAST_WINDOW: Final = 1024
"""Fewer tokens than this are not believed. Some versions of vLLM state what their window has left, which can be 3
(vllm-project/vllm#33418)."""

_NUMBER: Final = r"(?P<{}>\d[\d,_]*)"
_WINDOW: Final = _NUMBER.format("window")
_PROMPT: Final = _NUMBER.format("prompt")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One way of saying that a request is too long."""

    source: str
    """The servers that say it."""

    pattern: re.Pattern[str]
    """Finds it. The group `window` is the size of the window, `prompt` that of the messages; either may be missing."""

    example: str
    """The sentence as it was seen."""


def _sentence(source: str, pattern: str, example: str) -> Sentence:
    return Sentence(source, re.compile(pattern, re.IGNORECASE | re.DOTALL), example)


SENTENCES: Final = (
    _sentence(
        "OpenAI; vLLM up to 0.10; DeepSeek",
        rf"maximum context length is {_WINDOW} tokens.{{1,40}}you requested [\d,]+ tokens \({_PROMPT}",
        "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (4204 in the messages, "
        "4096 in the completion). Please reduce the length of the messages or completion.",
    ),
    _sentence(
        "OpenRouter",
        rf"maximum context length is {_WINDOW} tokens.{{1,40}}requested about [\d,]+ tokens \({_PROMPT} of text",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 132463 tokens (1463 of "
        "text input, 131000 in the output). Please reduce the length of either one.",
    ),
    _sentence(
        "OpenAI, without a limit for the reply",
        rf"maximum context length is {_WINDOW} tokens.{{1,40}}messages resulted in {_PROMPT} tokens",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens. Please "
        "reduce the length of the messages.",
    ),
    _sentence(
        "vLLM 0.10 to 0.15",
        rf"maximum context length is {_WINDOW} tokens and your request has {_PROMPT} input tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens "
        "and your request has 2104 input tokens (2000 > 4096 - 2104).",
    ),
    _sentence(
        "vLLM 0.15",
        rf"maximum context length is {_WINDOW} tokens.{{1,30}}your request has {_PROMPT} input tokens",
        "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 "
        "'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(8, 2045))",
    ),
    _sentence(
        "vLLM since 0.16",
        rf"maximum context length is {_WINDOW} tokens.{{1,80}}prompt contains at least {_PROMPT} input tokens",
        "This model's maximum context length is 32768 tokens. However, you requested 8192 output tokens and your prompt "
        "contains at least 24577 input tokens, for a total of at least 32769 tokens.",
    ),
    _sentence(
        "vLLM since 0.16; Llama API",
        rf"passed {_PROMPT} input tokens.{{1,80}}context length is only {_WINDOW}",
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only "
        "131072 tokens, resulting in a maximum input length of 98304 tokens.",
    ),
    _sentence(
        "vLLM, at the engine",
        rf"prompt \(length {_PROMPT}\) is longer than the maximum model length of {_WINDOW}",
        "The decoder prompt (length 4166) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
    ),
    _sentence(
        "SGLang; Together",
        rf"input \({_PROMPT} tokens\) is longer than the model'?s context length \({_WINDOW} tokens\)",
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    ),
    _sentence(
        "SGLang, messages and reply together",
        rf"model'?s maximum context length of {_WINDOW} tokens(?:.{{1,80}}: {_PROMPT} tokens from the input)?",
        "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of "
        "202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion.",
    ),
    _sentence(
        "SGLang, where memory is short",
        rf"input length \({_PROMPT} tokens\) exceeds the maximum allowed length \({_WINDOW} tokens\)",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
    ),
    _sentence(
        "llama.cpp",
        rf"request \({_PROMPT} tokens\) exceeds the available context size \({_WINDOW} tokens\)",
        "request (9012 tokens) exceeds the available context size (8192 tokens), try increasing it",
    ),
    _sentence(
        "llama.cpp",
        rf"exceeds the available context size(?: \({_WINDOW} tokens\))?",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
    ),
    _sentence(
        "llama-cpp-python",
        rf"requested tokens \([\d,]+\) exceed context window of {_WINDOW}",
        "Requested tokens (2285) exceed context window of 2048",
    ),
    _sentence(
        "Anthropic",
        rf"prompt is too long: {_PROMPT} tokens > {_WINDOW} maximum",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    _sentence(
        "Anthropic, messages and reply together",
        rf"exceed context limit: {_PROMPT} \+ [\d,]+ > {_WINDOW}",
        "input length and `max_tokens` exceed context limit: 189000 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
    ),
    _sentence(
        "text-generation-inference",
        rf"`max_new_tokens` must be <= {_WINDOW}(?:\. Given: {_PROMPT} `inputs` tokens)?",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 17 `inputs` tokens and "
        "10000 `max_new_tokens`",
    ),
    _sentence(
        "text-generation-inference",
        rf"`inputs` must have less than {_WINDOW} tokens\. Given: {_PROMPT}",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5012",
    ),
    _sentence(
        "LM Studio",
        rf"keep the first {_PROMPT} tokens.{{1,90}}context length of only {_WINDOW} tokens",
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context "
        "length of only 7866 tokens, which is not enough.",
    ),
    _sentence(
        "LM Studio",
        rf"greater than the context length(?: \(n_ctx: {_WINDOW}\))?",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_ctx: 8192)",
    ),
    _sentence(
        "Mistral",
        rf"prompt contains {_PROMPT} tokens.{{1,40}}too large for model with {_WINDOW} maximum context length",
        "Prompt contains 300000 tokens, too large for model with 131072 maximum context length",
    ),
    _sentence(
        "Gemini",
        rf"input token count \({_PROMPT}\) exceeds the maximum number of tokens allowed \({_WINDOW}\)",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
    ),
    _sentence(
        "xAI",
        rf"maximum prompt length is {_WINDOW} but the request contains {_PROMPT} tokens",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    ),
    _sentence(
        "GitHub Copilot",
        rf"prompt token count of {_PROMPT} exceeds the limit of {_WINDOW}",
        "prompt token count of 200000 exceeds the limit of 128000",
    ),
    _sentence(
        "Kimi",
        rf"exceeded model token limit: {_WINDOW}",
        "Your request exceeded model token limit: 262144 (requested: 300000)",
    ),
    _sentence(
        "OpenAI, at gateways",
        rf"exceed the configured limit of {_WINDOW} tokens(?:.{{1,20}}resulted in {_PROMPT})?",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens.",
    ),
    _sentence(
        "Groq, whose limit of a minute no single request may exceed",
        rf"tokens per minute \(TPM\): Limit {_WINDOW}, Requested",
        "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 7012",
    ),
    _sentence(
        "anything else that names the maximum",
        rf"(?:maximum (?:context|model) length|context window|context size|context length)(?: is| of|:)(?: only)? {_WINDOW}",
        "This model's maximum context length is 4097 tokens.",
    ),
    _sentence(
        "Ollama",
        r"prompt too long; exceeded (?:max )?context length|input length exceeds (?:the )?context length",
        "prompt too long; exceeded max context length by 4096 tokens",
    ),
    _sentence(
        "MiniMax, Z.AI, OpenAI and others that name no number",
        r"context[ _-]?(?:length|window|size)|maximum (?:context|model length)|exceed_context|too many tokens|prompt is too long"
        r"|input is too long|reduce the length",
        "Please reduce the length of the messages or completion.",
    ),
)
"""The most exact first: the first that is found counts."""

_MOST_REPLY: Final = (
    re.compile(r"supports at most (?P<reply>\d[\d,]*) completion tokens", re.IGNORECASE),
    re.compile(r"max_tokens: [\d,]+ > (?P<reply>\d[\d,]*), which is the maximum", re.IGNORECASE),
    re.compile(
        r"`max_(?:completion_)?tokens` must be less than or equal to `?(?P<reply>\d[\d,]*)", re.IGNORECASE
    ),
)
"""How OpenAI, Anthropic and Groq say that a model never writes so much in one reply."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """What a refusal says about the request that was too long, in tokens; None where it names no number."""

    window: int | None = None
    prompt: int | None = None


def too_long(text: str, body: object = None) -> TooLong | None:
    """What an endpoint says about its window; None if its refusal is about something else.

    `text`: the code and the message of the error. `body`: the decoded error, in which llama.cpp has fields for it.
    """
    for sentence in SENTENCES:
        match = sentence.pattern.search(text)
        if match is None:
            continue

        numbers = match.groupdict()
        window = _number(numbers.get("window")) or _field(body, "n_ctx")
        prompt = _number(numbers.get("prompt")) or _field(body, "n_prompt_tokens")

        if window is not None and window < LEAST_WINDOW:
            window = None
        return TooLong(window, prompt)
    return None


def most_reply(text: str) -> int | None:
    """The most tokens of one reply, if a refusal says that the request allowed for more."""
    for pattern in _MOST_REPLY:
        match = pattern.search(text)
        if match is not None:
            return _number(match["reply"])
    return None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text.replace(",", "").replace("_", ""))


def _field(body: object, name: str) -> int | None:
    """A number in an error object, or in the object around it."""
    for fields in _objects(body):
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _objects(body: object) -> Iterator[Mapping[str, object]]:
    if isinstance(body, Mapping):
        yield body
        yield from _objects(body.get("error"))
