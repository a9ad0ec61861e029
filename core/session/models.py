"""Which models play the roles of a session: those of an OpenAI-compatible endpoint, or one that is made elsewhere.

The code for either is loaded only where it is used, because loading takes half a second and more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel

from iact.core.clock import SystemClock
from iact.core.errors import ModelError, UsageError
from iact.core.models.known_windows import KnownWindows
from iact.core.models.roles import FAST, SMART
from iact.core.models.roles import Models as Models
from iact.core.models.structured import structured
from iact.core.models.throttle import Throttle, ThrottledModel
from iact.core.ports import JSON, ChatMessage, Clock, Medium, Model, ModelProfile, Price, TextDelta
from iact.core.rates import Rate
from iact.core.records.control import SetModels
from iact.core.records.dialogue import Reply, Turn
from iact.core.records.record import Record
from iact.core.records.session import Open
from iact.core.tree.roles import Role
from iact.core.tree.tree import Tree

OPENAI: Final = "https://api.openai.com/v1"
"""The endpoint used for the OpenAI protocol if none is configured."""

_LISTING_SECONDS: Final = 5.0
_TRYING_SECONDS: Final = 30.0
_GREETING: Final = "Count from one to ten, in words"
_FEW: Final = 1024
"""The most tokens of that answer; a model that reasons first needs some for that."""
_SHOWN: Final = 200
"""How many characters of an answer are shown."""
_NAMED: Final = 8
"""How many models of an endpoint are listed for a person who chose none."""

_Shape = TypeVar("_Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model endpoint. `smart`, `fast`: names of the models for the two roles, or None if not named.

    `context`: their window in tokens. `takes`: media types that they understand in addition to text. `dialect`: "tools"
    for models that insist on function calls. `price`: what their tokens cost, if known. `temperature`: of every reply;
    None for the endpoint's own.
    """

    url: str = OPENAI
    key: str | None = None
    smart: str | None = None
    fast: str | None = None
    context: int = 32_768
    takes: tuple[Medium, ...] = ()
    dialect: Literal["text", "tools"] = "text"
    price: Price | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleModel:
    """A model for one role, at its own endpoint. `model`: None if the endpoint has only one."""

    url: str
    key: str | None = None
    model: str | None = None
    context: int = 32_768
    takes: tuple[Medium, ...] = ()
    dialect: Literal["text", "tools"] = "text"
    price: Price | None = None
    temperature: float | None = None


def open_models(
    endpoint: Endpoint | None,
    *,
    roles: Mapping[str, RoleModel] | None = None,
    rates: Mapping[str, Rate] | None = None,
    windows: Path | None = None,
    clock: Clock | None = None,
    on_board: Callable[[Clock], Model] | None = None,
) -> Models:
    """The models of an endpoint, or the one on board if there is none. Cheap: nothing is loaded before it is used.

    `roles`: separate models for some roles, which may include "smart" and "fast". `rates`: how often endpoints may be
    asked, by `host_of` their addresses. `windows`: the file that keeps what endpoints say about their windows. `on_board`: makes the model
    that is used without any endpoint.

    An endpoint that serves one model only (as llama.cpp does) needs no name for it.

    Raises:
        UsageError: no model is named, and the endpoint has several or can't be asked.
    """
    clock = clock or SystemClock()
    at = _Throttles(rates or {}, clock)
    known = KnownWindows(windows)
    models = {name: _role_model(one, clock, at, known) for name, one in (roles or {}).items()}
    if endpoint is None and SMART not in models and on_board is not None:
        models[SMART] = on_board(clock)
    if endpoint is not None:
        if SMART not in models:
            models[SMART] = _model(endpoint, endpoint.smart or _only_model(endpoint), clock, at, known)
        if endpoint.fast is not None and FAST not in models:
            models[FAST] = _model(endpoint, endpoint.fast, clock, at, known)
    return Models(models)


def host_of(url: str) -> str:
    """The host of an endpoint, with its port if the address names one."""
    there = urlsplit(url)
    host = there.hostname or ""
    return f"{host}:{there.port}" if there.port is not None else host


class _Throttles:
    """Limits the rate of each endpoint; models at the same endpoint share the limit."""

    def __init__(self, rates: Mapping[str, Rate], clock: Clock) -> None:
        self._throttles = {host: Throttle(host, rate, clock) for host, rate in rates.items()}

    def around(self, model: Model, url: str) -> Model:
        throttle = self._throttles.get(host_of(url))
        return ThrottledModel(model, throttle) if throttle is not None else model


