"""What a client may send over the websocket: one model per message type, checked on arrival.

The `ok` of each has a type in `answers`; `web/commands.py` says which.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from iact.core.ports import Medium
from iact.core.records.control import InjectMode
from iact.core.records.ways import PlanWay, Way
from iact.core.stored.text_search import Whose
from iact.web.ports import RoleChoice, RoleTerms

Text = Annotated[str, StringConstraints(pattern=r"\S")]
AgentPath = Annotated[str, StringConstraints(pattern=r"^/", max_length=2048)]


StepId = Annotated[str, StringConstraints(min_length=1, max_length=100)]
"""The id of a step of a plan."""

TemplateName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""The name of a saved plan."""

TemplateValues = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,39}$")],
        Annotated[str, StringConstraints(max_length=16_384)],
    ],
    Field(max_length=32),
]
"""Values for the parameters of a saved plan, by name."""

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=16_384)]

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16,64}$")]
"""The digest of something that the user was shown, which a yes to it sends back; at least its first 16 digits."""

_NO_DIGEST: Final = "A yes must send back the digest of what was shown"

MemoryId = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class Message(BaseModel):
    """Unknown fields are ignored, so that a newer page can talk to an older server."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Hello(Message):
    """Watch `session` from after record `since`; null: a new session, which begins with the first `say`.

    A session that this installation did not make is shown as after `open`: its `session` message has `readonly`, and
    `foreign` with the reason in words. `adopt` makes the user's own session from it.

    `lazy`: of the existing records, the newest come first, in one message `records {list, apart}` that reaches back far
    enough to hold the newest messages of the agent at `path`. `apart` holds older records that something still depends
    on: questions without an answer, running calls, waiting messages. Earlier records follow in `records` messages, from
    the newest to the oldest, each in order of record number, with news in between. Most come without `html`; the client
    requests it with `render`. A client that reconnects says in `first` the number from which it has every record up to
    `since`.
    """

    session: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    since: int = Field(default=0, ge=0)
    first: int = Field(default=1, ge=1)
    path: AgentPath = "/"
    lazy: bool = False


class Ping(Message):
    """Ask whether the server still hears the client. It is answered before requests that are still being carried out.

    A client that has heard nothing for a while sends one, and connects again if nothing comes back. The server does the
    same with the ping of the websocket protocol, which browsers answer on their own.
    """


class ShowSource(Message):
    """`source`: the text of record `n` of the watched session, as it was written. The `ok` has `text`.

    `plain`: prepare the text to be displayed whole: without sequences that a terminal would interpret as commands and,
    for a result, with the content stored next to the journal. The `ok` then says in `more` how many characters did not
    fit.
    """

    n: int = Field(ge=1)
    plain: bool = False


class Render(Message):
    """The HTML of some records of the watched session.

    The `ok` has `list`, each with `n`, `html`, and for a turn `messages`.
    """

    numbers: Annotated[list[int], Field(max_length=400)]


class FormatDraft(Message):
    """The HTML of what a model is still writing: `text` of the agent `agent`, as it arrived in `delta` messages.

    The `ok` says in `closed` how many of its characters are in finished blocks, with their HTML in `html`; the next
    request leaves these characters out. `open` is the HTML of the rest. All three are empty for a text that takes too
    long to format.
    """

    agent: AgentPath
    text: Annotated[str, StringConstraints(max_length=16_000)]


class Open(Message):
    """View a stored session, from after record `since`, without running or changing it.

    `first`, `path`, `lazy`: as in `hello`. `journal`: a session's id, an example's, or the path of a directory or
    journal below the data directory's sessions. From then on the connection is as after `hello`, but the `session`
    message has `readonly` (and `example` for an example), there is no news, and requests that would change the session
    are refused.
    """

    journal: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    since: int = Field(default=0, ge=0)
    first: int = Field(default=1, ge=1)
    path: AgentPath = "/"
    lazy: bool = False


class Budget(Message):
    """Let the watched session use `tokens` more, or cost `money` more. It now answers what it could not afford
    before."""

    tokens: int = Field(default=0, ge=0, le=10**12)
    money: float = Field(default=0.0, ge=0, le=10**9)


class Compress(Message):
    """Have the root's history summarized and cut, so that its turns take fewer tokens."""


class Summary(Message):
    """What a new session must know to continue from the watched one.

    The `ok` has `text`: a summary that a model wrote, and the messages that were not answered.
    """


class Seek(Message):
    """Show the tree as it was after record `at`; null: as it is now.

    Before the `ok` with `at`, the server sends one `tree` message that has `at` as well. News is still sent in the
    meantime, so `tree` messages without `at` are about now.
    """

    at: int | None = Field(default=None, ge=1)


