"""What a client may send over the websocket: one model per message type, checked at the border.

What the `ok` of each has is a type in `answers`; `web/commands.py` says which.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from iact.core.ports import Medium
from iact.core.records.control import InjectMode
from iact.core.records.ways import PlanWay, Way
from iact.core.session.text_search import Whose
from iact.web.ports import RoleChoice, RoleTerms

Text = Annotated[str, StringConstraints(pattern=r"\S")]
AgentPath = Annotated[str, StringConstraints(pattern=r"^/", max_length=2048)]


StepId = Annotated[str, StringConstraints(min_length=1, max_length=100)]
"""The id of a step of a plan."""

TemplateName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""The name of a kept plan."""

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=16_384)]

MemoryId = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class Message(BaseModel):
    """Unknown fields are ignored, so that a newer page can talk to an older server."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Hello(Message):
    """Watch `session` from behind record `since`; null: a new session, which begins with the first `say`.

    A session that this installation did not make is shown as after `open`: its `session` message has `readonly`, and
    `foreign`, the reason in words. `adopt` makes one of one's own of it.

    `lazy`: of the records that are there already, the newest come first, in one message `records {list, apart}`, as
    many as hold the newest messages of the agent at `path`. `apart` are older ones on which something still hangs:
    questions without an answer, calls that run, messages that wait. What is before comes afterwards, in messages
    `records` from the newest to the oldest, each in order of its numbers, while news comes between them. Most
    come without `html`; the client asks for it with `render`. A client that comes back says in `first` from which
    number on it has all up to `since`.
    """

    session: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    since: int = Field(default=0, ge=0)
    first: int = Field(default=1, ge=1)
    path: AgentPath = "/"
    lazy: bool = False


class ShowSource(Message):
    """`source`: what record `n` of the watched session says, as it was written. The `ok` has `text`.

    `plain`: to be shown whole, so without what a terminal would take for a command, and of a result what is stored
    beside the journal; the `ok` then says in `more` how many characters were too many to be sent.
    """

    n: int = Field(ge=1)
    plain: bool = False


class Render(Message):
    """The HTML of some records of the watched session.

    The `ok` has `list`, each with `n`, `html`, and for a turn `messages`.
    """

    numbers: Annotated[list[int], Field(max_length=400)]


class Open(Message):
    """Look at a stored session without running or changing it, from behind record `since`; `first`, `path`, `lazy` as
    in `hello`.

    `journal`: a session's id, an example's, or the path of a directory or journal below the data directory's
    sessions. From then on the connection is as after `hello`, but the `session` message has `readonly` (and `example`
    for one), there is no news, and what would change the session is refused.
    """

    journal: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    since: int = Field(default=0, ge=0)
    first: int = Field(default=1, ge=1)
    path: AgentPath = "/"
    lazy: bool = False


class Budget(Message):
    """Let the watched session use `tokens` more, or cost `money` more. What could not be afforded is answered now."""

    tokens: int = Field(default=0, ge=0, le=10**12)
    money: float = Field(default=0.0, ge=0, le=10**9)


class Compress(Message):
    """Have the root's history summarized and cut, so that its turns take fewer tokens."""


class Summary(Message):
    """What a new session must know to go on from the watched one.

    The `ok` has `text`: a summary that a model wrote, and messages that were not answered.
    """


class Seek(Message):
    """Show the tree as it was behind record `at`; null: as it is now.

    Before the `ok` with `at` there comes one `tree` message that has `at` as well. What happens meanwhile
    is sent on as ever, so `tree` messages without `at` are about now.
    """

    at: int | None = Field(default=None, ge=1)


class Fork(Message):
    """Make a new session that shares records 1…`at` of the watched one, say `text` there, and watch it.

    What was under way at `at` is dropped there; with `run`, it comes to its end first, and `text` is read after it. The
    `ok` has `session`, the new one's id, and `n`.
    """

    at: int = Field(ge=1)
    text: Text
    run: bool = False


