"""The description of a system that modules run in, for the code that builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["base", "more", "workshop"]
"""`base`: the plain system; `more`: with additions for one module of ours (a browser); `workshop`: a user's tools."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One system. `packages`: additional Debian packages; `wheels`: Python packages, each in one version."""

    packages: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    workshop: bool = False
    """It is for people's own work: of the packages' content, only documentation is left out."""

    @property
    def kind(self) -> Kind:
        """Which of the three kinds it is."""
        if self.workshop:
            return "workshop"
        return "more" if self.packages else "base"

    @property
    def title(self) -> str:
        """Its name in a sentence: "the sandbox's base image"."""
        if self.workshop:
            return "the workshop image"
        return f"the sandbox's image with {self.packages[0]}" if self.packages else "the sandbox's base image"


BASE: Final = Recipe()