class Fork(Message):
    """Make a new session that shares records 1…`at` of the watched one, send `text` to it, and watch it.

    Work in progress at `at` is dropped in the new session; with `run`, it is finished first, and `text` is read
    afterwards. The `ok` has `session`, the new session's id, and `n`.
    """

    at: int = Field(ge=1)
    text: Text
    run: bool = False


class Adopt(Message):
    """Make the user's own session from records 1…`at` (null: all) of the watched foreign one, and watch it.

    It has copies of the files, and none of the rights: intent, scope and policy are those of a new session, and work in
    progress is not carried out. The `ok` has `session`, the new session's id.
    """

    at: int | None = Field(default=None, ge=1)


class ShowContext(Message):
    """Exactly what a model saw: the newest turn of agent `path` at or before record `at` (null: now).

    The `ok` has `agent`, `record` (which holds the model's reply) and `messages`, each with `role`, `text`, `size` in
    characters, `left_out` (how many were too many to send), and `reused`: the previous context contained it byte for
    byte.
    """

    path: AgentPath
    at: int | None = Field(default=None, ge=1)


class ListVariables(Message):
    """The variables of agent `path` after record `at` (null: now), newest first.

    The `ok` has `list`, each with `name`, `media`, `size` in bytes, `origin` and `labels`, its provenance.
    """

    path: AgentPath
    at: int | None = Field(default=None, ge=1)


class ShowVariable(Message):
    """The content of one variable.

    The `ok` has the fields that `variables` lists, and `sha256`, `text` (null if the content is not text),
    `left_out`, and the `digest` that `declassify` sends back.
    """

    path: AgentPath
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
    at: int | None = Field(default=None, ge=1)


class Say(Message):
    """Send a message to the root. In a `mode` other than dialogue, `text` is the goal of a plan.

    The plan's report is then the reply. `plan_first`: the plan is written, and then waits for a person to start it.
    `uploaded`: the message is too long for a frame. It was sent as a file, with `upload` and in binary frames, and has no
    `text` here. `once`: what the client calls this message. If the line loses the answer, the client sends the message
    again under the same name: it is said once, and answered again.
    """

    text: str = ""
    uploaded: bool = False
    once: Annotated[str, StringConstraints(max_length=64)] = ""
    mode: Way = "dialogue"
    plan_first: bool = False

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.uploaded == bool(self.text.strip()):
            raise ValueError("A message has a text that is not blank, or is an uploaded one")
        return self


class Foresee(Message):
    """How `auto` would work on `text` if it were sent now.

    The `ok` has `mode` and `why`. If a model was asked, it is not asked again when this text is sent.
    """

    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=20_000)]


class Inject(Message):
    """Write into the dialogue of agent `path`; for a plan, to all of it, or about one `step`.

    With mode `interrupt` it also ends the calls that run for the agent, unless `calls` is false. `once`: as for `say`.
    """

    path: AgentPath
    text: Text
    mode: InjectMode = "deliver"
    step: StepId | None = None
    calls: bool = True
    once: Annotated[str, StringConstraints(max_length=64)] = ""


class OnQueued(Message):
    """`queue.send` and `queue.remove`: have message `n`, which waits for agent `path`, read now, or never.

    `queue.send` stops what the agent is writing; its running calls end first.
    """

    path: AgentPath = "/"
    n: int = Field(ge=1)


class EditQueued(OnQueued):
    """`queue.edit`: change the message of record `n`, which waits for agent `path`, to `text`."""

    text: Text


class StopCalls(Message):
    """`calls.stop`: end the calls that run for agent `path` and below; the agents continue with the output so far."""

    path: AgentPath


