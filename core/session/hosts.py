"""Decides whether a module of a running session may reach a host. The sandbox's proxy asks for every connection.

A connection that is not allowed waits while a person is asked. Hosts that people allow permanently are in a file of the
data directory; those for one session are in a file next to its journal. Both files are watched while sessions run, so a
command can allow a host to a running module. A permission is in the journal before it takes effect.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

from typing_extensions import TypedDict

from iact.core.errors import JournalUnwritable, UsageError
from iact.core.gate.hosts import Rule, host_rule, lists_of
from iact.core.modules.host_file import FILE, HostFile
from iact.core.ports import Permit
from iact.core.records.control import AllowHosts
from iact.core.records.hosts import HostAnswer, HostAsk, HostOrigin, HostReach, rule_of
from iact.core.records.record import Record
from iact.core.session.live import Live
from iact.core.session.person import signed
from iact.core.session.person_waits import PersonWaits
from iact.core.tree.apply_hosts import may_ask, origin_of
from iact.core.tree.carried import NOTHING_CARRIED, connection_carries
from iact.core.tree.host_callers import callers_of
from iact.core.tree.installing import is_first_to_a_host
from iact.core.tree.reached import adds_labels

Lasts = Literal["once", "session", "always"]
"""How long a person's approval lasts."""

_LOOKS: Final = 1.0
"""Seconds between two checks of the files while a connection waits."""

LASTS: Final[tuple[Lasts, ...]] = ("once", "session", "always")


