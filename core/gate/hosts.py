"""Which hosts a module may reach, and who allowed them. Names only; addresses are checked where connections are made.

A policy lists hosts by module (`[scope.X.egress]`), a person allows them for one session or always, and a module's
approved manifest may name targets of its own. For any other host, a person is asked when a module wants to connect. A
rule is `host` (ports 80 and 443), `host:port`, `*.domain` (everything below it, but not the domain itself) or `*`
(every public host).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from iact.core.errors import UsageError
from iact.core.records.hosts import USUAL_PORTS, HostOrigin

Rule = tuple[str, str]
"""A module and a rule about hosts."""

ANY: Final = "*"
"""In a manifest's needs: whatever a policy or a person allows at run time. As a rule: every public host."""

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_RULE: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[^:\[\]]{1,253})(?::(?P<port>[0-9]{1,5}))?")


def host_rule(text: str) -> str:
    """Return a rule in its canonical form: lower case, names in their ASCII form.

    Raises:
        UsageError: the text is not a rule about hosts.
    """
    plain = text.strip()
    if plain == ANY:
        return ANY

    match = _RULE.fullmatch(plain)
    host = _host(match["host"]) if match is not None else None
    port = match["port"] if match is not None else None
    if host is None or (port and not 0 < int(port) < 65536):
        raise UsageError(
            f"{text[:80]!r} is not a host. Write docs.python.org, *.debian.org, host:port, or * for every public host."
        )

    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{int(port)}" if port else shown


def _host(text: str) -> str | None:
    """A name or an address in its usual form; None if it is neither."""
    bare = text.removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass  # then it is a name

    wild = "*." if bare.startswith("*.") else ""
    name = bare.removeprefix("*.")
    try:
        ascii_name = name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return None

    host = f"{wild}{ascii_name.lower()}"
    return host if len(host) <= 253 and _NAME.fullmatch(host) else None


def covers(rule: str, host: str, port: int) -> bool:
    """Whether a rule (in the form of `host_rule`) covers this host, given in lower case, at this port."""
    if rule == ANY:
        return True

    match = _RULE.fullmatch(rule)
    if match is None:
        return False

    ports = {int(match["port"])} if match["port"] else USUAL_PORTS
    if port not in ports:
        return False

    wanted = match["host"].removeprefix("[").removesuffix("]")
    if not wanted.startswith("*."):
        return host == wanted

    domain = wanted.removeprefix("*")  # with its dot, so that it is not the end of another name
    below = host.endswith(domain) and len(host) > len(domain)
    return below and not _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def allows(rules: Iterable[Rule], module: str, host: str, port: int) -> bool:
    """Whether one of these rules allows a module to reach a host."""
    return any(name == module and covers(rule, host, port) for name, rule in rules)


@dataclass(frozen=True, slots=True)
class HostQuestion:
    """A module wants to reach a host."""

    module: str
    host: str
    port: int
    calls: tuple[int, ...] = ()
    """The module's calls that were running then."""
    seconds: float = 0
    carries: bool = False
    """It can carry out what isn't public."""
    allowed: bool = False
    """The host itself was allowed already."""


@dataclass(slots=True)
class Hosts:
    """What a session knows about hosts. A fold of its records. A connection is a module, a host and a port."""

    always: frozenset[Rule] = frozenset()
    """What a person allowed for all sessions."""
    session: frozenset[Rule] = frozenset()
    """What a person allowed for this one."""
    refused: frozenset[tuple[str, str, int]] = frozenset()
    """Connections that a person refused."""
    open: dict[int, HostQuestion] = field(default_factory=dict)
    """Questions by record."""
    once: dict[tuple[str, str, int], frozenset[int]] = field(default_factory=dict)
    """Yeses that last as long as these calls run; without calls, for one connection."""
    reached: set[tuple[str, str, int, HostOrigin]] = field(default_factory=set)
    """Connections that were made, and what allowed them."""
    let_go: set[tuple[str, str, int]] = field(default_factory=set)
    """Connections over which a person lets a module send what isn't public."""
    outdated: frozenset[Rule] = frozenset()
    """Rules of `always` and `session` that a person made for another version of the module."""
    answered: frozenset[Rule] = frozenset()
    """Rules that a person gave in this session, when the version of the module that is there now wanted to connect."""
    kept_back: set[tuple[str, str, int]] = field(default_factory=set)
    """Connections over which a person, since their last message, does not."""

    def asked(self, module: str, host: str, port: int) -> int:
        """The record of the open question about this host; 0 if there is none."""
        for record, question in self.open.items():
            if (question.module, question.host, question.port) == (module, host, port):
                return record
        return 0

    def of(self, module: str) -> frozenset[Rule]:
        """What a person allowed this module."""
        return frozenset(rule for rule in self.always | self.session if rule[0] == module)


def rules_of(lists: Mapping[str, Iterable[str]]) -> frozenset[Rule]:
    """Return a set of rules from lists by module, the form used in files and records."""
    return frozenset((module, rule) for module, rules in lists.items() for rule in rules)


def lists_of(rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    """The reverse of `rules_of`, sorted."""
    by_module: dict[str, list[str]] = {}
    for module, rule in sorted(rules):
        by_module.setdefault(module, []).append(rule)
    return {module: tuple(own) for module, own in by_module.items()}
