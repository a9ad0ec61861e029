"""The options of `iact plan …`; what the commands do is in `iact.commands.plans`, loaded only where one of them runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from iact.cli.options import INTENTS, SCOPE, Command, Commands, Group, count
from iact.core.records.ways import PLAN_WAYS

if TYPE_CHECKING:
    from iact.settings import Settings

_FILE: Final = "the plan; - reads it from standard input"


def add_plans(commands: Commands) -> None:
    """Add the group `plan`."""
    plan = commands.group("plan", "Run, check, draw and change plans.")
    what = "Run a plan from a JSON or YAML file, whose steps run as written; or from a goal, for which a planner model writes the steps."
    _running(commands.add("run", _run, what, plan))
    _options(
        commands.add("check", _check, "Check whether a plan can run, and say what is wrong if not.", plan)
    )
    one = commands.add("graph", _graph, "Draw a plan, or the plans of a session with their states.", plan)
    one.add_argument("file", metavar="FILE", help="a plan, a journal, or the id of a session")
    one.add_argument("--json", action="store_true")
    what = "Show what would run in which order, and what could stop it."
    _options(commands.add("explain", _explain, what, plan), intent=True)
    one = commands.add("templates", _templates, "List the plans that you kept.", plan)
    one.add_argument("--json", action="store_true")
    _of_a_session(commands, plan)


def _of_a_session(commands: Commands, plan: Group) -> None:
    """The commands about a plan of a session that the server runs."""

    def control(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        one = commands.add(name, command, text, plan)
        one.add_argument("--session", metavar="ID", required=True)
        one.add_argument("--agent", metavar="PATH", required=True, help="the plan")
        one.add_argument("--json", action="store_true")
        return one

    control("start", _start, "Start a plan that waits for you.")
    control("show", _show, "Print a plan of a session as YAML, in the form that edit takes.")
    one = control("edit", _edit, "Change the steps that have not started, of a plan that waits or is paused.")
    one.add_argument("file", metavar="FILE", help="all of the plan; - reads it from standard input")
    one = control("retry", _retry, "Run a failed step again, with the steps that needed it.")
    one.add_argument("--step", metavar="ID", required=True)
    one = control("save", _save, "Keep a plan, for `iact plan run --from`, PLAN from=NAME and the page.")
    one.add_argument("name", metavar="NAME")


def _running(one: argparse.ArgumentParser) -> None:
    one.add_argument("file", metavar="FILE", nargs="?", help=_FILE)
    one.add_argument(
        "--from", dest="template", metavar="NAME", help="instead of a file: a plan that was kept"
    )
    one.add_argument("--goal", metavar="TEXT", help="instead of a file: what a planner writes steps for")
    judged = "after which events a model judges it (static: never)"
    one.add_argument("--mode", choices=PLAN_WAYS, default="static", help=judged)
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
    one.add_argument("--mode", choices=PLAN_WAYS, default="static", help=judged)
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
        plans.wanted(settings, chosen.file, template=chosen.template, goal=chosen.goal),
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


def _templates(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return plans.templates(settings, as_json=chosen.json)


def _start(chosen: argparse.Namespace, settings: Settings) -> int:
    return _control(chosen, settings, "plan.start")


def _retry(chosen: argparse.Namespace, settings: Settings) -> int:
    return _control(chosen, settings, "plan.retry", step=chosen.step)


def _edit(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return _control(chosen, settings, "plan.edit", text=plans.text_of(chosen.file))


def _control(chosen: argparse.Namespace, settings: Settings, verb: str, **more: str) -> int:
    from iact.commands import remote

    frame: remote.Frame = {"type": verb, "path": chosen.agent, **more}
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)


def _show(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return plans.show(settings, chosen.session, chosen.agent, as_json=chosen.json)


def _save(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import plans

    return plans.save(settings, chosen.session, chosen.agent, chosen.name, as_json=chosen.json)
