"""A model, a clock and modules in memory, for tests of the tree: everything else is the real thing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from iact.core.errors import ModuleLost
from iact.core.gate.gate import Ticket
from iact.core.gate.policy_file import Policies
from iact.core.journal.stores import JournalStore
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome, Raised
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import ModuleAsk, ModuleReply
from iact.core.modules.registry import Start
from iact.core.ports import (
    CatalogueEntry,
    ChatMessage,
    ConcurrencyLimits,
    Memory,
    ModelEvent,
    ModelProfile,
    ModelQuota,
    ModuleHost,
    ModuleInstance,
    ModuleSource,
    Origin,
    Permit,
    Price,
    Report,
    Right,
    StreamEnd,
    TextDelta,
    Usage,
    UsageReport,
    Versions,
)
from iact.core.records.parts import Bounds
from iact.core.session.monitor import Authorities
from iact.core.session.runtime import Runtime
from iact.core.stored.shared_list import SharedList
from tests.prefix import Conversation
from tests.sealing import give_key

_OPENING = re.compile(r"^You are agent (\S+), called by (.+)\.$", re.MULTILINE)

MANIFEST = Manifest.model_validate(
    {
        "name": "t",
        "version": "1",
        "purpose": "For tests.",
        "keywords": ("test",),
        "needs": {"workspace": "write", "forgets": True},
        "functions": (
            _function := {
                "name": "read",
                "alias": "READ",
                "summary": "Reads.",
                "documentation": "Gives its body back.",
                "schema_text": '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
                "body": "text",
            },
            {**_function, "name": "write", "alias": "WRITE", "impact": 1},
            {**_function, "name": "destroy", "alias": "", "impact": 2},
            {**_function, "name": "fail", "alias": "", "impact": 1},
            {**_function, "name": "lose", "alias": "", "impact": 1},
        ),
    }
)


WEB = Manifest.model_validate(
    {
        "name": "web",
        "version": "1",
        "purpose": "Outside.",
        "needs": {"egress": ("*",), "forgets": True},
        "functions": ({**_function, "name": "fetch", "alias": ""},),
    }
)
"""A shipped module whose results come from outside."""

MAIL = Manifest.model_validate(
    {
        "name": "mail",
        "version": "1",
        "purpose": "Sends.",
        "needs": {"egress": ("mail.example.com:25",)},
        "functions": (
            {
                "name": "send",
                "summary": "Sends.",
                "documentation": "",
                "schema_text": '{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"},'
                '"copies":{"type":"integer"}},"required":["to","text"]}',
                "body": "text",
                "impact": 2,
            },
        ),
    }
)
"""A module of the user's."""


