"""What a person said about a module holds for the version that was there: other code under its name is asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import pytest

from iact.core import Session
from iact.core.modules.registry import Loaded
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.core.tree.earlier_version import replaced
from iact.core.tree.tree import Tree
from tests.core.session.fakes import World, replies, runtime
from tests.core.session.test_module_loader import GrowingHost, deploy, manifest

TARGET: Final = "weather.example:443"
CALL: Final = f"```weather.forecast\nreach {TARGET}\n```"

Lasts = Literal["session", "always"]


def loaded(digest: str) -> Loaded:
    """The module `weather` as an agent wrote it."""
    return Loaded(manifest("weather"), digest * 64, "agent", frozenset())


def asked_in(
    data: Path,
    script: Sequence[str],
    *,
    lasts: Lasts = "session",
    remember: object = None,
    policy: str = "",
) -> list[Record]:
    """The questions of a session whose person says yes to everything, for as long as `lasts` says."""

    async def main() -> Path:
        made = runtime(
            data, replies({"/": [*script, "Done."]}), world=World(), host=GrowingHost(), policy=policy
        )
        async with made as opened:
            session = await opened.open(intent=2)
            person = asyncio.create_task(_says_yes(session, lasts, remember))
            await session.ask("Go")
            person.cancel()
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    return [one for one in records if one.kind in ("host", "clearance") and one.text("op") == "ask"]


async def _says_yes(session: Session, lasts: Lasts, remember: object) -> None:
    answered = set[int]()
    while True:
        for record in session.records():
            if record.n in answered or record.text("op") != "ask":
                continue
            answered.add(record.n)
            if record.kind == "host":
                await session.clear_host(record.n, True, lasts)
            elif record.kind == "clearance":
                await session.clear(record.n, True, remember=remember)  # type: ignore[arg-type]
        await session._live.grew.wait()


@pytest.mark.parametrize("lasts", ["session", "always"])
@pytest.mark.parametrize(
    ("second", "questions"),
    [
        pytest.param(CALL, 1, id="the same version"),
        pytest.param(deploy("weather", "fine"), 1, id="the same code again"),
        pytest.param(deploy("weather", "other"), 2, id="other code"),
        pytest.param(deploy("weather", "fine\n"), 2, id="one line more"),
    ],
)
def test_a_host_is_allowed_to_the_version_that_was_there(
    tmp_path: Path, lasts: Lasts, second: str, questions: int
) -> None:
    asked = asked_in(tmp_path, [deploy("weather"), CALL, second, CALL, CALL], lasts=lasts)
    assert [one.text("module") for one in asked if one.kind == "host"] == ["weather"] * questions


def test_a_host_that_is_always_allowed_is_not_given_to_another_sessions_module(tmp_path: Path) -> None:
    """Another session's agent takes the name, and says that it needs the same host."""
    assert len(asked_in(tmp_path, [deploy("weather"), CALL], lasts="always")) == 1
    assert len(asked_in(tmp_path, [deploy("weather", "other"), CALL], lasts="always")) == 1


def test_nor_to_a_module_that_comes_when_the_session_knows_what_is_allowed(tmp_path: Path) -> None:
    first = [deploy("weather"), CALL]
    assert len(asked_in(tmp_path, first, lasts="always")) == 1

    other = "```stocks.price\nreach stocks.example:443\n```"
    asked = asked_in(tmp_path, [deploy("stocks"), other, deploy("weather", "other"), CALL], lasts="always")
    assert [one.text("module") for one in asked if one.kind == "host"] == ["stocks", "weather"]


@pytest.mark.parametrize("now", [loaded("b"), None], ids=["other code", "gone"])
def test_nothing_that_was_let_go_is_let_go_to_other_code(now: Loaded | None) -> None:
    """Neither what it may send, nor a connection that was allowed once; what other modules may do stays."""
    weather, stocks = ("weather", "weather.example", 443), ("stocks", "stocks.example", 443)
    tree = Tree(strict=True, blobs=lambda digest: b"")
    tree.set_modules({"weather": loaded("a")})
    tree.carried.allowed = {("weather", "call"), ("stocks", "call")}
    tree.hosts.let_go = {weather, stocks}
    tree.hosts.once = {weather: frozenset({1}), stocks: frozenset({2})}
    tree.hosts.session = frozenset({("weather", TARGET)})

    replaced(tree, "weather", now)

    assert tree.carried.allowed == {("stocks", "call")}
    assert tree.hosts.let_go == {stocks}
    assert tree.hosts.once == {stocks: frozenset({2})}
    assert tree.hosts.outdated == {("weather", TARGET)}


CLEARED: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["weather.*"]\n'


@pytest.mark.parametrize(
    "remember",
    [
        "call",
        {"function": "weather.forecast"},
        {"function": "weather.*"},
        {"function": "*"},
        {"function": "w*.forecast", "arguments": {}},
    ],
)
@pytest.mark.parametrize(("code", "questions"), [("fine", 1), ("other", 2)])
def test_a_remembered_yes_is_for_the_version_that_was_there(
    tmp_path: Path, remember: object, code: str, questions: int
) -> None:
    call = "```weather.forecast\nRome\n```"
    script = [deploy("weather"), call, deploy("weather", code), call]
    asked = asked_in(tmp_path, script, remember=remember, policy=CLEARED)
    assert [one.kind for one in asked] == ["clearance"] * questions
