"""The messages of a server with accounts: sharing, a user's own account, and administration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final, Protocol

from iact.accounts.people import ApiToken, AuditKind, ShareLink, SignIn
from iact.accounts.rights import SCOPES, LinkView, Principal
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
    register = client.register()
    session = client.watched().id

    def look() -> answers.Sharing:
        grants: list[answers.GrantRow] = [
            {"name": name, "group": grant.of_group, "role": grant.role}
            for name, grant in register.grants(client.who, session)
        ]
        links = [_link_row(link) for link in register.links(client.who, session)]
        return {"grants": grants, "links": links, "public": register.public_links}

    return await asyncio.to_thread(look)


def _link_row(link: ShareLink) -> answers.LinkRow:
    return {
        "id": link.id,
        "created": _time(link.created),
        "ends": _time(link.ends),
        "opened": link.opened,
        "at": link.view.at,
        "hides": sorted(link.view.hides),
        "variables": sorted(link.view.variables),
        "public": link.public,
    }


async def share_with(client: PeopleClient, message: requests.ShareWith) -> answers.Nothing:
    """Give a user or a group a role."""
    share = client.register().share
    session = client.watched().id
    await asyncio.to_thread(share, client.who, session, message.name, message.role, group=message.group)
    return {}


async def unshare(client: PeopleClient, message: requests.Unshare) -> answers.Nothing:
    """Revoke a role."""
    unshare = client.register().unshare
    session = client.watched().id
    await asyncio.to_thread(unshare, client.who, session, message.name, group=message.group)
    return {}


async def create_link(client: PeopleClient, message: requests.CreateLink) -> answers.NewLink:
    """Make a link."""
    create_link = client.register().create_link
    session = client.watched().id

    view = LinkView(at=message.at, hides=frozenset(message.hides), variables=frozenset(message.variables))
    link = await asyncio.to_thread(
        create_link, client.who, session, view, message.days, public=message.public
    )
    return {"link": link.id, "path": f"/link/{link.secret}"}


async def revoke_link(client: PeopleClient, message: requests.RevokeLink) -> answers.Nothing:
    """Revoke a link."""
    await asyncio.to_thread(client.register().revoke_link, client.who, message.link)
    return {}


async def list_shared(client: PeopleClient, message: requests.ListShared) -> answers.SharedSessions:
    """What others share with this user, without sessions that no longer exist."""
    rows: dict[str, answers.SharedRow] = {}
    sessions_by_owner: dict[str, Mapping[str, SessionInfo]] = {}
    for grant in await asyncio.to_thread(client.register().shared_with, client.who):
        if grant.owner not in sessions_by_owner:
            sessions_by_owner[grant.owner] = await _sessions_of(client, grant.owner)
        info = sessions_by_owner[grant.owner].get(grant.session)
        if info is None:
            continue

        # Of several grants of a session, the one that permits more counts.
        if grant.session in rows and grant.role != "steerer":
            continue
        rows[grant.session] = {
            "id": grant.session,
            # A title may contain what a link leaves out.
            "title": info.title if grant.view is None else "",
            "owner": grant.owner_name,
            "role": grant.role,
        }

    return {"list": [*rows.values()]}


async def _sessions_of(client: PeopleClient, owner: str) -> Mapping[str, SessionInfo]:
    """The owner's sessions by id; empty if they are not available now."""
    try:
        async with client.lease(owner) as tenant:
            return {info.id: info for info in await asyncio.to_thread(tenant.runtime.sessions)}
    except IactError:
        return {}


# --- one's own account --------------------------------------------------------------------------------


async def show_account(client: PeopleClient, message: requests.ShowAccount) -> answers.Account:
    """The user's account, tokens and sign-ins."""
    register = client.register()
    who = client.who

    def look() -> answers.Account:
        return {
            "name": who.name,
            "admin": who.admin,
            "scopes": [scope for scope in SCOPES if scope != "admin" or who.admin],
            "tokens": [_token_row(token) for token in register.tokens(who)],
            "sign_ins": [_sign_in_row(sign_in, who) for sign_in in register.sign_ins(who)],
        }

    return await asyncio.to_thread(look)


