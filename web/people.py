"""The messages of a server with accounts: sharing, a user's own account, and administration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final, Protocol

from iact.accounts.people import AuditKind
from iact.accounts.rights import EVERY_SCOPE, SCOPES, LinkView, Principal
from iact.core.errors import IactError
from iact.core.records.record import timestamp
from iact.core.stored.source import source_of, written_source
from iact.web.downloads import Content
from iact.web.ports import PeopleRegister, Session, SessionInfo, SharedSetup, Tenant
from iact.web.wire import answers, requests

_EVERYBODY: Final[Mapping[str, str]] = {"for": "everybody"}


class PeopleClient(Protocol):
    """The part of a connection that these act on."""

    @property
    def who(self) -> Principal: ...

    def register(self) -> PeopleRegister:
        """The register of people; raises UsageError on a server with one user."""
        ...

    def setup(self) -> SharedSetup:
        """What is set for all users; raises UsageError on a server with one user."""
        ...

    async def audit(self, kind: AuditKind, **about: str) -> None:
        """Record in the audit what this user did outside of sessions."""
        ...

    def watched(self) -> Session: ...
    def offer(self, name: str, content: Content) -> str:
        """Offer a file for download. Returns its address."""
        ...

    def lease(self, user: str) -> AbstractAsyncContextManager[Tenant]:
        """What another user has."""
        ...


# --- sharing ------------------------------------------------------------------------------------------


async def show_sharing(client: PeopleClient, message: requests.ShowSharing) -> answers.Sharing:
    """Answer `sharing`: who else may see the watched session."""
    register, session = client.register(), client.watched().id

    def look() -> answers.Sharing:
        return {
            "grants": [
                {"name": name, "group": one.of_group, "role": one.role}
                for name, one in register.grants(client.who, session)
            ],
            "links": [
                {
                    "id": one.id,
                    "created": _time(one.created),
                    "ends": _time(one.ends),
                    "opened": one.opened,
                    "at": one.view.at,
                    "hides": sorted(one.view.hides),
                    "variables": sorted(one.view.variables),
                    "public": one.public,
                }
                for one in register.links(client.who, session)
            ],
            "public": register.public_links,
        }

    return await asyncio.to_thread(look)


async def share_with(client: PeopleClient, message: requests.ShareWith) -> answers.Nothing:
    """Give a user or a group a role."""
    register, session = client.register(), client.watched().id
    await asyncio.to_thread(
        register.share, client.who, session, message.name, message.role, group=message.group
    )
    return {}


async def unshare(client: PeopleClient, message: requests.Unshare) -> answers.Nothing:
    """Revoke a role."""
    register, session = client.register(), client.watched().id
    await asyncio.to_thread(register.unshare, client.who, session, message.name, group=message.group)
    return {}


async def create_link(client: PeopleClient, message: requests.CreateLink) -> answers.NewLink:
    """Make a link."""
    register, session = client.register(), client.watched().id
    view = LinkView(at=message.at, hides=frozenset(message.hides), variables=frozenset(message.variables))
    shown = await asyncio.to_thread(
        register.create_link, client.who, session, view, message.days, public=message.public
    )
    return {"link": shown.id, "path": f"/link/{shown.secret}"}


async def revoke_link(client: PeopleClient, message: requests.RevokeLink) -> answers.Nothing:
    """Revoke a link."""
    await asyncio.to_thread(client.register().revoke_link, client.who, message.link)
    return {}


async def list_shared(client: PeopleClient, message: requests.ListShared) -> answers.SharedSessions:
    """What others share with this user, without sessions that no longer exist."""
    found: dict[str, answers.SharedRow] = {}
    owned: dict[str, Mapping[str, SessionInfo]] = {}
    for one in await asyncio.to_thread(client.register().shared_with, client.who):
        if one.owner not in owned:
            owned[one.owner] = await _sessions_of(client, one.owner)
        known = owned[one.owner]
        if one.session in known and (one.session not in found or one.role == "steerer"):
            # A title may contain what a link leaves out.
            title = known[one.session].title if one.view is None else ""
            found[one.session] = {
                "id": one.session,
                "title": title,
                "owner": one.owner_name,
                "role": one.role,
            }
    return {"list": [*found.values()]}


async def _sessions_of(client: PeopleClient, owner: str) -> Mapping[str, SessionInfo]:
    """The owner's sessions by id; empty if they are not available now."""
    try:
        async with client.lease(owner) as tenant:
            return {one.id: one for one in await asyncio.to_thread(tenant.runtime.sessions)}
    except IactError:
        return {}


# --- one's own account --------------------------------------------------------------------------------


async def show_account(client: PeopleClient, message: requests.ShowAccount) -> answers.Account:
    """The user's account, tokens and sign-ins."""
    register, who = client.register(), client.who

    def look() -> answers.Account:
        return {
            "name": who.name,
            "admin": who.admin,
            "scopes": [one for one in SCOPES if one in EVERY_SCOPE and (one != "admin" or who.admin)],
            "tokens": [
                {
                    "id": one.id,
                    "name": one.name,
                    "scopes": sorted(one.scopes),
                    "created": _time(one.created),
                    "ends": _time(one.ends),
                    "used": _time(one.used),
                    "words": one.words,
                }
                for one in register.tokens(who)
            ],
            "sign_ins": [
                {
                    "id": one.id,
                    "created": _time(one.created),
                    "seen": _time(one.seen),
                    "address": one.address,
                    "agent": one.agent,
                    "here": who.key == f"sign-in {one.id}",
                }
                for one in register.sign_ins(who)
            ],
        }

    return await asyncio.to_thread(look)


