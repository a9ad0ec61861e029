"""From a module's manifest to the actions that agents can write."""

from __future__ import annotations

from core.language.actions import ActionSpec
from core.modules.manifest import Manifest


def specs_of(manifest: Manifest) -> list[ActionSpec]:
    """One action for each function of a module. Keywords of the module count for all of them."""
    return [
        ActionSpec(
            name=f"{manifest.name}.{function.name}",
            summary=function.summary,
            parameters=function.parameters,
            body=function.body or None,
            documentation=function.documentation,
            impact=function.impact,
            alias=function.alias or None,
            idempotent=function.idempotent,
            keywords=tuple(manifest.keywords),
            timeout=function.timeout or None,
        )
        for function in manifest.functions
    ]
