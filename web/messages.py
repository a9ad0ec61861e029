"""What a client may send over the websocket: one model per message type, checked at the border.

What the `ok` of a message carries beside its `id` stands with each; `n` is the number of the record that
the message made, which is on disk by then.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from iact.core.records.control import InjectMode
from iact.core.records.ways import PlanWay, Way

Text = Annotated[str, StringConstraints(pattern=r"\S")]
AgentPath = Annotated[str, StringConstraints(pattern=r"^/", max_length=2048)]


StepId = Annotated[str, StringConstraints(min_length=1, max_length=100)]
"""The id of a step of a plan."""

TemplateName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""The name of a kept plan."""

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
    """Let the watched session use `tokens` more. A message that could not be afforded is answered now."""

    tokens: int = Field(ge=1, le=10**12)


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

    `remember`: of a yes, "call" for exactly this call from now on, or a rule; null: it is good for this once.
    `why`: of a no, what the agent that asked is told in the user's words, as by `inject`.
    `for`: where the record asks whether a module may reach a host, how long a yes holds.
    """

    call: int = Field(ge=1)
    allow: bool
    remember: Literal["call"] | Remember | None = None
    why: Text | None = None
    lasts: Literal["once", "session", "always"] | None = Field(default=None, alias="for")


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
