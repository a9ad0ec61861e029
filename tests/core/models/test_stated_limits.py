"""What endpoints say about their windows: every sentence in use is understood, and says the right numbers."""

from __future__ import annotations

import re

import pytest

from iact.core.models.failures import ContextTooLong, from_status
from iact.core.models.stated_limits import SENTENCES, Sentence, TooLong, too_long
from tests.core.models.test_failures import NOW


def _numbers(text: str) -> set[int]:
    return {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)}


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.example[:40])
def test_each_sentence_is_understood_by_its_own_pattern(sentence: Sentence) -> None:
    first = next(one for one in SENTENCES if one.pattern.search(sentence.example))
    assert first.example == sentence.example, "an earlier pattern takes it"
    found = too_long(sentence.example)
    match = sentence.pattern.search(sentence.example)
    assert found is not None
    assert match is not None
    groups = match.groupdict()
    for name, number in (("window", found.window), ("prompt", found.prompt)):
        assert (number is not None) == bool(groups.get(name))
        assert number is None or number in _numbers(sentence.example)


@pytest.mark.parametrize(
    ("text", "window", "prompt"),
    [
        (
            "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the "
            "messages, 10000 in the completion). Please reduce the length of the messages or completion.",
            16384,
            112946,
        ),
        (
            "This model's maximum context length is 4097 tokens, however you requested 4226 tokens (3970 in your "
            "prompt; 256 for the completion). Please reduce your prompt; or completion length.",
            4097,
            3970,
        ),
        ("input is longer than the maximum model length of 32768", 32768, None),
        ("The decoder prompt (length 4166) is longer than the maximum model length of 4096", 4096, 4166),
        ("the request exceeds the available context size, try increasing it", None, None),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
        ("Prompt has 300,000 tokens, but the configured context size is 131,072 tokens", 131072, None),
        ("prompt + completion exceeds model context window of 1,048,576 tokens", 1048576, None),
    ],
)
def test_sentences_as_they_were_seen(text: str, window: int | None, prompt: int | None) -> None:
    found = too_long(text)
    assert found == TooLong(window, prompt)


def test_fields_of_llama_cpp() -> None:
    body = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size. try increasing the context size",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 14429,
            "n_ctx": 8192,
        }
    }
    assert too_long(str(body["error"]["message"]), body) == TooLong(8192, 14429)


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_size_error_of_llama_cpp_has_had_several_statuses(status: int) -> None:
    body = {"error": {"type": "exceed_context_size_error", "message": "too long", "n_ctx": 8192}}
    found = from_status(status, body, {}, model="m", now=NOW, secret=None)
    assert found.kind is ContextTooLong
    assert found.too_long == TooLong(8192)


def test_a_window_that_is_no_window_is_not_believed() -> None:
    found = too_long(
        "This model's maximum context length is 3 tokens. However, your request has 8 input tokens."
    )
    assert found is not None
    assert found.window is None


@pytest.mark.parametrize(
    "text", ["The model `gone` does not exist", "rate limit reached", "invalid value for 'temperature'", ""]
)
def test_other_refusals_are_about_something_else(text: str) -> None:
    assert too_long(text) is None


def test_a_fault_that_mentions_a_context_is_a_fault() -> None:
    found = from_status(500, "cuda: invalid context size", {}, model="m", now=NOW, secret=None)
    assert found.kind is not ContextTooLong
    assert found.again == "few"


def test_a_gateway_may_call_a_refusal_a_fault() -> None:
    said = "litellm: The decoder prompt (length 9001) is longer than the maximum model length of 8192."
    assert from_status(500, said, {}, model="m", now=NOW, secret=None).too_long == TooLong(8192, 9001)
    assert from_status(429, said, {}, model="m", now=NOW, secret=None).too_long is None
