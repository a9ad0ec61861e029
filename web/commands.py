"""What each client message does: a table from its type to a checked model and an action.

A new message is a new row, which names the right that it requires. The action of a message to a session receives that
session; other actions see a `Client`, as a protocol with the few methods that they use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar, get_type_hints

from pydantic import BaseModel

from iact.accounts.people import AuditKind
from iact.accounts.rights import Forbidden, Principal, Right
from iact.core.errors import MemoryUnavailable, UsageError
from iact.core.ports import JSON, Memory
from iact.core.records.calls import ClearanceAsk
from iact.core.records.control import Lockdown as LockdownRecord
from iact.core.records.dialogue import Upload as Uploaded
from iact.core.records.parts import AttachedValue
from iact.core.records.record import Record
from iact.core.stored.question_values import question_values
from iact.core.stored.source import source_of, written_source
from iact.core.stored.templates import Template
from iact.core.views.consent import question_digest
from iact.core.views.question_text import told
from iact.core.views.questions import is_question
from iact.web import choices, files, inspection, own_secrets, people, review, sessions, timeline
from iact.web.downloads import Content, View
from iact.web.follower import Cursor
from iact.web.history import RecordHistory
from iact.web.ports import PeopleRegister, Product, Runtime, Session, SharedSetup, Tenant
from iact.web.safe_text import exact
from iact.web.said_once import AnsweredMessages
from iact.web.stored_session import StoredSession
from iact.web.wire import answers, news, requests


class Client(Protocol):
    """The part of a connection that commands act on."""

    @property
    def runtime(self) -> Runtime: ...

    async def greet(self, session_id: str | None, cursor: Cursor) -> None:
        """Start watching a session; None: none yet."""
        ...

    async def session(self) -> Session:
        """The watched session; opens a new one if there is none yet."""
        ...

    async def find_begun_with(self, once: str) -> None:
        """Watch the session that this user began with the message of this name, if there is one."""
        ...

    @property
    def has_session(self) -> bool:
        """Whether a session is watched."""
        ...

    def watched(self) -> Session:
        """The watched session; raises UsageError if there is none."""
        ...

    async def open(self, journal: str, cursor: Cursor) -> None:
        """Start viewing a stored session."""
        ...

    def history(self) -> RecordHistory:
        """The state of the watched session at any record."""
        ...

    def source(self, n: int) -> str:
        """The text of a record of the watched session, as it was written."""
        ...

    async def whole(self, n: int) -> tuple[str, int]:
        """The complete content of a record, ready for display, and how many characters did not fit."""
        ...

    async def render(self, numbers: Sequence[int]) -> list[answers.Html]:
        """The HTML of records of the watched session."""
        ...

    async def format(self, agent: str, text: str) -> answers.Formatted:
        """The HTML of what an agent of the watched session is writing."""
        ...

    def begin_upload(self, name: str, media: str, size: int, *, archive: bool) -> None:
        """Announce a file."""
        ...

    def uploaded_text(self) -> str:
        """The announced file, which is a message."""
        ...

    async def end_upload(self) -> Record:
        """Complete the announced file and pass it to the session, which is opened if there is none yet."""
        ...

    def files(self) -> files.FileMessages:
        """The files of the watched session."""
        ...

    def offer(self, name: str, content: Content, *, view: View | None = None) -> str:
        """Offer a file for download, or to be looked at. Returns its address."""
        ...

    def product(self) -> Product:
        """What the rest of the product provides."""
        ...

    def new_url(self) -> str:
        """An address for one more browser."""
        ...

    async def seek(self, at: int | None) -> None:
        """Send the tree as it was after record `at`, or as it is now."""
        ...

    async def fork(self, at: int, text: str, *, run: bool) -> tuple[str, int]:
        """Fork the watched session, send `text` to the new one and watch that. Returns its id and the record's
        number."""
        ...

    async def adopt(self, at: int | None) -> str:
        """Make the user's own session from the watched one and watch that. Returns its id."""
        ...

    async def send(self, message: news.News) -> None:
        """Send a message that is not an answer."""
        ...

    def watch_sessions(self) -> None:
        """Report each session that changes from now on."""
        ...

    def uploaded(self) -> AbstractContextManager[Path]:
        """The uploaded archive on disk, until the context exits."""
        ...

    @property
    def who(self) -> Principal: ...

    @property
    def said(self) -> AnsweredMessages[answers.InSession]:
        """The last messages of all clients, and `injected` likewise."""
        ...

    @property
    def injected(self) -> AnsweredMessages[answers.Recorded]: ...

    async def audit(self, kind: AuditKind, **about: str) -> None:
        """Record in the audit what this user did outside of sessions. Does nothing on a server with one user."""
        ...

    def register(self) -> PeopleRegister:
        """The register of people; raises UsageError on a server with one user."""
        ...

    def setup(self) -> SharedSetup:
        """What is set for all users; raises UsageError on a server with one user."""
        ...

    def lease(self, user: str) -> AbstractAsyncContextManager[Tenant]:
        """What another user has, for as long as it is needed."""
        ...

    def demand(self, right: Right) -> None:
        """Require a right that a field of a message needs beyond the right of its row; raises Forbidden."""
        ...


