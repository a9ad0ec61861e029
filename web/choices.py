"""What a person chooses on the page and the server keeps: which model plays which role, and how sessions often begin."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, StringConstraints

from iact.core.ports import Medium
from iact.web.messages import Message, Text
from iact.web.ports import FirstMessage, RoleChoice, RoleTerms, Surroundings
from iact.web.records import Fields

RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=2000)]
Price = Annotated[float, Field(strict=False, ge=0, le=1_000_000, allow_inf_nan=False)]
_LONGEST: Final = 20_000


class Client(Protocol):
    """The side of a connection that these act on."""

    def around(self) -> Surroundings: ...


class ListRoles(Message):
    """Which model plays which role.

    The `ok` has `list`, each with `role`, `url` ("" for the embedded one), `model`, `context`, `key` (whether it has
    one; a key is never told), `dialect`, `takes`, the prices as `model.choose` takes them, and `own`: chosen for this
    role, and not as for all.
    """


class ChooseRole(Message):
    """A model plays a role from the next message on, in every session; it is written into the data directory's `iact.toml`.

    `key` is kept among the secrets; null: as before, which holds at the same `url` only; "": none. `context`: its
    window in tokens. `dialect`: "tools" if it insists on function calls. `takes`: media that it understands beside
    text. Prices: of a million tokens that it reads anew, that its endpoint had in its cache, that it writes. Null: as
    for all.
    """

    role: RoleName
    url: Url
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    context: Annotated[int, Field(ge=512, le=100_000_000)] | None = None
    key: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(default=None, repr=False)
    dialect: Literal["text", "tools"] | None = None
    takes: Annotated[list[Medium], Field(max_length=2)] | None = None
    price_prompt: Price | None = None
    price_cached: Price | None = None
    price_completion: Price | None = None

    @property
    def choice(self) -> RoleChoice:
        terms = RoleTerms(
            dialect=self.dialect,
            takes=None if self.takes is None else tuple(self.takes),
            price_prompt=self.price_prompt,
            price_cached=self.price_cached,
            price_completion=self.price_completion,
        )
        return RoleChoice(
            role=self.role, url=self.url, model=self.model, context=self.context, key=self.key, terms=terms
        )


class TryRole(ChooseRole):
    """Ask such a model for one word, and change nothing.

    The `ok` has `names` of the models that its endpoint lists, `model`, the one that was asked, `answer`, `ms`, and
    `fault`: why there is no answer.
    """


class ForgetRole(Message):
    """A role has no model of its own any more, and is played by the one for all."""

    role: RoleName


class ListFirstMessages(Message):
    """What sessions often begin with. The `ok` has `list`, each with `name` and `text`."""


class KeepFirstMessage(Message):
    """Keep a text as what sessions often begin with, in place of one of the same name."""

    name: Annotated[str, StringConstraints(pattern=r"\S", max_length=80)]
    text: Annotated[Text, StringConstraints(max_length=_LONGEST)]


class ForgetFirstMessage(Message):
    """Forget one of them."""

    name: Annotated[str, StringConstraints(max_length=80)]


async def list_roles(client: Client, message: ListRoles) -> Fields:
    found = await asyncio.to_thread(client.around().choices.roles)
    return {
        "list": [
            {
                "role": one.role, "url": one.url, "model": one.model, "context": one.context, "key": one.key,
                "own": one.own, **asdict(one.terms),
            }
            for one in found
        ]
    }  # fmt: skip


async def try_role(client: Client, message: TryRole) -> Fields:
    tried = await client.around().choices.try_role(message.choice)
    return {
        "names": [*tried.names], "model": tried.model, "answer": tried.answer, "ms": tried.ms, "fault": tried.fault,
    }  # fmt: skip


async def choose_role(client: Client, message: ChooseRole) -> Fields:
    await client.around().choices.choose_role(message.choice)
    return {}


async def forget_role(client: Client, message: ForgetRole) -> Fields:
    await client.around().choices.forget_role(message.role)
    return {}


async def list_first_messages(client: Client, message: ListFirstMessages) -> Fields:
    found = await asyncio.to_thread(client.around().choices.first_messages)
    return {"list": [{"name": one.name, "text": one.text} for one in found]}


async def keep_first_message(client: Client, message: KeepFirstMessage) -> Fields:
    kept = FirstMessage(message.name.strip(), message.text)
    await asyncio.to_thread(client.around().choices.keep_first_message, kept)
    return {}


async def forget_first_message(client: Client, message: ForgetFirstMessage) -> Fields:
    await asyncio.to_thread(client.around().choices.forget_first_message, message.name)
    return {}
