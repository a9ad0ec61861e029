"""The program `iact`: all commands, in the order in which the help lists them."""

from __future__ import annotations

import click

from iact.cli import (
    cluster,
    controls,
    evaluation,
    faces,
    gate,
    journals,
    machine,
    memory,
    models,
    modules,
    people,
    plans,
    quotas,
    sessions,
    skills,
    workspace,
)
from iact.cli.options import CommandGroup


def _version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the installed version. It is only defined in pyproject.toml."""
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        print(f"iact {version('iact')}")
        context.exit()


@click.group(cls=CommandGroup, context_settings={"max_content_width": 110})
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="print the version"
)
def program() -> None:
    """A recursive agent-call-tree runtime."""


for _one in (
    sessions.serve,
    sessions.run,
    sessions.mcp,
    journals.replay,
    journals.context,
    journals.journal,
    sessions.session,
    controls.address,
    controls.say,
    controls.inject,
    controls.queue,
    controls.pause,
    controls.resume,
    controls.cancel,
    controls.clear,
    controls.answer,
    controls.declassify,
    controls.lockdown,
    models.model,
    modules.secret,
    modules.module,
    modules.policy,
    skills.skill,
    workspace.workspace,
    plans.plan,
    gate.gate,
    memory.memory,
    people.user,
    people.token,
    people.share,
    people.log_in,
    people.log_out,
    people.audit,
    quotas.quota,
    quotas.usage,
    faces.acp,
    evaluation.evaluate,
    cluster.cluster,
    machine.image,
    machine.backup,
    machine.restore,
    machine.doctor,
    machine.completion,
):
    program.add_command(_one)