def _role_model(one: RoleModel, clock: Clock, at: _Throttles, known: KnownWindows) -> Model:
    there = Endpoint(
        url=one.url, key=one.key, smart=one.model, context=one.context, takes=one.takes, dialect=one.dialect,
        price=one.price, temperature=one.temperature,
    )  # fmt: skip
    return _model(there, one.model or _only_model(there), clock, at, known)


def _model(endpoint: Endpoint, name: str, clock: Clock, at: _Throttles, known: KnownWindows) -> Model:
    from iact.core.models.openai import ModelEndpoint, OpenAIModel

    extra: dict[str, JSON] = {}
    if endpoint.temperature is not None:
        extra["temperature"] = endpoint.temperature
    model = OpenAIModel(
        ModelEndpoint(endpoint.url, endpoint.key, extra=extra, dialect=endpoint.dialect),
        profile=ModelProfile(
            name, endpoint.context, f"{name} at {endpoint.url}", endpoint.takes, price=endpoint.price
        ),
        clock=clock,
        rng=random.Random(),
        windows=known,
    )
    return at.around(model, endpoint.url)


def _only_model(endpoint: Endpoint) -> str:
    listing = list_models(endpoint.url, endpoint.key)
    names = listing.names
    if len(names) == 1:
        return names[0]

    if listing.fault:
        raise UsageError(
            f"The endpoint {endpoint.url} does not answer ({listing.fault}), so it can't be asked for its models; "
            "start it, or correct its address."
        )
    if listing.refused:
        raise UsageError(
            f"The endpoint {endpoint.url} rejects the key (HTTP {listing.status}), so it can't be asked for its "
            "models; correct the key, or set IACT_MODEL to the name of one of its models."
        )

    some = f" It has {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}." if names else ""
    raise UsageError(
        f"No model is named for the endpoint {endpoint.url}; set IACT_MODEL to the name of one of its models.{some}"
    )


@dataclass(frozen=True, slots=True)
class Listing:
    """The models that an endpoint lists. `fault`: why it can't be asked; `refused`: it rejects the key."""

    names: tuple[str, ...] = ()
    fault: str = ""
    refused: bool = False
    status: int = 0


def chosen(tree: Tree, models: Models) -> SetModels | None:
    """What to record before a session continues with these models; None if it already uses them.

    A role that no model plays any more is played by "smart".
    """
    names = tree.roles.keys() | set(models.roles())
    roles = {name: Role.of(models.profile(name)) for name in sorted(names)}
    if roles == tree.roles:
        return None
    return SetModels(by="user", models={name: role.terms() for name, role in roles.items()})


def learnt(tree: Tree, models: Models) -> SetModels | None:
    """What to record if an endpoint has said that its model's window is smaller than the session believes."""
    roles = dict(tree.roles)
    for name, role in tree.roles.items():
        profile = models.profile(name)
        if profile.name == role.model and profile.context < role.context:
            roles[name] = replace(role, context=profile.context)
    if roles == tree.roles:
        return None
    return SetModels(by="core", models={name: role.terms() for name, role in roles.items()})


def small_models(records: Iterable[Record]) -> frozenset[str]:
    """The names of a session's models, now or earlier, that are small: they bring a static prompt of their own."""
    names: set[str] = set()
    for record in records:
        if isinstance(record.content, Open | SetModels):
            roles = record.content.models.values()
            names.update(terms.model for terms in roles if terms.static is not None)
    return frozenset(names)


def model_prices(records: Iterable[Record]) -> dict[str, Price]:
    """What a session's models cost, by their names, as it was recorded last. A model without a price is missing.

    The name is the one that answers, also where the settings leave it to the endpoint.
    """
    prices: dict[str, Price] = {}
    for record in records:
        if not isinstance(record.content, Open | SetModels):
            continue
        roles = record.content.models.values()

        # Two roles can have one model, and a price for only one of them.
        for terms in roles:
            prices.pop(terms.model, None)
        for terms in roles:
            if terms.price is not None:
                prices[terms.model] = Price(terms.price.prompt, terms.price.cached, terms.price.completion)
    return prices


