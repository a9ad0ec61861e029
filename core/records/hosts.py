"""External hosts that modules want to reach: questions, answers, connections."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from iact.core.records.content import Content
from iact.core.records.mark import Derived, Outcome, Since
from iact.core.records.person import PersonContent

HostOrigin: TypeAlias = Literal["manifest", "policy", "always", "session", "once"]
"""What allowed a host: an approved manifest, a policy, or a person: always, for the session, or once."""

USUAL_PORTS: Final = frozenset({80, 443})
"""The ports of the web, which are omitted where a host is named."""


def rule_of(host: str, port: int) -> str:
    """Return the rule that allows exactly this host and port; for a usual port, the host at all usual ports."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port in USUAL_PORTS else f"{shown}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAsk(Content):
    """A module wants to reach a host that is not allowed yet, or could carry out what isn't public, and a person is
    asked. It never enters a context."""

    KIND: ClassVar[str] = "host"
    OP: ClassVar[str] = "ask"

    module: Outcome[str]
    host: Outcome[str]
    port: Outcome[int]
    calls: Derived[tuple[int, ...]] = ()
    """The calls that it may be for: those of the agent whose instance connects, or that name the host, or all that were
    running."""
    owner: Annotated[Outcome[str], Since("1.3")] = ""
    """The agent that the connecting instance serves alone; empty: it serves all."""
    agents: Annotated[Derived[tuple[str, ...]], Since("1.3")] = ()
    """The agents of these calls."""
    addresses: Annotated[Derived[tuple[str, ...]], Since("1.3")] = ()
    """The addresses at the host that the calls name."""
    origins: Annotated[Derived[tuple[str, ...]], Since("1.3")] = ()
    """Where the calls have the host from: "user" alone if the user wrote it; empty: no call names it."""
    strange: Annotated[Derived[tuple[str, ...]], Since("1.3")] = ()
    """If it can carry something out: the labels of strangers' texts that its program may follow."""
    private: Annotated[Derived[tuple[str, ...]], Since("1.3")] = ()
    """What isn't public and its program can send: labels, and "files" for the user's directory. Empty: nothing."""
    programs: Annotated[Derived[tuple[str, ...]], Since("1.3")] = ()
    """What these calls run, if it can carry something out."""
    allowed: Annotated[Derived[bool], Since("1.3")] = False
    """Whether the host itself was allowed already."""
    seconds: Outcome[float]
    """How long a person has: a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer(PersonContent):
    """The answer to a question about a host. A no holds until somebody allows the host."""

    KIND: ClassVar[str] = "host"
    OP: ClassVar[str] = "answer"

    ask: Outcome[int]
    """The record of the question."""
    allow: Outcome[bool]
    by: Outcome[Literal["user", "time", "core", "policy"]]
    """Who answered: "time" if nobody answered in time; "core" if nothing waits for the answer any more;
    "policy" if no person was available."""
    lasts: Outcome[Literal["once", "session", "always"]] = "once"
    """How long a yes lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReach(Content):
    """A module connects to a host: for the first time under this permission, or while something runs that had reached
    nothing yet. The connection is made after the record is on disk."""

    KIND: ClassVar[str] = "host"
    OP: ClassVar[str] = "reach"

    module: Outcome[str]
    host: Outcome[str]
    port: Outcome[int]
    by: Derived[HostOrigin]
    """Who allowed it."""
    owner: Annotated[Outcome[str], Since("1.3")] = ""
    """The agent that the connecting instance serves alone; empty: it serves all."""
