"""What the server sends: answers, and the news of the watched session and of the list of sessions."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from iact.accounts.rights import Role
from iact.core.session.events import ActivityState
from iact.core.session.status import SessionState
from iact.core.session.view import NodeState
from iact.web.wire.answers import Html, Record, SessionRow


class Prices(TypedDict):
    """What a million tokens cost; `models`: those that cost something else, by name."""

    prompt: float
    cached: float
    completion: float
    models: NotRequired[dict[str, Prices]]


class SessionNews(TypedDict):
    """Which session is watched from now on, or how it changed; `id` null: none yet.

    `since`: up to which record the client has it. `now`: the server's clock, so that a client whose own differs can
    count right. `levels`: those of its policy, by name. `last`: its newest record. `readonly`: it can only be looked at;
    `example`: it comes with the product; `foreign`: why this installation did not make it. `opening`: only its end is
    known yet. `role`, `owner`: of a session of another user, what the client is to it, and the owner's name.
    """

    type: Literal["session"]
    id: str | None
    since: int
    model: NotRequired[str]
    now: NotRequired[str]
    intent: NotRequired[float]
    levels: NotRequired[dict[str, float]]
    journal: NotRequired[str]
    last: NotRequired[int]
    readonly: NotRequired[bool]
    opening: NotRequired[bool]
    example: NotRequired[bool]
    foreign: NotRequired[str]
    role: NotRequired[Role]
    owner: NotRequired[str]
    prices: NotRequired[Prices]


class Node(TypedDict):
    """An agent or a plan. Token counts are its own.

    `paused`: it is paused itself; in `state`, also one below an agent that is. `ended`: what its last work fell short
    of. One that waits for children names them in `awaited`, and says in `awaited_of` for how many it waits, those that
    have replied included. One that works on a budget has `allowance`, `left` of it, and `lent`, what is set aside for
    children. `calls`: records of the calls of functions that run for it; `queued`: records of what a person said that it
    has not begun to answer.
    """

    path: str
    name: str
    caller: str
    kind: Literal["agent", "plan"]
    state: NodeState
    paused: bool
    doing: str
    turns: int
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    record: int
    ended: NotRequired[str]
    awaited: NotRequired[list[str]]
    awaited_of: NotRequired[int]
    allowance: NotRequired[int]
    left: NotRequired[int]
    lent: NotRequired[int]
    calls: NotRequired[list[int]]
    queued: NotRequired[list[int]]


class Budget(TypedDict):
    """The session's tokens; `exhausted`: the root can't have one more turn. `money`: what it may cost, if there is a
    bound, and `cost`: what it came to."""

    tokens: int
    used: int
    exhausted: bool
    cost: NotRequired[float]
    money: NotRequired[float]


class TreeNews(TypedDict):
    """Every agent and plan; with `at`, as they were after that record. `modules`: how many run."""

    type: Literal["tree"]
    nodes: list[Node]
    at: NotRequired[int | None]
    modules: NotRequired[int]
    lockdown: NotRequired[bool]
    budget: NotRequired[Budget]


class YouNews(TypedDict):
    """Who the client is, on a server with accounts. `guest`: the holder of a link, who sees one session."""

    type: Literal["you"]
    name: str
    admin: bool
    guest: bool


RecordNews: TypeAlias = Record
"""One record, with `type` `record`."""


class RecordsNews(TypedDict):
    """Several records in order; `apart`: older ones on which something still depends."""

    type: Literal["records"]
    list: list[Record]
    apart: NotRequired[list[Record]]


class RenderedNews(TypedDict):
    """Records that are shown in another way, now that more is known."""

    type: Literal["rendered"]
    list: list[Html]


class DeltaNews(TypedDict):
    """A piece of what a model writes. `thought`: of what it thinks before it replies; `restart`: what came before is void."""

    type: Literal["delta"]
    agent: str
    text: str
    restart: NotRequired[bool]
    thought: NotRequired[bool]


class ActivityNews(TypedDict):
    """What the model of an agent does `since` when: `asking`, `reasoning`, `writing`; or what keeps it.

    That is `limited` (its endpoint counts requests), `retrying`, `stalled` (nothing comes in the middle of a reply) or
    `slot` (others are served first). With an empty `state` it is not asked any more. One that waits says `until` when,
    which `attempt` comes next `of` how many, and `why`. Times are ISO 8601, UTC.
    """

    type: Literal["activity"]
    agent: str
    state: ActivityState
    since: str
    until: NotRequired[str]
    attempt: NotRequired[int]
    of: NotRequired[int]
    why: NotRequired[str]


class OutputNews(TypedDict):
    """What a running function prints; `call`: the record of its call."""

    type: Literal["output"]
    agent: str
    call: int
    text: str


class NoticeNews(TypedDict):
    """A sentence for the person. With `level` `error`: why the session has stopped."""

    type: Literal["notice"]
    text: str
    level: NotRequired[Literal["error"]]


class SessionsNews(TypedDict):
    """The list that `sessions` asked for."""

    type: Literal["sessions"]
    total: int
    deleted: int
    list: list[SessionRow]


class StandingNews(TypedDict):
    """A session changed. Without a `state`, the list is to be asked for again."""

    type: Literal["standing"]
    session: str
    state: NotRequired[SessionState]
    since: NotRequired[str]
    what: NotRequired[str]


class RefusedNews(TypedDict):
    """The session whose end is shown can't be opened."""

    type: Literal["refused"]
    code: str
    message: str


class ErrorAnswer(TypedDict):
    """A request was refused: `code` is for programs, `message` a sentence for people."""

    type: Literal["error"]
    id: str | int | None
    code: str
    message: str


News: TypeAlias = (
    SessionNews
    | TreeNews
    | RecordsNews
    | RenderedNews
    | DeltaNews
    | ActivityNews
    | OutputNews
    | NoticeNews
    | SessionsNews
    | StandingNews
    | RefusedNews
    | YouNews
)
"""What comes unasked, but for single records."""
