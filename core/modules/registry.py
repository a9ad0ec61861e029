"""Turns a module's manifest into the actions that agents can write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iact.core.gate.hosts import ANY
from iact.core.language.actions import ActionSpec
from iact.core.modules.manifest import Manifest
from iact.core.ports import Origin
from iact.core.records.session import Module

SKILLS: Final = "skill_"
"""How the names of modules begin that are skills."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a module runs. `digest`: the version that the session knows; None: the one in the catalogue.

    `egress`, `secrets`: the hosts it may reach, and the names of the secrets it is given; granted by a person.

    `views`: read-only calls run in a separate instance, which can't write. `own`: each agent has its own instance.
    """

    digest: str | None = None
    egress: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    views: bool = False
    own: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that a session knows: one version of it, as its `module` record says.

    `approved`: the functions (without the module's name) whose declaration is trusted, because they ship with the
    product or because a person approved them for this digest.
    """

    manifest: Manifest
    digest: str
    origin: Origin
    approved: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether the whole manifest is approved, including its needs."""
        return all(function.name in self.approved for function in self.manifest.functions)

    @property
    def egress(self) -> tuple[str, ...]:
        """The hosts it may reach by its manifest alone: all that the manifest names once it is approved as a whole,
        else none."""
        return tuple(one for one in self.manifest.needs.egress if one != ANY) if self.whole else ()

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
        return Module(
            name=self.manifest.name,
            version=self.manifest.version,
            digest=self.digest,
            origin=self.origin,
            stake="live" if live or self.egress or self.secrets else "scratch",
            approved=None if self.whole else tuple(sorted(self.approved)),
        )

    @staticmethod
    def of(said: Module, manifest: Manifest) -> Loaded:
        """Restore from a `module` record. A record without `approved` is trusted as a whole."""
        names = frozenset(function.name for function in manifest.functions)
        approved = names if said.approved is None else names & frozenset(said.approved)
        return Loaded(manifest, said.digest, said.origin, approved)


UNAPPROVED: Final = "(nobody has approved what it says of itself)"
"""The summary shown for a function that no one has approved."""


def specs_of(loaded: Loaded) -> list[ActionSpec]:
    """One action for each function of a module. Keywords of the module count for all of them.

    A module that an agent wrote gets no aliases, so that it can't replace a function that others know by an alias.
    Summaries are in the text that every agent reads first, so unapproved ones are left out. A function that runs where
    others write is trusted to be read-only only if it ships with the product.
    """
    manifest = loaded.manifest
    return [
        ActionSpec(
            name=f"{manifest.name}.{function.name}",
            summary=function.summary if function.name in loaded.approved else UNAPPROVED,
            parameters=function.parameters,
            body=function.body or None,
            documentation=function.documentation,
            impact=max(function.impact, 1)
            if function.held and loaded.origin != "shipped"
            else function.impact,
            alias=(function.alias or None) if loaded.origin != "agent" else None,
            idempotent=function.idempotent,
            keywords=tuple(manifest.keywords),
            timeout=function.timeout or None,
            vouched=function.name in loaded.approved,
            held=function.held,
            cache_key=function.cache_key,
            returns="" if function.media_type.startswith("text/plain") else function.media_type,
        )
        for function in manifest.functions
    ]