def by_a_small_model(reply: Record, records: Sequence[Record]) -> bool:
    """Whether a small model wrote a reply of a session with these records."""
    content = reply.content
    if not isinstance(content, Reply):
        return False
    written = content.generation
    if written is None and content.of:
        turn = records[content.of - 1].content
        written = turn.generation if isinstance(turn, Turn) else None
    return written is not None and written.model in small_models(records)


def list_models(url: str, key: str | None) -> Listing:
    """Ask the endpoint at `url` for its models; none if its answer can't be understood. Blocks."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if key and host_of(url) == "api.anthropic.com":
        # Its list is not a part of what it offers for OpenAI's protocol.
        headers |= {"x-api-key": key, "anthropic-version": "2023-06-01"}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/models", headers=headers, timeout=_LISTING_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Listing(fault=str(error) or type(error).__name__)
    refused = answer.status_code in (401, 403)
    try:
        names = tuple(str(model["id"]) for model in answer.raise_for_status().json()["data"])
    except (httpx.HTTPStatusError, ValueError, KeyError, TypeError):
        names = ()
    return Listing(names, refused=refused, status=answer.status_code)


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of asking a model for a short answer."""

    names: tuple[str, ...] = ()
    """The models that its endpoint lists."""
    model: str = ""
    """The model that was asked."""
    answer: str = ""
    ms: int = 0
    """Milliseconds until the answer was complete."""
    fault: str = ""
    """Why there is no answer, as a sentence."""
    first_ms: int = 0
    """Milliseconds until its first piece."""
    pieces: int = 0
    """In how many pieces it came."""
    tools: bool | None = None
    """Whether function calls are accepted; None if that was not tried."""


async def try_model(model: RoleModel, clock: Clock | None = None) -> Tried:
    """Ask a model one short question, as a session would. An endpoint that refuses function calls is asked again without."""
    clock = clock or SystemClock()
    listing = await asyncio.to_thread(list_models, model.url, model.key)
    names = listing.names
    name = model.model
    if not name and len(names) == 1:
        name = names[0]

    # An endpoint may refuse to list its models, and still answer for one that is named.
    if listing.fault:
        return Tried(fault=f"The endpoint {model.url} does not answer: {listing.fault}.")
    if listing.refused and not name:
        return Tried(fault=f"The endpoint {model.url} rejects the key (HTTP {listing.status}).")
    if not name:
        return Tried(names, fault=f"The endpoint {model.url} lists {len(names) or 'no'} models; choose one.")

    named = replace(model, model=name)
    tried = await _tried(named, clock, tools=True)
    if tried.fault:
        tried = await _tried(named, clock, tools=False)
    return replace(tried, names=names)


async def _tried(one: RoleModel, clock: Clock, *, tools: bool) -> Tried:
    from iact.core.models.failures import Retries
    from iact.core.models.openai import ModelEndpoint, OpenAIModel, Timeouts

    name = one.model or ""
    model = OpenAIModel(
        ModelEndpoint(url=one.url, key=one.key, dialect="tools" if tools else "text"),
        profile=ModelProfile(name, one.context),
        clock=clock,
        rng=random.Random(),
        timeouts=Timeouts(first=_TRYING_SECONDS, between=_TRYING_SECONDS),
        retries=Retries(attempts=1),
    )
    try:
        return replace(await ask_shortly(model, clock), tools=tools)
    finally:
        await model.close()


async def ask_shortly(model: Model, clock: Clock) -> Tried:
    """Ask a model one short question, and measure its answer."""
    name = model.profile.name
    began = clock.monotonic()
    first = 0.0
    pieces: list[str] = []
    try:
        async with aclosing(model.stream([ChatMessage("user", _GREETING)], max_tokens=_FEW)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    first = first or clock.monotonic()
                    pieces.append(event.text)
    except ModelError as error:
        return Tried(model=name, fault=str(error))

    return Tried(
        model=name,
        answer="".join(pieces).strip()[:_SHOWN],
        ms=round((clock.monotonic() - began) * 1000),
        first_ms=round((first - began) * 1000),
        pieces=len(pieces),
    )


async def ask_typed(
    model: Model, messages: Sequence[ChatMessage], shape: type[_Shape], *, max_tokens: int
) -> _Shape:
    """Ask a model for an object of the type `shape`, ignoring any text around it.

    Raises:
        StructuredFailed: the reply does not fit.
        ModelError: the model can't be asked.
    """
    return (await structured(model, messages, shape, max_tokens=max_tokens)).value