class Adopt(Message):
    """Make a session of one's own of records 1…`at` (null: all) of the watched foreign one, and watch it.

    It has copies of its files, and none of its rights: intent, scope and policy are those of a new session, and
    nothing that was under way is carried out. The `ok` has `session`, the new one's id.
    """

    at: int | None = Field(default=None, ge=1)


class ShowContext(Message):
    """Exactly what a model saw: the newest turn of agent `path` at or before record `at` (null: now).

    The `ok` has `agent`, `record` (which holds the model's reply) and `messages`, each with `role`, `text`,
    `size` in characters, `left_out` of them if the text was too long to be sent, and `reused`: it stood in
    the context before, byte for byte.
    """

    path: AgentPath
    at: int | None = Field(default=None, ge=1)


class ListVariables(Message):
    """The variables of agent `path` behind record `at` (null: now), the newest first.

    The `ok` has `list`, each with `name`, `media`, `size` in bytes, `origin` and `labels`, its provenance.
    """

    path: AgentPath
    at: int | None = Field(default=None, ge=1)


class ShowVariable(Message):
    """The content of one variable.

    The `ok` has what `variables` lists, and `sha256`, `text` (null if the content is no text), and `left_out`.
    """

    path: AgentPath
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
    at: int | None = Field(default=None, ge=1)


class Say(Message):
    """Speak to the root. In another `mode` than a dialogue, `text` is the goal of a plan, whose report is the reply.

    `plan_first`: that plan is written, and then waits for a person.
    """

    text: Text
    mode: Way = "dialogue"
    plan_first: bool = False


class Foresee(Message):
    """How `auto` would have `text` worked on if it were said now.

    The `ok` has `mode`, `why` and, where a model was asked, it is not asked again when this text is said.
    """

    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=20_000)]


class Inject(Message):
    """The user writes into the dialogue of agent `path`; of a plan, to all of it, or about one `step`.

    As `interrupt` it also ends the calls that run for the agent, unless `calls` is false.
    """

    path: AgentPath
    text: Text
    mode: InjectMode = "deliver"
    step: StepId | None = None
    calls: bool = True


class OnQueued(Message):
    """`queue.send` and `queue.remove`: the message of record `n`, which waits for agent `path`, is read now, or never.

    `queue.send` stops what the agent writes; what it called ends first.
    """

    path: AgentPath = "/"
    n: int = Field(ge=1)


class EditQueued(OnQueued):
    """`queue.edit`: the message of record `n`, which waits for agent `path`, says `text` instead."""

    text: Text


class StopCalls(Message):
    """`calls.stop`: end the calls that run for agent `path` and below; the agents go on with what these have given."""

    path: AgentPath


