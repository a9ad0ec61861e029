"""Commands about hosts that modules may reach: `module allow`, `module hosts`.

Allowed hosts are kept in a file that every running session follows, in any process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from iact.core.errors import UsageError
from iact.core.session.hosts import keep_hosts, kept_hosts
from iact.core.stored.policy import read_policies
from iact.sandbox.catalogue import Catalogue
from iact.settings import Settings, make_data_directory

Row = dict[str, str]


def allow(
    settings: Settings, module: str, hosts: Sequence[str], *, session: str, remove: bool, as_json: bool
) -> int:
    """Let a module reach hosts, or withdraw that. Running sessions follow at the module's next connection.

    Raises:
        UsageError: there is no such module or session, or a host is invalid.
    """
    make_data_directory(settings)
    _check_module(settings, module)
    keep_hosts(_folder(settings, session), module, hosts, remove=remove)
    rows = _rows(settings, module, session)
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        _print(rows)
    return 0


def show(settings: Settings, module: str, *, session: str, as_json: bool) -> int:
    """Print the hosts that modules may reach without asking, and who allowed each.

    Raises:
        UsageError: there is no such module or session, or the policy can't be read.
    """
    if module:
        _check_module(settings, module)
    rows = _rows(settings, module, session)
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    elif rows:
        _print(rows)
    else:
        print(
            "No hosts are allowed. A module that needs one asks, or run: iact module allow NAME HOST",
            file=sys.stderr,
        )
    return 0


def _rows(settings: Settings, module: str, session: str) -> list[Row]:
    policies = read_policies(settings.data)
    rows = [
        {"module": name, "host": host, "by": "policy", "scope": scope}
        for scope, one in sorted(policies.scope.items())
        for name, hosts in sorted(one.egress.items())
        for host in hosts
    ]
    rows += [{"module": name, "host": host, "by": "always"} for name, host in kept_hosts(settings.data)]
    if session:
        folder = _folder(settings, session)
        rows += [{"module": name, "host": host, "by": "session"} for name, host in kept_hosts(folder)]
    return [row for row in rows if not module or row["module"] == module]


def _print(rows: Sequence[Row]) -> None:
    words = {
        "policy": "by the policy, scope {scope}",
        "always": "by you, always",
        "session": "by you, this session",
    }
    for row in rows:
        print(f"{row['module']}  {row['host']}  {words[row['by']].format(**row)}")


def _check_module(settings: Settings, name: str) -> None:
    known = {entry.name for entry in Catalogue(settings.data).entries()}
    if name not in known:
        raise UsageError(f"There is no module {name!r}. The modules are: {', '.join(sorted(known))}.")


def _folder(settings: Settings, session: str) -> Path:
    """The folder where allowed hosts are kept, for all sessions or for one.

    Raises:
        UsageError: there is no such session.
    """
    if not session:
        return settings.data
    folder = settings.data / "sessions" / session
    if "/" in session or not (folder / "journal.md").is_file():
        raise UsageError(f"There is no session {session!r}; run: iact session list")
    return folder
