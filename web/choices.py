"""Choices that a person makes on the page and the server stores: models for roles, and first messages of sessions."""

from __future__ import annotations

import asyncio
from typing import Protocol

from iact.web.ports import FirstMessage, Product, RoleView
from iact.web.wire import answers, requests


class ChoicesClient(Protocol):
    """The part of a connection that these act on."""

    def product(self) -> Product: ...


async def list_roles(client: ChoicesClient, message: requests.ListRoles) -> answers.Roles:
    roles = await asyncio.to_thread(client.product().choices.roles)
    return {"list": [_role_row(role) for role in roles]}


def _role_row(role: RoleView) -> answers.Role:
    terms = role.terms
    return {
        "role": role.role,
        "url": role.url,
        "model": role.model,
        "context": role.context,
        "key": role.key,
        "own": role.own,
        "dialect": terms.dialect,
        "takes": None if terms.takes is None else [*terms.takes],
        "price_prompt": terms.price_prompt,
        "price_cached": terms.price_cached,
        "price_completion": terms.price_completion,
    }


async def try_role(client: ChoicesClient, message: requests.TryRole) -> answers.TriedModel:
    tried = await client.product().choices.try_role(message.choice)
    return {
        "names": [*tried.names], "model": tried.model, "answer": tried.answer, "ms": tried.ms, "fault": tried.fault,
    }  # fmt: skip


async def choose_role(client: ChoicesClient, message: requests.ChooseRole) -> answers.Nothing:
    await client.product().choices.choose_role(message.choice)
    return {}


async def forget_role(client: ChoicesClient, message: requests.ForgetRole) -> answers.Nothing:
    await client.product().choices.forget_role(message.role)
    return {}


async def list_presets(client: ChoicesClient, message: requests.ListPresets) -> answers.Presets:
    rows: list[answers.Preset] = [
        {
            "name": preset.name,
            "title": preset.title,
            "url": preset.url,
            "needs_key": preset.needs_key,
            "keys": preset.keys,
            "about": preset.about,
        }
        for preset in client.product().choices.presets()
    ]

    return {"list": rows}


async def list_model_files(client: ChoicesClient, message: requests.ListModelFiles) -> answers.ModelFiles:
    files = await asyncio.to_thread(client.product().choices.model_files)
    return {
        "list": [
            {
                "name": file.name, "title": file.title, "size": file.size, "present": file.present,
                "in_use": file.in_use,
            }
            for file in files
        ]
    }  # fmt: skip


async def use_on_board(client: ChoicesClient, message: requests.UseOnBoard) -> answers.Nothing:
    await client.product().choices.use_on_board(message.name)
    return {}


async def list_added_endpoints(
    client: ChoicesClient, message: requests.ListAddedEndpoints
) -> answers.AddedEndpoints:
    endpoints = await asyncio.to_thread(client.product().choices.added_endpoints)
    return {
        "list": [
            {"name": endpoint.name, "model": endpoint.model, "url": endpoint.url, "in_use": endpoint.in_use}
            for endpoint in endpoints
        ]
    }


async def use_endpoint(client: ChoicesClient, message: requests.UseEndpoint) -> answers.Nothing:
    await client.product().choices.use_endpoint(message.name)
    return {}


async def list_first_messages(
    client: ChoicesClient, message: requests.ListFirstMessages
) -> answers.FirstMessages:
    messages = await asyncio.to_thread(client.product().choices.first_messages)
    return {"list": [{"name": first.name, "text": first.text} for first in messages]}


async def keep_first_message(client: ChoicesClient, message: requests.KeepFirstMessage) -> answers.Nothing:
    first = FirstMessage(message.name.strip(), message.text)
    await asyncio.to_thread(client.product().choices.keep_first_message, first)
    return {}


async def forget_first_message(
    client: ChoicesClient, message: requests.ForgetFirstMessage
) -> answers.Nothing:
    await asyncio.to_thread(client.product().choices.forget_first_message, message.name)
    return {}
