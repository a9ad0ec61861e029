"""Where in a cluster modules run, from a user's settings. Imports no cluster packages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import SandboxUnavailable

_RUNTIMES = {"auto": "gvisor", "none": ""}
"""Values of the setting `runtime` other than the name of a runtime class."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where in a cluster modules run.

    `images`: the prefix of image names, in a registry that nodes reach. `claim`: of the volume that contains the data
    directory, in its folder `folder`. `runtime`: the runtime class, "" for plain containers. `node`: the node where
    pods must run, if the volume can be mounted only there.
    """

    name: str
    images: str
    claim: str
    folder: str = ""
    runtime: str = "gvisor"
    node: str = ""

    def sub_path(self, data: Path, path: Path) -> str:
        """The path of `path` on the volume.

        Raises:
            SandboxUnavailable: it is not on the volume.
        """
        if not path.is_relative_to(data):
            raise SandboxUnavailable(
                f"Pods can only mount paths in the data directory ({data}), and {path} is outside it. "
                "Let the session use its own workspace."
            )
        return str(Path(self.folder) / path.relative_to(data))


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """The same as set by a user. `volume`: the claim, with the folder after a slash; `host`: the name of this host."""

    name: str = "iact"
    images: str | None = None
    volume: str | None = None
    node: str | None = None
    host: str = ""

    def namespace(self, runtime: str) -> Namespace:
        """The namespace for these settings. `runtime`: of all sandboxes.

        Raises:
            SandboxUnavailable: a setting without a default is missing.
        """
        if not self.images or not self.volume:
            missing = "IACT_KUBERNETES_IMAGES" if not self.images else "IACT_KUBERNETES_VOLUME"
            raise SandboxUnavailable(
                f"Tools can't run on Kubernetes, because {missing} is not set; see docs/how-to/kubernetes.md."
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