_Request = TypeVar("_Request", bound=BaseModel)
Answer: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class WireCommand(Generic[_Request]):
    """How one type of message is handled: `request` checks it, and `act` returns the fields of its `ok`."""

    request: type[_Request]
    act: Callable[[Client, _Request], Awaitable[Answer]]
    right: Right
    """The right that the sender needs."""
    while_opening: bool
    """Whether it is handled while the watched session is still being opened; otherwise, it waits for that."""

    async def run(self, client: Client, raw: Mapping[str, object]) -> Answer:
        """Check a raw message and act on it.

        Raises:
            pydantic.ValidationError: the message is not valid.
            IactError: the session refuses.
        """
        return await self.act(client, self.request.model_validate(dict(raw)))

    @property
    def answer(self) -> type:
        """The type of the `ok`'s fields."""
        return _returned_by(self.act)


@dataclass(frozen=True, slots=True)
class SessionCommand(Generic[_Request]):
    """How one type of message to the watched session is handled; `act` receives the session."""

    request: type[_Request]
    act: Callable[[Session, _Request], Awaitable[Answer]]
    right: Right
    """The right that the sender needs."""
    begins: bool
    """Whether a session is opened for the message if none is watched yet. Otherwise, it is then refused."""

    @property
    def while_opening(self) -> bool:
        """A message to a session waits until that is open."""
        return False

    async def run(self, client: Client, raw: Mapping[str, object]) -> Answer:
        """See `WireCommand.run`. No session is opened for a message that is not valid."""
        message = self.request.model_validate(dict(raw))
        session = await client.session() if self.begins else client.watched()
        return await self.act(session, message)

    @property
    def answer(self) -> type:
        """The type of the `ok`'s fields."""
        return _returned_by(self.act)


def _returned_by(act: Callable[..., object]) -> type:
    returned: type = get_type_hints(act)["return"]
    return returned


class AnyCommand(Protocol):
    """A command for any type of message."""

    @property
    def request(self) -> type[BaseModel]: ...
    @property
    def right(self) -> Right: ...
    @property
    def while_opening(self) -> bool: ...
    @property
    def answer(self) -> type: ...
    async def run(self, client: Client, raw: Mapping[str, object]) -> Answer: ...


def _command(
    request: type[_Request],
    act: Callable[[Client, _Request], Awaitable[Answer]],
    right: Right,
    *,
    while_opening: bool = False,
) -> AnyCommand:
    return WireCommand(request, act, right, while_opening)


def _session_command(
    request: type[_Request], act: Callable[[Session, _Request], Awaitable[Answer]], right: Right
) -> AnyCommand:
    """A message to the watched session, which is opened if there is none yet."""
    return SessionCommand(request, act, right, begins=True)


def _watched_command(
    request: type[_Request], act: Callable[[Session, _Request], Awaitable[Answer]], right: Right
) -> AnyCommand:
    """A message about the watched session: reading must not start one."""
    return SessionCommand(request, act, right, begins=False)


def _cursor(message: requests.Hello | requests.Open) -> Cursor:
    return Cursor(message.since, message.first, message.path, message.lazy)


async def _hello(client: Client, message: requests.Hello) -> answers.Nothing:
    await client.greet(message.session, _cursor(message))
    return {}


async def _ping(client: Client, message: requests.Ping) -> answers.Nothing:
    return {}


