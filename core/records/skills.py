"""A skill that an agent wrote, as it is shown to a person: everything that they are asked to approve."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A file of the skill. `differs`: for a changed file, a unified diff from the existing skill of that name."""

    path: str
    text: str
    change: Literal["new", "changed", "same"] = "new"
    differs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOffer:
    """A skill as it was when it was offered. `module`: its name in the catalogue.

    `gone`: files of the skill that it would replace and that it does not have. `read`: the outside sources that its
    agent had read and that its files were made from.
    """

    name: str
    description: str
    module: str
    files: tuple[SkillFile, ...]
    replaces: bool = False
    gone: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
