"""What each client message does: a table from its type to a checked model and an action.

A new message is a new row. The actions know a `Client` only as the few things they need of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Memory
from iact.core.records.dialogue import Upload as Uploaded
from iact.core.records.record import Record
from iact.core.session.source import source_of, written_source
from iact.web import choices, files, looking, review, sessions, timeline
from iact.web.follower import Held
from iact.web.messages import (
    About,
    AddModule,
    Adopt,
    AllowHosts,
    ApproveModule,
    Budget,
    Clear,
    Compress,
    Declassify,
    Download,
    EditMemory,
    EditPlan,
    EditQueued,
    EndUpload,
    Export,
    Foresee,
    ForgetMemories,
    Fork,
    Hello,
    Inject,
    ListExamples,
    ListHosts,
    ListModules,
    ListPlans,
    ListVariables,
    Lockdown,
    NewAddress,
    OnAgent,
    OnQueued,
    Open,
    RebuildMemory,
    Remember,
    RemoveModule,
    Render,
    Restore,
    RetryStep,
    RunPlan,
    SavePlan,
    Say,
    SearchMemory,
    Seek,
    SetIntent,
    ShowContext,
    ShowMemory,
    ShowPlan,
    ShowSource,
    ShowVariable,
    StartPlan,
    StopCalls,
    Summary,
    Upload,
)
from iact.web.past import Past
from iact.web.ports import Runtime, Session, Surroundings
from iact.web.records import Fields
from iact.web.shelf import Content


class Client(Protocol):
    """The side of a connection that commands act on."""

    @property
    def runtime(self) -> Runtime: ...

    async def greet(self, session_id: str | None, held: Held) -> None:
        """Begin to watch a session; None: none yet."""
        ...

    async def session(self) -> Session:
        """The watched session; a new one is opened if there is none yet."""
        ...

    def watched(self) -> Session:
        """The watched session; raises UsageError if there is none."""
        ...

    async def open(self, journal: str, held: Held) -> None:
        """Begin to look at a stored session."""
        ...

    def past(self) -> Past:
        """What the watched session was at any record."""
        ...

    def source(self, n: int) -> str:
        """What a record of the watched session says, as it was written."""
        ...

    async def whole(self, n: int) -> tuple[str, int]:
        """All that it says, to be shown, and how many characters are too many for that."""
        ...

    async def render(self, numbers: Sequence[int]) -> Sequence[Fields]:
        """The HTML of records of the watched session."""
        ...

    def begin_upload(self, name: str, media: str, size: int, *, archive: bool) -> None:
        """A file is announced."""
        ...

    async def end_upload(self) -> Record:
        """It is complete: hand it to the session, which is opened if there is none yet."""
        ...

    def files(self) -> files.SessionFiles:
        """The files of the watched session."""
        ...

    def offer(self, name: str, content: Content) -> str:
        """Lay a file ready to be downloaded; gives its address."""
        ...

    def around(self) -> Surroundings:
        """What the product around the server can tell and make."""
        ...

    def new_url(self) -> str:
        """An address for one more browser."""
        ...

    async def seek(self, at: int | None) -> None:
        """Send the tree as it was behind record `at`, or as it is."""
        ...

    async def fork(self, at: int, text: str, *, run: bool) -> tuple[str, int]:
        """Fork the watched session, say `text` in the new one and watch that; gives its id and the record."""
        ...

    async def adopt(self, at: int | None) -> str:
        """Make a session of our own of the watched one and watch that; gives its id."""
        ...

    async def send(self, message: Fields) -> None:
        """Send a message that answers nothing."""
        ...

    def watch_sessions(self) -> None:
        """From now on, tell of each session that changes."""
        ...

    def uploaded(self) -> AbstractContextManager[Path]:
        """The archive that was uploaded, on disk; it is gone behind this."""
        ...


Command: TypeAlias = Callable[[Client, Mapping[str, object]], Awaitable[Fields]]
"""Checks a raw message and acts; gives what the `ok` carries.