class Upload(Message):
    """A file comes, in binary frames behind the `ok`, `size` bytes in all; `upload.end` follows them.

    `archive`: it is a session, and `session.import` follows; it is stored on disk while it comes, and may be larger.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    media: Annotated[str, StringConstraints(max_length=200)] = ""
    size: int = Field(ge=0)
    archive: bool = False


class EndUpload(Message):
    """All of a file was sent. The `ok` has `n` and `name`, the variable that the root has from its next turn on."""


class Download(Message):
    """The content of one variable as a file. The `ok` has `href`, an address that can be fetched once."""

    path: AgentPath
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
    at: int | None = Field(default=None, ge=1)


class Export(Message):
    """The watched session up to record `at` (null: all) as one HTML page; the `ok` has `href` as for `download`."""

    at: int | None = Field(default=None, ge=1)


class About(Message):
    """What is in force and what works on the server's machine.

    The `ok` has `settings`, pairs of name and value, and `checks`, each with `check`, `ok`, `detail`, `remedy`.
    """


class NewAddress(Message):
    """An address of the page for one more browser, good for one sign-in within ten minutes. The `ok` has `url`."""


class ListExamples(Message):
    """Recorded sessions to look at. The `ok` has `list`, each with `id`, for `open`, and `title` and `about`."""


class OnAgent(Message):
    """`pause`, `resume` and `cancel`; of a plan, one `step` alone if it is named."""

    path: AgentPath
    step: StepId | None = None


class StartPlan(Message):
    """`plan.start`: let the plan `path` begin, which was written and waits for a person to look at it."""

    path: AgentPath


class EditPlan(Message):
    """`plan.edit`: other steps for what has not started of a plan that waits or is paused; `text`: all of it, as YAML.

    It makes a version by the user.
    """

    path: AgentPath
    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=1 << 20)]


class RetryStep(Message):
    """`plan.retry`: let a step that came to nothing run once more, with what needed it, also of a plan that has ended."""

    path: AgentPath
    step: StepId


class ShowPlan(Message):
    """`plan.text`: a plan as a person would write it. The `ok` has `text`, YAML as `plan.edit` takes it."""

    path: AgentPath


class SavePlan(Message):
    """`plan.save`: keep a plan as the template `name`, for `PLAN from=NAME` and `plan.run`. The `ok` has `file`."""

    path: AgentPath
    name: TemplateName


class ListPlans(Message):
    """`plans`: the templates that there are. The `ok` has `list`, their names."""


class RunPlan(Message):
    """`plan.run`: begin a plan below the root, from the template `name`. `plan_first`: it waits until it is started.

    The `ok` has `path`, the plan's, and `n`.
    """

    name: TemplateName
    mode: PlanWay = "static"
    plan_first: bool = False


class Remember(Message):
    """A rule that a person makes of a yes: patterns of the function, and of arguments by name."""

    function: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    arguments: dict[str, str] = {}


class Clear(Message):
    """Answer the call that waits for clearance since record `call`.

    `also`: records of other questions that are one with it (the same function, for the same reason, of one origin), and
    that were shown with it: all are answered in the same way, or none. What was not listed is not answered.
    `remember`: of a yes, "call" for exactly this call from now on, or a rule; null: it is good for this once.
    `why`: of a no, what the agent that asked is told in the user's words, as by `inject`.
    `for`: where the record asks whether a module may reach a host, how long a yes holds.
    """

    call: int = Field(ge=1)
    allow: bool
    also: Annotated[list[Annotated[int, Field(ge=1)]], Field(max_length=32)] = []
    remember: Literal["call"] | Remember | None = None
    why: Text | None = None
    lasts: Literal["once", "session", "always"] | None = Field(default=None, alias="for")


class AnswerForm(Message):
    """Answer what a module asks since record `ask`. `values`: what was filled in, by field; it goes to the module."""

    ask: int = Field(ge=1)
    accept: bool
    values: Annotated[
        dict[
            Annotated[str, StringConstraints(max_length=100)],
            Annotated[str, StringConstraints(max_length=10_000)] | bool | int | float | list[str],
        ],
        Field(max_length=50),
    ] = {}


class Lockdown(Message):
    """Deny every call of the session from now on, or end that."""

    value: bool


class Declassify(Message):
    """The user vouches for variable `name` of agent `path`; without a name, for all that the agent has read so far."""

    path: AgentPath
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None


class Restore(Message):
    """Put the files back to `version`: the beginning of its id, or the number of a record."""

    version: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{1,40}$")]


class SetIntent(Message):
    value: Annotated[float, Field(ge=0, le=2)]

    @field_validator("value", mode="before")
    @classmethod
    def _not_a_truth_value(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("it must be a number from 0 to 2")
        return value


class SearchMemory(Message):
    """What the user's memory holds about `query`; without one, what was remembered last.

    The `ok` has `results`, best first, each with `id`, `text`, `kind`, `score`, `at`, `session`, `agent`,
    `why`, `untrusted`, `contradicts`, and `current`: false for what something newer has replaced.
    """

    query: Annotated[str, StringConstraints(max_length=4096)] = ""
    limit: int = Field(default=20, ge=1, le=200)


class ShowMemory(Message):
    """All that is known of one memory: the `ok` has it as `memory`, null if there is none."""

    memory: MemoryId


class ForgetMemories(Message):
    """Remove memories for good, with all that came from the same records; the `ok` has `count`."""

    memories: Annotated[list[MemoryId], Field(min_length=1, max_length=1000)]


class EditMemory(Message):
    """Let one memory read as `text`, in one line and for good; the `ok` has it as `memory`.

    Nothing is left of the old text: not in the store, nor in its index, nor after a rebuild. What was distilled
    from it goes. Where the memory came from, and whether it is untrusted, stays as it is.
    """

    memory: MemoryId
    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=4096)]


class RebuildMemory(Message):
    """Empty the memory and fill it from all journals; the `ok`, which can take long, has `count`."""


class ListModules(Message):
    """The catalogue of modules. The `ok` has `list`, each as `iact module describe --json` prints it."""


class AddModule(Message):
    """Add the module at `source`: the path of a folder or a Python file on the server's machine, or an image there.

    With a `name`, `source` is the Python source itself, and the module is named so. The `ok` has `module`, as
    `iact module list --json` prints it. Nothing of it is approved by that.
    """

    source: Annotated[str, StringConstraints(min_length=1)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None


class RemoveModule(Message):
    """Take a module out of the catalogue; every open session loses its functions."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class ListHosts(Message):
    """The hosts that modules may reach in this session without a question; the `ok` has them as `list`."""


