"""Recorded sessions for tests of the commands on journals: made in memory, stored as any other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.core.session.test_control import until

HOSTILE = """\
Look: <script>document.title = "owned"</script> <img src=x onerror=alert(1)> ![pic](https://evil.example/x.png)
[click](javascript:alert(1)) and [ok](https://example.org/a) and \u202egnihtemos and \x1b]0;owned\x07\x1b[31mred.

```html
</style></details></section><script>document.title = "owned"</script>
```

| a | b |
|---|--:|
| 1 | 2 |
"""

SCRIPT = {
    "/": [
        "Two will look.\n\n```CALL writer role='a careful <b>writer</b>'\nWrite **one** paragraph.\n```",
        "```CALL_ASYNC counter\nCount.\n```\n```t.destroy\nall\n```\n```WAIT\n```",
        "# Report\n\nThe sandbox is *small*.",
    ],
    "/writer": [
        "First a look.\n\n```READ\n" + "a long line of a large result\n" * 900 + "```",
        "```CALL checker\nIs this right?\n```\n```WRITE\nheld\n```",
        HOSTILE,
    ],
    "/writer/checker": ["As far as I can see."],
    "/counter": ["```t.fail\nx\n```", "I could not count."],
}


def record(data: Path) -> Path:
    """The directory of a session with four agents, a blob, a denial, an intervention and hostile text."""

    async def main() -> Path:
        hold = asyncio.Event()
        world, script = World(hold={"held": hold}), replies(SCRIPT)
        model = ScriptedModel(script, chunk=4096)
        async with runtime(data, script, world=world, model=model) as opened:
            session = await opened.open()
            said = await session.say("Describe the <b>sandbox</b> & count.")
            await until(lambda: any(text == "held" for _, _, text in world.done))
            await session.inject("/writer", "Mention <i>the network</i>.", "queue")
            hold.set()
            await session.answer(said.n)
            return session.journal.parent

    return asyncio.run(main())
