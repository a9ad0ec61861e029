"""Modules that work for agents and have no way out bring nothing from outside, whatever they are told to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.settings import load
from iact.wiring import open_runtime
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_hosts import leads, web


def played(product: Product, mine: Path, plan: str) -> list[Record]:
    async def scene() -> list[Record]:
        async with open_runtime(load(environment=product.environment)) as runtime, asyncio.timeout(600):
            session = await runtime.open(intent=2, workspace=mine)
            await session.run_plan(plan, name="one")
            return list(session.records())

    return asyncio.run(scene())


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "victim.txt").write_text("as it was", encoding="utf-8")
    return folder


_GET: Final = (
    "import urllib.request as r\nprint(r.urlopen('http://docs.test/page', timeout=5).read().decode())"
)

WITHOUT: Final[Mapping[str, tuple[str, Mapping[str, JSON]]]] = {
    "python": ("python.run", {"code": _GET, "timeout": 30}),
    "sql": ("sql.query", {"statement": "SELECT * FROM read_csv('http://docs.test/page')"}),
    "app": ("app.serve", {"source": _GET}),
}
"""Modules that work for agents and have no way out, with a call that tries."""


@pytest.mark.parametrize("module", WITHOUT)
def test_a_module_without_a_way_out_brings_nothing(stage: Stage, mine: Path, module: str) -> None:
    """So there is no label to lose, and what an agent makes with it is its own."""
    function, params = WITHOUT[module]
    with web() as server:
        product = leads(stage.product(), server, "docs.test:80")
        (product.data / "policy.toml").write_text('[scope.default]\nfunctions = ["*"]\n', encoding="utf-8")
        plan = f"goal: g\nsteps:\n  - {{id: w, call: {function}, params: {json.dumps(params)}}}\n"
        records = played(product, mine, plan)
        assert server.asked == []
    results = [one for one in records if one.kind == "result" and one.text("function") == function]
    assert results
    assert all(server.text not in one.body for one in results)
    assert [one for one in records if one.text("op") == "reach"] == []
