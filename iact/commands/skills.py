"""`iact skill …`: Agent Skills as modules of the catalogue."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from iact import signals
from iact.catalogue import known_modules
from iact.commands import catalogue
from iact.core.errors import UsageError
from iact.core.stored.skill import Skill, is_skill, read_files, read_skill
from iact.core.views.known_modules import KnownModule
from iact.settings import Settings


def add(settings: Settings, folder: str) -> int:
    """Add the skill in `folder` to the catalogue.

    Raises:
        UsageError: the skill breaks the specification.
        SandboxError: no sandbox is available, or the skill did not start in it.
    """
    skill, files = read_files(Path(folder))
    with tempfile.TemporaryDirectory(prefix="iact-skill-") as made:
        copy = Path(made, skill.module)
        for name, content in files.items():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        for name, text in skill.sources().items():
            (copy / name).write_text(text, encoding="utf-8")
        return catalogue.add_module(settings, str(copy), everybody=False, as_json=False)


def check(folder: str) -> int:
    """Report whether a folder is a skill.

    Raises:
        UsageError: the folder breaks the specification.
    """
    skill = read_skill(Path(folder))
    print(f"{skill.name}: {len(skill.files)} files, {len(skill.scripts)} runnable scripts.")
    return 0


def list_skills(settings: Settings, *, as_json: bool) -> int:
    """Print the skills of the catalogue."""
    found = [one for one in signals.run(known_modules(settings)) if _is_skill(one)]
    if as_json:
        print(json.dumps([one.to_json() for one in found], ensure_ascii=False, indent=2))
        return 0
    for one in found:
        mark = "" if one.manifest and len(one.approved) == len(one.manifest.functions) else "  (not approved)"
        print(f"{one.entry.name}  {one.entry.digest[:12]}{mark}  {one.entry.summary}")
    if not found:
        print("iact: There are no skills. Add one with: iact skill add FOLDER", file=sys.stderr)
    return 0


def _is_skill(one: KnownModule) -> bool:
    return is_skill(one.entry.name)


def module_of(name: str) -> str:
    """The name of a skill's module, given the skill's name or the module's name.

    Raises:
        UsageError: it is not the name of a skill.
    """
    if not name:
        raise UsageError("The name of a skill is empty.")
    return name if is_skill(name) else Skill(name, "", ()).module