class Upload(Message):
    """Announce a file of `size` bytes, sent in binary frames after the `ok` and finished with `upload.end`.

    `uploading` messages tell how much of it has arrived. `archive`: the file is a session, and `session.import` follows; it is stored on disk as it arrives, and may be
    larger.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    media: Annotated[str, StringConstraints(max_length=200)] = ""
    size: int = Field(ge=0)
    archive: bool = False


class EndUpload(Message):
    """The whole file has been sent. The `ok` has `n` and `name`, the variable that the root has from its next turn."""


class Download(Message):
    """The content of one variable as a file. The `ok` has `href`, an address that can be fetched once."""

    path: AgentPath
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
    at: int | None = Field(default=None, ge=1)


class ViewVariable(Download):
    """The content of one variable to be looked at in a frame: a page without scripts, or a PDF.

    The `ok` has `href`, an address that can be fetched once.
    """


class Export(Message):
    """The watched session up to record `at` (null: all) as one HTML page; the `ok` has `href` as for `download`."""

    at: int | None = Field(default=None, ge=1)


class About(Message):
    """The settings in effect, and what works on the server's machine.

    The `ok` has `settings`, pairs of name and value, and `checks`, each with `check`, `ok`, `detail`, `remedy`.
    """


class NewAddress(Message):
    """An address of the page for one more browser, good for one sign-in within ten minutes. The `ok` has `url`."""


class ListExamples(Message):
    """Recorded sessions to view. The `ok` has `list`, each with `id`, for `open`, and `title` and `about`."""


class ShowExample(Message):
    """What each agent of a recording did when, without viewing it. `example`: its `id` in `examples`.

    The `ok` is that of `timeline`.
    """

    example: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class OnAgent(Message):
    """`pause`, `resume` and `cancel`; for a plan, only one `step` if it is named."""

    path: AgentPath
    step: StepId | None = None


class StartPlan(Message):
    """`plan.start`: start the plan `path`, which has been written and waits for a person to review it.

    `digest`: of the plan as it was shown: that of its last record `plan` or `extend`, or of `plan.text`.
    """

    path: AgentPath
    digest: Digest


class EditPlan(Message):
    """`plan.edit`: replace the steps that have not started, in a waiting or paused plan; `text`: all of it, as YAML.

    This makes a plan version by the user.
    """

    path: AgentPath
    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=1 << 20)]


class RetryStep(Message):
    """`plan.retry`: run a failed step once more, with the steps that needed it, even if the plan has ended."""

    path: AgentPath
    step: StepId


class ShowPlan(Message):
    """`plan.text`: a plan as a person would write it. The `ok` has `text`, YAML that `plan.edit` accepts."""

    path: AgentPath


class SavePlan(Message):
    """`plan.save`: keep a plan as the template `name`, for `PLAN from=NAME` and `plan.run`. The `ok` has `file`.

    `parameters`: values of the plan that are left open, by the names under which they are given when it is used.
    """

    path: AgentPath
    name: TemplateName
    parameters: TemplateValues = {}


class OfferParameters(Message):
    """`plan.offers`: what could be left open if the plan `path` is saved: its files, the names in its goal, its numbers.

    The `ok` has `list`, each with a `name` for the parameter, and the `value`.
    """

    path: AgentPath


class ListPlans(Message):
    """`plans`: the existing templates. The `ok` has `list`, their names, and `templates`, with their `parameters`."""


class RunPlan(Message):
    """`plan.run`: begin a plan below the root, from the template `name`. `plan_first`: it waits until it is started.

    `values`: for the template's parameters. The `ok` has `path`, the plan's, and `n`.
    """

    name: TemplateName
    values: TemplateValues = {}
    mode: PlanWay = "static"
    plan_first: bool = False


class Remember(Message):
    """A rule made from a person's approval: patterns for the function, and for arguments by name."""

    function: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    arguments: dict[str, str] = {}


class Clear(Message):
    """Answer the call that waits for clearance since record `call`.

    `also`: records of other questions that were shown together with it because they are alike (same function, same
    reason, same origin). All get the same answer, or none does; questions that are not listed are not answered.
    `remember`: for a yes, "call" for exactly this call from now on, or a rule; null: the yes is good for this once.
    `why`: for a no, a message in the user's words to the agent that asked, as by `inject`. `for`: where the record asks
    whether a module may reach a host, how long a yes holds. `digest`, and `also_digests` in the order of `also`: for a
    yes, the `digest` of each question's `record`; if a question is no longer the one that was shown, none is answered.
    """

    call: int = Field(ge=1)
    allow: bool
    also: Annotated[list[Annotated[int, Field(ge=1)]], Field(max_length=32)] = []
    remember: Literal["call"] | Remember | None = None
    why: Text | None = None
    lasts: Literal["once", "session", "always"] | None = Field(default=None, alias="for")
    digest: Digest | None = None
    also_digests: Annotated[list[Digest], Field(max_length=32)] = []

    @model_validator(mode="after")
    def _names_what_was_seen(self) -> Self:
        if self.allow and self.digest is None:
            raise ValueError(f"{_NO_DIGEST}: digest")
        if self.allow and len(self.also_digests) != len(self.also):
            raise ValueError(f"{_NO_DIGEST}: also_digests, one for each of also")
        return self

    @property
    def seen(self) -> list[str] | None:
        """The digests of the questions that a yes is about; None for a no."""
        return [self.digest, *self.also_digests] if self.digest is not None else None


