"""Puts the rooms together: from settings to a runtime."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from core import Runtime
from core.errors import UsageError
from core.models.roles import Models
from core.ports import Model, ModelProfile
from core.tree.runtime import SystemClock
from iact.settings import Settings
from sandbox import open_host

_OPENAI = "https://api.openai.com/v1"


def open_models(settings: Settings) -> Models:
    """The models of the roles "smart" and "fast".

    Raises:
        UsageError: an endpoint is configured without a model's name.
    """
    if settings.embedded:
        from core.models.embedded import EmbeddedModel  # loaded only where it is used: it takes a second

        return Models({"smart": EmbeddedModel(clock=SystemClock(), rng=random.Random())})
    smart = settings.model_smart or settings.model
    fast = settings.model_fast or settings.model
    if smart is None:
        where = settings.base_url or _OPENAI
        raise UsageError(
            f"No model is named for the endpoint {where}; set IACT_MODEL to the name of one of its models."
        )
    models: dict[str, Model] = {"smart": _endpoint(settings, smart)}
    if fast is not None:
        models["fast"] = _endpoint(settings, fast)
    return Models(models)


def _endpoint(settings: Settings, name: str) -> Model:
    from core.models.openai import OpenAIModel  # loaded only where it is used: it takes half a second

    return OpenAIModel(
        base_url=settings.base_url or _OPENAI,
        key=settings.api_key,
        profile=ModelProfile(name, settings.context, label=f"{name} at {settings.base_url or _OPENAI}"),
        clock=SystemClock(),
        rng=random.Random(),
    )


def make_data_directory(settings: Settings) -> None:
    """See to it that the data directory exists.

    Raises:
        UsageError: it can't be made.
    """
    try:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"The data directory {settings.data} can't be made: {error.strerror}.") from error


@asynccontextmanager
async def open_runtime(settings: Settings, workspace: Path | None = None) -> AsyncIterator[Runtime]:
    """A runtime with the user's models, sandbox and data directory; closes all of it at the end.

    `workspace`: the directory in which new sessions work, in place of one of their own.
    """
    make_data_directory(settings)
    models = open_models(settings)
    host = await open_host(settings.data, backend=settings.sandbox)
    async with Runtime(
        settings.data, models, host, bounds=settings.bounds.bounds(), workspace=workspace
    ) as runtime:
        yield runtime
