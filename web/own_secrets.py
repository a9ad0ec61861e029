"""The messages about a user's own secrets: listing their names, storing and removing them. Values are never sent."""

from __future__ import annotations

import asyncio
from typing import Protocol

from iact.accounts.people import AuditKind
from iact.web.ports import Product
from iact.web.wire import answers, requests


class SecretsClient(Protocol):
    """The part of a connection that these act on."""

    def product(self) -> Product: ...
    async def audit(self, kind: AuditKind, **about: str) -> None: ...


async def list_secrets(client: SecretsClient, message: requests.ListSecrets) -> answers.OwnSecrets:
    secrets = client.product().secrets
    own, lent = await asyncio.to_thread(lambda: (secrets.names(lent=False), secrets.names(lent=True)))
    return {"list": [*own], "lent": [*lent]}


async def store_secret(client: SecretsClient, message: requests.SetOwnSecret) -> answers.Nothing:
    await asyncio.to_thread(client.product().secrets.store, message.name, message.value, lent=message.lent)
    await client.audit("secret.changed", **about_secret(message.name, lent=message.lent))
    return {}


async def remove_secret(client: SecretsClient, message: requests.RemoveOwnSecret) -> answers.Nothing:
    await asyncio.to_thread(client.product().secrets.remove, message.name, lent=message.lent)
    await client.audit("secret.changed", **about_secret(message.name, lent=message.lent), removed="yes")
    return {}


def about_secret(name: str, *, lent: bool) -> dict[str, str]:
    """What an audit says about a secret that was stored or removed."""
    return {"secret": name, **({"to": "modules of everybody"} if lent else {})}
