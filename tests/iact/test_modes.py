"""`core.records.ways` is the one list of modes: whoever says something of each says it of all of them."""

from __future__ import annotations

import re
from pathlib import Path

from iact.commands.plan_text import JUDGED
from iact.core.plan.modes.registry import make_mode
from iact.core.records.ways import PLAN_MODES, WAYS

ROOT = Path(__file__).resolve().parents[2]


def test_every_mode_can_run_and_is_told_of() -> None:
    assert [make_mode(name).name for name in PLAN_MODES] == list(PLAN_MODES)
    assert set(JUDGED) == set(PLAN_MODES)


def test_the_page_offers_every_way() -> None:
    scripts = [one.read_text(encoding="utf-8") for one in (ROOT / "web" / "static" / "js").rglob("*.js")]
    script = next(one for one in scripts if '["orchestrator", ' in one)
    offered = re.findall(r'^ +\["(\w+)", t\(', script, re.MULTILINE)
    assert sorted(offered) == sorted(WAYS)
