"""What concerns a session as a whole: its beginning and terms, its modules, where it was copied from, its end."""

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
    """How much it may do, for whom."""
    policy: Annotated[Outcome[Mapping[str, JSON] | None], Since("1.1")] = None
    """What its user's policy says."""
    bounds: Outcome[Bounds]
    """How far it may go."""
    tail: Annotated[Outcome[Literal["whole", "changes"]], Since("1.1")] = "whole"
    """How contexts end: each with the whole state of the agent, or with what changed of it."""
    workspace: Outcome[str]
    """The directory of the user's in which it works; "scratch": one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module(Content):
    """A module is there in some version, or is not there any more. The body is its manifest as JSON, or why it is gone."""

    KIND: ClassVar[str] = "module"
    BODY: ClassVar[Mark | None] = OUTCOME

    name: Derived[str]
    """Its name, as its manifest has it."""
    version: Annotated[Derived[str], Since("1.1")] = ""
    """Its version, as its manifest has it."""
    digest: Outcome[str]
    """The SHA-256 over its files."""
    origin: Outcome[Origin]
    """Who brought it."""
    stake: Derived[Literal["", "live", "scratch"]] = ""
    """Whether its calls can do harm outside the session."""
    approved: Outcome[tuple[str, ...] | None] = None
    """The functions whose declaration is believed; None: all of them."""
    state: Outcome[Literal["", "removed", "withdrawn"]] = ""
    """Why it is gone: a person removed it, or it failed too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Content):
    """Something for people. It never enters a context."""

    KIND: ClassVar[str] = "notice"
    BODY: ClassVar[Mark | None] = OUTCOME

    level: Outcome[Literal["warning", "error"]]
    code: Outcome[str]
    """What it is about, for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(Content):
    """What stands before was copied from a session of this installation; from here on it is a session of its own."""

    KIND: ClassVar[str] = "fork"

    from_: Derived[str]
    """The session that it comes from."""
    after: Derived[int]
    """The last record that both share."""
    session: Outcome[str]
    """The id of this one."""
    workspace: Outcome[Literal["version", "current", "live", "none"]]
    """Its files: as they were behind that record; as they were when it was forked; in a directory of the user's; none."""
    left_out: Outcome[int] = 0
    """How many files did not come along."""
    drops: Annotated[Outcome[bool], Since("1.2")] = False
    """What was under way behind that record is not carried out here: the root rests until somebody speaks to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(Content):
    """What stands before was copied from a session that this installation did not make, and has no authority here.

    All that gives a session its say is set anew.
    """

    KIND: ClassVar[str] = "adopt"

    from_: Derived[str]
    """The session that it comes from."""
    after: Derived[int]
    """The last record that both share."""
    session: Outcome[str]
    """The id of this one."""
    sha256: Derived[str]
    """The SHA-256 over all bytes before this record."""
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
    """How many files, blobs and versions did not come along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate(Content):
    """From here on the rules and the prompts are those of another version of this program."""

    KIND: ClassVar[str] = "migrate"

    from_: Derived[str]
    """The format until here."""
    to: Outcome[str]
    """The format from here on."""
    models: Outcome[Mapping[str, RoleTerms]]
    """The models, with the prompts of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(Content):
    """From here on another host writes the journal, or the same one after it was started again; the one before can't any more."""

    KIND: ClassVar[str] = "epoch"

    epoch: Derived[int]
    """Its number; the first, which begins with the session, has no such record."""
    host: Outcome[str]
    """Who it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Content):
    """The session was closed in order; it can be opened again, and then goes on behind this."""

    KIND: ClassVar[str] = "close"
