"""The options of `iact plan …`; what the commands do is in `iact.commands.plans`, loaded only where one of them runs."""

from __future__ import annotations

import argparse
from typing import Final

from core.session.plans import MODES
from iact.cli.options import INTENTS, SCOPE, Commands, count
from iact.settings import Settings

_FILE: Final = "the plan; - reads it from standard input"


def add_plans(commands: Commands) -> None:
    """Add the group `plan`."""
    plan = commands.group(
        "plan", "Plans from a file, JSON or YAML, with the steps written there; or from a goal."
    )
    what = (
        "Run a plan in a session of its own: the steps of a file, or those that a planner writes for a goal."
    )
    _running(commands.add("run", _run, what, plan))
    _options(
        commands.add("check", _check, "Say whether a plan can run, and what is wrong with it if not.", plan)
    )
    one = commands.add("graph", _graph, "Draw a plan, or the plans of a journal with their states.", plan)
    one.add_argument("file", metavar="FILE", help="a plan, a journal, or the id of a session")
    one.add_argument("--json", action="store_true")
    what = "Say what would run in which order, and what could keep it from being done."
    _options(commands.add("explain", _explain, what, plan), intent=True)


def _running(one: argparse.ArgumentParser) -> None:
    one.add_argument("file", metavar="FILE", nargs="?", help=_FILE)
    one.add_argument("--goal", metavar="TEXT", help="instead of a file: what a planner writes steps for")
    judged = "after which events a model judges it (static: never)"
    one.add_argument("--mode", choices=MODES, default="static", help=judged)
    one.add_argument("--rounds", type=_some, metavar="N", help="analyze: how often it is judged at most (3)")
    one.add_argument(
        "--every", type=_some, metavar="N", help="nreflect: after how many steps it is judged (4)"
    )
    one.add_argument("--concurrency", type=_some, metavar="N", help="how many steps may run at a time")
    one.add_argument("--model", metavar="ROLE", help="the role of the model that is asked about it")
    one.add_argument("--intent", metavar="0|1|2", default="1", help=INTENTS)
    one.add_argument("--scope", metavar="NAME", help=SCOPE)
    one.add_argument("--json", action="store_true")


def _some(text: str) -> int:
    number = count(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100")
    return number


def _options(one: argparse.ArgumentParser, *, intent: bool = False) -> None:
    one.add_argument("file", metavar="FILE", help=_FILE)
    judged = "after which events a model judges it (static: never)"
    one.add_argument("--mode", choices=MODES, default="static", help=judged)
    if intent:
        one.add_argument("--intent", metavar="0|1|2", default="1", help=INTENTS)
    one.add_argument("--json", action="store_true")


def _run(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    given = {
        "rounds": chosen.rounds,
        "n": chosen.every,
        "concurrency": chosen.concurrency,
        "model": chosen.model,
    }
    return plans.run(
        settings,
        chosen.file,
        goal=chosen.goal,
        mode=chosen.mode,
        options={name: value for name, value in given.items() if value is not None},
        intent=chosen.intent,
        scope=chosen.scope,
        as_json=chosen.json,
    )


def _check(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return plans.check(settings, chosen.file, mode=chosen.mode, as_json=chosen.json)


def _graph(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return plans.graph(settings, chosen.file, as_json=chosen.json)


def _explain(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return plans.explain(settings, chosen.file, mode=chosen.mode, intent=chosen.intent, as_json=chosen.json)