class AllowHosts(Message):
    """Let a module reach hosts, or take that back (`remove`); the `ok` has all of them as `list`.

    A host is a name (ports 80 and 443), `*.domain`, `host:port`, or `*` for every public host. `for`: this session, or all.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    hosts: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=300)], ...],
        Field(min_length=1, max_length=50, strict=False),
    ]
    lasts: Literal["session", "always"] = Field(default="session", alias="for")
    remove: bool = False


class ApproveModule(Message):
    """Approve `functions` of a module, or its whole manifest and what it needs if none is named.

    `digest`: what the person looked at; another version than that is not approved. The `ok` has `module`.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    functions: Annotated[tuple[str, ...], Field(max_length=100, strict=False)] = ()
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]


# --- time --------------------------------------------------------------------------------


class ShowTimeline(Message):
    """What each agent did when, and what the root's answers waited for.

    The `ok` has `started` (the time of the first record), `ms` (from there to the last), `agents` (paths, in order of
    creation), and `spans`, each `[agent, kind, begin, end, n, label, critical]`: the agent's place in `agents`; model,
    tool, wait, approval or paused; milliseconds since `started`, `end` null for what goes on; the record that tells of
    it; what it was; and whether the critical path of an answer goes through it. `critical`: milliseconds of work on
    critical paths; `more`: short ones that are not told.
    """


# --- files --------------------------------------------------------------------------------


class ListFiles(Message):
    """What is in the session's workspace; `at`: as it was after that record, null: as it is now.

    The `ok` has `list`, each with `path` ("%XX" for bytes that a text can't hold), `kind` (file, link, folder if it is
    empty, other), `size` and, as far as versions tell, `n`, the record that changed it last. `more`: how many are not
    told. `n`: the record of the version that is shown, or of the newest one; `unkept`: a call that wrote after that,
    and could not be kept; `folder`: where the files are, if that is a directory of the user's; `why`: why nothing is
    known of the past, in words.
    """

    at: int | None = Field(default=None, ge=1)


class ListChanges(Message):
    """What each call changed, up to record `at` (null: the last).

    The `ok` has `list`, newest first, each with `n`, `at` (the time), `agent`, `function`, `paths` (each `path` and
    `kind`: add, modify, delete) and `more`, how many are not told; `earlier`: how many calls are not.
    """

    at: int | None = Field(default=None, ge=1)


