"""The program `iact`: all commands, in the order in which the help lists them."""

from __future__ import annotations

from typing import Final

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

BY_TASK: Final = {
    "Work with agents": ("serve", "run", "plan", "session", "address"),
    "Steer a running session": (
        "say", "inject", "queue", "pause", "resume", "cancel", "clear", "answer", "declassify", "lockdown", "workspace",
    ),
    "Look at what happened": ("replay", "context", "journal", "gate", "usage", "audit"),
    "Models, tools, memory": ("model", "module", "skill", "secret", "policy", "memory"),
    "Other programs": ("mcp", "acp", "eval"),
    "People and machines": ("user", "token", "share", "login", "logout", "quota", "cluster"),
    "This installation": ("doctor", "image", "backup", "restore", "completion"),
}  # fmt: skip
"""The commands, by what people do with them, as the help lists them."""


class Program(CommandGroup):
    """The program, whose help lists commands by task."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each task."""
        for task, names in BY_TASK.items():
            rows = [(name, self.commands[name].get_short_help_str()) for name in names]
            with formatter.section(task):
                formatter.write_dl(rows)


def _version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the installed version. It is only defined in pyproject.toml."""
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        print(f"iact {version('iact')}")
        context.exit()


@click.group(cls=Program, context_settings={"max_content_width": 110})
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="print the version"
)
def program() -> None:
    """Talk with agents that call agents, use tools in a sandbox, and keep everything in one readable file."""


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