class ShowQuestion(Message):
    """The question at record `n` in full, for the person who answers it.

    The `ok` has `text`, as on a terminal, with its long values; `digest`, which a yes sends back; and `values`, the
    long ones alone, each with its `name`, `text` and `sha256`. Nothing in a text is removed or invisible.
    """

    n: int = Field(ge=1)


class AnswerForm(Message):
    """Answer what a module asks since record `ask`. `values`: the user's input, by field; it goes to the module.

    `digest`: as for `clear`, if the answer is yes.
    """

    ask: int = Field(ge=1)
    accept: bool
    digest: Digest | None = None
    values: Annotated[
        dict[
            Annotated[str, StringConstraints(max_length=100)],
            Annotated[str, StringConstraints(max_length=10_000)] | bool | int | float | list[str],
        ],
        Field(max_length=50),
    ] = {}

    @model_validator(mode="after")
    def _names_what_was_seen(self) -> Self:
        if self.accept and self.digest is None:
            raise ValueError(f"{_NO_DIGEST}: digest")
        return self


class Lockdown(Message):
    """Deny every call of the session from now on, or end that."""

    value: bool


class ShowReading(Message):
    """`reading`: what agent `path` has read so far. The `ok` has its `labels`, and the `digest` that `declassify` sends
    back.
    """

    path: AgentPath


class Declassify(Message):
    """Mark variable `name` of agent `path` as trusted; without a name, everything that the agent has read so far.

    `digest`: of what was shown, that of `variable` or of `reading`.
    """

    path: AgentPath
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    digest: Digest


class Restore(Message):
    """Put the files back to `version`: the beginning of its id, or the number of a record.

    `path`: only this file, which is removed if there was none in that version.
    """

    version: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{1,40}$")]
    path: Annotated[str, StringConstraints(max_length=4096)] = ""


class SetIntent(Message):
    value: Annotated[float, Field(ge=0, le=2)]

    @field_validator("value", mode="before")
    @classmethod
    def _not_a_truth_value(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("it must be a number from 0 to 2")
        return value


class SearchMemory(Message):
    """What the user's memory holds about `query`; without a query, the newest memories.

    The `ok` has `results`, best first, each with `id`, `text`, `subject`, `kind`, `scope`, `score`, `since`, `session`,
    `agent`, `why`, `untrusted`, `contradicts`, and `current`: false for a statement that was replaced or withdrawn. `on`:
    whether the user's memory is on; `session_on`: whether the watched session's is, null if none is watched.
    """

    query: Annotated[str, StringConstraints(max_length=4096)] = ""
    limit: int = Field(default=20, ge=1, le=200)


class ShowMemory(Message):
    """All that is known of one memory: the `ok` has it as `memory`, null if it does not exist."""

    memory: MemoryId


class ForgetMemories(Message):
    """Remove memories for good, each alone; the `ok` has `count`."""

    memories: Annotated[list[MemoryId], Field(min_length=1, max_length=1000)]


class EditMemory(Message):
    """Change one memory to `text`, in one line and for good; the `ok` has it as `memory`.

    Nothing is left of the old text: not in the store, nor after a rebuild. The memory's origin, and whether it is
    untrusted, stay as they are.
    """

    memory: MemoryId
    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=4096)]


class ForgetAllMemories(Message):
    """Remove all memories for good; the `ok` has `count`. Journals bring none of them back."""


class SwitchMemory(Message):
    """Switch memory off or on for the user, in all sessions. While it is off, nothing is remembered, and agents are told
    nothing; memories can still be seen and changed. The `ok` has the new state as `on`."""

    value: bool


class SwitchSessionMemory(Message):
    """The same for the watched session alone."""

    value: bool


class DistilSessions(Message):
    """Ask a model what of these sessions is worth remembering. The `ok`, which can take long, has `count`: the number of
    messages that it was asked about, and `left_out`: why, by session, where that was impossible. A session that is not
    open and has unfinished work is left out. What was distilled before is not asked about again."""

    sessions: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=1000),
    ]


class RebuildMemory(Message):
    """Empty the memory and fill it from all journals; the `ok`, which can take long, has `count`."""


class ListModules(Message):
    """The catalogue of modules. The `ok` has `list`, each as `iact module describe --json` prints it."""