async def _say(client: Client, message: requests.Say) -> answers.InSession:
    text = client.uploaded_text() if message.uploaded else message.text

    async def say() -> answers.InSession:
        if not client.has_session:
            await client.find_begun_with(message.once)
        session = await client.session()

        # A server that ended meanwhile said it, and its journal knows that.
        record = session.message_named(message.once)
        if record is None:
            record = await session.say(
                text, mode=message.mode, plan_first=message.plan_first, once=message.once
            )

        return {"n": record.n, "session": session.id}

    answer, is_new = await client.said.answer(client.who.user, message.once, say)
    if not is_new and not client.has_session:
        # The session that this message began, of which the client has never heard.
        await client.greet(answer["session"], Cursor())

    return answer


async def _foresee(session: Session, message: requests.Foresee) -> answers.Foreseen:
    mode, why = await session.foresee(message.text)
    return {"mode": mode, "why": why}


async def _inject(client: Client, message: requests.Inject) -> answers.Recorded:
    async def inject() -> answers.Recorded:
        session = await client.session()
        record = session.message_named(message.once)
        if record is None:
            record = await session.inject(
                message.path,
                message.text,
                message.mode,
                message.step or "",
                calls=message.calls,
                once=message.once,
            )

        return {"n": record.n}

    answer, _ = await client.injected.answer(client.who.user, message.once, inject)
    return answer


async def _queue_send(session: Session, message: requests.OnQueued) -> answers.Recorded:
    return {"n": (await session.send_now(message.path, message.n)).n}


async def _queue_edit(session: Session, message: requests.EditQueued) -> answers.Recorded:
    return {"n": (await session.reword(message.path, message.n, message.text)).n}


async def _queue_remove(session: Session, message: requests.OnQueued) -> answers.Recorded:
    return {"n": (await session.withdraw(message.path, message.n)).n}


async def _calls_stop(session: Session, message: requests.StopCalls) -> answers.Recorded:
    return {"n": (await session.stop_calls(message.path)).n}


async def _pause(session: Session, message: requests.OnAgent) -> answers.Recorded:
    return {"n": (await session.pause(message.path, message.step or "")).n}


async def _resume(session: Session, message: requests.OnAgent) -> answers.Recorded:
    return {"n": (await session.resume(message.path, message.step or "")).n}


async def _cancel(session: Session, message: requests.OnAgent) -> answers.Recorded:
    return {"n": (await session.cancel(message.path, message.step or "")).n}


async def _budget(session: Session, message: requests.Budget) -> answers.Recorded:
    return {"n": (await session.raise_budget(message.tokens, message.money)).n}


async def _compress(session: Session, message: requests.Compress) -> answers.Recorded:
    return {"n": (await session.compress()).n}


async def _summary(session: Session, message: requests.Summary) -> answers.Text:
    return {"text": await session.summary()}


async def _plan_start(session: Session, message: requests.StartPlan) -> answers.Recorded:
    return {"n": (await session.start_plan(message.path, seen=message.digest)).n}


async def _plan_edit(session: Session, message: requests.EditPlan) -> answers.Recorded:
    return {"n": (await session.edit_plan(message.path, message.text)).n}


async def _plan_retry(session: Session, message: requests.RetryStep) -> answers.Recorded:
    return {"n": (await session.retry_step(message.path, message.step)).n}


async def _plan_text(session: Session, message: requests.ShowPlan) -> answers.ShownPlan:
    return {"text": session.plan_text(message.path), "digest": session.plan_digest(message.path)}


async def _plan_save(session: Session, message: requests.SavePlan) -> answers.PlanFile:
    file = await asyncio.to_thread(session.save_plan, message.path, message.name, message.parameters)
    return {"file": str(file)}


async def _plan_offers(session: Session, message: requests.OfferParameters) -> answers.ParameterOffers:
    offered = await asyncio.to_thread(session.plan_offers, message.path)
    return {"list": [{"name": offer.name, "value": offer.value} for offer in offered]}


async def _plans(client: Client, message: requests.ListPlans) -> answers.Templates:
    def rows() -> answers.Templates:
        names = client.runtime.templates.names()
        usable = client.runtime.templates.usable()
        rows = [_template_row(name, template) for name, template in usable.items()]

        return {"list": [*names], "templates": rows}

    return await asyncio.to_thread(rows)


def _template_row(name: str, template: Template) -> answers.TemplateRow:
    parameters: list[answers.TemplateParameter] = [
        {
            "name": parameter.name,
            "kind": parameter.kind,
            "was": parameter.shown(parameter.example),
            "default": None if parameter.default is None else parameter.shown(parameter.default),
            "about": parameter.about,
        }
        for parameter in template.parameters
    ]
    return {"name": name, "goal": template.goal, "parameters": parameters}


