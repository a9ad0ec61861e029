"""What the sessions of one runtime share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iact.core.models.roles import Models
from iact.core.modules.invoker import Invoker, OpenModules
from iact.core.ports import Clock, Memory, ModuleHost, OpenLayer, OpenLive, Versions
from iact.core.session.monitor import Authorities
from iact.core.stored.experience import Experience
from iact.core.stored.templates import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services around a session. `open_modules`: makes a session's connection to its modules.

    `experience`: how often calls failed. `authorities`: who decides about calls. `versions`: keeps versions of
    workspaces; `open_live`: makes overlays of directories; None: there are none. `open_layer`: makes layers over the
    files for agents that may only read; None: such agents run nothing that could change something. `warm`: modules that are started
    before the first call; `warm_live`: further ones for sessions that see a directory through an overlay, because a
    host can't prepare instances for them. `templates`: plans that a person kept. `data`: the data directory. `user`:
    the owner of the sessions, for the log.
    """

    models: Models
    host: ModuleHost
    clock: Clock
    open_modules: OpenModules = Invoker
    authorities: Authorities = field(default_factory=Authorities)
    experience: Experience = field(default_factory=Experience)
    memory: Memory | None = None
    versions: Versions | None = None
    open_live: OpenLive | None = None
    open_layer: OpenLayer | None = None
    warm: Sequence[str] = ()
    warm_live: Sequence[str] = ()
    templates: Templates
    data: Path
    user: str = ""
