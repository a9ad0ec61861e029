"""Hosts outside that modules want to reach: asked about, answered, reached."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from iact.core.records.content import Content
from iact.core.records.mark import Derived, Outcome
from iact.core.records.person import PersonContent

HostOrigin: TypeAlias = Literal["manifest", "policy", "always", "session", "once"]
"""Who allowed a host: a person with the module's manifest, a policy, a person for good, for the session, or for once."""

USUAL_PORTS: Final = frozenset({80, 443})
"""Those of the web, which are left out where a host is named."""


def rule_of(host: str, port: int) -> str:
    """The rule by which exactly this is allowed, or its host at the usual ports."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port in USUAL_PORTS else f"{shown}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAsk(Content):
    """A module wants to reach a host that nobody allowed, and a person is asked. It never enters a context."""

    KIND: ClassVar[str] = "host"
    OP: ClassVar[str] = "ask"

    module: Outcome[str]
    host: Outcome[str]
    port: Outcome[int]
    calls: Derived[tuple[int, ...]] = ()
    """The module's calls that were under way."""
    seconds: Outcome[float]
    """How long a person has: a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer(PersonContent):
    """What they said. A no holds until somebody allows the host."""

    KIND: ClassVar[str] = "host"
    OP: ClassVar[str] = "answer"

    ask: Outcome[int]
    """The record of the question."""
    allow: Outcome[bool]
    by: Outcome[Literal["user", "time", "core"]]
    """Who said so; "time" if nobody did in time; "core" if nothing waits for it any more."""
    lasts: Outcome[Literal["once", "session", "always"]] = "once"
    """For how long a yes holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReach(Content):
    """A module connects to a host, for the first time by this permission."""

    KIND: ClassVar[str] = "host"
    OP: ClassVar[str] = "reach"

    module: Outcome[str]
    host: Outcome[str]
    port: Outcome[int]
    by: Derived[HostOrigin]
    """Who allowed it."""
