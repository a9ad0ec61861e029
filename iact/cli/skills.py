"""`iact skill …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iact.cli import options
from iact.cli.options import CommandGroup

if TYPE_CHECKING:
    from iact.settings import Settings


@click.group(cls=CommandGroup)
def skill() -> None:
    """Add, list, approve and check Agent Skills: folders with a SKILL.md."""


@skill.command()
@click.argument("folder")
def add(settings: Settings, *, folder: str) -> int:
    """Add the skill in a folder to the catalogue."""
    from iact.commands import skills

    return skills.add(settings, folder)


@skill.command("list")
@options.as_json
def list_skills(settings: Settings, *, as_json: bool) -> int:
    """List the skills."""
    from iact.commands import skills

    return skills.list_skills(settings, as_json=as_json)


@skill.command()
@click.argument("name")
@options.as_json
def show(settings: Settings, *, name: str, as_json: bool) -> int:
    """Show what a skill is for, and what it needs."""
    from iact.commands import catalogue, skills

    return catalogue.describe_module(settings, skills.module_of(name), everybody=False, as_json=as_json)


@skill.command()
@click.argument("name")
@options.digest
def approve(settings: Settings, *, name: str, digest: str) -> int:
    """Approve a skill: its scripts may then do what they declare.

    Without --digest, the skill is shown with its files, and you are asked.
    """
    from iact.commands import catalogue, skills

    return catalogue.approve_module(
        settings, skills.module_of(name), (), digest=digest, everybody=False, as_json=False
    )


@skill.command()
@click.argument("name")
def remove(settings: Settings, *, name: str) -> int:
    """Remove a skill from the catalogue."""
    from iact.commands import catalogue, skills

    return catalogue.remove_module(settings, skills.module_of(name), everybody=False)


@skill.command()
@click.argument("folder")
def check(settings: Settings, *, folder: str) -> int:
    """Check that a folder is a valid skill according to the specification."""
    from iact.commands import skills

    return skills.check(folder)