def _token_row(token: ApiToken) -> answers.TokenRow:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created": _time(token.created),
        "ends": _time(token.ends),
        "used": _time(token.used),
        "words": token.words,
    }


def _sign_in_row(sign_in: SignIn, who: Principal) -> answers.SignInRow:
    return {
        "id": sign_in.id,
        "created": _time(sign_in.created),
        "seen": _time(sign_in.seen),
        "address": sign_in.address,
        "agent": sign_in.agent,
        "here": who.key == f"sign-in {sign_in.id}",
    }


async def create_token(client: PeopleClient, message: requests.CreateToken) -> answers.NewToken:
    """Make an API token."""
    token = await asyncio.to_thread(
        client.register().create_token, client.who, message.name, message.scopes, message.days, message.words
    )
    return {"token": token.id, "secret": token.secret}


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
    whose = None if message.everybody else client.who
    usage = await asyncio.to_thread(client.register().usage, whose)
    rows: list[answers.UsageRow] = [
        {
            "user": row.user,
            "period": row.period,
            "resource": row.resource,
            "used": row.used,
            "most": row.most,
        }
        for row in usage
    ]

    return {"list": rows}


# --- for administrators -------------------------------------------------------------------------------


async def list_users(client: PeopleClient, message: requests.ListUsers) -> answers.Users:
    """All accounts."""
    users = await asyncio.to_thread(client.register().users)
    rows: list[answers.UserRow] = [
        {
            "name": user.name,
            "admin": user.role == "admin",
            "groups": sorted(user.groups),
            "disabled": user.disabled is not None,
            "seen": _time(user.seen),
        }
        for user in users
    ]

    return {"list": rows}


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
    modules = await setup.modules()
    secrets = await asyncio.to_thread(setup.secrets)

    return {"modules": [module.description() for module in modules], "secrets": [*secrets]}


async def add_module(client: PeopleClient, message: requests.AddModuleOfEverybody) -> answers.Module:
    """Add a module for all users."""
    if message.name is None:
        source = await asyncio.to_thread(source_of, message.source)
    else:
        source = written_source(message.name, message.source)

    module = await client.setup().add_module(source)
    digest = module.entry.digest[:12]
    await client.audit("module.added", module=module.entry.name, digest=digest, **_EVERYBODY)

    return {"module": module.to_json()}


async def remove_module(client: PeopleClient, message: requests.RemoveModuleOfEverybody) -> answers.Nothing:
    """Remove a module for all users."""
    await client.setup().remove_module(message.name)
    await client.audit("module.removed", module=message.name, **_EVERYBODY)
    return {}


async def approve_module(client: PeopleClient, message: requests.ApproveModuleOfEverybody) -> answers.Module:
    """Approve functions of a module for all users."""
    module = await client.setup().approve_module(message.name, message.functions, digest=message.digest)
    functions = ", ".join(sorted(module.approved))
    await client.audit("module.approved", module=message.name, functions=functions, **_EVERYBODY)

    return {"module": module.to_json()}


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
    rows: list[answers.AuditRow] = [
        {
            "at": _time(event.at),
            "kind": event.kind,
            "who": event.who,
            "address": event.address,
            "about": dict(event.about),
        }
        for event in reversed(events)
    ]

    return {"list": rows}


async def export_audit(client: PeopleClient, message: requests.ExportAudit) -> answers.Download:
    """The whole audit as a file."""
    content = await asyncio.to_thread(client.register().audit_file, message.since, message.who, message.what)

    part = {"since": message.since, "of": message.who, "what": message.what}
    await client.audit("audit.exported", **{name: text for name, text in part.items() if text})

    return {"href": client.offer("audit.jsonl", content)}


def _time(seconds: float | None) -> str:
    return "" if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))
