"""What a turn costs: its context is built once while a session runs, and its reply is read once, while it streams."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.language.scanner import IsAction, Scan
from iact.core.language.scanner import scan as whole
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session import generation
from iact.core.stored.replay import replay
from iact.core.tree import apply_turn, contexts
from iact.core.tree.prepared_context import Composed
from tests.core.session.fakes import Asked, runtime

BRANCHES = 30
CODE = "It is this:\n\n```python\nprint(1)\n```\n"


def script(asked: Asked) -> str:
    """A root with many children at work at the same time, each of which calls a function and answers with code."""
    if asked.path != "/":
        return CODE if asked.turn else "I look.\n\n```READ\nx\n```"
    calls = "\n".join(f"```CALL_ASYNC child{number}\nDo part {number}.\n```" for number in range(BRANCHES))
    return f"{calls}\n```WAIT\n```" if asked.turn == 0 else "Done."


class Counted:
    """How many contexts were composed, and which texts were scanned as a whole."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.composed = 0
        self.scanned: list[str] = []
        plain = Composed

        def compose(*parts: object) -> Composed:
            self.composed += 1
            return plain(*parts)  # type: ignore[arg-type]

        def scan(text: str, is_action: IsAction) -> Scan:
            self.scanned.append(text)
            return whole(text, is_action)

        patch.setattr(contexts, "Composed", compose)
        for module in (contexts, apply_turn, generation):
            patch.setattr(module, "scan", scan)


def work(data: Path, bounds: Bounds) -> tuple[Path, list[Record]]:
    async def main() -> tuple[Path, list[Record]]:
        async with runtime(data, script, bounds=bounds) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal, [one for one in session.records() if one.text("context")]

    return asyncio.run(main())


@pytest.mark.parametrize("turns", [40, 2], ids=["with turns left", "each told that few are left"])
def test_a_context_is_built_once_and_a_reply_is_scanned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Though all agents write records in the middle of each other's turns."""
    counted = Counted(monkeypatch)
    journal, written = work(tmp_path, Bounds(turns=turns))
    assert len(written) == 2 * BRANCHES + 2
    assert counted.composed == len(written)
    assert not {one.body for one in written} & set(counted.scanned)

    counted = Counted(monkeypatch)
    replay(journal, verify=True)
    assert counted.composed == len(written)
    assert sorted(text for text in counted.scanned if text in {one.body for one in written}) == sorted(
        one.body for one in written
    )
