"""Turns a module's manifest into the actions that agents can write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iact.core.gate.hosts import ANY
from iact.core.language.actions import ActionSpec
from iact.core.modules.manifest import Function, Manifest
from iact.core.ports import Origin
from iact.core.records.session import Module

SKILLS: Final = "skill_"
"""How the names of modules begin that are skills."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a module runs."""

    digest: str | None = None
    """The version that the session knows; None: the one in the catalogue."""
    egress: tuple[str, ...] = ()
    """The hosts that it may reach, granted by a person."""
    secrets: tuple[str, ...] = ()
    """The names of the secrets that it is given, granted by a person."""
    views: bool = False
    """Whether read-only calls run in a separate instance, which can't write."""
    own: bool = False
    """Whether each agent has its own instance."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that a session knows: one version of it, as its `module` record says."""

    manifest: Manifest
    digest: str
    """The version."""
    origin: Origin
    approved: frozenset[str]
    """The functions (without the module's name) whose declaration is trusted, because they ship with the product or
    because a person approved them for this digest."""

    @property
    def whole(self) -> bool:
        """Whether the whole manifest is approved, including its needs."""
        return all(function.name in self.approved for function in self.manifest.functions)

    @property
    def egress(self) -> tuple[str, ...]:
        """The hosts it may reach by its manifest alone: all that the manifest names once it is approved as a whole,
        else none."""
        if not self.whole:
            return ()
        return tuple(host for host in self.manifest.needs.egress if host != ANY)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that it is given, under the same condition as its egress."""
        return self.manifest.needs.secrets if self.whole else ()

    @property
    def start(self) -> Start:
        """How the module runs."""
        needs = self.manifest.needs
        return Start(self.digest, self.egress, self.secrets, needs.workspace == "write", needs.own_instances)

    def content(self, *, live: bool) -> Module:
        """The content of a `module` record, without the manifest in its body. `live`: the session works in a user's
        directory."""
        reaches_outside = bool(self.egress or self.secrets)
        return Module(
            name=self.manifest.name,
            version=self.manifest.version,
            digest=self.digest,
            origin=self.origin,
            stake="live" if live or reaches_outside else "scratch",
            approved=None if self.whole else tuple(sorted(self.approved)),
        )

    @staticmethod
    def of(module: Module, manifest: Manifest) -> Loaded:
        """Restore from a `module` record. A record without `approved` is trusted as a whole."""
        names = frozenset(function.name for function in manifest.functions)
        approved = names if module.approved is None else names & frozenset(module.approved)
        return Loaded(manifest, module.digest, module.origin, approved)


UNAPPROVED: Final = "(nobody has approved what it says of itself)"
"""The summary shown for a function that no one has approved."""


def specs_of(loaded: Loaded) -> list[ActionSpec]:
    """One action for each function of a module. Keywords of the module count for all of them."""
    return [_spec(loaded, function) for function in loaded.manifest.functions]


def _spec(loaded: Loaded, function: Function) -> ActionSpec:
    is_approved = function.name in loaded.approved

    # It runs where others write: only of what ships with the product is it believed that it is read-only.
    impact: int = function.impact
    if function.held and loaded.origin != "shipped":
        impact = max(impact, 1)

    # A module that an agent wrote gets no aliases: it could replace a function that others know by an alias.
    alias = function.alias or None
    if loaded.origin == "agent":
        alias = None

    return ActionSpec(
        name=f"{loaded.manifest.name}.{function.name}",
        # It is in the text that every agent reads first, so nobody's own word is.
        summary=function.summary if is_approved else UNAPPROVED,
        parameters=function.parameters,
        body=function.body or None,
        documentation=function.documentation,
        impact=impact,
        alias=alias,
        idempotent=function.idempotent,
        keywords=tuple(loaded.manifest.keywords),
        timeout=function.timeout or None,
        vouched=is_approved,
        held=function.held,
        cache_key=function.cache_key,
        returns="" if function.media_type.startswith("text/plain") else function.media_type,
    )
