"""`iact model …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iact.cli import options
from iact.cli.options import CommandGroup

if TYPE_CHECKING:
    from iact.settings import Settings


@click.group(cls=CommandGroup)
def model() -> None:
    """List, add, test and choose the models that answer."""


@model.command("list")
@options.as_json
def list_models(settings: Settings, *, as_json: bool) -> int:
    """List the models: the ones on board, and those that you added. A star marks the one that answers."""
    from iact.commands import models

    return models.show(settings, as_json=as_json)


@model.command()
@click.argument("source", metavar="hub:OWNER/NAME[:FILE]|file:PATH|PRESET")
@click.option(
    "--name", metavar="NAME", default="", help="what to call it (default: after its file or preset)"
)
@click.option(
    "--model", "model_name", metavar="MODEL", default="", help="with a preset: the model's name there"
)
@click.option("--url", metavar="URL", default="", help="with a preset: another address than its usual one")
@click.option(
    "--key",
    metavar="VARIABLE",
    default="",
    help="with a preset: the environment variable or secret with its key (default: typed, or read from standard input)",
)
@options.as_json
def add(
    settings: Settings, *, source: str, name: str, model_name: str, url: str, key: str, as_json: bool
) -> int:
    """Add a model: a GGUF file of the hub (huggingface.co), a GGUF file of yours, or a model of a provider.

    Presets: openai, anthropic, google, mistral, openrouter, ollama, llama.cpp, lmstudio, vllm. A file of the hub is
    downloaded; an interrupted download goes on where it stood. HF_ENDPOINT names a mirror of the hub, HF_TOKEN is your
    token for it.
    """
    from iact.commands import models

    return models.add(settings, source, name=name, model=model_name, url=url, key=key, as_json=as_json)


@model.command()
@click.argument("name", required=False, default="")
@options.as_json
def test(settings: Settings, *, name: str, as_json: bool) -> int:
    """Send a model one short request, and say what works (default: the model that answers)."""
    from iact.commands import models

    return models.test(settings, name, as_json=as_json)


@model.command()
@click.argument("name")
@options.as_json
def use(settings: Settings, *, name: str, as_json: bool) -> int:
    """Let a model answer from the next message on, also on a running server."""
    from iact.commands import models

    return models.use(settings, name, as_json=as_json)


@model.command()
@click.argument("name")
@options.as_json
def remove(settings: Settings, *, name: str, as_json: bool) -> int:
    """Take a model off the list. A file that was downloaded is deleted; a file of yours is not."""
    from iact.commands import models

    return models.remove(settings, name, as_json=as_json)