async def _plan_run(client: Client, message: requests.RunPlan) -> answers.PlanBegun:
    text = await asyncio.to_thread(client.runtime.templates.filled, message.name, message.values)

    session = await client.session()
    record = await session.begin_plan(
        text, name=message.name[:40], mode=message.mode, plan_first=message.plan_first
    )

    return {"n": record.n, "path": record.agent, "session": session.id}


async def _intent(session: Session, message: requests.SetIntent) -> answers.Recorded:
    return {"n": (await session.set_intent(message.value)).n}


async def _clear(client: Client, message: requests.Clear) -> answers.Recorded:
    session = await client.session()
    if message.lasts == "always":
        client.demand("own")

    why = message.why or ""
    if why:
        client.demand("steer")  # the agent reads it as the user's words

    if session.asks_host(message.call) and not message.also:
        record = await session.clear_host(
            message.call, message.allow, message.lasts or "once", why=why, seen=message.digest
        )
        return {"n": record.n}

    remember: JSON = None
    if isinstance(message.remember, requests.Remember):
        remember = message.remember.model_dump()
    elif message.remember is not None:
        remember = message.remember
    record = await session.clear(
        message.call, message.allow, remember, also=message.also, why=why, seen=message.seen
    )

    return {"n": record.n}


async def _question(session: Session, message: requests.ShowQuestion) -> answers.Question:
    question = next(iter(session.records(message.n - 1)), None)
    if question is None or not is_question(question):
        raise UsageError(f"No call waits for an answer to record {message.n}.")

    values = await asyncio.to_thread(question_values, session.journal.parent, question)
    attached: Mapping[str, AttachedValue] = {}
    if isinstance(question.content, ClearanceAsk):
        attached = question.content.attached or {}
    rows: list[answers.LongValue] = [
        {"name": name, "text": exact(text), "sha256": attached[name].sha256} for name, text in values.items()
    ]

    return {"text": told(question, values), "digest": question_digest(question), "values": rows}


async def _answer_form(client: Client, message: requests.AnswerForm) -> answers.Recorded:
    session = await client.session()
    if session.offers_skill(message.ask):
        client.demand("own")  # the skill is kept beyond this session, and trusted in all of them

    values: dict[str, JSON] = {
        name: [*value] if isinstance(value, list) else value for name, value in message.values.items()
    }
    decision: Literal["accept", "decline"] = "accept" if message.accept else "decline"
    record = await session.answer_form(message.ask, decision, values, seen=message.digest)

    return {"n": record.n}


async def _declassify(session: Session, message: requests.Declassify) -> answers.Recorded:
    return {"n": (await session.declassify(message.path, message.name, seen=message.digest)).n}


async def _reading(session: Session, message: requests.ShowReading) -> answers.Reading:
    labels, digest = session.reading(message.path)
    return {"labels": sorted(labels), "digest": digest}


async def _restore(session: Session, message: requests.Restore) -> answers.Recorded:
    return {"n": (await session.restore(message.version, message.path)).n}


async def _lockdown(client: Client, message: requests.Lockdown) -> answers.Recorded:
    session = await client.session()
    if not message.value and _lockdown_of_others(session.records(), client.who.name):
        client.demand("own")

    return {"n": (await session.lockdown(message.value)).n}


def _lockdown_of_others(records: Sequence[Record], name: str) -> bool:
    """Whether anybody but the person `name` has turned tools off since they were last on."""
    for record in reversed(records):
        match record.content:
            case LockdownRecord(value=False):
                return False
            case LockdownRecord(who=who) if who != name:
                return True
    return False


async def _open(client: Client, message: requests.Open) -> answers.Nothing:
    await client.open(message.journal, _cursor(message))
    return {}


async def _render(client: Client, message: requests.Render) -> answers.HtmlOfRecords:
    return {"list": await client.render(message.numbers)}


async def _format(client: Client, message: requests.FormatDraft) -> answers.Formatted:
    return await client.format(message.agent, message.text)


async def _source(client: Client, message: requests.ShowSource) -> answers.Source:
    if not message.plain:
        return {"text": client.source(message.n)}

    text, more = await client.whole(message.n)
    return {"text": text, "more": more}


async def _seek(client: Client, message: requests.Seek) -> answers.Sought:
    await client.seek(message.at)
    return {"at": message.at}


async def _fork(client: Client, message: requests.Fork) -> answers.InSession:
    session, n = await client.fork(message.at, message.text, run=message.run)
    return {"session": session, "n": n}


