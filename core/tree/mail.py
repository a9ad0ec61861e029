"""What has reached an agent and waits for its next turn."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.gate.provenance import NOTHING, Labels
from core.language.scanner import Block
from core.language.variables import Value
from core.ports import Part


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message that waits for the agent's next turn. `n`: its record; `values`: variables that it brings.

    `mode`: of an intervention (queue, deliver, interrupt). `child`, `status`: of a child's reply. `labels`: where its
    text comes from. `blocks`: what fenced blocks it has, if that is known. News wake nobody.
    """

    n: int
    kind: Literal["say", "caller", "child", "intervention", "upload", "news"]
    source: str
    text: str
    values: Mapping[str, Value] = field(default_factory=dict)
    mode: str = ""
    child: str = ""
    status: str = "ok"
    labels: Labels = NOTHING
    blocks: Sequence[Block] | None = None

    @property
    def wakes(self) -> bool:
        """Whether an agent at rest has to answer it; a child's late reply, a file and news are only there."""
        return self.kind not in ("child", "upload", "news")


@dataclass(slots=True)
class Mail:
    """What an agent's next turn reads. `inbox`: messages; `feedback`: what its own actions gave, and notes about them.

    `parts`: what the feedback shows beside text. `task`: what the agent was asked last. `recalled`: what memory
    brought for the next turn, line by line; `meant`: functions that what it reads is about in meaning, each with
    the record of that message.
    """

    inbox: list[Incoming] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    task: str = ""
    recalled: tuple[str, ...] = ()
    meant: dict[str, int] = field(default_factory=dict)

    @property
    def wakes(self) -> bool:
        """Whether a message waits that has to be answered."""
        return any(message.wakes for message in self.inbox)

    def take(self, took: Container[int]) -> None:
        """A turn read the feedback, what memory brought, and the messages of these records."""
        self.inbox = [message for message in self.inbox if message.n not in took]
        self.feedback, self.parts = [], []
        self.forget_recalled()

    def forget_recalled(self) -> None:
        """What memory brought was for a turn that is over."""
        self.recalled, self.meant = (), {}