class ShowFile(Message):
    """What a file holds, as it was after record `at` (null: now).

    The `ok` has `path`, `kind`, `size`, `n` (the record that changed it last) and `show`: "text" (with `text`, and
    `left_out` characters of its middle), "table" (with `rows` as well, and how many `more_rows`), "image" (with `media`;
    fetch it with `file.download`), "link" (with `target`), "large" or "binary".
    """

    path: FilePath
    at: int | None = Field(default=None, ge=1)


class CompareFile(Message):
    """What changed in a file from record `since` (0: before the first version) to record `at` (null: the last).

    The `ok` has `text`, hunks of a unified diff or a sentence, empty if nothing changed, and `added` and `removed`,
    lines or null.
    """

    path: FilePath
    since: int = Field(default=0, ge=0)
    at: int | None = Field(default=None, ge=1)


class FetchFile(Message):
    """A file as it was after record `at` (null: now), to be downloaded once from the `href` in the `ok`."""

    path: FilePath
    at: int | None = Field(default=None, ge=1)


class Mentioned(Message):
    """Words of a text that may be files, and the record after which it was written."""

    at: int = Field(ge=1)
    words: Annotated[list[FilePath], Field(max_length=100)]


class FindFiles(Message):
    """Which words of some texts are files of the workspace, as it was when they were written.

    The `ok` has `list`, for each text that names any: `at`, `files` (for each word its `path`), and `shown`: the record
    to ask with for what they held, null where only those of now can be shown.
    """

    texts: Annotated[list[Mentioned], Field(max_length=200)]


class FetchAll(Message):
    """All files as they were after record `at` (null: now) as a zip archive, to be downloaded once.

    The `ok` has `href`, `count`, `bytes`, and `left_out`: how many links and other things are not in it.
    """

    at: int | None = Field(default=None, ge=1)


# --- changes that wait for a review --------------------------------------------------------------------------------

_COUNTED = 200
"""Paths whose lines are counted in one message."""


class ListPending(Message):
    """The changes of the user's directory that wait, by path, from number `start` on and at most `count`.

    The `ok` has `total`, `at` (the last record), and `list`, each with `path`, `kind` (add, modify, delete), `was` and
    `now` (each `type`, `mode`, `size`, `content`, `target`; as far as there is one), `conflict` (true: somebody changed
    it in the directory meanwhile), `impact` and `why` of the change by itself, `held` and `reason` why it waits, `n`
    (the record that told of its present form), `calls`, `agents` and `labels` that it comes from, and for a file that
    looks renamed `from` or `to`.
    """

    start: int = Field(default=0, ge=0)
    count: int = Field(default=1000, ge=0, le=2000)


class ShowPatch(Message):
    """One change that waits: the `ok` has `text`, a unified diff, and `added` and `removed`, lines or null."""

    path: FilePath


class CountLines(Message):
    """The `ok` has `list`, each with `path`, `added` and `removed`: lines, or null where there are none to count."""

    paths: Annotated[list[FilePath], Field(max_length=_COUNTED)]


class Apply(Message):
    """Make changes real: `paths`, with what is in them and what they need, or all (null).

    `force`: also over what somebody changed in the directory meanwhile. `at`: the last record that the person had
    seen; a change that is newer is not applied. The `ok` has `n`, `done` (how many), `left` and `notes`, each with
    `path`, `outcome` (applied, conflict, failed) and `why`.
    """

    paths: list[FilePath] | None = None
    force: bool = False
    at: int | None = Field(default=None, ge=1)


class Drop(Message):
    """Forget changes: `paths`, with what is in them, or all (null). `at`, and the `ok`, as with `apply`."""

    paths: list[FilePath] | None = None
    at: int | None = Field(default=None, ge=1)


# --- sessions --------------------------------------------------------------------------------