class AddModule(Message):
    """Add the module at `source`: the path of a folder or a Python file on the server's machine, or an image there.

    With a `name`, `source` is the Python source itself, and the module gets that name. Adding a module approves nothing
    of it. The `ok` has `module`, as `iact module list --json` prints it.
    """

    source: Annotated[str, StringConstraints(min_length=1)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None


class RemoveModule(Message):
    """Remove a module from the catalogue; every open session loses its functions."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class ListHosts(Message):
    """The hosts that modules may reach in this session without asking; the `ok` has them as `list`."""


class AllowHosts(Message):
    """Let a module reach hosts, or revoke that (`remove`); the `ok` has all allowed hosts as `list`.

    A host is a name (ports 80 and 443), `*.domain`, `host:port`, or `*` for every public host. `for`: this session, or
    all.
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

    `digest`: the version that the person reviewed; no other version is approved. The `ok` has `module`.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    functions: Annotated[tuple[str, ...], Field(max_length=100, strict=False)] = ()
    digest: Digest


# --- time --------------------------------------------------------------------------------


class ShowTimeline(Message):
    """What each agent did when, and what the root's answers waited for.

    The `ok` has `started` (the time of the first record), `ms` (from there to the last), `agents` (paths, in order of
    creation), and `spans`, each `[agent, kind, begin, end, n, label, critical]`: the agent's index in `agents`; model,
    tool, wait, approval or paused; milliseconds since `started`, `end` null for work that goes on; the number of its
    record; what it was; and whether the critical path of an answer goes through it. `critical`: milliseconds of work on
    critical paths; `more`: how many short spans were left out.
    """


# --- files --------------------------------------------------------------------------------


class ListFiles(Message):
    """The files in the session's workspace; `at`: as they were after that record, null: as they are now.

    The `ok` has `list`, each with `path` ("%XX" for bytes that text can't hold), `kind` (file, link, folder if it is
    empty, other), `size` and, as far as versions show, `n`, the last record that changed it. `more`: how many files
    were left out. `n`: the record of the version that is shown, or of the newest one; `unkept`: a later call that wrote
    and whose version could not be kept; `folder`: where the files are, if that is a directory of the user's; `why`: why
    nothing is known of the past, in words.
    """

    at: int | None = Field(default=None, ge=1)


class ListChanges(Message):
    """What each call changed, up to record `at` (null: the last).

    The `ok` has `list`, newest first, each with `n`, `at` (the time), `agent`, `function`, `paths` (each `path` and
    `kind`: add, modify, delete) and `more`, how many paths were left out; `earlier`: how many calls were left out.
    """

    at: int | None = Field(default=None, ge=1)


class ShowFile(Message):
    """The content of a file, as it was after record `at` (null: now).

    The `ok` has `path`, `kind`, `size`, `n` (the last record that changed it) and `show`: "text" (with `text`, and
    `left_out` characters of its middle), "table" (with `rows` as well, and how many `more_rows`), "image", "audio" or
    "video" (with `media`; fetch it with `file.download`), "link" (with `target`), "large" or "binary".
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


class ViewFile(FetchFile):
    """A file to be looked at in a frame: a page without scripts, or a PDF. The `ok` has `href`, for one request."""


class Mentioned(Message):
    """Words of a text that may be files, and the record after which it was written."""

    at: int = Field(ge=1)
    words: Annotated[list[FilePath], Field(max_length=100)]


class FindFiles(Message):
    """Which words of some texts are files of the workspace, as it was when they were written.

    The `ok` has `list`, for each text that names any: `at`, `files` (for each word its `path`), and `shown`: the record
    to request their content with, or null where only the current files can be shown.
    """

    texts: Annotated[list[Mentioned], Field(max_length=200)]


class FetchAll(Message):
    """All files as they were after record `at` (null: now) as a zip archive, to be downloaded once.

    The `ok` has `href`, `count`, `bytes`, and `left_out`: how many links and other special files are not in it.
    """

    at: int | None = Field(default=None, ge=1)


# --- changes that wait for a review --------------------------------------------------------------------------------

_COUNTED = 200
"""The number of paths whose lines are counted in one message."""


class ListPending(Message):
    """The pending changes of the user's directory, sorted by path, from number `start` on and at most `count`.

    The `ok` has `total`, `at` (the last record), and `list`, each with `path`, `kind` (add, modify, delete), `was` and
    `now` (each `type`, `mode`, `size`, `content`, `target`; where they apply), `conflict` (true: the file in the
    directory has changed meanwhile), `impact` and `why` of the change on its own, `held` and `reason` why it waits, `n`
    (the record of its present form), `calls`, `agents` and `labels` that it comes from, and for a file that looks
    renamed `from` or `to`. Each has a `digest`, and so has the whole list, which is what `apply` sends back.
    """

    start: int = Field(default=0, ge=0)
    count: int = Field(default=1000, ge=0, le=2000)


class ShowPatch(Message):
    """One pending change: the `ok` has `text`, a unified diff, and `added` and `removed`, lines or null.

    `digest`: of the change that the text shows.
    """

    path: FilePath


class CountLines(Message):
    """Count the lines that `paths` add and remove.

    The `ok` has `list`, each with `path`, `added` and `removed`: lines, or null where there are none to count.
    """

    paths: Annotated[list[FilePath], Field(max_length=_COUNTED)]


class Apply(Message):
    """Make changes real: `paths`, with what is in them and what they need, or all (null).

    `digests`: the `digest` of each change that is meant, by path; or `digest`: that of the whole list, if all are meant.
    If a change is no longer the one that was shown, none is applied.

    `force`: also overwrite files that have changed in the directory meanwhile. `at`: the last record that the person
    had seen; newer changes are not applied. The `ok` has `n`, `done` (how many), `left` and `notes`, each with `path`,
    `outcome` (applied, conflict, failed) and `why`.
    """

    paths: list[FilePath] | None = None
    force: bool = False
    at: int | None = Field(default=None, ge=1)
    digest: Digest | None = None
    digests: Annotated[dict[FilePath, Digest], Field(max_length=2000)] | None = None

    @model_validator(mode="after")
    def _names_what_was_seen(self) -> Self:
        if self.paths is None and self.digest is None:
            raise ValueError(f"{_NO_DIGEST}: digest, of the whole list")
        if self.paths is not None and self.digests is None:
            raise ValueError(f"{_NO_DIGEST}: digests, by path")
        return self


class Drop(Message):
    """Discard changes: `paths`, with what is in them, or all (null). `at`, and the `ok`, as with `apply`.

    `digest` and `digests` are as with `apply`, and may be left out.
    """

    paths: list[FilePath] | None = None
    at: int | None = Field(default=None, ge=1)
    digest: Digest | None = None
    digests: Annotated[dict[FilePath, Digest], Field(max_length=2000)] | None = None


# --- sessions --------------------------------------------------------------------------------

SessionId = Annotated[str, StringConstraints(min_length=1, max_length=200)]

Sessions = Annotated[list[SessionId], Field(min_length=1, max_length=1000)]


class ListSessions(Message):
    """The stored sessions, the most recently changed first. They come in a message `sessions` before the `ok`.

    It has `list`, at most `limit` (null: all) plus all that are pinned, wait for a person or are open; `total`, how
    many there are; and `deleted`, how many are in the trash. Each has `id`, `title`, `created`, `changed`, `records`,
    `open`, `foreign`, `state` (`idle`, `working`, `waits`, `paused`, `failed`, `unfinished`), `since` when, `what` it
    waits for, `pinned`, `named`, and `source` and `at` if it is a fork.

    From then on, a `standing` message reports each session that changes: `session`, and `state`, `since` and `what`
    while it is open. Without a `state`, the client should request the list again.
    """

    limit: int | None = Field(default=None, ge=1)


class SearchSessions(Message):
    """Sessions whose title, messages or outputs hold all words of `query`, the most recently changed first.

    The `ok` has `list`, each as in `sessions`, with `hit` where it was found in the text: the newest place with `n`,
    `agent`, `kind`, `before`, `match`, `after`, and the `count` of places. `behind`: how many sessions are not indexed
    yet; they are indexed automatically.
    """

    query: Annotated[str, StringConstraints(pattern=r"\S", max_length=1000)]
    limit: int = Field(default=50, ge=1, le=300)


class RenameSession(Message):
    """`session.rename`: give a session a name; an empty one removes it. The `ok` has `title`."""

    session: SessionId
    title: Annotated[str, StringConstraints(max_length=1000)]


class PinSession(Message):
    """`session.pin`: keep a session at the top of lists and exempt it from deletion by age; or end that."""

    session: SessionId
    pinned: bool


class OnSessions(Message):
    """`session.delete`: move sessions to the trash; open ones are closed. `session.restore`: move them back.
    `session.purge`: remove what is in the trash for good.

    The `ok` has `sessions`, the ones that were processed; `refused`, the reasons why others were not, by session; and
    `note`, what remains to be done.
    """

    sessions: Sessions


class ListDeleted(Message):
    """`session.deleted`: the trash. The `ok` has `list`, each with `id`, `title`, `deleted` and `records`."""


class ArchiveSession(Message):
    """`session.archive`: a session with its files as a compressed tar archive. The `ok` has `href` as for
    `download`."""

    session: SessionId


class ImportSession(Message):
    """`session.import`: import the uploaded file, which is such an archive and not a variable, as a session.

    It takes the place of `upload.end`. The `ok` has `session`, `foreign`, why it is not this installation's (empty if
    it is), and `left_out`, how much was not imported.
    """


class Find(Message):
    """Where `text` is in the watched session up to record `at` (null: all), ignoring case.

    `agent`: only in its dialogue. `whose`: `user`, `agents` or `tools`; empty: anyone's. The `ok` has `count`, how many
    records hold it, and `list`, of the first 2,000, each with `n`, `agent`, `kind`, `before`, `match`, `after`,
    `count`.
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
    one; a key is never sent), `dialect`, `takes`, the prices as `model.choose` takes them, and `own`: the model was
    chosen for this role, and is not the default for all.
    """


class ChooseRole(Message):
    """Set the model of a role from the next message on, in every session; written to the data directory's `iact.toml`.

    `key` is kept among the secrets; null: unchanged, which works at the same `url` only; "": none. `context`: its
    window in tokens. `dialect`: "tools" if it insists on function calls. `takes`: media that it understands in addition
    to text. Prices are for a million tokens of uncached input, cached input, and output. Null: as for all.
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
    """Ask this model for one word, and change nothing.

    The `ok` has `names` of the models that its endpoint lists, `model`, the one that was asked, `answer`, `ms`, and
    `fault`: why there is no answer.
    """


