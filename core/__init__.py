"""The trusted core: a tree of stateful agent dialogues, recorded in one journal per session.

The names needed for embedding are exported here:

    from iact.core import Runtime

    async with Runtime(data, models, host) as runtime:
        session = await runtime.open()
        reply = await session.ask("Show me the disk usage of /tmp in your sandbox")
        print(reply.body, session.journal)

`core.session.models.open_models` creates `models`; `host` is any `core.ports.ModuleHost`; `core.session.assembly`
creates a runtime from a user's choices, and `iact.wiring` takes those from the settings.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iact.core.session.runtime import Runtime
    from iact.core.session.session import Session
    from iact.core.tree.agent import Agent

__all__ = ["Agent", "Runtime", "Session"]

_HOMES: Final = {
    "Agent": "iact.core.tree.agent",
    "Runtime": "iact.core.session.runtime",
    "Session": "iact.core.session.session",
}


class _SecondName:
    """Refuses what is in a clone's folder by the name `core`: it would be loaded again, as other classes."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if name.startswith("core."):
            raise ImportError(f"{name} is iact.{name}: import it so, or each of its classes is there twice.")


if __name__ == "core":
    sys.meta_path.insert(0, _SecondName)


def __getattr__(name: str) -> object:
    """Import on first use (PEP 562): a command that needs none of it starts in a third of the time."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
