"""The trusted core: a tree of stateful agent dialogues, kept in one journal per session.

What embedding needs is exported here:

    from core import Runtime

    async with Runtime(data, models, host) as runtime:
        session = await runtime.open()
        reply = await session.ask("Show me the disk usage of /tmp in your sandbox")
        print(reply.body, session.journal)

`core.session.models.open_models` makes `models`, `host` is any `core.ports.ModuleHost`; `core.session.assembly` makes
a runtime from a user's choices, and `iact.wiring` takes those from the settings.
"""

from core.session.runtime import Runtime
from core.session.session import Session
from core.tree.agent import Agent

__all__ = ["Agent", "Runtime", "Session"]