class ForgetRole(Message):
    """Remove the model of a role; the default model plays it again."""

    role: RoleName


class ListPresets(Message):
    """Providers, and programs of the user's, whose models can be connected.

    The `ok` has `list`, each with `name`, `title`, `url`, `needs_key`, `keys` (where a person gets one) and `about`, what a
    person must know first; the last two may be empty.
    """


class ListModelFiles(Message):
    """Models in files, which run on the machine of the server: the ones on board, and those that were added with
    `iact model add` and are still there.

    The `ok` has `list`, each with `name`, `title`, `size` in bytes, `present`, whether it need not be downloaded first, and
    `in_use`, whether it is the one that answers.
    """


class UseOnBoard(Message):
    """Let a model on board answer from the next message on, and no endpoint; written to the data directory's
    `iact.toml`.

    `name`: `1.5b`, `0.5b`, `off`, or the name of a file that was added with `iact model add`.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]


class ListAddedEndpoints(Message):
    """Models behind endpoints, which were added with `iact model add`.

    The `ok` has `list`, each with `name`, `model`, as its endpoint names it, `url`, and `in_use`, whether it is the one that
    answers.
    """


class UseEndpoint(Message):
    """Let a model answer from the next message on that was added with `iact model add` and a preset; written to the data
    directory's `iact.toml`.

    `name`: as `model.endpoints` lists it.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]


