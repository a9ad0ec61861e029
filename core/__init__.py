"""The trusted core: a tree of stateful agent dialogues, kept in one journal per session.

What embedding needs is exported here:

    from core import Runtime

    async with Runtime(data, models, host) as runtime:
        session = await runtime.open()
        reply = await session.ask("Show me the disk usage of /tmp in your sandbox")
        print(reply.body, session.journal)

`models` is a `core.models.roles.Models`, `host` any `core.ports.ModuleHost`; `iact.wiring` makes
both from the user's settings.
"""

from core.session.runtime import Runtime
from core.session.session import Session
from core.tree.agent import Agent

__all__ = ["Agent", "Runtime", "Session"]
