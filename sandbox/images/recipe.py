"""What a system that modules run in is made of, as whoever builds one needs to know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["base", "more", "workshop"]
"""`base`: the plain system; `more`: with what one module of ours needs (a browser); `workshop`: with what people work with."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One system. `packages`: Debian packages besides the plain ones; `wheels`: Python packages, each in one version."""

    packages: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    workshop: bool = False
    """It is for people's own work: of what packages bring, only documentation is left out."""

    @property
    def kind(self) -> Kind:
        """Which of the three it is."""
        if self.workshop:
            return "workshop"
        return "more" if self.packages else "base"

    @property
    def title(self) -> str:
        """What it is called in a sentence: "the sandbox's base image"."""
        if self.workshop:
            return "the workshop image"
        return f"the sandbox's image with {self.packages[0]}" if self.packages else "the sandbox's base image"


BASE: Final = Recipe()