Raises:
    pydantic.ValidationError: the message does not fit.
    IactError: the session refuses.
"""

_Model = TypeVar("_Model", bound=BaseModel)


def _command(model: type[_Model], act: Callable[[Client, _Model], Awaitable[Fields]]) -> Command:
    async def run(client: Client, raw: Mapping[str, object]) -> Fields:
        return await act(client, model.model_validate(dict(raw)))

    return run


def _held(message: Hello | Open) -> Held:
    return Held(message.since, message.first, message.path, message.lazy)


async def _hello(client: Client, message: Hello) -> Fields:
    await client.greet(message.session, _held(message))
    return {}


async def _say(client: Client, message: Say) -> Fields:
    session = await client.session()
    record = await session.say(message.text, mode=message.mode, plan_first=message.plan_first)
    return {"n": record.n, "session": session.id}


async def _foresee(client: Client, message: Foresee) -> Fields:
    session = await client.session()
    mode, why = await session.foresee(message.text)
    return {"mode": mode, "why": why}


async def _inject(client: Client, message: Inject) -> Fields:
    session = await client.session()
    record = await session.inject(
        message.path, message.text, message.mode, message.step or "", calls=message.calls
    )
    return {"n": record.n}


async def _queue_send(client: Client, message: OnQueued) -> Fields:
    session = await client.session()
    return {"n": (await session.send_now(message.path, message.n)).n}


async def _queue_edit(client: Client, message: EditQueued) -> Fields:
    session = await client.session()
    return {"n": (await session.reword(message.path, message.n, message.text)).n}


async def _queue_remove(client: Client, message: OnQueued) -> Fields:
    session = await client.session()
    return {"n": (await session.withdraw(message.path, message.n)).n}


async def _calls_stop(client: Client, message: StopCalls) -> Fields:
    session = await client.session()
    return {"n": (await session.stop_calls(message.path)).n}


async def _pause(client: Client, message: OnAgent) -> Fields:
    session = await client.session()
    return {"n": (await session.pause(message.path, message.step or "")).n}


async def _resume(client: Client, message: OnAgent) -> Fields:
    session = await client.session()
    return {"n": (await session.resume(message.path, message.step or "")).n}


async def _cancel(client: Client, message: OnAgent) -> Fields:
    session = await client.session()
    return {"n": (await session.cancel(message.path, message.step or "")).n}


async def _budget(client: Client, message: Budget) -> Fields:
    session = await client.session()
    return {"n": (await session.raise_budget(message.tokens)).n}


async def _compress(client: Client, message: Compress) -> Fields:
    session = await client.session()
    return {"n": (await session.compress()).n}


async def _summary(client: Client, message: Summary) -> Fields:
    session = await client.session()
    return {"text": await session.summary()}


async def _plan_start(client: Client, message: StartPlan) -> Fields:
    session = await client.session()
    return {"n": (await session.start_plan(message.path)).n}


async def _plan_edit(client: Client, message: EditPlan) -> Fields:
    session = await client.session()
    return {"n": (await session.edit_plan(message.path, message.text)).n}


async def _plan_retry(client: Client, message: RetryStep) -> Fields:
    session = await client.session()
    return {"n": (await session.retry_step(message.path, message.step)).n}


async def _plan_text(client: Client, message: ShowPlan) -> Fields:
    session = await client.session()
    return {"text": session.plan_text(message.path)}


async def _plan_save(client: Client, message: SavePlan) -> Fields:
    session = await client.session()
    return {"file": str(await asyncio.to_thread(session.save_plan, message.path, message.name))}


async def _plans(client: Client, message: ListPlans) -> Fields:
    return {"list": [*await asyncio.to_thread(client.runtime.templates.names)]}


async def _plan_run(client: Client, message: RunPlan) -> Fields:
    text = await asyncio.to_thread(client.runtime.templates.read, message.name)
    session = await client.session()
    record = await session.begin_plan(
        text, name=message.name[:40], mode=message.mode, plan_first=message.plan_first
    )
    return {"n": record.n, "path": record.agent, "session": session.id}


async def _intent(client: Client, message: SetIntent) -> Fields:
    session = await client.session()
    return {"n": (await session.set_intent(message.value)).n}


async def _clear(client: Client, message: Clear) -> Fields:
    session = await client.session()
    remember = message.remember
    asked = [one.agent for one in session.records(message.call - 1)[:1]]
    if message.why is not None and not message.allow and asked:
        # Before the answer: it must be there when the agent goes on. What it reads is a message, not a verdict.
        await session.inject(asked[0], message.why, "deliver")
    if session.asks_host(message.call):
        return {"n": (await session.clear_host(message.call, message.allow, message.lasts or "once")).n}
    record = await session.clear(
        message.call,
        message.allow,
        remember.model_dump() if isinstance(remember, Remember) else remember,
    )
    return {"n": record.n}


async def _declassify(client: Client, message: Declassify) -> Fields:
    session = await client.session()
    return {"n": (await session.declassify(message.path, message.name)).n}


async def _restore(client: Client, message: Restore) -> Fields:
    session = await client.session()
    return {"n": (await session.restore(message.version)).n}


async def _lockdown(client: Client, message: Lockdown) -> Fields:
    session = await client.session()
    return {"n": (await session.lockdown(message.value)).n}


async def _open(client: Client, message: Open) -> Fields:
    await client.open(message.journal, _held(message))
    return {}


async def _render(client: Client, message: Render) -> Fields:
    return {"list": [*await client.render(message.numbers)]}


async def _source(client: Client, message: ShowSource) -> Fields:
    if not message.plain:
        return {"text": client.source(message.n)}
    text, more = await client.whole(message.n)
    return {"text": text, "more": more}


async def _seek(client: Client, message: Seek) -> Fields:
    await client.seek(message.at)
    return {"at": message.at}


async def _fork(client: Client, message: Fork) -> Fields:
    session, n = await client.fork(message.at, message.text, run=message.run)
    return {"session": session, "n": n}


async def _adopt(client: Client, message: Adopt) -> Fields:
    return {"session": await client.adopt(message.at)}


async def _upload(client: Client, message: Upload) -> Fields:
    client.begin_upload(message.name, message.media, message.size, archive=message.archive)
    return {}


async def _end_upload(client: Client, message: EndUpload) -> Fields:
    record = await client.end_upload()
    assert isinstance(record.content, Uploaded)
    return {"n": record.n, "name": record.content.var}


async def _download(client: Client, message: Download) -> Fields:
    value, content = await client.past().variable(message.path, message.name, message.at)
    return {"href": client.offer(f"{message.name}{looking.suffix(value)}", content)}


async def _export(client: Client, message: Export) -> Fields:
    client.past()
    session = await client.session()
    page = await asyncio.to_thread(client.around().export, session.journal, message.at)
    return {"href": client.offer(f"{session.id}.html", page.encode("utf-8", "replace"))}


async def _about(client: Client, message: About) -> Fields:
    around = client.around()
    settings, checks = await asyncio.to_thread(lambda: (around.settings(), around.checks()))
    return {
        "settings": [[name, value] for name, value in settings],
        "checks": [
            {"check": one.check, "ok": one.ok, "detail": one.detail, "remedy": one.remedy} for one in checks
        ],
    }


async def _address(client: Client, message: NewAddress) -> Fields:
    return {"url": client.new_url()}


async def _examples(client: Client, message: ListExamples) -> Fields:
    return {
        "list": [{"id": one.id, "title": one.title, "about": one.about} for one in client.around().examples()]
    }


async def _context(client: Client, message: ShowContext) -> Fields:
    return looking.context_fields(await client.past().context(message.path, message.at))


async def _variables(client: Client, message: ListVariables) -> Fields:
    return {"list": looking.table_fields(await client.past().variables(message.path, message.at))}


async def _variable(client: Client, message: ShowVariable) -> Fields:
    value, content = await client.past().variable(message.path, message.name, message.at)
    return looking.content_fields(value, content)


async def _modules(client: Client, message: ListModules) -> Fields:
    return {"list": [one.description() for one in await client.runtime.modules()]}


async def _module_add(client: Client, message: AddModule) -> Fields:
    if message.name is None:
        source = await asyncio.to_thread(source_of, message.source)
    else:
        source = written_source(message.name, message.source)
    return {"module": (await client.runtime.add_module(source)).to_json()}


async def _module_remove(client: Client, message: RemoveModule) -> Fields:
    await client.runtime.remove_module(message.name)
    return {}


async def _hosts(client: Client, message: ListHosts) -> Fields:
    return {"list": list((await client.session()).hosts)}


async def _module_allow(client: Client, message: AllowHosts) -> Fields:
    session = await client.session()
    await session.allow_hosts(
        message.name, message.hosts, always=message.lasts == "always", remove=message.remove
    )
    return {"list": list(session.hosts)}


async def _module_approve(client: Client, message: ApproveModule) -> Fields:
    runtime = client.runtime
    approved = await runtime.approve_module(message.name, message.functions, digest=message.digest)
    return {"module": approved.to_json()}


def _memory_of(client: Client) -> Memory:
    if client.runtime.memory is None:
        raise MemoryUnavailable("Memory is off in this server; start it without IACT_MEMORY=off.")
    return client.runtime.memory


async def _memory(client: Client, message: SearchMemory) -> Fields:
    rows = await _memory_of(client).search(message.query, limit=message.limit)
    return {"results": [row.to_json() for row in rows]}


async def _memory_show(client: Client, message: ShowMemory) -> Fields:
    found = await _memory_of(client).show(message.memory)
    return {"memory": dict(found) if found is not None else None}


async def _memory_forget(client: Client, message: ForgetMemories) -> Fields:
    return {"count": await _memory_of(client).forget(message.memories)}


async def _memory_edit(client: Client, message: EditMemory) -> Fields:
    await _memory_of(client).edit(message.memory, message.text)
    return await _memory_show(client, ShowMemory(memory=message.memory))


async def _memory_rebuild(client: Client, message: RebuildMemory) -> Fields:
    return {"count": await _memory_of(client).rebuild()}


APART: Final = frozenset(
    {
        "hello", "open", "render", "upload", "sessions", "sessions.search", "session.rename", "session.pin",
        "session.deleted", "session.restore", "session.purge", "examples", "about", "address", "models", "model.try",
        "model.choose", "model.forget", "first", "first.keep", "first.forget", "plans", "modules", "memory",
        "memory.show", "memory.forget", "memory.edit", "memory.rebuild",
    }
)  # fmt: skip
"""What is done while the watched session is still being opened; all else waits for that."""

COMMANDS: Final[Mapping[str, Command]] = {
    "hello": _command(Hello, _hello),
    "say": _command(Say, _say),
    "foresee": _command(Foresee, _foresee),
    "inject": _command(Inject, _inject),
    "queue.send": _command(OnQueued, _queue_send),
    "queue.edit": _command(EditQueued, _queue_edit),
    "queue.remove": _command(OnQueued, _queue_remove),
    "calls.stop": _command(StopCalls, _calls_stop),
    "pause": _command(OnAgent, _pause),
    "resume": _command(OnAgent, _resume),
    "cancel": _command(OnAgent, _cancel),
    "budget": _command(Budget, _budget),
    "compress": _command(Compress, _compress),
    "summary": _command(Summary, _summary),
    "plan.start": _command(StartPlan, _plan_start),
    "plan.edit": _command(EditPlan, _plan_edit),
    "plan.retry": _command(RetryStep, _plan_retry),
    "plan.text": _command(ShowPlan, _plan_text),
    "plan.save": _command(SavePlan, _plan_save),
    "plan.run": _command(RunPlan, _plan_run),
    "plans": _command(ListPlans, _plans),
    "clear": _command(Clear, _clear),
    "intent": _command(SetIntent, _intent),
    "declassify": _command(Declassify, _declassify),
    "lockdown": _command(Lockdown, _lockdown),
    "restore": _command(Restore, _restore),
    "timeline": _command(timeline.ShowTimeline, timeline.show_timeline),
    "files": _command(files.ListFiles, files.list_files),
    "files.changes": _command(files.ListChanges, files.list_changes),
    "files.find": _command(files.FindFiles, files.find_files),
    "files.download": _command(files.FetchAll, files.fetch_all),
    "file": _command(files.ShowFile, files.show_file),
    "file.diff": _command(files.CompareFile, files.compare_file),
    "file.download": _command(files.FetchFile, files.fetch_file),
    "pending": _command(review.ListPending, review.list_pending),
    "patch": _command(review.ShowPatch, review.show_patch),
    "counts": _command(review.CountLines, review.count_lines),
    "apply": _command(review.Apply, review.apply),
    "drop": _command(review.Drop, review.drop),
    "sessions": _command(sessions.ListSessions, sessions.list_sessions),
    "sessions.search": _command(sessions.SearchSessions, sessions.search_sessions),
    "session.rename": _command(sessions.RenameSession, sessions.rename),
    "session.pin": _command(sessions.PinSession, sessions.pin),
    "session.delete": _command(sessions.OnSessions, sessions.delete),
    "session.restore": _command(sessions.OnSessions, sessions.restore),
    "session.purge": _command(sessions.OnSessions, sessions.purge),
    "session.deleted": _command(sessions.ListDeleted, sessions.list_deleted),
    "session.archive": _command(sessions.ArchiveSession, sessions.archive),
    "session.import": _command(sessions.ImportSession, sessions.import_archive),
    "find": _command(sessions.Find, sessions.find_text),
    "open": _command(Open, _open),
    "seek": _command(Seek, _seek),
    "render": _command(Render, _render),
    "source": _command(ShowSource, _source),
    "fork": _command(Fork, _fork),
    "adopt": _command(Adopt, _adopt),
    "upload": _command(Upload, _upload),
    "upload.end": _command(EndUpload, _end_upload),
    "download": _command(Download, _download),
    "export": _command(Export, _export),
    "about": _command(About, _about),
    "address": _command(NewAddress, _address),
    "models": _command(choices.ListRoles, choices.list_roles),
    "model.try": _command(choices.TryRole, choices.try_role),
    "model.choose": _command(choices.ChooseRole, choices.choose_role),
    "model.forget": _command(choices.ForgetRole, choices.forget_role),
    "first": _command(choices.ListFirstMessages, choices.list_first_messages),
    "first.keep": _command(choices.KeepFirstMessage, choices.keep_first_message),
    "first.forget": _command(choices.ForgetFirstMessage, choices.forget_first_message),
    "examples": _command(ListExamples, _examples),
    "context": _command(ShowContext, _context),
    "variables": _command(ListVariables, _variables),
    "variable": _command(ShowVariable, _variable),
    "modules": _command(ListModules, _modules),
    "module.add": _command(AddModule, _module_add),
    "module.remove": _command(RemoveModule, _module_remove),
    "module.hosts": _command(ListHosts, _hosts),
    "module.allow": _command(AllowHosts, _module_allow),
    "module.approve": _command(ApproveModule, _module_approve),
    "memory": _command(SearchMemory, _memory),
    "memory.show": _command(ShowMemory, _memory_show),
    "memory.forget": _command(ForgetMemories, _memory_forget),
    "memory.edit": _command(EditMemory, _memory_edit),
    "memory.rebuild": _command(RebuildMemory, _memory_rebuild),
}
