"""The fields that the `ok` of a request has in addition to its `id`: one type for each kind of answer.

`n` is the number of the record that a request made. The record is on disk when the answer is sent.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from iact.accounts import rights
from iact.core.ports import JSON, ChangeKind, FileType, Medium, MemoryDetails, MemoryRow
from iact.core.records.ways import Way
from iact.core.session.hosts import HostRow
from iact.core.views.known_modules import ModuleDescription, ModuleRow
from iact.core.views.review import PendingRow
from iact.core.views.status import SessionState


class TypeScript:
    """Annotates a type with the name that the page's types use for it."""

    def __init__(self, name: str) -> None:
        self.name: Final = name


Record = Annotated[dict[str, JSON], TypeScript("JournalRecord")]
"""A record as the page receives it: its header, the fields of its kind (`docs/reference/journal.md`), and its HTML.

It has `n`, `at`, `kind`, `agent`, `step` and `body`. A long body is shortened; `body_size` is then its full length.
`html` displays the record; where it is missing, the page asks for it with `render`. A turn has `messages`, one for each
CALL: `action`, `to` and its `html`. A question to a person has a `digest`, which a yes to it sends back.
"""


class Nothing(TypedDict):
    """The request was carried out."""


class Recorded(TypedDict):
    """The request was carried out and recorded as record `n`."""

    n: int


class InSession(Recorded):
    session: str


class Foreseen(TypedDict):
    mode: Way
    why: str


class Text(TypedDict):
    text: str


class ShownPlan(Text):
    digest: str


class Source(TypedDict):
    text: str
    more: NotRequired[int]


class PlanFile(TypedDict):
    file: str


class Names(TypedDict):
    list: list[str]


class TemplateParameter(TypedDict):
    """What a template leaves open. `was`: its value when the template was saved; "" if it is unknown."""

    name: str
    kind: Literal["text", "number", "yes or no"]
    was: str
    default: str | None
    about: str


class TemplateRow(TypedDict):
    name: str
    goal: str
    parameters: list[TemplateParameter]


class Templates(Names):
    """The names of all templates, and what those that can be used are for and leave open."""

    templates: list[TemplateRow]


class ParameterOffer(TypedDict):
    name: str
    value: str


class ParameterOffers(TypedDict):
    list: list[ParameterOffer]


class PlanBegun(InSession):
    path: str


class Sought(TypedDict):
    at: int | None


class SessionName(TypedDict):
    session: str


class Uploaded(Recorded):
    name: str


class Download(TypedDict):
    """An address, `href`, that can be fetched once."""

    href: str


class Check(TypedDict):
    check: str
    ok: bool
    detail: str
    remedy: str


class Setup(TypedDict):
    settings: list[tuple[str, str]]
    checks: list[Check]


class Address(TypedDict):
    url: str


class Example(TypedDict):
    id: str
    title: str
    about: str


class Examples(TypedDict):
    list: list[Example]


class CallMessage(TypedDict):
    """The message of a turn to a child."""

    action: int
    to: str
    html: NotRequired[str]


class LongValue(TypedDict):
    """A value that is too long for the record of its question."""

    name: str
    text: str
    sha256: str


class Question(TypedDict):
    text: str
    digest: str
    values: list[LongValue]


class Html(TypedDict):
    n: int
    html: str
    messages: NotRequired[list[CallMessage]]


class HtmlOfRecords(TypedDict):
    list: list[Html]


class Formatted(TypedDict):
    closed: int
    html: str
    open: str


# --- what a model saw, variables ---------------------------------------------------------------------------


class SeenMessage(TypedDict):
    role: str
    text: str
    size: int
    reused: bool
    left_out: NotRequired[int]


class Context(TypedDict):
    agent: str
    record: int
    messages: list[SeenMessage]


class Variable(TypedDict):
    name: str
    media: str
    size: int
    origin: str
    labels: list[str]
    sha256: str


class Variables(TypedDict):
    list: list[Variable]


class Reading(TypedDict):
    labels: list[str]
    digest: str


Look: TypeAlias = Literal["html", "pdf", "markdown", "table", "sheet"]
"""What content can be looked at as, besides its text."""


class VariableContent(Variable):
    text: str | None
    left_out: int
    digest: str
    look: Look | None


# --- time -----------------------------------------------------------------------------------------------------

SpanRow = tuple[int, str, int, int | None, int, str, bool]


class Timeline(TypedDict):
    started: str
    ms: int
    agents: list[str]
    spans: list[SpanRow]
    critical: int
    more: int


# --- files ------------------------------------------------------------------------------------------------------


class FileRow(TypedDict):
    path: str
    kind: FileType
    size: int
    n: NotRequired[int]


class FileList(TypedDict):
    list: list[FileRow]
    more: int
    n: int
    unkept: int
    folder: str
    why: str


class PathStep(TypedDict):
    path: str
    kind: ChangeKind


class ChangeRow(TypedDict):
    n: int
    at: str
    agent: str
    function: str
    paths: list[PathStep]
    more: int


class ChangeList(TypedDict):
    list: list[ChangeRow]
    earlier: int


class FileContent(FileRow):
    show: Literal["text", "table", "image", "audio", "video", "link", "large", "binary"]
    look: NotRequired[Look]
    text: NotRequired[str]
    left_out: NotRequired[int]
    rows: NotRequired[list[list[str]]]
    more_rows: NotRequired[int]
    media: NotRequired[str]
    target: NotRequired[str]


class Lines(TypedDict):
    added: int | None
    removed: int | None


class Difference(Lines):
    text: str
    left_out: int


class NamedFiles(TypedDict):
    at: int
    shown: int | None
    files: dict[str, str]


class NamedFilesList(TypedDict):
    list: list[NamedFiles]


