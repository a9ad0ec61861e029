"""What the server sends: answers, and news about the watched session and the list of sessions."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from iact.accounts.rights import Role
from iact.core.views.events import ActivityState
from iact.core.views.status import SessionState
from iact.core.views.view import NodeState
from iact.web.wire.answers import Html, Record, SessionRow


class Prices(TypedDict):
    """The price of a million tokens. `models`: models with other prices, by name."""

    prompt: float
    cached: float
    completion: float
    models: NotRequired[dict[str, Prices]]


class SessionNews(TypedDict):
    """Which session is watched from now on, or how it changed; `id` null: none yet.

    `since`: the last record that the client has. `now`: the server's clock, so that a client whose clock differs can
    compute durations. `levels`: the intent levels of its policy, by name. `last`: its newest record. `readonly`: it can
    only be viewed. `example`: it comes with the product. `foreign`: why this installation does not accept it as its
    own. `opening`: only its end has been read so far. `role`, `owner`: for another user's session, the client's role in
    it and the owner's name. `small`: names of its models, now or earlier, that are small and often wrong; without a
    session, those that would answer.
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
    small: NotRequired[list[str]]


class Node(TypedDict):
    """An agent or a plan. Token counts are its own, without those of its children.

    `paused`: it is paused itself; in `state`, an agent below a paused one counts as paused, too. `ended`: how its last
    task ended, if it finished incompletely. An agent that waits for children names them in `awaited`; `awaited_of` is
    how many replies it waits for, including those that have arrived. An agent that works on a budget has `allowance`,
    `left` of it, and `lent`, the part that is set aside for children. `calls`: records of the function calls that run
    for it. `queued`: records of messages from a person that it has not begun to answer.
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
    """The session's tokens. `exhausted`: the root can't have another turn. `money`: the most that the session may cost,
    if there is a limit; `cost`: what it has cost so far."""

    tokens: int
    used: int
    exhausted: bool
    cost: NotRequired[float]
    money: NotRequired[float]


class TreeNews(TypedDict):
    """Every agent and plan; with `at`, as they were after that record. `modules`: how many modules run."""

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
    """Several records in order. `apart`: older records that something still depends on."""

    type: Literal["records"]
    list: list[Record]
    apart: NotRequired[list[Record]]


class RenderedNews(TypedDict):
    """Records whose HTML has changed, now that more is known."""

    type: Literal["rendered"]
    list: list[Html]


class DeltaNews(TypedDict):
    """A piece of what a model writes. `thought`: it is part of the model's thinking before its reply; `restart`: what
    came before is void."""

    type: Literal["delta"]
    agent: str
    text: str
    restart: NotRequired[bool]
    thought: NotRequired[bool]


class ActivityNews(TypedDict):
    """What the model of an agent has been doing `since` a time: `asking`, `reasoning` or `writing`; or what delays it.

    A delay is `limited` (its endpoint limits requests), `retrying`, `stalled` (a reply has stopped arriving) or `slot`
    (others are served first). With an empty `state`, the model is no longer being asked. A model that waits says
    `until` when, which `attempt` comes next `of` how many, and `why`. Times are ISO 8601, UTC.
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
    """The output of a running function. `call`: the record of its call."""

    type: Literal["output"]
    agent: str
    call: int
    text: str


class NoticeNews(TypedDict):
    """A sentence for the user. With `level` `error`: why the session has stopped."""

    type: Literal["notice"]
    text: str
    level: NotRequired[Literal["error"]]


class BoardNews(TypedDict):
    """How far the model on board is that answers without an endpoint; `phase` empty: none is in use.

    `done` of `total` bytes of its file are here while it is `downloading`. `failed`: it can't come; `why` is a sentence.
    """

    type: Literal["board"]
    phase: Literal["", "waiting", "downloading", "checking", "loading", "ready", "failed"]
    done: int
    total: int
    why: str


class UploadingNews(TypedDict):
    """How much of the announced file is here: `arrived` bytes, of which `taken` no longer wait behind other messages.

    The client keeps few bytes on their way beyond those that are `taken`.
    """

    type: Literal["uploading"]
    arrived: int
    taken: int


class SessionsNews(TypedDict):
    """The list that was requested with `sessions`."""

    type: Literal["sessions"]
    total: int
    deleted: int
    list: list[SessionRow]


class StandingNews(TypedDict):
    """A session changed. Without a `state`, the client should request the list again."""

    type: Literal["standing"]
    session: str
    state: NotRequired[SessionState]
    since: NotRequired[str]
    what: NotRequired[str]


class RefusedNews(TypedDict):
    """The session whose end is already shown can't be opened."""

    type: Literal["refused"]
    code: str
    message: str


class ErrorAnswer(TypedDict):
    """A request was refused: `code` is for programs, `message` is a sentence for people."""

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
    | BoardNews
    | UploadingNews
)
"""Everything that the server sends unasked, except single records."""
