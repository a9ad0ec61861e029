"""A skill that an agent wrote, as it is shown to a person: everything that they are asked to approve."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A file of the skill."""

    path: str
    text: str
    change: Literal["new", "changed", "same"] = "new"
    differs: str = ""
    """For a changed file, a unified diff from the existing skill of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOffer:
    """A skill as it was when it was offered."""

    name: str
    description: str
    module: str
    """Its name in the catalogue."""
    files: tuple[SkillFile, ...]
    replaces: bool = False
    """Whether there is a skill of that name."""
    gone: tuple[str, ...] = ()
    """Files of the skill that it would replace and that it does not have."""
    read: tuple[str, ...] = ()
    """The outside sources that its agent had read and that its files were made from."""
