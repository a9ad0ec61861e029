"""Which model plays which role, so that the rest of the core asks for "fast" and not for a name."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from core.errors import ModelError, UsageError
from core.ports import Model, ModelProfile

SMART: Final = "smart"
FAST: Final = "fast"


class Models:
    """Roles to models. A role without a model of its own is played by "smart".

    Owns the models: `close` closes each once, also one that plays several roles.
    """

    def __init__(self, models: Mapping[str, Model]) -> None:
        """Raises UsageError if nobody plays "smart"."""
        if SMART not in models:
            raise UsageError(
                f"No model is configured for the role {SMART!r}; set IACT_MODEL or IACT_MODEL_SMART."
            )
        self._models = dict(models)

    def roles(self) -> tuple[str, ...]:
        """The roles that have a model of their own."""
        return tuple(self._models)

    def model(self, role: str) -> Model:
        """The model for `role`."""
        return self._models.get(role) or self._models[SMART]

    def own(self, role: str) -> Model | None:
        """The model that a role has of its own."""
        return self._models.get(role)

    def profile(self, role: str) -> ModelProfile:
        """What to know about the model for `role`."""
        return self.model(role).profile

    async def warm(self) -> None:
        """Get every model ready; what fails is told by the first call."""
        for model in {id(model): model for model in self._models.values()}.values():
            with contextlib.suppress(ModelError):
                await model.warm()

    async def close(self) -> None:
        for model in {id(model): model for model in self._models.values()}.values():
            await model.close()