SessionId = Annotated[str, StringConstraints(min_length=1, max_length=200)]

Sessions = Annotated[list[SessionId], Field(min_length=1, max_length=1000)]


class ListSessions(Message):
    """The stored sessions, the one that changed last first. They come in a message `sessions` before the `ok`.

    It has `list`, at most `limit` (null: all) and always those that are pinned, wait for a person or are open; `total`,
    how many there are; and `deleted`, how many are in the trash. Each has `id`, `title`, `created`, `changed`,
    `records`, `open`, `foreign`, `state` (`idle`, `working`, `waits`, `paused`, `failed`, `unfinished`), `since` when,
    `what` it waits for, `pinned`, `named`, and `source` and `at` where it is a fork.

    From then on, messages `standing` tell when one changes: `session`, and `state`, `since` and `what` while it is open.
    Without a `state`, the list is to be asked for again.
    """

    limit: int | None = Field(default=None, ge=1)


class SearchSessions(Message):
    """Sessions whose title, or a message or output in them, holds all words of `query`, the one that changed last first.

    The `ok` has `list`, each as in `sessions`, with `hit` where it was found in the text: the newest place with `n`,
    `agent`, `kind`, `before`, `match`, `after`, and the `count` of places. `behind`: how many sessions are still to be
    read, which happens by itself.
    """

    query: Annotated[str, StringConstraints(pattern=r"\S", max_length=1000)]
    limit: int = Field(default=50, ge=1, le=300)


class RenameSession(Message):
    """`session.rename`: give a session a name; empty takes it away. The `ok` has `title`."""

    session: SessionId
    title: Annotated[str, StringConstraints(max_length=1000)]


class PinSession(Message):
    """`session.pin`: keep a session at the top of lists, and from being deleted for its age; or don't."""

    session: SessionId
    pinned: bool


class OnSessions(Message):
    """`session.delete`: move sessions to the trash; those that are open are closed. `session.restore`: move them back.
    `session.purge`: remove what is in the trash for good.

    The `ok` has `sessions`, those of which it was done; `refused`, why it was not, by session; and `note`, what is still
    to be done.
    """

    sessions: Sessions


class ListDeleted(Message):
    """`session.deleted`: what is in the trash. The `ok` has `list`, each with `id`, `title`, `deleted` and `records`."""


class ArchiveSession(Message):
    """`session.archive`: a session with its files as one compressed tar archive. The `ok` has `href` as for `download`."""

    session: SessionId


class ImportSession(Message):
    """`session.import`: the file that was uploaded is such an archive, and no variable: take it in as a session.

    It stands in place of `upload.end`. The `ok` has `session`, `foreign`, why it is not this installation's (empty if it
    is), and `left_out`, how much did not come along.
    """


class Find(Message):
    """Where `text` is in the watched session up to record `at` (null: all), upper and lower case alike.

    `agent`: only in its dialogue. `whose`: `user`, `agents` or `tools`; empty: anybody's. The `ok` has `count`, how many
    records hold it, and `list`, of the first 2,000, each with `n`, `agent`, `kind`, `before`, `match`, `after`, `count`.
    """

    text: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    agent: AgentPath | None = None
    whose: Whose = ""
    at: int | None = Field(default=None, ge=1)


# --- models and first messages --------------------------------------------------------------------------------

RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]

Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=2000)]

Price = Annotated[float, Field(strict=False, ge=0, le=1_000_000, allow_inf_nan=False)]

_LONGEST: Final = 20_000


class ListRoles(Message):
    """Which model plays which role.

    The `ok` has `list`, each with `role`, `url` ("" for the embedded one), `model`, `context`, `key` (whether it has
    one; a key is never told), `dialect`, `takes`, the prices as `model.choose` takes them, and `own`: chosen for this
    role, and not as for all.
    """


