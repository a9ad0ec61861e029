"""The functions of a registry, as the plan engine looks them up. Needs no session: a file can be checked with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from iact.core.context.signature import line
from iact.core.gate.writes import paths_written
from iact.core.language.actions import ActionSpec, Registry
from iact.core.plan.protocol import FunctionInfo
from iact.core.ports import JSON

Judge = Callable[[ActionSpec, Mapping[str, JSON]], float]
"""Rates the impact of a call of a function with these arguments."""
IsCopied = Callable[[ActionSpec, Mapping[str, JSON]], bool]
"""Whether everything that a call writes is in the workspace."""


class Functions:
    """The functions of a registry, as the plan engine looks them up."""

    def __init__(
        self,
        registry: Registry,
        rated: Collection[str] = (),
        judge: Judge | None = None,
        copied: IsCopied | None = None,
    ) -> None:
        """`rated`: functions whose calls have their own rate; the others have their module's, if any.

        `judge`: rates the impact of a call here; None: the function's declared impact counts. `copied`: whether a call
        can be made in a copy of the workspace; None: no call can.
        """
        self._registry = registry
        self._rated = rated
        self._judge = judge
        self._copied = copied

    def find(self, name: str) -> FunctionInfo | None:
        """Return a function by its name or alias; actions of the core are not included."""
        spec = self._registry.find(name)
        if not isinstance(spec, ActionSpec) or spec.core:
            return None
        return _info(spec, self._rated)

    def of_call(self, name: str, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        """Return a function as one call uses it, with the call's impact and the files that the gate knows it writes."""
        spec = self._registry.find(name)
        if not isinstance(spec, ActionSpec) or spec.core:
            return None

        impact: float = spec.impact
        if self._judge is not None:
            impact = self._judge(spec, arguments)
        files = paths_written(spec.name, arguments) if impact > 0 else ()
        only_writes = 0 < impact < 2
        return replace(
            _info(spec, self._rated),
            impact=impact,
            idempotent=spec.idempotent or impact == 0,
            writes=tuple(f"file:{path}" for path in files),
            copies=only_writes and self._copied is not None and self._copied(spec, arguments),
        )

    def all(self) -> Sequence[FunctionInfo]:
        """Return every function, by name."""
        return [_info(spec, self._rated) for spec in self._registry.functions()]


def _info(spec: ActionSpec, rated: Collection[str]) -> FunctionInfo:
    return FunctionInfo(
        spec.name,
        spec.summary,
        schema=spec.parameters,
        impact=spec.impact,
        idempotent=spec.idempotent or spec.impact == 0,
        body=spec.body or "",
        endpoint=spec.name if spec.name in rated else spec.module or "",
        signature=line(spec),
        returns="JSON" if "json" in spec.returns else spec.returns,
    )
