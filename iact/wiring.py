"""Puts the rooms together: from settings to a runtime."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx

from core import Runtime
from core.errors import UsageError
from core.gate import policy_file
from core.gate.clearance import HttpClearance
from core.gate.policy_file import Policies
from core.models.roles import Models
from core.modules import approval
from core.modules.approval import Approvals
from core.modules.door import Door
from core.ports import Model, ModelProfile, Versions
from core.session.monitor import Authorities
from core.session.runtime import SystemClock
from iact.distilling import distiller
from iact.memory import USER, open_memory
from iact.settings import Settings
from sandbox import open_host
from sandbox.live import collect, open_live
from sandbox.versions import GitVersions, available

OPENAI = "https://api.openai.com/v1"
_LISTING_SECONDS = 5.0
_NAMED = 8
"""So many models of an endpoint are named to a person who named none."""


def open_models(settings: Settings) -> Models:
    """The models of the roles "smart" and "fast".

    An endpoint that serves one model only (as llama.cpp does) needs no name for it.

    Raises:
        UsageError: an endpoint with a choice of models, or one that tells none, is configured without a name.
    """
    if settings.embedded:
        from core.models.embedded import EmbeddedModel  # loaded only where it is used: it takes a second

        return Models({"smart": EmbeddedModel(clock=SystemClock(), rng=random.Random())})
    smart = settings.model_smart or settings.model
    fast = settings.model_fast or settings.model
    if smart is None:
        smart = _only_model(settings.base_url or OPENAI, settings.api_key)
    models: dict[str, Model] = {"smart": _endpoint(settings, smart)}
    if fast is not None:
        models["fast"] = _endpoint(settings, fast)
    return Models(models)


def _only_model(url: str, key: str | None) -> str:
    """The one model that the endpoint at `url` lists.

    Raises:
        UsageError: it lists several, or can't be asked.
    """
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/models",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=_LISTING_SECONDS,
        )
    except (httpx.HTTPError, httpx.InvalidURL):
        names = []
    else:
        names = model_names(answer)
    if len(names) == 1:
        return names[0]
    some = f" It has {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}." if names else ""
    raise UsageError(
        f"No model is named for the endpoint {url}; set IACT_MODEL to the name of one of its models.{some}"
    )


def model_names(answer: httpx.Response) -> list[str]:
    """The models that an endpoint lists; none if its answer can't be understood."""
    try:
        return [str(model["id"]) for model in answer.raise_for_status().json()["data"]]
    except (httpx.HTTPStatusError, ValueError, KeyError, TypeError):
        return []


def _endpoint(settings: Settings, name: str) -> Model:
    from core.models.openai import OpenAIModel  # loaded only where it is used: it takes half a second

    return OpenAIModel(
        base_url=settings.base_url or OPENAI,
        key=settings.api_key,
        profile=ModelProfile(
            name, settings.context, label=f"{name} at {settings.base_url or OPENAI}", takes=settings.takes
        ),
        clock=SystemClock(),
        rng=random.Random(),
        dialect=settings.dialect,
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


_AHEAD: Final = ("shell",)
"""What nearly every session calls: started with one in a directory of the user's, for which the pool can have nothing."""


@asynccontextmanager
async def open_runtime(
    settings: Settings, workspace: Path | None = None, *, scope: str = policy_file.DEFAULT, pool: int = 0
) -> AsyncIterator[Runtime]:
    """A runtime with the user's models, sandbox, policy and data directory; closes all of it at the end.

    `scope`: of new sessions.
    `workspace`: the directory in which new sessions work, in place of one of their own.
    `pool`: for how many new sessions modules run before they are called.
    """
    make_data_directory(settings)
    await asyncio.to_thread(collect, settings.data)
    models = open_models(settings)
    host = await open_host(settings.data, backend=settings.sandbox, runtime=settings.runtime, pool=pool)
    endpoint = (
        HttpClearance(settings.clearance_url, seconds=settings.clearance_url_seconds)
        if settings.clearance_url
        else None
    )
    authorities = Authorities(
        endpoint=endpoint,
        both=settings.clearance_both == "on",
        seconds=settings.clearance_seconds,
        approvals=Approvals(settings.data / approval.FILE),
    )
    async with AsyncExitStack() as stack:
        if endpoint is not None:
            stack.push_async_callback(endpoint.close)
        memory = None
        if settings.memory == "on":
            memory = (await stack.enter_async_context(open_memory(settings, distill=distiller(models)))).of(
                USER
            )
        runtime = Runtime(
            settings.data, models, host,
            bounds=settings.bounds.bounds(), policies=partial(read_policies, settings.data), scope=scope,
            authorities=authorities, workspace=workspace, memory=memory,
            versions=open_versions(), open_live=open_live, warm=settings.warm,
            warm_live=_AHEAD if pool else (),
            open_modules=partial(
                Door, workspace_bytes=settings.workspace_bytes, clock=SystemClock(), idle=settings.idle
            ),
        )  # fmt: skip
        yield await stack.enter_async_context(runtime)


def open_versions() -> Versions | None:
    """What keeps versions of workspaces; None without git."""
    return GitVersions() if available() else None


def read_policies(data: Path) -> Policies:
    """The scopes of a data directory's policy file; none if there is no file.

    Raises:
        UsageError: it can't be read, or holds something that a policy can't.
    """
    path = data / policy_file.FILE
    try:
        return Policies.from_toml(path.read_text(encoding="utf-8"), where=str(path))
    except FileNotFoundError:
        return Policies()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The policy {path} can't be read: {error}.") from error
