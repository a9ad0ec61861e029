"""Assembles the packages: turns settings into a runtime."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from iact.core.errors import UsageError, WorkspaceError
from iact.core.ports import Clock, ConcurrencyLimits, Model, OpenLayer, Versions
from iact.core.rates import Rate
from iact.core.records.parts import Bounds, PlanBounds, RateTerms
from iact.core.session import assembly, models
from iact.core.session.assembly import RuntimeOptions, SharedStore
from iact.core.session.clearance import Clearance
from iact.core.session.models import Endpoint, RoleModel
from iact.core.session.runtime import Runtime, SearchElsewhere
from iact.core.stored.deletion import Retention
from iact.core.stored.policy import read_policies
from iact.core.stored.store import SessionStore
from iact.memory import USER, memory_at_rest, open_memory
from iact.models.board import Board, Report
from iact.sandbox import open_host
from iact.sandbox.host import Host
from iact.sandbox.live import collect, layers_in, open_live
from iact.sandbox.secrets import Secrets
from iact.sandbox.workspace.versions import GitVersions, available
from iact.settings import ModelSettings, Settings, make_data_directory
from iact.tracing import tracing


def endpoint_of(settings: Settings) -> Endpoint | None:
    """The endpoint that the settings name, or None if the model on board is used."""
    if settings.without_endpoint or not (settings.base_url or settings.api_key):
        return None
    return Endpoint(
        url=settings.base_url or models.OPENAI,
        key=settings.api_key,
        smart=settings.model_smart or settings.model,
        fast=settings.model_fast or settings.model,
        context=settings.context,
        takes=settings.takes,
        dialect=settings.dialect,
        price=settings.price,
    )


def roles_of(settings: Settings, environment: Mapping[str, str] | None = None) -> dict[str, RoleModel]:
    """The models of roles that have their own model.

    Raises:
        UsageError: there is neither a variable nor a secret with the name of a model's key.
    """
    return {name: role_of(settings, name, one, environment) for name, one in settings.models.items()}


def role_of(
    settings: Settings, name: str, one: ModelSettings, environment: Mapping[str, str] | None = None
) -> RoleModel:
    """The model of one role. What it does not set is taken from the general settings.

    Raises:
        UsageError: as `roles_of`.
    """
    around = os.environ if environment is None else environment
    key = None
    if one.key is not None:
        key = around.get(one.key) or Secrets(settings.data).of((one.key,)).get(one.key)
        if not key:
            raise UsageError(
                f"[models.{name}] takes its key from {one.key}, which is neither a variable of the environment nor a "
                f"stored secret; run: iact secret set {one.key}"
            )
    elsewhere = one.base_url is not None and one.base_url != settings.base_url
    return RoleModel(
        url=one.base_url or settings.base_url or models.OPENAI,
        # A key belongs to the endpoint that it was given for, and is sent to no other.
        key=key if key is not None or elsewhere else settings.api_key,
        model=one.model or (None if elsewhere else settings.model),
        context=settings.context if one.context is None else one.context,
        takes=settings.takes if one.takes is None else one.takes,
        dialect=settings.dialect if one.dialect is None else one.dialect,
        temperature=one.temperature,
        price=settings.price if one.price is None else one.price,
    )


def models_of(settings: Settings, board: Board | None = None) -> models.Models:
    """The models that these settings name. `board`: is told how far the model on board is, if that is used.

    Raises:
        UsageError: as `roles_of` and `core.session.models.open_models`.
    """
    return models.open_models(
        endpoint_of(settings),
        roles=roles_of(settings),
        rates=endpoint_rates(settings),
        windows=settings.data / "windows.json",
        on_board=partial(open_on_board, settings, (board or Board()).reporter()),
    )


def open_on_board(settings: Settings, report: Report, clock: Clock) -> Model:
    """The model that is used without an endpoint; it says why it can't answer if it is off or does not fit."""
    from iact.models.added import chosen_file
    from iact.models.embedded import EmbeddedModel  # loaded only where it is used

    return EmbeddedModel(
        clock=clock,
        rng=random.Random(),
        selection=chosen_file(settings.embedded, settings.data),
        report=report,
    )


def endpoint_rates(settings: Settings) -> dict[str, Rate]:
    """The request rates of model endpoints, by host: the configured rates whose names are hosts."""
    urls = [settings.base_url or models.OPENAI, *(one.base_url or "" for one in settings.models.values())]
    hosts = {models.host_of(url) for url in urls}
    return {name: Rate(**one.model_dump()) for name, one in settings.rates.items() if name in hosts}


def plan_bounds(settings: Settings) -> PlanBounds:
    """The bounds and thresholds of plans."""
    asked = endpoint_rates(settings)
    rates = {name: RateTerms(**one.model_dump()) for name, one in settings.rates.items() if name not in asked}
    return PlanBounds(**settings.plans.model_dump(), rates=rates or None)


def options_of(
    settings: Settings, *, scope: str | None = None, workspace: Path | None = None, attended: bool = True
) -> RuntimeOptions:
    """How sessions run under these settings. `scope`, `workspace`: for new sessions. `attended`: see `Clearance`."""
    return RuntimeOptions(
        bounds=replace(RuntimeOptions().bounds, **settings.bounds.model_dump(), plans=plan_bounds(settings)),
        clearance=Clearance(
            url=settings.clearance_url,
            both=settings.clearance_both == "on",
            attended=attended and settings.clearance_person == "on",
            endpoint_seconds=settings.clearance_url_seconds,
            person_seconds=settings.clearance_seconds,
        ),
        scope=scope or RuntimeOptions().scope,
        workspace=workspace,
        workspace_bytes=settings.workspace_bytes,
        idle=settings.idle,
        warm=settings.warm,
        egress={"web": (target_of(settings.search),)} if settings.search else {},
    )


