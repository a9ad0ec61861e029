"""`iact quota …` and `iact usage`, on the accounts database."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from typing import Final

from iact.accounts.accounts import Accounts
from iact.accounts.quotas import AccountQuota, QuotaKind
from iact.commands.people import actor
from iact.core.errors import UsageError
from iact.people import accounts_of
from iact.settings import Settings

_MONTH: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


def set_quota(settings: Settings, user: str | None, group: str | None, quota: AccountQuota) -> int:
    """Set the quota of a user or a group, or of each user without their own.

    Raises:
        UsageError: there is no such user, both are given, or there are no prices for a quota of money.
    """
    if user is not None and group is not None:
        raise UsageError("A quota is for a user or for a group. Give only one of --user and --group.")
    if quota.money is not None and settings.price is None and not settings.without_endpoint:
        raise UsageError("A quota of money needs prices. Set price_prompt and price_completion.")
    with accounts_of(settings) as accounts:
        kind: QuotaKind = "user" if user is not None else "group" if group is not None else "each"
        subject = accounts.users.named(user).id if user is not None else group or ""
        accounts.quotas.set(kind, subject, quota, by=actor())
    bounds = _bounds(quota)
    whose = user or (f"the group {group}" if group else "each user without a quota of their own")
    print(f"{whose}: {', '.join(bounds) or 'no limit'}.", file=sys.stderr)
    return 0


def list_quotas(settings: Settings, *, as_json: bool) -> int:
    """Print all quotas."""
    with accounts_of(settings) as accounts:
        names, quotas = _names(accounts), accounts.quotas.all()
        rows: list[dict[str, object]] = [
            {
                "kind": kind,
                "name": names.get(subject, subject) if kind == "user" else subject,
                **asdict(quota),
            }
            for (kind, subject), quota in quotas.items()
        ]
    if as_json:
        print(json.dumps(rows))
        return 0
    for row, quota in zip(rows, quotas.values(), strict=True):
        print("  ".join([f"{row['kind']} {row['name']}".strip(), *_bounds(quota)]))
    return 0


def usage(settings: Settings, month: str | None, *, as_json: bool) -> int:
    """Print what was used in a month, and the limits.

    Raises:
        UsageError: the month is invalid.
    """
    if month is not None and not _MONTH.fullmatch(month):
        raise UsageError(f"{month!r} is not a month. Write it like 2026-11.")
    with accounts_of(settings) as accounts:
        names = _names(accounts)
        used = [(one, accounts.quotas.bound(one.kind, one.subject)) for one in accounts.quotas.used(month)]
        shown = month or accounts.quotas.month()
    rows: list[dict[str, object]] = []
    for one, quota in used:
        name = names.get(one.subject, one.subject) if one.kind == "user" else one.subject
        rows.append(
            {
                "kind": one.kind, "name": name, "tokens": one.tokens, "money": one.money, "calls": one.calls,
                "quota": {"tokens": quota.tokens, "money": quota.money},
            }
        )  # fmt: skip
    if as_json:
        print(json.dumps({"month": shown, "usage": rows}))
        return 0
    if not rows:
        print(f"Nothing was used in {shown}.")
    for (one, quota), row in zip(used, rows, strict=True):
        tokens = f"{one.tokens:,} tokens" + (f" of {quota.tokens:,}" if quota.tokens is not None else "")
        money = f"{one.money:,.2f}" + (f" of {quota.money:,.2f}" if quota.money is not None else "")
        print(f"{one.kind} {row['name']}  {tokens}  cost {money}  {one.calls:,} calls")
    return 0


def _bounds(quota: AccountQuota) -> list[str]:
    return [f"{name} {value:,}" for name, value in asdict(quota).items() if value is not None]


def _names(accounts: Accounts) -> dict[str, str]:
    return {one.id: one.name for one in accounts.users.all()}
