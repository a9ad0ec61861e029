"""A skill that an agent wrote, as it is put to a person: all of what they are asked to approve."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """One of its files. `differs`: from the skill of that name which is there, as a unified diff; of a changed one."""

    path: str
    text: str
    change: Literal["new", "changed", "same"] = "new"
    differs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOffer:
    """A skill as it was when it was offered. `module`: what it is called in the catalogue.

    `gone`: files of the one that it would replace, which it has not. `read`: what from outside its agent had read, and its
    files were touched by.
    """

    name: str
    description: str
    module: str
    files: tuple[SkillFile, ...]
    replaces: bool = False
    gone: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
