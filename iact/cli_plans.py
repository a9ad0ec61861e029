"""The options of `iact plan …`; what the commands do is in `iact.plans`, loaded only where one of them runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from core.language.actions import PLAN_MODES
from iact.cli_files import Add, Commands
from iact.settings import Settings

_FILE: Final = "the plan; - reads it from standard input"


def add_plans(add: Add, group: Callable[[str, str], Commands]) -> None:
    """Add the group `plan`."""
    plan = group("plan", "Plans from a file, JSON or YAML: nobody plans, the steps are those written.")
    _options(add("run", _run, "Run a plan in a session of its own.", plan), scope=True, intent=True)
    _options(add("check", _check, "Say whether a plan can run, and what is wrong with it if not.", plan))
    one = add("graph", _graph, "Draw a plan, or the plans of a journal with their states.", plan)
    one.add_argument("file", metavar="FILE", help="a plan, a journal, or the id of a session")
    one.add_argument("--json", action="store_true")
    what = "Say what would run in which order, and what could keep it from being done."
    _options(add("explain", _explain, what, plan), intent=True)


def _options(one: argparse.ArgumentParser, *, intent: bool = False, scope: bool = False) -> None:
    one.add_argument("file", metavar="FILE", help=_FILE)
    judged = "after which events a model judges it (static: never)"
    one.add_argument("--mode", choices=PLAN_MODES, default="static", help=judged)
    if intent:
        levels = "0 observe, 1 operate (default), 2 override"
        one.add_argument("--intent", type=int, choices=(0, 1, 2), default=1, help=levels)
    if scope:
        one.add_argument("--scope", metavar="NAME", help="what it may use: a scope of the policy file")
    one.add_argument("--json", action="store_true")


def _run(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import plans

    return plans.run(
        settings, chosen.file, mode=chosen.mode, intent=chosen.intent, scope=chosen.scope, as_json=chosen.json
    )


def _check(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import plans

    return plans.check(settings, chosen.file, mode=chosen.mode, as_json=chosen.json)


def _graph(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import plans

    return plans.graph(settings, chosen.file, as_json=chosen.json)


def _explain(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import plans

    return plans.explain(settings, chosen.file, mode=chosen.mode, intent=chosen.intent, as_json=chosen.json)
