"""Every kind of record that this program writes, with its class, and the format of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from iact.core.records.calls import (
    Call,
    ClearanceAnswer,
    ClearanceAsk,
    Effects,
    Gate,
    Result,
    Select,
    Settle,
    State,
)
from iact.core.records.content import Content, Unknown
from iact.core.records.control import (
    AllowHosts,
    ApplyChanges,
    BeginPlan,
    Cancel,
    Declassify,
    DropChanges,
    EditPlan,
    Inject,
    Lockdown,
    Pause,
    RaiseBudget,
    Restore,
    Resume,
    RetryStep,
    Reword,
    SendNow,
    SetIntent,
    SetModels,
    SetPolicy,
    StartPlan,
    StopCalls,
    SwitchMemory,
    UseOverlay,
    Withdraw,
)
from iact.core.records.dialogue import (
    Choose,
    Compress,
    Discard,
    Distill,
    Draw,
    Recall,
    Reply,
    Say,
    Spawn,
    Turn,
    Upload,
)
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach
from iact.core.records.plans import (
    Ask,
    Draft,
    Extend,
    Fire,
    MakeCopy,
    Node,
    Plan,
    ProfileRisk,
    ProfileRule,
    ProfileTrust,
    TakeOver,
    Wake,
)
from iact.core.records.session import Adopt, Close, Epoch, Fork, Migrate, Module, Notice, Open

FORMAT: Final = "1.3"
"""The format that this program writes.

The major version rises when an older program could not read what this one writes. The minor version rises when the
rules change by which records change a tree: an older journal can then be read, but no longer verified.

    1.3  what a model reads and how its replies are read: signatures, notes by use, natural replies, one cut of results
    1.2  labels follow what a call touched; decisions are compared field by field; plans follow from outcomes
    1.1  an agent that runs short draws by a record of its own (1.0: by a field of its turn); small starts are lent
"""

Kind = Literal[
    "open", "say", "turn", "reply", "discard", "call", "gate", "result",
    "spawn", "select", "control", "clearance", "upload", "recall", "notice", "module",
    "plan", "node", "fire", "ask", "draw", "compress", "state", "fork", "adopt", "migrate", "epoch", "close",
    "effects", "settle", "draft", "wake", "choose", "profile", "extend", "copy", "host", "form",
    "distill",
]  # fmt: skip
KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))

Dialogue: TypeAlias = (
    Say | Choose | Upload | Turn | Reply | Discard | Spawn | Recall | Draw | Compress | Distill
)
Calls: TypeAlias = (
    Call | Gate | ClearanceAsk | ClearanceAnswer | Result | Select | State | Effects | Settle
    | HostAsk | HostAnswer | HostReach | FormAsk | FormAnswer
)  # fmt: skip
Plans: TypeAlias = (
    Plan | Extend | Node | ProfileRisk | ProfileRule | ProfileTrust | Fire | MakeCopy | TakeOver | Ask | Draft | Wake
)  # fmt: skip
Control: TypeAlias = (
    Pause | Resume | Inject | Cancel | SetIntent | Lockdown | SetPolicy | SetModels | Declassify | StartPlan | Restore
    | BeginPlan | EditPlan | RetryStep | SendNow | Reword | Withdraw | StopCalls | RaiseBudget
    | ApplyChanges | DropChanges | UseOverlay | AllowHosts | SwitchMemory
)  # fmt: skip
Session: TypeAlias = Open | Module | Notice | Fork | Adopt | Migrate | Epoch | Close

CLASSES: Final[tuple[type[Content], ...]] = (
    *get_args(Dialogue), *get_args(Calls), *get_args(Plans), *get_args(Control), *get_args(Session),
)  # fmt: skip
"""Every class of contents except `Unknown`, by family."""

BY_NAME: Final[Mapping[tuple[str, str], type[Content]]] = {(cls.KIND, cls.OP): cls for cls in CLASSES}
"""Classes by kind and operation; the operation is empty for kinds that have only one."""

WITH_OPERATIONS: Final = frozenset(cls.KIND for cls in CLASSES if cls.OP)
"""Kinds whose header names the operation in `op`."""


def major_of(format: object) -> int | None:
    """Return the major version of a format, or None if it is not a format."""
    if not isinstance(format, str):
        return None
    major = format.split(".")[0]
    is_number = major.isascii() and major.isdigit()
    return int(major) if is_number else None


def is_too_new(format: object) -> bool:
    """Whether this program is too old to read a journal of this format."""
    major = major_of(format)
    return major is not None and major > int(FORMAT.split(".")[0])


__all__ = [
    "BY_NAME", "CLASSES", "FORMAT", "KINDS", "WITH_OPERATIONS", "Content", "Kind", "Unknown", "is_too_new", "major_of",
]  # fmt: skip
