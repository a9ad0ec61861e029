"""`iact plan …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import CommandGroup, Count

if TYPE_CHECKING:
    from iact.core.records.ways import PlanWay
    from iact.settings import Settings

_agent: Final = click.option("--agent", metavar="PATH", required=True, help="the plan")
_few: Final = Count(1, 100)


@click.group(cls=CommandGroup)
def plan() -> None:
    """Run, check, draw and change plans.

    FILE is a plan in JSON or YAML; - reads it from standard input.
    """


@plan.command()
@click.argument("words", metavar="[FILE] [KEY=VALUE]...", nargs=-1)
@click.option("--from", "template", metavar="NAME", help="instead of a file: the name of a saved plan")
@click.option("--goal", metavar="TEXT", help="instead of a file: a goal; a planner model writes the steps")
@options.plan_mode
@options.of_modes
@click.option("--concurrency", type=_few, metavar="N", help="run at most N steps at the same time")
@click.option("--model", metavar="ROLE", help="the role of the model that plans, judges, patches and reports")
@options.intent("1")
@click.option("--scope", metavar="NAME", help=options.SCOPE)
@options.as_json
def run(
    settings: Settings,
    *,
    words: tuple[str, ...],
    template: str | None,
    goal: str | None,
    mode: PlanWay,
    concurrency: int | None,
    model: str | None,
    intent: str,
    scope: str | None,
    as_json: bool,
    **of_mode: int | None,
) -> int:
    """Run a plan from a JSON or YAML file, or from a goal.

    The steps of a file run as written. For a goal, a planner model writes the steps. KEY=VALUE gives a value for a
    parameter of a saved plan.
    """
    from iact.commands import plans

    given = {**of_mode, "concurrency": concurrency, "model": model}
    return plans.run(
        settings,
        plans.wanted(settings, words, template=template, goal=goal),
        mode=mode,
        options={name: value for name, value in given.items() if value is not None},
        intent=intent,
        scope=scope,
        as_json=as_json,
    )


@plan.command()
@click.argument("file")
@options.plan_mode
@options.as_json
def check(settings: Settings, *, file: str, mode: PlanWay, as_json: bool) -> int:
    """Check whether a plan can run, and print what is wrong if it can't."""
    from iact.commands import plan_files

    return plan_files.check(settings, file, mode=mode, as_json=as_json)


@plan.command()
@click.argument("file")
@options.as_json
def graph(settings: Settings, *, file: str, as_json: bool) -> int:
    """Draw a plan, or the plans of a session with their states.

    FILE is a plan, a journal, or the id of a session.
    """
    from iact.commands import plan_files

    return plan_files.graph(settings, file, as_json=as_json)


@plan.command()
@click.argument("file")
@options.plan_mode
@options.intent("1")
@options.as_json
def explain(settings: Settings, *, file: str, mode: PlanWay, intent: str, as_json: bool) -> int:
    """Show what would run, in which order, and what could stop it."""
    from iact.commands import plan_files

    return plan_files.explain(settings, file, mode=mode, intent=intent, as_json=as_json)


@plan.command()
@click.argument("name", required=False)
@options.as_json
def templates(settings: Settings, *, name: str | None, as_json: bool) -> int:
    """List your saved plans, or describe the one called NAME: its goal, and its parameters."""
    from iact.commands import saved_plans

    return saved_plans.templates(settings, name, as_json=as_json)


@plan.command()
@options.session
@_agent
@options.digest
@options.as_json
def start(settings: Settings, *, session: str, agent: str, digest: str, as_json: bool) -> int:
    """Start a plan that is waiting for you.

    It is shown first, with its digest, and you are asked.
    """
    from iact.commands import answers

    return answers.start_plan(settings, session, agent, seen=digest, as_json=as_json)


@plan.command()
@options.session
@_agent
@options.as_json
def show(settings: Settings, *, session: str, agent: str, as_json: bool) -> int:
    """Print a plan of a session as YAML, in the format that `iact plan edit` takes."""
    from iact.commands import saved_plans

    return saved_plans.show(settings, session, agent, as_json=as_json)


@plan.command()
@options.session
@_agent
@click.argument("file")
@options.as_json
def edit(settings: Settings, *, session: str, agent: str, file: str, as_json: bool) -> int:
    """Change the steps that have not started yet in a plan that is waiting or paused.

    FILE contains the whole plan; - reads it from standard input.
    """
    from iact.commands import plan_files, remote

    frame: remote.Frame = {"type": "plan.edit", "path": agent, "text": plan_files.text_of(file)}
    return remote.control(settings, session, frame, as_json=as_json)


@plan.command()
@options.session
@_agent
@click.option("--step", metavar="ID", required=True, help="the step")
@options.as_json
def retry(settings: Settings, *, session: str, agent: str, step: str, as_json: bool) -> int:
    """Run a failed step again, and the steps that needed it."""
    from iact.commands import remote

    frame: remote.Frame = {"type": "plan.retry", "path": agent, "step": step}
    return remote.control(settings, session, frame, as_json=as_json)


@plan.command()
@options.session
@_agent
@click.argument("name")
@click.option(
    "--parameter",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="leave this value of the plan open: it is given as NAME=VALUE when the plan is used",
)
@options.as_json
def save(
    settings: Settings, *, session: str, agent: str, name: str, parameters: tuple[str, ...], as_json: bool
) -> int:
    """Save a plan for `iact plan run --from`, PLAN from=NAME and the page.

    Without --parameter, the values that could be left open are listed.
    """
    from iact.commands import saved_plans

    return saved_plans.save(settings, session, agent, name, parameters, as_json=as_json)
