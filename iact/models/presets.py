"""Providers and programs whose models can be connected: one table, for `iact model add` and for the page.

All of them speak OpenAI's protocol at the address that stands here, some beside one of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iact.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider, or one program on this machine."""

    name: str
    """How the command line names it."""
    title: str
    """How people name it."""
    url: str
    """Its address for OpenAI's protocol."""
    needs_key: bool
    keys: str = ""
    """Where a person gets a key."""
    about: str = ""
    """What a person must know before it works, as one sentence."""


PRESETS: Final = (
    Preset("openai", "OpenAI", "https://api.openai.com/v1", True, "https://platform.openai.com/api-keys"),
    Preset(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        True,
        "https://console.anthropic.com/settings/keys",
    ),
    Preset(
        "google",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        True,
        "https://aistudio.google.com/apikey",
    ),
    Preset("mistral", "Mistral", "https://api.mistral.ai/v1", True, "https://console.mistral.ai/api-keys"),
    Preset("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", True, "https://openrouter.ai/keys"),
    Preset(
        "ollama",
        "Ollama",
        "http://127.0.0.1:11434/v1",
        False,
        about="Set its context length to the window here; its own default is small, and it cuts silently.",
    ),
    Preset(
        "llama.cpp",
        "llama.cpp",
        "http://127.0.0.1:8080/v1",
        False,
        about="Start it with: llama-server -m MODEL.gguf -c 32768",
    ),
    Preset(
        "lmstudio",
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        False,
        about="Turn its server on under Developer.",
    ),
    Preset(
        "vllm",
        "vLLM",
        "http://127.0.0.1:8000/v1",
        False,
        about="Start it with --enable-prefix-caching, which makes most of each request free.",
    ),
)
"""In the order in which they are shown."""


def preset(name: str) -> Preset:
    """The preset of a name.

    Raises:
        UsageError: there is none.
    """
    for one in PRESETS:
        if one.name == name.lower():
            return one
    names = ", ".join(one.name for one in PRESETS)
    raise UsageError(
        f"{name!r} is no model that can be added; write hub:OWNER/NAME, file:PATH, or one of {names}."
    )
