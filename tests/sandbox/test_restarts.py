"""A module that dies is started again after a pause, withdrawn after three failures in a row, and told of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import ModuleLost
from iact.sandbox import DockerHost
from iact.sandbox.restarts import MOST, PAUSES, SERVED, Restarts
from tests.sandbox.calling import shell, write_module
from tests.sandbox.inside import hosting


def test_pauses_grow_and_then_it_is_withdrawn() -> None:
    row = Restarts("d")
    assert row.pause("d", 0.0) == 0.0
    for number in range(1, MOST):
        row.failed("no", 10.0)
        assert not row.withdrawn
        assert row.pause("d", 10.0) == PAUSES[number]
        assert row.pause("d", 100.0) == 0.0
    row.failed("the last", 10.0)
    assert row.withdrawn
    assert row.reason == "the last"


def test_one_that_served_ends_the_row() -> None:
    row = Restarts("d")
    row.failed("no", 1.0)
    row.failed("no", 2.0)
    row.failed("no", 3.0 + SERVED, since=3.0)
    assert row.failures == 1


def test_other_source_starts_afresh() -> None:
    row = Restarts("d", failures=MOST)
    assert row.pause("e", 0.0) == 0.0
    assert not row.withdrawn


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=10))
def test_withdrawn_means_three_short_lives_in_a_row(lives: list[tuple[float, float]]) -> None:
    row, now, short = Restarts("d"), 0.0, 0
    for waited, lived in lives:
        begun = now + waited
        now = begun + lived
        row.failed("no", now, since=begun)
        short = short + 1 if now - begun < SERVED else 1
        assert row.withdrawn == (short >= MOST)


def test_one_that_never_comes_up_is_withdrawn_and_others_go_on(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    shipped = write_module(tmp_path / "shipped", "broken", "raise RuntimeError('no such luck')\n")
    source = "from ext_modules.sdk import Module\nmodule = Module('well', 'Is well.')\n"
    source += "@module.function(impact=0)\ndef hello() -> str:\n    return 'hello'\n"
    write_module(shipped, "well", source)
    said: list[str] = []

    async def start(host: DockerHost, name: str, session: str = "s") -> None:
        await host.start(name, session=session, workspace=workspace, report=said.append)

    async def scenario() -> None:
        async with hosting(tmp_path, shipped=shipped) as host:
            for _ in range(MOST):
                with pytest.raises(ModuleLost, match="no such luck"):
                    await start(host, "broken")
            with pytest.raises(
                ModuleLost, match=r"broken was withdrawn after 3 failures in a row.*no such luck"
            ):
                await start(host, "broken")
            assert list(host.withdrawn("s")) == ["broken"]
            await start(host, "well")
            with pytest.raises(ModuleLost, match="ended with status 1"):
                await start(host, "broken", "another session")
            (shipped / "broken" / "module.py").write_text(
                source.replace("'well'", "'broken'"), encoding="utf-8"
            )
            await start(host, "broken")
            assert host.withdrawn("s") == {}
        assert any(line.startswith("the module broken failed; starting it again in 0.") for line in said)

    loop.run(scenario())


def test_one_that_dies_again_and_again_is_withdrawn(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            for _ in range(MOST):
                instance = await host.start("shell", session="s", workspace=workspace, report=print)
                assert (await shell(instance, "echo up")).output == "up\n"
                await asyncio.to_thread(instance.container.kill)
                await asyncio.to_thread(instance.container.wait)
                assert await instance.why_lost() is not None
                assert await instance.why_lost() is not None, "asked twice, counted once"
                await instance.stop()
            with pytest.raises(ModuleLost, match=r"shell was withdrawn.*was killed"):
                await host.start("shell", session="s", workspace=workspace, report=print)

    loop.run(scenario())


def test_stopping_is_no_failure(loop: asyncio.Runner, tmp_path: Path, workspace: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            for _ in range(MOST + 1):
                instance = await host.start("shell", session="s", workspace=workspace, report=print)
                await instance.stop()
                await instance.why_lost()
            assert host.withdrawn("s") == {}

    loop.run(scenario())