async def _adopt(client: Client, message: requests.Adopt) -> answers.SessionName:
    return {"session": await client.adopt(message.at)}


async def _upload(client: Client, message: requests.Upload) -> answers.Nothing:
    if not message.archive:
        client.demand("steer")
    client.begin_upload(message.name, message.media, message.size, archive=message.archive)
    return {}


async def _end_upload(client: Client, message: requests.EndUpload) -> answers.Uploaded:
    record = await client.end_upload()
    assert isinstance(record.content, Uploaded)
    return {"n": record.n, "name": record.content.var}


async def _download(client: Client, message: requests.Download) -> answers.Download:
    value, content = await client.history().variable(message.path, message.name, message.at)
    return {"href": client.offer(f"{message.name}{inspection.suffix(value)}", content)}


async def _view(client: Client, message: requests.ViewVariable) -> answers.Download:
    value, content = await client.history().variable(message.path, message.name, message.at)
    view, shown = await asyncio.to_thread(inspection.viewed, value, content)
    return {"href": client.offer(message.name, shown, view=view)}


async def _export(client: Client, message: requests.Export) -> answers.Download:
    client.history()
    session = await client.session()
    page = await asyncio.to_thread(client.product().export, session.journal, message.at)
    return {"href": client.offer(f"{session.id}.html", page.encode("utf-8", "replace"))}


async def _about(client: Client, message: requests.About) -> answers.Setup:
    product = client.product()
    settings, findings = await asyncio.to_thread(lambda: (product.settings(), product.checks()))
    checks: list[answers.Check] = [
        {"check": finding.check, "ok": finding.ok, "detail": finding.detail, "remedy": finding.remedy}
        for finding in findings
    ]

    return {"settings": [*settings], "checks": checks}


async def _address(client: Client, message: requests.NewAddress) -> answers.Address:
    return {"url": client.new_url()}


async def _examples(client: Client, message: requests.ListExamples) -> answers.Examples:
    return {
        "list": [
            {"id": example.id, "title": example.title, "about": example.about}
            for example in client.product().examples()
        ]
    }


async def _context(client: Client, message: requests.ShowContext) -> answers.Context:
    return inspection.context_fields(await client.history().context(message.path, message.at))


async def _variables(client: Client, message: requests.ListVariables) -> answers.Variables:
    return {"list": inspection.table_fields(await client.history().variables(message.path, message.at))}


async def _variable(client: Client, message: requests.ShowVariable) -> answers.VariableContent:
    value, content = await client.history().variable(message.path, message.name, message.at)
    return inspection.content_fields(message.path, value, content)


async def _modules(client: Client, message: requests.ListModules) -> answers.Modules:
    return {"list": [module.description() for module in await client.runtime.modules()]}


async def _module_add(client: Client, message: requests.AddModule) -> answers.Module:
    if message.name is None:
        client.demand("admin")  # it names a folder or an image on the server, where other users' data is
        source = await asyncio.to_thread(source_of, message.source)
    else:
        source = written_source(message.name, message.source)

    module = await client.runtime.add_module(source)
    await client.audit("module.added", module=module.entry.name, digest=module.entry.digest[:12])

    return {"module": module.to_json()}


async def _module_remove(client: Client, message: requests.RemoveModule) -> answers.Nothing:
    await client.runtime.remove_module(message.name)
    await client.audit("module.removed", module=message.name)
    return {}


async def _hosts(session: Session, message: requests.ListHosts) -> answers.Hosts:
    return {"list": list(session.hosts)}


async def _module_allow(session: Session, message: requests.AllowHosts) -> answers.Hosts:
    await session.allow_hosts(
        message.name, message.hosts, always=message.lasts == "always", remove=message.remove
    )
    return {"list": list(session.hosts)}


async def _module_approve(client: Client, message: requests.ApproveModule) -> answers.Module:
    runtime = client.runtime
    module = await runtime.approve_module(message.name, message.functions, digest=message.digest)
    functions = ", ".join(sorted(module.approved))
    await client.audit("module.approved", module=message.name, functions=functions)

    return {"module": module.to_json()}


def _memory_of(client: Client) -> Memory:
    if client.runtime.memory is None:
        raise MemoryUnavailable("Memory is off in this server; start it without IACT_MEMORY=off.")
    return client.runtime.memory


