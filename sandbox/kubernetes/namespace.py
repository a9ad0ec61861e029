"""Where in a cluster modules run, by a user's settings; whoever only names it imports nothing of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import SandboxUnavailable

_RUNTIMES = {"auto": "gvisor", "none": ""}
"""What the setting `runtime` may be besides the name of a runtime class."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where in a cluster modules run.

    `images`: what the names of images begin with, in a registry that nodes reach. `claim`: of the volume that holds
    the data directory, in its folder `folder`. `runtime`: the runtime class, "" for plain containers. `node`: the
    node where pods must run, if the volume can be mounted there alone.
    """

    name: str
    images: str
    claim: str
    folder: str = ""
    runtime: str = "gvisor"
    node: str = ""

    def sub_path(self, data: Path, path: Path) -> str:
        """Where `path` is on the volume.

        Raises:
            SandboxUnavailable: it is not there.
        """
        if not path.is_relative_to(data):
            raise SandboxUnavailable(
                f"Pods can mount what is in the data directory alone ({data}), and {path} is not. Let the session have "
                "a workspace of its own."
            )
        return str(Path(self.folder) / path.relative_to(data))


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """The same as a user sets it. `volume`: the claim, with the folder after a slash; `host`: what this host is called."""

    name: str = "iact"
    images: str | None = None
    volume: str | None = None
    node: str | None = None
    host: str = ""

    def namespace(self, runtime: str) -> Namespace:
        """What the settings come to. `runtime`: of all sandboxes.

        Raises:
            SandboxUnavailable: one is missing that there is no default for.
        """
        if not self.images or not self.volume:
            missing = "IACT_KUBERNETES_IMAGES" if not self.images else "IACT_KUBERNETES_VOLUME"
            raise SandboxUnavailable(
                f"Tools can't run on Kubernetes, since {missing} is not set; see docs/how-to/kubernetes.md."
            )
        claim, _, folder = self.volume.strip("/").partition("/")
        return Namespace(
            self.name,
            self.images.rstrip("/"),
            claim,
            folder,
            _RUNTIMES.get(runtime, runtime),
            self.node or "",
        )
