"""What happens to a memory at rest: when it is maintained, what is merged, and what is let go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from iact.core.errors import MemoryUnavailable
from iact.core.ports import FragmentKind
from iact.hippocampus import UserMemory, WordEmbedder, open_hippocampus
from iact.hippocampus.maintenance import faded, maintain_when_idle
from iact.hippocampus.ranking import Weights
from tests.hippocampus.fakes import NOW, StandingClock, fragment, told


@pytest.mark.parametrize(
    ("kind", "days", "replaced", "gone"),
    [
        ("result", 239, False, False),
        ("result", 241, False, True),
        ("fact", 700, False, False),
        ("fact", 721, False, True),
        ("goal", 5000, False, False),
        ("preference", 5000, False, False),
        ("preference", 719, True, False),
        ("preference", 721, True, True),
        ("result", 61, True, True),
    ],
)
def test_what_fades(kind: FragmentKind, days: float, replaced: bool, gone: bool) -> None:
    one = fragment("The port is 80.", kind=kind, days=days)
    one = replace(one, superseded_by="s/2") if replaced else one
    assert faded(one, NOW, Weights()) is gone


@dataclass
class Memory:
    """Counts how often it is maintained; the first time it fails."""

    uses: int = 0
    maintained: list[int] = field(default_factory=list)
    was_used: asyncio.Event = field(default_factory=asyncio.Event)

    def use(self) -> None:
        self.uses += 1
        self.was_used.set()

    async def used(self) -> None:
        await self.was_used.wait()
        self.was_used.clear()

    async def maintain(self) -> None:
        self.maintained.append(self.uses)
        if len(self.maintained) == 1:
            raise MemoryUnavailable("Not now.")


async def settle() -> None:
    """Let every task come to where it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_it_is_maintained_only_when_it_has_rested_and_once_for_each_time_of_use() -> None:
    memory, clock = Memory(), StandingClock()
    task = asyncio.create_task(maintain_when_idle(memory, clock, idle=60))
    clock.advance(1000)
    await settle()
    assert memory.maintained == []
    memory.use()
    await settle()
    clock.advance(59)
    memory.use()
    await settle()
    clock.advance(1)
    await settle()
    assert memory.maintained == []
    clock.advance(60)
    await settle()
    assert memory.maintained == [2]
    clock.advance(1000)
    await settle()
    memory.use()
    await settle()
    clock.advance(60)
    await settle()
    assert memory.maintained[-1] == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def gone(memory: UserMemory, text: str) -> None:
    """Wait until nothing is found under its own words; it is let go behind, in a thread."""
    while any(row.text.startswith("The staging") for row in await memory.search(text)):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_real_memory_at_rest_merges_and_lets_go(tmp_path: Path) -> None:
    clock, prompts, merged = StandingClock(), list[str](), asyncio.Event()

    async def distill(prompt: str) -> str:
        prompts.append(prompt)
        merged.set()
        return "The nightly backup of the shop database takes four hours by now, and fails on Sundays."

    same = "The nightly backup of the shop database takes {} hours."
    notes = [told("s1", n, same.format(n), kind="fact", days=9 - n) for n in (2, 3, 4)]
    old = told("s0", 9, "The staging server was rented in Oslo.", occasion="remember", days=3000)
    async with open_hippocampus(tmp_path, WordEmbedder(), clock=clock, budget=30, distill=distill) as opened:
        memory = opened.of("anna")
        for one in (*notes, old):
            memory.remember(one)
        await opened.settled()
        assert len(await memory.search("staging server in Oslo", limit=9)) == 1
        assert len(await memory.search("nightly backup", limit=9)) == 3
        clock.advance(60)
        async with asyncio.timeout(300):
            await merged.wait()
            await gone(memory, "staging server in Oslo")
        (now,) = [row for row in await memory.search("nightly backup") if row.current]
        assert now.text.endswith("fails on Sundays.")
    assert len(prompts) == 1
