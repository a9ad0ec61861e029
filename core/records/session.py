"""A session as a whole: its beginning and terms, its modules, where it was copied from, its end."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from iact.core.ports import JSON, Origin
from iact.core.records.content import Content
from iact.core.records.mark import OUTCOME, Derived, Mark, Outcome, Since
from iact.core.records.parts import Bounds, GrantTerms, RoleTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Content):
    """A session begins, with its root."""

    KIND: ClassVar[str] = "open"

    format: Outcome[str]
    """The format whose rules the records follow."""
    session: Outcome[str]
    """The session's id."""
    models: Outcome[Mapping[str, RoleTerms]]
    """The models, by role."""
    grant: Outcome[GrantTerms]
    """How much it may do, and for which user."""
    policy: Annotated[Outcome[Mapping[str, JSON] | None], Since("1.1")] = None
    """The user's policy."""
    bounds: Outcome[Bounds]
    """The session's bounds."""
    tail: Annotated[Outcome[Literal["whole", "changes"]], Since("1.1")] = "whole"
    """How contexts end: each with the agent's whole state, or with what has changed of it."""
    workspace: Outcome[str]
    """The user's directory in which the session works; "scratch" for a directory of its own."""
    layers: Annotated[Outcome[bool], Since("1.3")] = False
    """Whether agents of intent 0 can run code in a layer over the files that is thrown away."""
    memory: Annotated[Outcome[bool], Since("1.3")] = True
    """Whether the session reads and writes the user's memory. A program that speaks for many must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module(Content):
    """A version of a module is available, or the module is gone. The body is its manifest as JSON, or the reason."""

    KIND: ClassVar[str] = "module"
    BODY: ClassVar[Mark | None] = OUTCOME

    name: Derived[str]
    """Its name, as its manifest has it."""
    version: Annotated[Derived[str], Since("1.1")] = ""
    """Its version, as its manifest has it."""
    digest: Outcome[str]
    """The SHA-256 of its files."""
    origin: Outcome[Origin]
    """Where it comes from."""
    stake: Derived[Literal["", "live", "scratch"]] = ""
    """Whether its calls can do harm outside the session."""
    approved: Outcome[tuple[str, ...] | None] = None
    """The functions whose declarations are trusted; None: all of them."""
    state: Outcome[Literal["", "removed", "withdrawn"]] = ""
    """Why it is gone: a person removed it, or it failed too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Content):
    """A message for people. It never enters a context."""

    KIND: ClassVar[str] = "notice"
    BODY: ClassVar[Mark | None] = OUTCOME

    level: Outcome[Literal["warning", "error"]]
    code: Outcome[str]
    """The subject, for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(Content):
    """The records before this one were copied from a session of this installation. From here on, it is separate."""

    KIND: ClassVar[str] = "fork"

    from_: Derived[str]
    """The session from which it was copied."""
    after: Derived[int]
    """The last record that both sessions share."""
    session: Outcome[str]
    """The id of this session."""
    workspace: Outcome[Literal["version", "current", "live", "none"]]
    """Its files: as they were after that record, as they were at the fork, in a directory of the user, or none."""
    left_out: Outcome[int] = 0
    """How many files were not copied."""
    drops: Annotated[Outcome[bool], Since("1.2")] = False
    """Whether pending actions after that record are dropped here: the root waits until somebody sends a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(Content):
    """The records before this one were copied from another installation's session. They have no authority here."""

    KIND: ClassVar[str] = "adopt"

    from_: Derived[str]
    """The session from which it was copied."""
    after: Derived[int]
    """The last record that both sessions share."""
    session: Outcome[str]
    """The id of this session."""
    sha256: Derived[str]
    """The SHA-256 of all bytes before this record."""
    by: Outcome[Literal["user"]]
    workspace: Outcome[Literal["current", "none"]]
    """Its files: as they were when it was adopted, or none."""
    format: Outcome[str]
    models: Outcome[Mapping[str, RoleTerms]]
    grant: Outcome[GrantTerms]
    policy: Outcome[Mapping[str, JSON]]
    bounds: Outcome[Bounds]
    """As in an `open` record."""
    left_out: Outcome[Mapping[str, int] | None] = None
    """How many files, blobs and versions were not copied."""
    lost: Annotated[Outcome[tuple[str, ...]], Since("1.3")] = ()
    """The contents of values that are not there, by their SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate(Content):
    """From here on, the rules and prompts are those of another version of this program, or other values are lost."""

    KIND: ClassVar[str] = "migrate"

    from_: Derived[str]
    """The format up to here."""
    to: Outcome[str]
    """The format from here on."""
    models: Outcome[Mapping[str, RoleTerms]]
    """The models, with their current prompts."""
    lost: Annotated[Outcome[tuple[str, ...]], Since("1.3")] = ()
    """The contents of values that are missing or damaged on disk, by their SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(Content):
    """From here on, another host writes the journal, or the same one after a restart. The previous one can't."""

    KIND: ClassVar[str] = "epoch"

    epoch: Derived[int]
    """Its number. The first epoch begins with the session and has no such record."""
    host: Outcome[str]
    """The host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Content):
    """The session was closed properly. If it is opened again, it continues after this record."""

    KIND: ClassVar[str] = "close"

    late: Annotated[Outcome[bool], Since("1.3")] = False
    """Whether the process that ran the session ended without closing it, which the next one records if modules held
    something for agents. What they held is gone in any case."""
