"""Where modules run: root inside, zero trust outside.

Implements `core.ports.ModuleHost` with containers, or with name spaces made by bubblewrap. Code inside a sandbox never
imports `core`, and `core` knows nothing about the content of this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iact.sandbox.bubblewrap.host import BubblewrapHost
    from iact.sandbox.disabled import DisabledHost
    from iact.sandbox.docker.host import DockerHost
    from iact.sandbox.egress import EgressLine, OnEgress
    from iact.sandbox.kubernetes.namespace import NamespaceSettings
    from iact.sandbox.opening import Backend, open_host

__all__ = [
    "Backend",
    "BubblewrapHost",
    "DisabledHost",
    "DockerHost",
    "EgressLine",
    "NamespaceSettings",
    "OnEgress",
    "open_host",
]

_HOMES: Final = {
    "Backend": "iact.sandbox.opening",
    "BubblewrapHost": "iact.sandbox.bubblewrap.host",
    "DisabledHost": "iact.sandbox.disabled",
    "DockerHost": "iact.sandbox.docker.host",
    "EgressLine": "iact.sandbox.egress",
    "NamespaceSettings": "iact.sandbox.kubernetes.namespace",
    "OnEgress": "iact.sandbox.egress",
    "open_host": "iact.sandbox.opening",
}


def __getattr__(name: str) -> object:
    """Import on first use (PEP 562): a command that only reads which modules there are needs no engine's client."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