class ChooseRole(Message):
    """A model plays a role from the next message on, in every session; it is written into the data directory's `iact.toml`.

    `key` is kept among the secrets; null: as before, which holds at the same `url` only; "": none. `context`: its
    window in tokens. `dialect`: "tools" if it insists on function calls. `takes`: media that it understands beside
    text. Prices: of a million tokens that it reads anew, that its endpoint had in its cache, that it writes. Null: as
    for all.
    """

    role: RoleName
    url: Url
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    context: Annotated[int, Field(ge=512, le=100_000_000)] | None = None
    key: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(default=None, repr=False)
    dialect: Literal["text", "tools"] | None = None
    takes: Annotated[list[Medium], Field(max_length=2)] | None = None
    price_prompt: Price | None = None
    price_cached: Price | None = None
    price_completion: Price | None = None

    @property
    def choice(self) -> RoleChoice:
        terms = RoleTerms(
            dialect=self.dialect,
            takes=None if self.takes is None else tuple(self.takes),
            price_prompt=self.price_prompt,
            price_cached=self.price_cached,
            price_completion=self.price_completion,
        )
        return RoleChoice(
            role=self.role, url=self.url, model=self.model, context=self.context, key=self.key, terms=terms
        )


class TryRole(ChooseRole):
    """Ask such a model for one word, and change nothing.

    The `ok` has `names` of the models that its endpoint lists, `model`, the one that was asked, `answer`, `ms`, and
    `fault`: why there is no answer.
    """


class ForgetRole(Message):
    """A role has no model of its own any more, and is played by the one for all."""

    role: RoleName


class ListFirstMessages(Message):
    """What sessions often begin with. The `ok` has `list`, each with `name` and `text`."""


class KeepFirstMessage(Message):
    """Keep a text as what sessions often begin with, in place of one of the same name."""

    name: Annotated[str, StringConstraints(pattern=r"\S", max_length=80)]
    text: Annotated[Text, StringConstraints(max_length=_LONGEST)]


class ForgetFirstMessage(Message):
    """Forget one of them."""

    name: Annotated[str, StringConstraints(max_length=80)]


# --- people (servers with accounts) -----------------------------------------------------------------------------

PersonName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Days = Annotated[float, Field(strict=False, gt=0, le=3660, allow_inf_nan=False)]


class ShowSharing(Message):
    """Who else may see the watched session, or steer it, and by which links.

    The `ok` has `grants`, each with `name`, `group` and `role`, `links`, and `public`: whether a link can be made that
    works without an account.
    """


class ShareWith(Message):
    """Make a user, or with `group` everybody in a group, a reader or a steerer of the watched session."""

    name: PersonName
    group: bool = False
    role: Literal["reader", "steerer"] = "reader"


class Unshare(Message):
    """Take that back."""

    name: PersonName
    group: bool = False


class CreateLink(Message):
    """Make a link to the watched session. The `ok` has its `path` on this server, which is told this once, and `link`, its id.

    `at`: it shows the session up to this record; null: as it goes on. `hides`: "files", and "gate" for what the gate
    decided. `variables`: those whose content it leaves out, and every record in which that stands. `public`: it works
    without an account.
    """

    days: Days = 7.0
    at: int | None = Field(default=None, ge=1)
    hides: Annotated[list[Literal["files", "gate"]], Field(max_length=2)] = []
    variables: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=100)
    ] = []
    public: bool = False


class RevokeLink(Message):
    """A link lets nobody in any more."""

    link: Id


class ListShared(Message):
    """What others share with this user. The `ok` has `list`, each with `id`, `title`, `owner` and `role`."""


class ShowAccount(Message):
    """Who this is: `name`, `admin`, `tokens`, `sign_ins` and `scopes` that a token can have. No secret is among them."""


class CreateToken(Message):
    """Make an API token. The `ok` has `secret`, which is told this once, and `token`, its id."""

    name: Annotated[str, StringConstraints(pattern=r"\S", max_length=64)]
    scopes: Annotated[
        list[Literal["sessions:read", "sessions:write", "clear", "admin"]], Field(min_length=1, max_length=4)
    ]
    days: Days = 90.0


