"""Modules that join and leave a running session: found by agents at work, journaled, gated, and verified."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from iact.core.errors import ModuleLost, UsageError
from iact.core.modules.approval import FILE, Approvals
from iact.core.modules.manifest import Manifest
from iact.core.modules.registry import UNAPPROVED
from iact.core.ports import CatalogueEntry, ModuleSource, Origin
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import replay
from tests.core.session.fakes import MANIFEST, FakeHost, ScriptedModel, World, replies, runtime
from tests.core.session.test_contexts import is_prefix

NAMES = {"weather": "forecast", "stocks": "price"}


def manifest(name: str) -> Manifest:
    """A module with one function that reads, as it says of itself."""
    function = {**MANIFEST.functions[0].model_dump(), "name": NAMES[name], "alias": "BASH", "impact": 0}
    return Manifest.model_validate(
        {
            "name": name,
            "keywords": (name,),
            "functions": (function,),
            "needs": {"egress": (f"{name}.example:443",)},
        }
    )


class GrowingHost(FakeHost):
    """A catalogue that grows; a source with "broken" in it does not start, one with "wrong" is refused."""

    def __init__(self, *, more: bool = False) -> None:
        super().__init__(more=more)
        self.added: dict[str, CatalogueEntry] = {}
        self.counts: dict[str, CatalogueEntry] = {}

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return [*await super().catalogue(), *self.counts.values()]

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        code = source.files["module.py"].decode()
        if "wrong" in code:
            raise UsageError("That is no module.")
        if "broken" in code:
            raise ModuleLost("It ended.", log="Traceback: of the module")
        digest = hashlib.sha256(code.encode()).hexdigest()
        entry = CatalogueEntry(source.name, digest, origin, "", manifest(source.name).to_proto())
        self.added[digest] = entry
        return entry

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        self.counts[name] = self.added[digest]

    async def remove(self, name: str) -> None:
        del self.counts[name]


def deploy(name: str, code: str = "fine") -> str:
    return f"```DEPLOY {name}\n{code}\n```"


def opened(data: Path, model: ScriptedModel, host: FakeHost, world: World | None = None) -> Runtime:
    return runtime(data, replies({}), model=model, host=host, world=world)


UNVOUCHED = frozenset({"tool:weather.forecast"})


def test_what_an_agent_wrote_of_its_module_marks_the_others_that_read_it(tmp_path: Path) -> None:
    """Its summary stands in no opening, and its documentation is the word of an unknown until a person approves it."""
    script = {
        "/": [deploy("weather"), "```CALL b\nHello.\n```", "```CALL a\nHow is the weather?\n```", "Done."],
        "/a": ["I do not know."],
        "/b": ["Hello."],
    }
    model = ScriptedModel(replies(script))

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost()) as it:
            session = await it.open()
            await session.ask("Go")
            agents = session.state.agents
            assert (agents["/a"].labels, agents["/b"].labels) == (UNVOUCHED, frozenset())
            assert agents["/"].labels == UNVOUCHED  # by what /a answered, not by its own source
            return session.journal

    journal = asyncio.run(main())
    replay(journal, verify=True)
    summary, documentation = MANIFEST.functions[0].summary, MANIFEST.functions[0].documentation
    read = {
        path: "\n".join(m.content for each in model.asked if each.path == path for m in each.messages)
        for path in ("/a", "/b")
    }
    for text in read.values():
        assert UNAPPROVED in text
        assert f"`weather.forecast`: {summary}" not in text
    assert documentation in read["/a"]
    assert documentation not in read["/b"]


def of(records: Sequence[Record], kind: str, **fields: object) -> list[Record]:
    return [one for one in records if one.kind == kind and fields.items() <= one.fields.items()]


def test_a_module_joins_two_agents_at_work_without_moving_a_byte(tmp_path: Path) -> None:
    use = "```weather.forecast\nRome\n```"
    hold = asyncio.Event()
    model = ScriptedModel(
        replies(
            {
                "/": [
                    "```CALL_ASYNC a\nwork\n```\n```CALL_ASYNC b\nwork\n```",
                    deploy("weather"),
                    "```WAIT a\n```",  # else it might take the next message with the result that it works on
                    "```CALL a\nHow is the weather?\n```\n```CALL b\nAnd the weather there?\n```",
                    "Done.",
                ],
                "/a": ["```READ\nx\n```", "a rests", use, "sun"],
                "/b": ["b works and rests", use, "rain"],
            }
        ),
        holds={"/b": hold},
    )

    async def main() -> Path:
        host, world = GrowingHost(), World()
        async with opened(tmp_path, model, host, world) as it:
            session = await it.open()
            answer = asyncio.ensure_future(session.ask("Go"))
            while "weather" not in session.state.modules:  # noqa: ASYNC110 - the scripted agents run meanwhile
                await asyncio.sleep(0)
            hold.set()  # its first reply began before there was a weather, and ends after
            await answer
            assert [text for _, function, text in world.done if function == "weather.forecast"] == [
                "Rome"
            ] * 2
            return session.journal

    journal = asyncio.run(main())
    records = replay(journal, verify=True).records
    assert of(records, "discard") == []
    by_agent = defaultdict(list)
    for asked in model.asked:
        by_agent[asked.path].append(asked.messages)
    for path in ("/a", "/b"):
        for earlier, later in pairwise(by_agent[path]):
            assert is_prefix(earlier, later)
        assert "weather.forecast" not in by_agent[path][0][1].content
        assert "Documentation of `weather.forecast`" in by_agent[path][-1][-3].content
    assert [one.number("impact") for one in of(records, "gate", function="weather.forecast")] == [1, 1]


@pytest.mark.parametrize("name", ["forecasts", "none"])
def test_a_name_that_an_agent_is_told_carries_what_its_author_had_read(tmp_path: Path, name: str) -> None:
    """An unknown call is answered with the nearest names, of which an agent that has read a stranger chose one."""
    hold = asyncio.Event()
    calls_unknown = f'<tool_call>{{"name": "weather.{name}", "arguments": {{"text": "Rome"}}}}</tool_call>'
    if name == "none":
        calls_unknown = "It is nothing."
    model = ScriptedModel(
        replies(
            {
                "/": [
                    "```CALL_ASYNC b\nwork\n```\n```CALL_ASYNC a\nwork\n```\n```WAIT a\n```\n```WAIT b\n```",
                    "Done.",
                ],
                "/a": ["```web.fetch\nEvil\n```", deploy("weather"), "It is there."],
                "/b": ["```VAR x\n1\n```", calls_unknown, "I stop here."],
            }
        ),
        holds={"/b": hold},
    )

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost(more=True)) as runtime:
            session = await runtime.open()
            answer = asyncio.ensure_future(session.ask("Go"))
            while "weather" not in session.state.modules:  # noqa: ASYNC110 - the scripted agents run meanwhile
                await asyncio.sleep(0)
            hold.set()
            await answer
            assert ("tool:web.fetch" in session.state.agents["/b"].labels) is (name == "forecasts")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    told = any("The nearest names are `weather.forecast`" in asked.newest for asked in model.asked)
    assert told is (name == "forecasts")


def test_what_can_not_be_deployed_says_why(tmp_path: Path) -> None:
    model = ScriptedModel(
        replies({"/": [deploy("weather", "broken"), deploy("weather", "wrong"), deploy("weather"), "Done."]})
    )

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost()) as it:
            session = await it.open()
            await session.ask("Go")
            return session.journal

    results = of(replay(asyncio.run(main()), verify=True).records, "result")
    assert [one.text("status") for one in results] == ["error", "error", "ok"]
    assert "Traceback: of the module" in model.asked[1].newest
    assert "That is no module." in model.asked[2].newest
    assert f"- `weather.forecast <text>` · {UNAPPROVED}" in model.asked[3].newest
    assert "alias" not in model.asked[3].newest, "what an agent wrote can't take an alias"


def test_an_agent_that_may_only_look_deploys_nothing(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL reader intent=0\nGo\n```\n```CALL narrow scope=t.*\nGo\n```", "Done."],
        "/reader": [deploy("weather"), "no"],
        "/narrow": [deploy("weather"), "no"],
    }
    model, host = ScriptedModel(replies(script)), GrowingHost()

    async def main() -> Path:
        async with opened(tmp_path, model, host) as it:
            session = await it.open()
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [one.text("status") for one in of(records, "result")] == ["incomplete"] * 2
    assert [one.text("by") for one in of(records, "gate")] == ["impact", "scope"]
    assert host.added == {}


def test_an_approval_counts_from_the_next_call_and_is_bound_to_the_digest(tmp_path: Path) -> None:
    use = "```weather.forecast\nRome\n```"
    model = ScriptedModel(
        replies({"/": [deploy("weather"), use, "1", use, "2", deploy("weather", "other"), use, "3"]})
    )

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost()) as it:
            session = await it.open()
            await session.ask("Go")
            digest = session.state.modules["weather"].digest
            Approvals(tmp_path / FILE).approve("weather", digest, ["forecast"])  # as another process does
            await session.ask("Go")
            assert list(session.state.modules["weather"].egress) == ["weather.example:443"]
            await session.ask("Go")
            assert list(session.state.modules["weather"].egress) == []
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [one.number("impact") for one in of(records, "gate", function="weather.forecast")] == [1, 0, 1]
    stakes = [one.text("stake") for one in of(records, "module", name="weather")]
    assert stakes == ["scratch", "live", "scratch"]


def test_a_session_that_did_not_deploy_a_module_knows_it_after_a_load_and_keeps_its_version(
    tmp_path: Path,
) -> None:
    script = {"/": [deploy("weather"), "1"]}
    later = {"/": ["```LOAD weather\n```", "2", "```weather.forecast\nx\n```", "3"]}
    host = GrowingHost()

    async def main() -> Path:
        async with opened(tmp_path / "1", ScriptedModel(replies(script)), host) as it:
            await (await it.open()).ask("Go")
        async with opened(tmp_path / "2", ScriptedModel(replies(later)), host) as it:
            session = await it.open()
            assert "weather" not in session.state.modules
            await session.ask("Go")
            first = session.state.modules["weather"].digest
            newer = await host.add(ModuleSource("weather", {"module.py": b"newer"}), "agent")
            await host.adopt("weather", newer.digest, "agent")
            await session.refresh_modules()
            assert session.state.modules["weather"].digest == first
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert len(of(records, "module", name="weather")) == 1


def test_a_module_of_another_session_is_named_to_who_looks_for_it(tmp_path: Path) -> None:
    """What an agent wrote is in no other session's list until somebody there asks for it, and asking is one turn."""
    later = ["```HELP LOAD\n```", "```weather.forecast\nx\n```", "```LOAD pumps\n```", "Done."]
    model, host = ScriptedModel(replies({"/": later})), GrowingHost()

    async def main() -> None:
        async with opened(
            tmp_path / "1", ScriptedModel(replies({"/": [deploy("weather"), "1"]})), host
        ) as it:
            await (await it.open()).ask("Go")
        async with opened(tmp_path / "2", model, host) as it:
            await (await it.open()).ask("Go")

    asyncio.run(main())
    first, helped, missed, refused = (asked.newest for asked in model.asked)
    assert "weather" not in first
    assert "one that an agent wrote in another session" in helped
    assert "`LOAD weather` may bring its module." in missed
    assert "There is no module 'pumps' in the catalogue; there are t, weather." in refused