class ArchiveDownload(Download):
    count: int
    bytes: int
    left_out: int


# --- review -----------------------------------------------------------------------------------------------------


class Pending(TypedDict):
    total: int
    at: int
    digest: str
    list: list[PendingRow]


class Patch(Lines):
    text: str
    digest: str


class PathLines(Lines):
    path: str


class PathLinesList(TypedDict):
    list: list[PathLines]


class AppliedPath(TypedDict):
    path: str
    outcome: str
    why: str


class Settled(TypedDict):
    n: int
    done: int
    left: list[AppliedPath]
    notes: list[AppliedPath]


# --- sessions ---------------------------------------------------------------------------------------------------


class Place(TypedDict):
    """Where a text was found: the record, the line, and the number of occurrences."""

    n: int
    agent: str
    kind: str
    before: str
    match: str
    after: str
    count: int


class SessionRow(TypedDict):
    """A session in a list. `since`: when it entered its `state`; `what`: what it waits for; `named`: a person gave it
    its title; `source` and `at`: of a fork, the original session and the record; `hit`: where a search found the
    words."""

    id: str
    title: str
    created: str
    changed: str
    records: int
    open: bool
    foreign: bool
    state: SessionState
    since: str
    what: str
    pinned: bool
    named: bool
    source: str
    at: int
    hit: NotRequired[Place]


class FoundSessions(TypedDict):
    list: list[SessionRow]
    behind: int


class Title(TypedDict):
    title: str


class DoneSessions(TypedDict):
    sessions: list[str]
    refused: dict[str, str]
    note: str


class DeletedSession(TypedDict):
    id: str
    title: str
    deleted: str
    records: int


class DeletedSessions(TypedDict):
    list: list[DeletedSession]


class ImportedSession(TypedDict):
    session: str
    foreign: str
    left_out: int


class Places(TypedDict):
    count: int
    list: list[Place]


# --- models, first messages -----------------------------------------------------------------------------------


class Role(TypedDict):
    role: str
    url: str
    model: str
    context: int
    key: bool
    own: bool
    dialect: Literal["text", "tools"] | None
    takes: list[Medium] | None
    price_prompt: float | None
    price_cached: float | None
    price_completion: float | None


class Roles(TypedDict):
    list: list[Role]


class Preset(TypedDict):
    name: str
    title: str
    url: str
    needs_key: bool
    keys: str
    about: str


class Presets(TypedDict):
    list: list[Preset]


class ModelFile(TypedDict):
    name: str
    title: str
    size: int
    present: bool
    in_use: bool


class ModelFiles(TypedDict):
    list: list[ModelFile]


class AddedEndpoint(TypedDict):
    name: str
    model: str
    url: str
    in_use: bool


class AddedEndpoints(TypedDict):
    list: list[AddedEndpoint]


class TriedModel(TypedDict):
    names: list[str]
    model: str
    answer: str
    ms: int
    fault: str


class FirstMessage(TypedDict):
    name: str
    text: str


class FirstMessages(TypedDict):
    list: list[FirstMessage]


# --- modules, memory --------------------------------------------------------------------------------------------


class Modules(TypedDict):
    list: list[ModuleDescription]


class Module(TypedDict):
    module: ModuleRow


class Hosts(TypedDict):
    list: list[HostRow]


class Memories(TypedDict):
    results: list[MemoryRow]
    on: bool
    session_on: bool | None


class MemoryState(TypedDict):
    on: bool


class Memory(TypedDict):
    memory: MemoryDetails | None


class Count(TypedDict):
    count: int


class Distilled(TypedDict):
    count: int
    left_out: dict[str, str]


# --- people -----------------------------------------------------------------------------------------------------


class GrantRow(TypedDict):
    name: str
    group: bool
    role: rights.Role


class LinkRow(TypedDict):
    """A link. `created`, `ends`: times in UTC; `opened`: how often it was opened; `at`: the record that it is frozen at."""

    id: str
    created: str
    ends: str
    opened: int
    at: int | None
    hides: list[str]
    variables: list[str]
    public: bool


class Sharing(TypedDict):
    grants: list[GrantRow]
    links: list[LinkRow]
    public: bool


class NewLink(TypedDict):
    link: str
    path: str


class SharedRow(TypedDict):
    id: str
    title: str
    owner: str
    role: rights.Role


class SharedSessions(TypedDict):
    list: list[SharedRow]


class TokenRow(TypedDict):
    id: str
    name: str
    scopes: list[str]
    created: str
    ends: str
    used: str
    words: Literal["all", "newest", "none"]


class SignInRow(TypedDict):
    id: str
    created: str
    seen: str
    address: str
    agent: str
    here: bool


class Account(TypedDict):
    name: str
    admin: bool
    scopes: list[str]
    tokens: list[TokenRow]
    sign_ins: list[SignInRow]


class NewToken(TypedDict):
    token: str
    secret: str


class UsageRow(TypedDict):
    user: str
    period: str
    resource: str
    used: float
    most: float | None


class Usage(TypedDict):
    list: list[UsageRow]


class UserRow(TypedDict):
    name: str
    admin: bool
    groups: list[str]
    disabled: bool
    seen: str


class Users(TypedDict):
    list: list[UserRow]


class OwnSecrets(TypedDict):
    """The names of a user's secrets; values are never sent."""

    list: list[str]
    lent: list[str]


class Everybody(TypedDict):
    """What is set for all users. `secrets`: names only; values are never sent."""

    modules: list[ModuleDescription]
    secrets: list[str]


class AuditRow(TypedDict):
    at: str
    kind: str
    who: str
    address: str
    about: dict[str, str]


class Audit(TypedDict):
    list: list[AuditRow]