def target_of(url: str) -> str:
    """The host of an address, as a rule about hosts."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname}{port}"


def retention_of(settings: Settings) -> Retention:
    """How long sessions are kept."""
    keep = settings.sessions
    return Retention(days=keep.keep_days, bytes=keep.keep_bytes, trash_days=keep.trash_days)


_AHEAD: Final = ("shell",)
"""Modules that nearly every session calls. They start with sessions in a user's directory, which can't use the pool."""
_SHARED: Final = "from_app.txt"
"""The name of what a user shares at an app."""


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    workspace: Path | None = None,
    *,
    scope: str | None = None,
    pool: int = 0,
    claimed: Callable[[str, int], None] = lambda session, epoch: None,
    search_elsewhere: SearchElsewhere | None = None,
    opened: models.Models | None = None,
    user: str = USER,
    policy: Path | None = None,
    limits: ConcurrencyLimits | None = None,
    shared: Path | None = None,
    bound: Callable[[Bounds], Bounds] = lambda bounds: bounds,
    attended: bool = True,
) -> AsyncIterator[Runtime]:
    """Open a runtime with the user's models, sandbox, policy and data directory. Closes all of them at the end.

    `scope`: the scope of new sessions. `opened`: the models. `user`: the user whose memory is used.
    `policy`: the data directory whose policy applies. `limits`: limits of what runs at the same time.
    `shared`: the directory with what an administrator set for all users. The defaults are those of a server with
    one user.
    `workspace`: the directory in which new sessions work, instead of their own.
    `attended`: whether a person may come to answer questions.
    `pool`: for how many new sessions modules are started in advance. `claimed`, `search_elsewhere`: as in
    `SharedStore`.
    `bound`: derives the bounds of new sessions from those in the settings.
    """
    make_data_directory(settings)
    await asyncio.to_thread(collect, settings.data)
    opened = models_of(settings) if opened is None else opened
    host = await open_host(
        settings.data, backend=settings.sandbox, runtime=settings.runtime, pool=pool,
        inner=settings.inside, search=settings.search, kubernetes=settings.kubernetes,
        shared=shared,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        observe = await stack.enter_async_context(tracing())
        memory = None
        if settings.memory == "on":
            held = open_memory(settings, user=user, attended=attended)
            memory = (await stack.enter_async_context(held)).of(user)
        options = options_of(settings, scope=scope, workspace=workspace, attended=attended)
        options = replace(options, bounds=bound(options.bounds), warm_live=_AHEAD if pool else ())
        runtime = assembly.open_runtime(
            settings.data, opened, host, options,
            memory=memory, versions=open_versions(), open_live=open_live,
            open_layer=await asyncio.to_thread(layers_of, settings.data, host.backend),
            retention=retention_of(settings), memory_at_rest=partial(memory_at_rest, settings, user),
            shared=shared_of(settings, claimed, search_elsewhere),
            policies=None if policy is None else partial(read_policies, policy),
            limits=limits, user=user, observe=observe, everybody=shared,
        )  # fmt: skip
        entered = await stack.enter_async_context(runtime)
        if isinstance(host, Host):
            host.on_shared = partial(_take_shared, entered)
        yield entered


async def _take_shared(runtime: Runtime, session: str, text: str) -> None:
    """Give a session what its user shared at an app: a file and a variable, from the user's next message on.

    An agent wrote the app, so the text counts as a file that somebody else may have written.

    Raises:
        UsageError: the session is not open here.
    """
    opened = runtime.opened.get(session)
    if opened is None:
        raise UsageError("There is no session any more that could have it.")
    await opened.upload(_SHARED, "text/plain", text.encode())


def layers_of(data: Path, backend: str) -> OpenLayer | None:
    """What makes layers for agents that may only read; None where modules run elsewhere, or none can be made. Blocks."""
    if backend not in ("docker", "bubblewrap"):
        return None
    try:
        return layers_in(data)
    except WorkspaceError:
        return None


def shared_of(
    settings: Settings,
    claimed: Callable[[str, int], None] = lambda session, epoch: None,
    search: SearchElsewhere | None = None,
) -> SharedStore | None:
    """The journal store that several hosts share, or None without one. Its packages are only imported here.

    Raises:
        UsageError: the address is not a store, or a required package is not installed.
    """
    if settings.store is None:
        return None
    try:
        from iact.cluster.cipher import HostCipher
        from iact.cluster.objects import open_objects
    except ImportError as error:
        raise UsageError(
            f"The store {settings.store} can't be used because a package is missing ({error.name}). Install it: pip install 'iact[cluster]'."
        ) from error
    return SharedStore(open_objects(settings.store), settings.host, HostCipher, claimed, search)


def open_store(settings: Settings, *, indexed: bool = False) -> SessionStore:
    """The stored sessions, for commands that list, create, change or continue sessions when no server runs.

    `indexed`: as for `SessionStore`.

    Raises:
        UsageError: as `shared_of`.
        JournalError: the shared store does not answer, or belongs to hosts with another key.
    """
    shared = shared_of(settings)
    versions = open_versions()
    journals = shared.journals(settings.data, versions) if shared is not None else None
    others = shared.others(settings.data) if shared is not None else None
    return SessionStore(settings.data, versions=versions, indexed=indexed, journals=journals, others=others)


def open_versions() -> Versions | None:
    """The store of workspace versions, or None without git."""
    return GitVersions() if available() else None