async def _memory(client: Client, message: requests.SearchMemory) -> answers.Memories:
    memory = _memory_of(client)
    rows = await memory.search(message.query, limit=message.limit)
    results = [row.to_json() for row in rows]

    return {"results": results, "on": memory.on, "session_on": _session_memory(client)}


def _session_memory(client: Client) -> bool | None:
    """Whether the watched session's switch of memory is on; None if the client can't switch it."""
    if not client.has_session:
        return None

    session = client.watched()
    if isinstance(session, StoredSession):
        return None
    try:
        client.demand("own")
    except Forbidden:
        return None

    return "session" not in session.memory_off


async def _memory_show(client: Client, message: requests.ShowMemory) -> answers.Memory:
    memory = await _memory_of(client).show(message.memory)
    return {"memory": memory}


async def _memory_forget(client: Client, message: requests.ForgetMemories) -> answers.Count:
    return {"count": await _memory_of(client).forget(message.memories)}


async def _memory_forget_all(client: Client, message: requests.ForgetAllMemories) -> answers.Count:
    return {"count": await _memory_of(client).forget_all()}


async def _memory_switch(client: Client, message: requests.SwitchMemory) -> answers.MemoryState:
    memory = _memory_of(client)
    await client.runtime.switch_memory(message.value)
    return {"on": memory.on}


async def _memory_session(session: Session, message: requests.SwitchSessionMemory) -> answers.MemoryState:
    await session.switch_memory(message.value)
    return {"on": message.value}


async def _memory_distil(client: Client, message: requests.DistilSessions) -> answers.Distilled:
    _memory_of(client)  # refuses where memory is off
    outcome = await client.runtime.distil_each(message.sessions)
    return {"count": outcome.messages, "left_out": dict(outcome.left_out)}


async def _memory_edit(client: Client, message: requests.EditMemory) -> answers.Memory:
    await _memory_of(client).edit(message.memory, message.text)
    return await _memory_show(client, requests.ShowMemory(memory=message.memory))


async def _usage(client: Client, message: requests.ShowUsage) -> answers.Usage:
    if message.everybody:
        client.demand("admin")
    return await people.show_usage(client, message)


async def _memory_rebuild(client: Client, message: requests.RebuildMemory) -> answers.Count:
    return {"count": await _memory_of(client).rebuild()}