class RevokeToken(Message):
    """A token lets nobody in any more."""

    token: Id


class SignOut(Message):
    """End a sign-in of this user's; null: all of them, this one too."""

    sign_in: Id | None = None


class ShowUsage(Message):
    """What was used, by month. The `ok` has `list`, each with `user`, `period`, `resource`, `used` and `most` (null: no
    quota). `everybody`: of all users, for administrators."""

    everybody: bool = False


class ListUsers(Message):
    """Everybody with an account: `list`, each with `name`, `admin`, `groups`, `disabled` and `seen`."""


class AddUser(Message):
    """Make an account. Without a password it is for whom a proxy or a provider vouches."""

    name: PersonName
    password: Annotated[str, StringConstraints(max_length=1024)] | None = Field(default=None, repr=False)
    admin: bool = False


class ChangeUser(Message):
    """Change an account; what is null stays. Who is disabled is signed out everywhere; what is theirs stays."""

    name: PersonName
    password: Annotated[str, StringConstraints(max_length=1024)] | None = Field(default=None, repr=False)
    admin: bool | None = None
    disabled: bool | None = None
    groups: Annotated[list[PersonName], Field(max_length=100)] | None = None


class ShowEverybody(Message):
    """What is set for everybody: `modules`, as `modules` lists a user's own, and the names of `secrets`."""


class AddModuleOfEverybody(AddModule):
    """Add a module for everybody, as `module.add` adds one's own. Nothing of it is approved by that."""


class RemoveModuleOfEverybody(RemoveModule):
    """Take a module away from everybody, and what was approved of it."""


class ApproveModuleOfEverybody(ApproveModule):
    """Approve functions of a module for everybody, as `module.approve` approves one's own."""


SecretName = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class SetSecret(Message):
    """Store a secret, which the modules that are set for everybody are given if they were approved with it.

    No message tells its value, and no module of a user's own is given it.
    """

    name: SecretName
    value: Annotated[str, StringConstraints(max_length=40_000)] = Field(repr=False)


class RemoveSecret(Message):
    """Remove such a secret."""

    name: SecretName


class ListSecrets(Message):
    """The names of this user's secrets: `list`, which their own modules are given, and `lent`, see `secret.set`."""


class SetOwnSecret(SetSecret):
    """Store a secret of this user's, which their own modules are given if they were approved with it.

    No message tells its value. With `lent` it is given to the modules that are set for everybody, when this user calls
    them, in place of everybody's secret of that name; and to none of their own.
    """

    lent: bool = False


class RemoveOwnSecret(RemoveSecret):
    """Remove such a secret."""

    lent: bool = False


class ShowPolicy(Message):
    """The policy: `text`, as its file has it; empty where there is none."""


class ChangePolicy(Message):
    """Put `text` in place of the policy, if it is one, and the policy still is what it `was`.

    It holds for sessions that begin, or are opened again.
    """

    text: Annotated[str, StringConstraints(max_length=500_000)]
    was: Annotated[str, StringConstraints(max_length=500_000)]


class ShowAudit(Message):
    """Who signed in, or failed to, and who changed what about people: `list`, the newest first, never content."""

    most: int = Field(default=200, ge=1, le=2000)


class ExportAudit(Message):
    """All that the audit has, of sessions, too, as a file to be downloaded: a line of JSON for each decision, the oldest
    first, never content. `since`: a date or a time, UTC; `who`: of this user alone; `what`: of one kind
    (`call.denied`), or of several (`user`). That it was exported is in the audit."""

    since: Annotated[str, StringConstraints(max_length=40)] | None = None
    who: Annotated[str, StringConstraints(max_length=64)] | None = None
    what: Annotated[str, StringConstraints(max_length=40)] | None = None