class HostAccess:
    """The hosts of one session. `seconds`: how long a person has to answer; `attended`: whether one may be available."""

    def __init__(
        self, live: Live, data: Path, seconds: float, waits: PersonWaits, *, attended: bool = True
    ) -> None:
        self._live = live
        self._waits = waits
        self._seconds = seconds
        self._attended = attended
        self._always = HostFile(data / FILE)
        self._session = HostFile(live.journal.directory / FILE)
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._once: set[int] = set()
        """Questions that a person answered with "yes, once"."""
        self._unasked: set[tuple[str, str, int]] = set()
        """Connections that were refused because no person was available. The journal names each of them once."""

    def permit(self, module: str, owner: str) -> Permit:
        """The function that the proxy of a module's instance calls. `owner`: the agent that it serves alone, or ""."""
        return partial(self.permits, module, owner)

    async def permits(self, module: str, owner: str, host: str, port: int) -> bool:
        """Whether `module` may connect to `host` (in lower case) at `port` now; may wait for a person."""
        live = self._live
        while not (live.closed or live.failure is not None):
            self.follow()
            origin = origin_of(live.tree, module, host, port)
            carrying = connection_carries(live.tree, module, owner, host, port)
            if origin is not None and carrying is None:
                await self._note_reached(module, owner, host, port, origin)
                return True

            what = (module, host, port)
            was_refused = what in live.tree.hosts.refused
            if carrying is not None and what in live.tree.hosts.kept_back:
                was_refused = True
            if was_refused or live.tree.lockdown or not may_ask(live.tree, module, host, port):
                return False
            if not self._attended:
                self._refuse(module, owner, host, port)
                return False

            ask = live.tree.hosts.asked(module, host, port) or self._ask(module, owner, host, port)
            await self._answered(ask)

            # A host that is allowed from now on is looked at again, for what else may be asked about it.
            if origin_of(live.tree, module, host, port) is None:
                return ask in self._once  # and another connection that waited for this answer came first
            if connection_carries(live.tree, module, owner, host, port) is not None:
                return False
        return False

    async def _note_reached(self, module: str, owner: str, host: str, port: int, origin: HostOrigin) -> None:
        """Record that a module reaches a host, before it does, if that is news. `origin`: who allowed it."""
        if not self._is_news(module, owner, host, port, origin):
            return

        reach = HostReach(module=module, host=host, port=port, by=origin, owner=owner)
        agents = callers_of(self._live.tree, module, host, owner).agents
        await self._live.durable(self._live.record(reach, agents[0] if agents else "/"))

    async def _answered(self, ask: int) -> None:
        """Wait until a question has its answer, or the session is closed."""
        live = self._live
        while ask in live.tree.hosts.open and not live.closed:
            # Another session may have been told that the host is always allowed: its file is looked at now and then.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOKS):
                    await live.moved()
            self.follow()

    def _is_news(self, module: str, owner: str, host: str, port: int, by: HostOrigin) -> bool:
        """Whether a connection must be in the journal before it is made.

        It must if it uses up a permission, or if what its module writes from now on carries more labels than before.
        """
        hosts = self._live.tree.hosts
        is_first = (module, host, port, by) not in hosts.reached
        is_used_up = not hosts.once.get((module, host, port), True)
        if is_first or is_used_up or adds_labels(self._live.tree, module, owner):
            return True
        return is_first_to_a_host(self._live.tree, module, host)

    def follow(self) -> None:
        """Record what the files say now, if it differs from the journal."""
        said = self._changed()
        if said is not None:
            self._live.record(said, "/")
            self._settle()

    def _follow_person(self) -> None:
        """The same, when a person has just changed the files."""
        said = self._changed()
        if said is not None:
            self._live.record(signed(said), "/")
            self._settle()

    def _changed(self) -> AllowHosts | None:
        hosts = self._live.tree.hosts
        always, session = self._always.rules(), self._session.rules()
        if (always, session) == (hosts.always, hosts.session):
            return None
        return AllowHosts(by="user", always=lists_of(always), session=lists_of(session))

    def answer(self, ask: int, *, allow: bool, lasts: Lasts = "once") -> Record:
        """Answer the question at record `ask` on behalf of a person.

        Raises:
            UsageError: the question is not open, or a file can't be written.
        """
        question = self._live.tree.hosts.open.get(ask)
        if question is None:
            raise UsageError(f"No connection waits for an answer to record {ask}.")

        # A no, and a yes to what the host is allowed for already, are not kept in a file.
        lasts = lasts if allow and not question.allowed else "once"
        if lasts != "once":
            file = self._always if lasts == "always" else self._session
            file.change(add={(question.module, rule_of(question.host, question.port))})
        elif allow:
            self._once.add(ask)

        self._close(ask)
        answer = HostAnswer(ask=ask, allow=allow, by="user", lasts=lasts)
        record = self._live.record(signed(answer), "/")
        self._follow_person()
        return record

    def allow(self, module: str, rules: Iterable[str], *, always: bool, remove: bool = False) -> None:
        """Allow a module hosts in this session or in all sessions on behalf of a person, or take that back.

        Raises:
            UsageError: there is no such module, a rule is not valid, or a file can't be written.
        """
        known = self._live.tree.modules
        if module not in known:
            raise UsageError(
                f"There is no module {module!r}; there are {', '.join(sorted(known)) or 'none'}."
            )

        changed = {(module, host_rule(rule)) for rule in rules}
        file = self._always if always else self._session
        if remove:
            file.change(add=(), remove=changed)
        else:
            file.change(add=changed, remove=())
        self._follow_person()

    def leave(self) -> None:
        """End all open questions: those asked before the session was opened, or those still open when it is closed."""
        for ask in list(self._live.tree.hosts.open):
            self._end(ask, "core")

    def _refuse(self, module: str, owner: str, host: str, port: int) -> None:
        """Record a question that no person is available to answer, and that the answer is no."""
        what = (module, host, port)
        if what in self._unasked:
            return

        self._unasked.add(what)
        said = self._question(module, owner, host, port)
        ask = self._live.record(said, said.agents[0] if said.agents else "/").n
        self._end(ask, "policy")

    def _question(self, module: str, owner: str, host: str, port: int) -> HostAsk:
        tree = self._live.tree
        callers = callers_of(tree, module, host, owner)
        carrying = connection_carries(tree, module, owner, host, port) or NOTHING_CARRIED
        return HostAsk(
            module=module,
            host=host,
            port=port,
            calls=callers.calls,
            owner=owner,
            agents=callers.agents,
            addresses=callers.addresses,
            origins=callers.origins,
            strange=carrying.strange,
            private=carrying.private,
            programs=carrying.programs,
            allowed=origin_of(tree, module, host, port) is not None,
            seconds=self._seconds,
        )

    def _ask(self, module: str, owner: str, host: str, port: int) -> int:
        said = self._question(module, owner, host, port)
        ask = self._live.record(said, said.agents[0] if said.agents else "/").n
        self._waits.begin(ask, said.calls)
        loop = asyncio.get_running_loop()
        self._timers[ask] = loop.call_later(self._seconds, self._end, ask, "time")
        self._live.changed()
        return ask

    def _settle(self) -> None:
        """Close questions about hosts that a person has allowed in another way in the meantime."""
        tree = self._live.tree
        for ask, one in list(tree.hosts.open.items()):
            if not one.carries and origin_of(tree, one.module, one.host, one.port) is not None:
                self._end(ask, "core")

    def _end(self, ask: int, by: Literal["time", "core", "policy"]) -> None:
        self._close(ask)
        if ask in self._live.tree.hosts.open and self._live.failure is None:
            try:
                self._live.record(HostAnswer(ask=ask, allow=False, by=by), "/")
            except JournalUnwritable:
                return
            self._live.changed()

    def _close(self, ask: int) -> None:
        self._waits.end(ask)
        timer = self._timers.pop(ask, None)
        if timer is not None:
            timer.cancel()


class HostRow(TypedDict):
    """A host that a module may reach without a question, and who allowed it: a policy, or a person and for how long."""

    module: str
    host: str
    by: Literal["policy", "always", "session"]


def hosts_json(policy: Iterable[Rule], always: Iterable[Rule], session: Iterable[Rule]) -> list[HostRow]:
    """Every rule with its origin, for people and programs."""
    sources: Mapping[Literal["policy", "always", "session"], Iterable[Rule]] = {
        "policy": policy,
        "always": always,
        "session": session,
    }
    return [
        {"module": module, "host": host, "by": by}
        for by, rules in sources.items()
        for module, host in sorted(rules)
    ]


def kept_hosts(folder: Path) -> list[tuple[str, str]]:
    """The hosts that people allow in the file of a data directory or session, as sorted pairs of module and host."""
    return sorted(HostFile(folder / FILE).rules())


def keep_hosts(folder: Path, module: str, hosts: Iterable[str], *, remove: bool = False) -> None:
    """Let a module reach hosts on behalf of a person, or take that back. Running sessions apply the change at the next
    connection.

    Raises:
        UsageError: a host is not valid, or the file can't be written.
    """
    changed = {(module, host_rule(one)) for one in hosts}
    HostFile(folder / FILE).change(add=() if remove else changed, remove=changed if remove else ())