class TickingClock:
    """Every look is a microsecond later than the one before; waiting takes no time, and `slept` says how long.

    `advance` lets time pass.
    """

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._ticks = 0
        self.slept: list[float] = []

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def now(self) -> datetime:
        self._ticks += 1
        return self._now + timedelta(microseconds=self._ticks)

    def monotonic(self) -> float:
        return self._ticks / 1e6

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call: who asks, how often before, and the whole context."""

    path: str
    turn: int
    messages: Sequence[ChatMessage]

    @property
    def newest(self) -> str:
        """The last message."""
        return self.messages[-1].content


Script = Callable[[Asked], str]


class ScriptedModel:
    """Answers with what `script` says, in chunks, giving way between them.

    `crashes`: a session that asks it may be killed. `holds`: an agent's replies wait for its event behind their first chunk.
    """

    def __init__(
        self,
        script: Script,
        *,
        chunk: int = 16,
        context: int = 1_000_000,
        holds: Mapping[str, asyncio.Event] | None = None,
        crashes: bool = False,
        price: Price | None = None,
    ) -> None:
        self._holds = holds or {}
        self._script = script
        self._chunk = chunk
        self.asked: list[Asked] = []
        self.conversation = Conversation(crashes=crashes)
        self.profile = ModelProfile("scripted", context, price=price)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        opening = _OPENING.search(messages[1].content) if len(messages) > 1 else None
        if opening is None:  # a question that is no agent's
            text = self._script(Asked("", 0, list(messages)))
            yield TextDelta(text)
            yield UsageReport(Usage(len(messages[0].content) // 4, 0, len(text) // 4))
            yield StreamEnd("stop")
            return
        asked = Asked(opening.group(1), sum(one.role == "assistant" for one in messages), list(messages))
        self.asked.append(asked)
        path = [found for one in messages if one.role == "user" for found in _OPENING.findall(one.content)][
            -1
        ][0]
        self.conversation.take("", path, tuple((one.role, one.content) for one in messages))
        text = self._script(asked)
        size = sum(len(one.content) for one in messages) // 4
        for start in range(0, len(text), self._chunk):
            await asyncio.sleep(0)
            yield TextDelta(text[start : start + self._chunk])
            if asked.path in self._holds:
                await self._holds[asked.path].wait()
        yield UsageReport(Usage(size, 0, len(text) // 4))
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None


@dataclass
class World:
    """What the functions did; outlives a crash. `done`: (record of the call, function, text).

    `mended`: what fails does not any more. `warmed`: what was to be started ahead: module, right, agent.
    """

    done: list[tuple[int, str, str]] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    hold: Mapping[str, asyncio.Event] = field(default_factory=dict)
    mended: bool = False
    warmed: set[tuple[str, str, str]] = field(default_factory=set)


class FakeModules:
    """The module `t` in memory. "reach HOST:PORT …" asks for hosts, "ask {…}" a person. A text that is a key of `world.hold` waits for that event; "big:N" gives N characters, "big:N of WORD" as many of that word."""

    running = 0

    def __init__(self, world: World) -> None:
        self._world = world

    def supervise(self, group: asyncio.TaskGroup) -> None:
        return None

    def permit_by(self, permit: Callable[[str, str], Permit]) -> None:
        """Have `permit` say which hosts may be reached."""
        self.permit = permit

    def on_change(self, tell: Callable[[], None]) -> None:
        return None

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        ticket.redeem(call.request)
        function, text = call.request.function, str(call.arguments.get("text", ""))
        if "text" in call.attached:
            text = call.attached["text"].text()
        if text.startswith("big:"):
            size, _, unit = text[4:].partition(" of ")
            unit = unit or "x"
            text = unit * (int(size) // len(unit))
        self._world.running.add(call.call)
        try:
            await asyncio.sleep(0)
            if text.startswith("reach "):
                text = await self._reach(function.split(".")[0], text.removeprefix("reach ").split())
            if text.startswith("ask "):
                text = await self._ask(call, json.loads(text[4:]))
            self._world.done.append((call.call, function, text))
            on_output(text)
            if text in self._world.hold:
                await self._world.hold[text].wait()
            await asyncio.sleep(0)
            if function == "t.fail" and not self._world.mended:
                return Raised("ValueError", "it failed", "Traceback …", "")
            if function == "t.lose":
                raise ModuleLost("The module is gone.")
            return Completed(text, "text/plain", {}, None, (), None)
        finally:
            self._world.running.discard(call.call)

    async def _reach(self, module: str, targets: Sequence[str]) -> str:
        """What the proxy would do: each "host:port" with whether it may be reached."""
        permit = self.permit(module, "")
        asked = [permit(host, int(port)) for host, _, port in (one.rpartition(":") for one in targets)]
        return " ".join(
            f"{one}={'yes' if yes else 'no'}"
            for one, yes in zip(targets, await asyncio.gather(*asked), strict=True)
        )

    async def _ask(self, call: FunctionCall, said: Mapping[str, str]) -> str:
        """What a module does that asks a person: it waits for the answer, which is what it gives back."""
        answer: asyncio.Future[ModuleReply] = asyncio.get_running_loop().create_future()

        async def reply(told: ModuleReply) -> None:
            answer.set_result(told)

        assert call.on_ask is not None
        await call.on_ask(ModuleAsk("1", said["message"], said.get("schema", ""), said.get("url", "")), reply)
        told = await answer
        return f"{told.action} {json.dumps(dict(told.values))} {told.reason}".rstrip()

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest:
        return MANIFEST

    async def warm(
        self, module: str, report: Report, start: Start, *, right: Right = "work", agent: str = ""
    ) -> None:
        self._world.warmed.add((module, right, agent))
        if right == "work":
            raise ModuleLost("It does not come up, which is for its first call to say.")

    async def end_background(self, agents: Callable[[str], bool]) -> None:
        pass

    async def halt(self, agents: Callable[[str], bool], *, most: float, idle: bool) -> None:
        return None

    async def drop(self, module: str) -> None:
        return None

    async def leave(self, copy: Path) -> None:
        return None

    async def close(self) -> None:
        return None


class FakeHost:
    """A catalogue with the shipped modules `t` and, if wanted, `web`, and the user's `mail`; nothing can be started."""

    backend: Literal["docker", "bubblewrap", "off"] = "docker"

    def __init__(self, *, more: bool = False, digest: str = "1" * 64) -> None:
        self._more = more
        self.digest = digest

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        own = [CatalogueEntry("t", "0" * 64, "shipped", "For tests.", MANIFEST.to_proto())]
        web = CatalogueEntry("web", "0" * 64, "shipped", "Outside.", WEB.to_proto())
        mail = CatalogueEntry("mail", self.digest, "user", "Sends.", MAIL.to_proto())
        return [*own, web, mail] if self._more else own

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        raise AssertionError("nothing is added here")

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        raise AssertionError("nothing is added here")

    async def files(self, name: str, digest: str) -> Mapping[str, bytes]:
        raise AssertionError("nothing is looked into here")

    async def remove(self, name: str) -> None:
        raise AssertionError("nothing is removed here")

    async def start(
        self,
        name: str,
        *,
        session: str,
        workspace: Path,
        report: Report,
        digest: str | None = None,
        egress: Sequence[str] = (),
        secrets: Sequence[str] = (),
        right: Right = "work",
        agent: str = "",
        copy: str = "",
        permit: Permit | None = None,
    ) -> ModuleInstance:
        raise AssertionError("the fake modules start nothing")

    async def remember_manifest(self, digest: str, manifest: bytes) -> None:
        return None

    running = 0

    async def answers(self) -> bool:
        return True

    async def end_session(self, session: str) -> None:
        return None

    async def close(self) -> None:
        return None


