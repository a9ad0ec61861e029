"""Messages and feedback that have reached an agent and wait for its next turn."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from iact.core.context.excerpt import Feedback
from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language.scanner import Block
from iact.core.language.variables import Value
from iact.core.ports import Part
from iact.core.tree.file_owners import Overwriting


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message that waits for the agent's next turn."""

    n: int
    """Its record."""
    kind: Literal["say", "caller", "child", "intervention", "upload", "news"]
    """Where it comes from. News does not wake an agent."""
    source: str
    """The same, for its reader: "the user", "your caller /"."""
    text: str
    values: Mapping[str, Value] = field(default_factory=dict)
    """Variables that it brings."""
    mode: str = ""
    """How an intervention is delivered (queue, deliver, interrupt); "wait": after its agent's current answer."""
    child: str = ""
    """The child whose reply it is."""
    status: str = "ok"
    """The status of that reply."""
    asks: bool = False
    """Whether that reply is a question."""
    labels: Labels = NOTHING
    """The sources of its text."""
    blocks: Sequence[Block] | None = None
    """Its fenced blocks, if they are known."""
    unnamed: tuple[str, ...] = ()
    """Names in the text that are meant as variables and are none."""
    aside: tuple[str, ...] = ()
    """Files that its author changed in a throw-away layer only."""
    overwrote: tuple[Overwriting, ...] = ()
    """What was changed on the way to that reply although another agent had written it."""
    file: str = ""
    """The name of an uploaded file."""
    client: int = 0
    """How many characters at the beginning of the text are an earlier chat as a client tells it."""

    @property
    def own(self) -> str:
        """What the person wrote, without an earlier chat that a client tells."""
        return self.text[self.client :]

    @property
    def wakes(self) -> bool:
        """Whether an agent at rest has to answer it. A child's late reply, a file and news do not need an answer."""
        return self.kind not in ("child", "upload", "news")

    @property
    def by_person(self) -> bool:
        """Whether a person wrote it. The person can still change it until it is read."""
        return self.kind in ("say", "intervention")


@dataclass(slots=True)
class Mail:
    """What an agent's next turn reads."""

    inbox: list[Incoming] = field(default_factory=list)
    """Messages."""
    feedback: list[Feedback] = field(default_factory=list)
    """The results of its own actions, and notes on them."""
    parts: list[Part] = field(default_factory=list)
    """What the feedback shows besides text."""
    refused: list[str] = field(default_factory=list)
    """Why actions could not even begin."""
    task: str = ""
    """The agent's latest task."""
    answering: frozenset[int] = frozenset()
    """Messages that a stopped text was answering, so the model has read them."""
    recalled: tuple[str, ...] = ()
    """What memory recalled for the next turn, line by line."""

    @property
    def ready(self) -> list[Incoming]:
        """The messages that the next turn reads."""
        return [message for message in self.inbox if message.mode != "wait"]

    @property
    def urgent(self) -> bool:
        """Whether a message must be read before another action begins."""
        return any(message.mode in ("deliver", "interrupt") for message in self.inbox)

    @property
    def wakes(self) -> bool:
        """Whether a message must be answered and waits for nothing else."""
        return any(message.wakes for message in self.ready)

    def release(self) -> bool:
        """Release the messages that waited for an answer to finish. Returns whether there were any."""
        late = [message for message in self.inbox if message.mode == "wait"]
        self.inbox = [replace(message, mode="") if message in late else message for message in self.inbox]
        if late:
            self.task = late[-1].text
        return bool(late)

    def take(self, took: Container[int]) -> None:
        """Remove what a turn has read: the feedback, what memory recalled, and the messages of these records."""
        self.inbox = [message for message in self.inbox if message.n not in took]
        self.feedback = []
        self.parts = []
        self.forget_recalled()

    def forget_recalled(self) -> None:
        """Forget what memory recalled for a turn that is over."""
        self.recalled = ()