async def create_token(client: PeopleClient, message: requests.CreateToken) -> answers.NewToken:
    """Make an API token."""
    shown = await asyncio.to_thread(
        client.register().create_token, client.who, message.name, message.scopes, message.days, message.words
    )
    return {"token": shown.id, "secret": shown.secret}


async def revoke_token(client: PeopleClient, message: requests.RevokeToken) -> answers.Nothing:
    """Revoke a token."""
    await asyncio.to_thread(client.register().revoke_token, client.who, message.token)
    return {}


async def sign_out(client: PeopleClient, message: requests.SignOut) -> answers.Nothing:
    """End a sign-in, or all."""
    await asyncio.to_thread(client.register().sign_out, client.who, message.sign_in)
    return {}


async def show_usage(client: PeopleClient, message: requests.ShowUsage) -> answers.Usage:
    """What was used. For all users, the command requires an administrator's right."""
    rows = await asyncio.to_thread(client.register().usage, None if message.everybody else client.who)
    return {
        "list": [
            {
                "user": one.user,
                "period": one.period,
                "resource": one.resource,
                "used": one.used,
                "most": one.most,
            }
            for one in rows
        ]
    }


# --- for administrators -------------------------------------------------------------------------------


async def list_users(client: PeopleClient, message: requests.ListUsers) -> answers.Users:
    """All accounts."""
    return {
        "list": [
            {
                "name": one.name,
                "admin": one.role == "admin",
                "groups": sorted(one.groups),
                "disabled": one.disabled is not None,
                "seen": _time(one.seen),
            }
            for one in await asyncio.to_thread(client.register().users)
        ]
    }


async def add_user(client: PeopleClient, message: requests.AddUser) -> answers.Nothing:
    """Make an account."""
    await asyncio.to_thread(
        client.register().add_user, client.who, message.name, message.password, admin=message.admin
    )
    return {}


async def change_user(client: PeopleClient, message: requests.ChangeUser) -> answers.Nothing:
    """Change an account."""
    register = client.register()

    def change() -> None:
        register.change_user(
            client.who, message.name, password=message.password, admin=message.admin, disabled=message.disabled,
            groups=message.groups,
        )  # fmt: skip

    await asyncio.to_thread(change)
    return {}


async def show_everybody(client: PeopleClient, message: requests.ShowEverybody) -> answers.Everybody:
    """What administrators set for all users."""
    setup = client.setup()
    return {
        "modules": [one.description() for one in await setup.modules()],
        "secrets": [*await asyncio.to_thread(setup.secrets)],
    }


async def add_module(client: PeopleClient, message: requests.AddModuleOfEverybody) -> answers.Module:
    """Add a module for all users."""
    if message.name is None:
        source = await asyncio.to_thread(source_of, message.source)
    else:
        source = written_source(message.name, message.source)
    added = await client.setup().add_module(source)
    digest = added.entry.digest[:12]
    await client.audit("module.added", module=added.entry.name, digest=digest, **_EVERYBODY)
    return {"module": added.to_json()}


async def remove_module(client: PeopleClient, message: requests.RemoveModuleOfEverybody) -> answers.Nothing:
    """Remove a module for all users."""
    await client.setup().remove_module(message.name)
    await client.audit("module.removed", module=message.name, **_EVERYBODY)
    return {}


async def approve_module(client: PeopleClient, message: requests.ApproveModuleOfEverybody) -> answers.Module:
    """Approve functions of a module for all users."""
    approved = await client.setup().approve_module(message.name, message.functions, digest=message.digest)
    functions = ", ".join(sorted(approved.approved))
    await client.audit("module.approved", module=message.name, functions=functions, **_EVERYBODY)
    return {"module": approved.to_json()}


async def set_secret(client: PeopleClient, message: requests.SetSecret) -> answers.Nothing:
    """Store a secret for the modules that are set for all users."""
    await asyncio.to_thread(client.setup().store_secret, message.name, message.value)
    await client.audit("secret.changed", secret=message.name, **_EVERYBODY)
    return {}


async def remove_secret(client: PeopleClient, message: requests.RemoveSecret) -> answers.Nothing:
    """Remove a secret that is set for all users."""
    await asyncio.to_thread(client.setup().remove_secret, message.name)
    await client.audit("secret.changed", secret=message.name, removed="yes", **_EVERYBODY)
    return {}


async def show_policy(client: PeopleClient, message: requests.ShowPolicy) -> answers.Text:
    """The policy as it is written."""
    return {"text": await asyncio.to_thread(client.setup().policy)}


async def change_policy(client: PeopleClient, message: requests.ChangePolicy) -> answers.Nothing:
    """Replace the policy."""
    await asyncio.to_thread(client.setup().change_policy, message.text, message.was)
    await client.audit("policy.changed")
    return {}


async def show_audit(client: PeopleClient, message: requests.ShowAudit) -> answers.Audit:
    """Who did what about people."""
    events = await asyncio.to_thread(client.register().audit, message.most)
    return {
        "list": [
            {
                "at": _time(one.at),
                "kind": one.kind,
                "who": one.who,
                "address": one.address,
                "about": dict(one.about),
            }
            for one in reversed(events)
        ]
    }


async def export_audit(client: PeopleClient, message: requests.ExportAudit) -> answers.Download:
    """The whole audit as a file."""
    register, since = client.register(), message.since
    content = await asyncio.to_thread(register.audit_file, since, message.who, message.what)
    asked = {"since": since, "of": message.who, "what": message.what}
    await client.audit("audit.exported", **{name: text for name, text in asked.items() if text})
    return {"href": client.offer("audit.jsonl", content)}


def _time(seconds: float | None) -> str:
    return "" if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))