def runtime(
    data: Path,
    script: Script,
    *,
    world: World | None = None,
    bounds: Bounds | None = None,
    chunk: int = 16,
    model: ScriptedModel | None = None,
    host: ModuleHost | None = None,
    policy: str = "",
    scope: str = "default",
    authorities: Authorities | None = None,
    clock: TickingClock | None = None,
    memory: Memory | None = None,
    versions: Versions | None = None,
    journals: JournalStore | None = None,
    others: SharedList | None = None,
    quotas: Sequence[ModelQuota] = (),
    limits: ConcurrencyLimits | None = None,
) -> Runtime:
    """A runtime whose models say what `script` says, with the module `t` of `world`, under a policy as TOML."""
    it = world or World()
    give_key(data)

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return FakeModules(it)

    models = Models({"smart": model or ScriptedModel(script, chunk=chunk)}, quotas=quotas)
    return Runtime(
        data,
        models,
        host or FakeHost(),
        clock=clock or TickingClock(),
        bounds=bounds,
        policies=lambda: Policies.from_toml(policy),
        scope=scope,
        authorities=authorities,
        open_modules=open_modules,
        memory=memory,
        versions=versions,
        journals=journals,
        others=others,
        limits=limits,
    )


def replies(by_path: Mapping[str, Sequence[str]]) -> Script:
    """A script: each agent's replies in order, chosen by how many its history holds already."""

    def script(asked: Asked) -> str:
        return by_path[asked.path][asked.turn]

    return script