class ListFirstMessages(Message):
    """Messages that sessions often begin with. The `ok` has `list`, each with `name` and `text`."""


class KeepFirstMessage(Message):
    """Save a text as a first message, replacing one of the same name."""

    name: Annotated[str, StringConstraints(pattern=r"\S", max_length=80)]
    text: Annotated[Text, StringConstraints(max_length=_LONGEST)]


class ForgetFirstMessage(Message):
    """Remove a saved first message."""

    name: Annotated[str, StringConstraints(max_length=80)]


# --- people (servers with accounts) -----------------------------------------------------------------------------

PersonName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Days = Annotated[float, Field(strict=False, gt=0, le=3660, allow_inf_nan=False)]


class ShowSharing(Message):
    """Who else may see the watched session, or steer it, and by which links.

    The `ok` has `grants`, each with `name`, `group` and `role`, `links`, and `public`: whether links that work without
    an account can be made.
    """


class ShareWith(Message):
    """Make a user, or with `group` every member of a group, a reader or a steerer of the watched session."""

    name: PersonName
    group: bool = False
    role: Literal["reader", "steerer"] = "reader"


class Unshare(Message):
    """Revoke what `share` granted."""

    name: PersonName
    group: bool = False


class CreateLink(Message):
    """Make a link to the watched session. The `ok` has `link`, its id, and its `path` on this server, sent only once.

    `at`: it shows the session up to this record; null: as it goes on. `hides`: "files", and "gate" for the gate's
    decisions. `variables`: variables whose content it leaves out, with every record that contains it. `public`: it
    works without an account.
    """

    days: Days = 7.0
    at: int | None = Field(default=None, ge=1)
    hides: Annotated[list[Literal["files", "gate"]], Field(max_length=2)] = []
    variables: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=100)
    ] = []
    public: bool = False


class RevokeLink(Message):
    """Revoke a link; it no longer gives access."""

    link: Id


