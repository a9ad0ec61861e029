"""From a module's manifest to the actions that agents can write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iact.core.gate.hosts import ANY
from iact.core.language.actions import ActionSpec
from iact.core.modules.manifest import Manifest
from iact.core.ports import Origin
from iact.core.records.session import Module


@dataclass(frozen=True, slots=True)
class Start:
    """How a module is to run. `digest`: the version that the session knows; None: the one in the catalogue.

    `egress`, `secrets`: what it may reach outside, and the names of what it is told; granted by a person.

    `views`: calls that only look run in an instance of their own, which can't write. `own`: each agent has its own.
    """

    digest: str | None = None
    egress: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    views: bool = False
    own: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that a session knows: one version of it, as its `module` record says.

    `approved`: the functions (without the module's name) whose declaration is believed, because they ship
    with the product or because a person approved them for this digest.
    """

    manifest: Manifest
    digest: str
    origin: Origin
    approved: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether the whole manifest is approved, what it says of its needs included."""
        return all(function.name in self.approved for function in self.manifest.functions)

    @property
    def egress(self) -> tuple[str, ...]:
        """What it may reach outside by its manifest alone: all that this names once the whole is approved, else nothing."""
        return tuple(one for one in self.manifest.needs.egress if one != ANY) if self.whole else ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that it is given, granted as its egress is."""
        return self.manifest.needs.secrets if self.whole else ()

    @property
    def start(self) -> Start:
        """How it is to run."""
        needs = self.manifest.needs
        return Start(self.digest, self.egress, self.secrets, needs.workspace == "write", needs.own_instances)

    def content(self, *, live: bool) -> Module:
        """As a `module` record has it, beside the manifest in its body. `live`: the session works in a user's directory."""
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
        """Back from a `module` record. One without `approved` is believed whole."""
        names = frozenset(function.name for function in manifest.functions)
        approved = names if said.approved is None else names & frozenset(said.approved)
        return Loaded(manifest, said.digest, said.origin, approved)


UNAPPROVED: Final = "(nobody has approved what it says of itself)"
"""In place of the summary of such a function."""


def specs_of(loaded: Loaded) -> list[ActionSpec]:
    """One action for each function of a module. Keywords of the module count for all of them.

    What an agent wrote gets no aliases, so that it can't take the place of what others know under one. Summaries
    stand in what every agent reads first, so those that nobody vouches for are not there. That a function which
    runs where others write only looks is believed of what ships alone.
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
        )
        for function in manifest.functions
    ]
