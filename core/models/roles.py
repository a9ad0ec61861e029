"""Which model plays which role, so that the rest of the core asks for "fast" and not for a name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iact.core.errors import ModelError, UsageError
from iact.core.models.quotas import QuotaModel
from iact.core.ports import Model, ModelProfile, ModelQuota

SMART: Final = "smart"
FAST: Final = "fast"


class Models:
    """Maps roles to models. A role without its own model is played by "smart".

    Owns the models: `close` closes each once, even if it plays several roles.
    """

    def __init__(
        self, models: Mapping[str, Model], *, source: Models | None = None, quotas: Sequence[ModelQuota] = ()
    ) -> None:
        """`source`: the owner of these models, which closes them. `quotas`: the quotas for all of them.

        Raises UsageError if no model plays "smart".
        """
        if SMART not in models:
            raise UsageError(
                f"No model is configured for the role {SMART!r}; set IACT_MODEL or IACT_MODEL_SMART."
            )
        self._models = dict(models)
        self._source = source
        self._quotas = tuple(quotas)
        self._retired: list[Model] = []
        self._lent = False

    def view(self, *quotas: ModelQuota) -> Models:
        """The same models for one session, which keeps them until it calls `renew`.

        `quotas`: additional quotas for this session.
        """
        return Models(self._models, source=self, quotas=(*self._quotas, *quotas))

    def lend(self, *quotas: ModelQuota) -> Models:
        """The same models, including later replacements, for a borrower that doesn't close them.

        `quotas`: additional quotas for the borrower.
        """
        lent = Models(self._models, quotas=(*self._quotas, *quotas))
        lent._models = self._models  # the same object, which `replace` changes
        lent._lent = True
        return lent

    @property
    def newest(self) -> Models:
        """For a view: the models that are chosen now."""
        return self if self._source is None else self._source

    def renew(self) -> None:
        """For a view: take the models that are chosen now."""
        self._models = dict(self.newest._models)

    def replace(self, others: Models) -> None:
        """Use other models for the roles; views use them after `renew`. The old models keep working until `close`."""
        staying = others._models.values()
        self._retired += [model for model in self._models.values() if model not in staying]

        new = dict(others._models)
        self._models.clear()  # in place, because they may be lent
        self._models.update(new)

    def roles(self) -> tuple[str, ...]:
        """The roles that have their own model."""
        return tuple(self._models)

    def model(self, role: str) -> Model:
        """The model for `role`."""
        return self._held(self._models.get(role) or self._models[SMART])

    def own(self, role: str) -> Model | None:
        """The role's own model; None if it has none."""
        own = self._models.get(role)
        return None if own is None else self._held(own)

    def profile(self, role: str) -> ModelProfile:
        """The profile of the model for `role`."""
        return (self._models.get(role) or self._models[SMART]).profile

    def _held(self, model: Model) -> Model:
        return QuotaModel(model, self._quotas) if self._quotas else model

    async def warm(self) -> None:
        """Get every model ready; failures are reported by the first call."""
        for model in _each_once(self._models.values()):
            with contextlib.suppress(ModelError):
                await model.warm()

    async def close(self) -> None:
        if self._lent:
            return
        for model in _each_once((*self._models.values(), *self._retired)):
            await model.close()


def _each_once(models: Iterable[Model]) -> Iterable[Model]:
    """The models without repetitions: one may play several roles, and need not be hashable."""
    return {id(model): model for model in models}.values()