class ListShared(Message):
    """Sessions that others share with this user. The `ok` has `list`, each with `id`, `title`, `owner` and `role`."""


class ShowAccount(Message):
    """This user: `name`, `admin`, `tokens`, `sign_ins` and `scopes` that a token can have. No secret is among them."""


class CreateToken(Message):
    """Make an API token. The `ok` has `secret`, which is sent only this once, and `token`, its id.

    `words`: what counts as the user's words of all that a program sends with it: the earlier chat that it tells of, too
    ("all"), its newest message, or nothing, since it passes on what others write ("none").
    """

    name: Annotated[str, StringConstraints(pattern=r"\S", max_length=64)]
    scopes: Annotated[
        list[Literal["sessions:read", "sessions:write", "clear", "admin"]], Field(min_length=1, max_length=4)
    ]
    days: Days = 90.0
    words: Literal["all", "newest", "none"] = "newest"


class RevokeToken(Message):
    """Revoke a token; it no longer gives access."""

    token: Id


class SignOut(Message):
    """End one of this user's sign-ins; null: all of them, including this one."""

    sign_in: Id | None = None


class ShowUsage(Message):
    """Usage by month. The `ok` has `list`, each with `user`, `period`, `resource`, `used` and `most` (null: no quota).
    `everybody`: of all users, for administrators."""

    everybody: bool = False


class ListUsers(Message):
    """All accounts: `list`, each with `name`, `admin`, `groups`, `disabled` and `seen`."""


class AddUser(Message):
    """Make an account. Without a password, it is for a user whom a proxy or an identity provider vouches for."""

    name: PersonName
    password: Annotated[str, StringConstraints(max_length=1024)] | None = Field(default=None, repr=False)
    admin: bool = False


class ChangeUser(Message):
    """Change an account; null leaves a field as it is. Disabling a user signs them out everywhere; their data stays."""

    name: PersonName
    password: Annotated[str, StringConstraints(max_length=1024)] | None = Field(default=None, repr=False)
    admin: bool | None = None
    disabled: bool | None = None
    groups: Annotated[list[PersonName], Field(max_length=100)] | None = None


class ShowEverybody(Message):
    """What is set for all users: `modules`, each as in a user's own `modules`, and the names of `secrets`."""


class AddModuleOfEverybody(AddModule):
    """Add a module for all users, as `module.add` adds a user's own. Adding it approves nothing of it."""


class RemoveModuleOfEverybody(RemoveModule):
    """Remove a module for all users, and what was approved of it."""


class ApproveModuleOfEverybody(ApproveModule):
    """Approve functions of a module for all users, as `module.approve` approves a user's own."""


SecretName = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class SetSecret(Message):
    """Store a secret for the modules that are set for all users and were approved with it.

    No message contains its value, and no module of a user's own receives it.
    """

    name: SecretName
    value: Annotated[str, StringConstraints(max_length=40_000)] = Field(repr=False)


class RemoveSecret(Message):
    """Remove a secret that is set for all users."""

    name: SecretName


class ListSecrets(Message):
    """The names of this user's secrets: `list`, which their own modules receive, and `lent`, see `secret.set`."""


class SetOwnSecret(SetSecret):
    """Store a secret of this user's, for their own modules that were approved with it.

    No message contains its value. With `lent`, the modules that are set for all users receive it when this user calls
    them, in place of the common secret of that name; this user's own modules don't.
    """

    lent: bool = False


class RemoveOwnSecret(RemoveSecret):
    """Remove a secret of this user's."""

    lent: bool = False


class ShowPolicy(Message):
    """The policy: `text`, as its file has it; empty if there is none."""


class ChangePolicy(Message):
    """Replace the policy with `text`, if that is a valid policy and the current one still equals `was`.

    It applies to sessions that begin, or are opened again.
    """

    text: Annotated[str, StringConstraints(max_length=500_000)]
    was: Annotated[str, StringConstraints(max_length=500_000)]


class ShowAudit(Message):
    """Who signed in, or failed to, and who changed what about users: `list`, newest first, never content."""

    most: int = Field(default=200, ge=1, le=2000)


class ExportAudit(Message):
    """The whole audit, including that of sessions, as a file to be downloaded: a line of JSON for each decision, oldest
    first, never content. `since`: a date or a time, UTC; `who`: only this user's; `what`: only one kind
    (`call.denied`), or several (`user`). The audit records that it was exported."""

    since: Annotated[str, StringConstraints(max_length=40)] | None = None
    who: Annotated[str, StringConstraints(max_length=64)] | None = None
    what: Annotated[str, StringConstraints(max_length=40)] | None = None