COMMANDS: Final[Mapping[str, AnyCommand]] = {
    "hello": _command(requests.Hello, _hello, "greet", while_opening=True),
    "ping": _command(requests.Ping, _ping, "greet", while_opening=True),
    "say": _command(requests.Say, _say, "steer"),
    "foresee": _session_command(requests.Foresee, _foresee, "steer"),
    "inject": _command(requests.Inject, _inject, "steer"),
    "queue.send": _session_command(requests.OnQueued, _queue_send, "steer"),
    "queue.edit": _session_command(requests.EditQueued, _queue_edit, "steer"),
    "queue.remove": _session_command(requests.OnQueued, _queue_remove, "steer"),
    "calls.stop": _session_command(requests.StopCalls, _calls_stop, "steer"),
    "pause": _session_command(requests.OnAgent, _pause, "steer"),
    "resume": _session_command(requests.OnAgent, _resume, "steer"),
    "cancel": _session_command(requests.OnAgent, _cancel, "steer"),
    "budget": _session_command(requests.Budget, _budget, "own"),
    "compress": _session_command(requests.Compress, _compress, "steer"),
    "summary": _session_command(requests.Summary, _summary, "steer"),
    "plan.start": _session_command(requests.StartPlan, _plan_start, "steer"),
    "plan.edit": _session_command(requests.EditPlan, _plan_edit, "steer"),
    "plan.retry": _session_command(requests.RetryStep, _plan_retry, "steer"),
    "plan.text": _session_command(requests.ShowPlan, _plan_text, "inspect"),
    "plan.save": _session_command(requests.SavePlan, _plan_save, "own"),
    "plan.offers": _session_command(requests.OfferParameters, _plan_offers, "inspect"),
    "plan.run": _command(requests.RunPlan, _plan_run, "steer"),
    "plans": _command(requests.ListPlans, _plans, "list", while_opening=True),
    "clear": _command(requests.Clear, _clear, "clear"),
    "question": _watched_command(requests.ShowQuestion, _question, "clear"),
    "form.answer": _command(requests.AnswerForm, _answer_form, "clear"),
    "intent": _session_command(requests.SetIntent, _intent, "own"),
    "declassify": _session_command(requests.Declassify, _declassify, "own"),
    "reading": _watched_command(requests.ShowReading, _reading, "own"),
    "lockdown": _command(requests.Lockdown, _lockdown, "steer"),
    "restore": _session_command(requests.Restore, _restore, "steer"),
    "timeline": _watched_command(requests.ShowTimeline, timeline.show_timeline, "see"),
    "files": _command(requests.ListFiles, files.list_files, "see"),
    "files.changes": _command(requests.ListChanges, files.list_changes, "see"),
    "files.find": _command(requests.FindFiles, files.find_files, "see"),
    "files.download": _command(requests.FetchAll, files.fetch_all, "see"),
    "file": _command(requests.ShowFile, files.show_file, "see"),
    "file.diff": _command(requests.CompareFile, files.compare_file, "see"),
    "file.view": _command(requests.ViewFile, files.view_file, "see"),
    "file.download": _command(requests.FetchFile, files.fetch_file, "see"),
    "pending": _watched_command(requests.ListPending, review.list_pending, "inspect"),
    "patch": _watched_command(requests.ShowPatch, review.show_patch, "inspect"),
    "counts": _watched_command(requests.CountLines, review.count_lines, "inspect"),
    "apply": _watched_command(requests.Apply, review.apply, "clear"),
    "drop": _watched_command(requests.Drop, review.drop, "clear"),
    "sessions": _command(requests.ListSessions, sessions.list_sessions, "list", while_opening=True),
    "sessions.search": _command(
        requests.SearchSessions, sessions.search_sessions, "list", while_opening=True
    ),
    "session.rename": _command(requests.RenameSession, sessions.rename, "change", while_opening=True),
    "session.pin": _command(requests.PinSession, sessions.pin, "change", while_opening=True),
    "session.delete": _command(requests.OnSessions, sessions.delete, "change"),
    "session.restore": _command(requests.OnSessions, sessions.restore, "change", while_opening=True),
    "session.purge": _command(requests.OnSessions, sessions.purge, "change", while_opening=True),
    "session.deleted": _command(requests.ListDeleted, sessions.list_deleted, "list", while_opening=True),
    "session.archive": _command(requests.ArchiveSession, sessions.archive, "list"),
    "session.import": _command(requests.ImportSession, sessions.import_archive, "change"),
    "find": _watched_command(requests.Find, sessions.find_text, "see"),
    "open": _command(requests.Open, _open, "greet", while_opening=True),
    "seek": _command(requests.Seek, _seek, "see"),
    "render": _command(requests.Render, _render, "see", while_opening=True),
    "format": _command(requests.FormatDraft, _format, "see"),
    "source": _command(requests.ShowSource, _source, "see"),
    "fork": _command(requests.Fork, _fork, "fork"),
    "adopt": _command(requests.Adopt, _adopt, "fork"),
    "upload": _command(requests.Upload, _upload, "change", while_opening=True),
    "upload.end": _command(requests.EndUpload, _end_upload, "steer"),
    "download": _command(requests.Download, _download, "see"),
    "variable.view": _command(requests.ViewVariable, _view, "see"),
    "export": _command(requests.Export, _export, "inspect"),
    "about": _command(requests.About, _about, "admin", while_opening=True),
    "address": _command(requests.NewAddress, _address, "admin", while_opening=True),
    "models": _command(requests.ListRoles, choices.list_roles, "list", while_opening=True),
    "model.try": _command(requests.TryRole, choices.try_role, "admin", while_opening=True),
    "model.choose": _command(requests.ChooseRole, choices.choose_role, "admin", while_opening=True),
    "model.forget": _command(requests.ForgetRole, choices.forget_role, "admin", while_opening=True),
    "model.presets": _command(requests.ListPresets, choices.list_presets, "list"),
    "model.files": _command(requests.ListModelFiles, choices.list_model_files, "list"),
    "model.board": _command(requests.UseOnBoard, choices.use_on_board, "admin"),
    "model.endpoints": _command(requests.ListAddedEndpoints, choices.list_added_endpoints, "list"),
    "model.endpoint": _command(requests.UseEndpoint, choices.use_endpoint, "admin"),
    "first": _command(requests.ListFirstMessages, choices.list_first_messages, "list", while_opening=True),
    "first.keep": _command(
        requests.KeepFirstMessage, choices.keep_first_message, "change", while_opening=True
    ),
    "first.forget": _command(
        requests.ForgetFirstMessage, choices.forget_first_message, "change", while_opening=True
    ),
    "examples": _command(requests.ListExamples, _examples, "list", while_opening=True),
    "example.timeline": _command(requests.ShowExample, timeline.show_example, "list", while_opening=True),
    "context": _command(requests.ShowContext, _context, "inspect"),
    "variables": _command(requests.ListVariables, _variables, "see"),
    "variable": _command(requests.ShowVariable, _variable, "see"),
    "modules": _command(requests.ListModules, _modules, "list", while_opening=True),
    "module.add": _command(requests.AddModule, _module_add, "change"),
    "module.remove": _command(requests.RemoveModule, _module_remove, "change"),
    "module.hosts": _watched_command(requests.ListHosts, _hosts, "inspect"),
    "module.allow": _session_command(requests.AllowHosts, _module_allow, "own"),
    "module.approve": _command(requests.ApproveModule, _module_approve, "approve"),
    "secrets": _command(requests.ListSecrets, own_secrets.list_secrets, "list", while_opening=True),
    "secret.set": _command(requests.SetOwnSecret, own_secrets.store_secret, "approve", while_opening=True),
    "secret.remove": _command(
        requests.RemoveOwnSecret, own_secrets.remove_secret, "approve", while_opening=True
    ),
    "memory": _command(requests.SearchMemory, _memory, "list", while_opening=True),
    "memory.show": _command(requests.ShowMemory, _memory_show, "list", while_opening=True),
    "memory.forget": _command(requests.ForgetMemories, _memory_forget, "change", while_opening=True),
    "memory.edit": _command(requests.EditMemory, _memory_edit, "change", while_opening=True),
    "memory.clear": _command(requests.ForgetAllMemories, _memory_forget_all, "change", while_opening=True),
    "memory.switch": _command(requests.SwitchMemory, _memory_switch, "change", while_opening=True),
    "memory.distil": _command(requests.DistilSessions, _memory_distil, "change", while_opening=True),
    "memory.session": _watched_command(requests.SwitchSessionMemory, _memory_session, "own"),
    "memory.rebuild": _command(requests.RebuildMemory, _memory_rebuild, "change", while_opening=True),
    "sharing": _command(requests.ShowSharing, people.show_sharing, "own"),
    "share": _command(requests.ShareWith, people.share_with, "own"),
    "unshare": _command(requests.Unshare, people.unshare, "own"),
    "link.create": _command(requests.CreateLink, people.create_link, "own"),
    "link.revoke": _command(requests.RevokeLink, people.revoke_link, "own"),
    "shared": _command(requests.ListShared, people.list_shared, "list", while_opening=True),
    "account": _command(requests.ShowAccount, people.show_account, "account", while_opening=True),
    "token.create": _command(requests.CreateToken, people.create_token, "account", while_opening=True),
    "token.revoke": _command(requests.RevokeToken, people.revoke_token, "account", while_opening=True),
    "sign-out": _command(requests.SignOut, people.sign_out, "account", while_opening=True),
    "usage": _command(requests.ShowUsage, _usage, "list", while_opening=True),
    "users": _command(requests.ListUsers, people.list_users, "admin", while_opening=True),
    "user.add": _command(requests.AddUser, people.add_user, "admin", while_opening=True),
    "user.change": _command(requests.ChangeUser, people.change_user, "admin", while_opening=True),
    "audit": _command(requests.ShowAudit, people.show_audit, "admin", while_opening=True),
    "audit.download": _command(requests.ExportAudit, people.export_audit, "admin", while_opening=True),
    "everybody": _command(requests.ShowEverybody, people.show_everybody, "admin", while_opening=True),
    "everybody.module.add": _command(
        requests.AddModuleOfEverybody, people.add_module, "admin", while_opening=True
    ),
    "everybody.module.remove": _command(
        requests.RemoveModuleOfEverybody, people.remove_module, "admin", while_opening=True
    ),
    "everybody.module.approve": _command(
        requests.ApproveModuleOfEverybody, people.approve_module, "admin", while_opening=True
    ),
    "everybody.secret.set": _command(requests.SetSecret, people.set_secret, "admin", while_opening=True),
    "everybody.secret.remove": _command(
        requests.RemoveSecret, people.remove_secret, "admin", while_opening=True
    ),
    "policy": _command(requests.ShowPolicy, people.show_policy, "admin", while_opening=True),
    "policy.change": _command(requests.ChangePolicy, people.change_policy, "admin", while_opening=True),
}