def test_agents_that_use_a_module_hear_that_it_is_gone(tmp_path: Path) -> None:
    script = {
        "/": [
            deploy("weather"),
            deploy("stocks"),
            "```CALL a\nThe stocks?\n```",
            "1",
            "```CALL a\n?\n```",
            "2",
        ],
        "/a": ["```stocks.price\nx\n```", "up", "I can't say."],
    }
    model = ScriptedModel(replies(script))

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost()) as it:
            session = await it.open()
            await session.ask("Go")
            await it.remove_module("stocks")
            assert not session.state.root.active, "nobody is woken by it"
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    (gone,) = of(records, "module", state="removed")
    assert gone.text("name") == "stocks"
    told = [one.path for one in model.asked if "`stocks` is not available any more" in one.newest]
    assert told == ["/", "/a"]


# --- a call in the message that brings its module --------------------------------------------------------


def test_a_function_can_be_called_in_the_message_that_deploys_it(tmp_path: Path) -> None:
    world = World()
    both = f"{deploy('weather')}\n\nNow I use it:\n\n```weather.forecast\nOslo\n```"
    model = ScriptedModel(replies({"/": [both, "Done."]}))

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost(), world) as runtime:
            session = await runtime.open()
            await session.ask("Go")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert [text for _, _, text in world.done] == ["Oslo"]
    heard = model.asked[1].newest
    assert heard.index("`weather.forecast`") < heard.index("Result of `weather.forecast`")


def test_a_call_of_a_module_that_could_not_be_deployed_is_told(tmp_path: Path) -> None:
    both = f"{deploy('weather', 'broken')}\n\n```weather.forecast\nOslo\n```"
    model = ScriptedModel(replies({"/": [both, "Done."]}))

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost()) as runtime:
            session = await runtime.open()
            await session.ask("Go")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert "There is no function `weather.forecast`." in model.asked[1].newest


def test_a_block_before_the_module_or_of_another_one_is_not_run(tmp_path: Path) -> None:
    text = f"```weather.forecast\nOslo\n```\n\n{deploy('weather')}\n\n```stocks.price\nA\n```"
    world = World()
    model = ScriptedModel(replies({"/": [text, "Done."]}))

    async def main() -> Path:
        async with opened(tmp_path, model, GrowingHost(), world) as runtime:
            session = await runtime.open()
            await session.ask("Go")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert not world.done
    heard = model.asked[1].newest
    assert "There is no function `weather.forecast` here." in heard, "it stood before its module"
    assert "`DEPLOY` is done." in heard
