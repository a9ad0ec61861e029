"""One message to a session and what became of it, told from the session alone.

A client names it by an id that holds the session and the message's record, so nothing of it is kept in the process: a
server that was killed and started again tells the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp_types import CallToolResult, ResourceLink, TextContent

from iact.core.errors import UsageError
from iact.core.records.dialogue import Reply, Say
from iact.core.records.record import Record
from iact.core.session.questions import OpenQuestions
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session

SCHEME: Final = "iact://session"
"""How the addresses of resources begin."""


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A message in an open session. `said`: its record."""

    session: Session
    said: Record

    @property
    def id(self) -> str:
        """What a client knows it by."""
        return f"{self.session.id}.{self.said.n}"

    @property
    def waiting(self) -> tuple[Record, ...]:
        """The questions that wait for a person now, of the whole session."""
        return OpenQuestions(self.session.records()).waiting

    @property
    def reply(self) -> Record | None:
        """The answer, once there is one that nothing of the same work can replace."""
        records = self.session.records(self.said.n)
        # What was said to a root at rest ended the work before.
        later = next((n for n, one in enumerate(records) if _begins(one)), None)
        replies = [one for one in records[:later] if isinstance(one.content, Reply) and one.agent == "/"]
        tree = self.session.state
        rests = not tree.root.active and len(self.session.records()) >= tree.records
        return replies[-1] if replies and (later is not None or rests) else None


async def turn_of(runtime: Runtime, identity: str) -> SpokenTurn:
    """The turn with an id; its session goes on if it was cut off at work.

    Raises:
        UsageError: there is none.
        JournalError: as of `Runtime.open`.
    """
    name, _, number = identity.rpartition(".")
    if name and number.isdecimal() and runtime.store.holds(name):
        session = await runtime.open(name)
        found = session.records(int(number) - 1)[:1]
        if found and isinstance(found[0].content, Say):
            return SpokenTurn(session, found[0])
    raise UsageError(f"There is no task {identity[:100]!r}. Start one by calling the tool again.")


def result_of(session: str, reply: Record) -> CallToolResult:
    """An answer, as the tool gives it."""
    assert isinstance(reply.content, Reply)
    going_on = f'To go on in this session, call the tool with session="{session}".'
    link = ResourceLink(
        uri=f"{SCHEME}/{session}/journal", name=f"Journal of session {session}", mime_type="text/markdown"
    )
    return CallToolResult(
        content=[TextContent(text=reply.body), TextContent(text=going_on), link],
        structured_content={"session": session, "status": reply.content.status, "reply": reply.body},
        is_error=reply.content.status != "ok",
    )


def _begins(record: Record) -> bool:
    return isinstance(record.content, Say) and not record.content.waits
