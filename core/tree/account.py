"""One agent's part of the session's tokens. Who lends to whom, and how much: `core.tree.budget`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Account:
    """Tokens of one activation. `lender`: who pays for it, empty for the root and for an agent at rest.

    `allowance`: what it may use; `spent`: what it has used, by itself and by children that returned; `reserved`: what
    it set aside for each child that works for it; `lent`: their sum.
    """

    allowance: int = 0
    spent: int = 0
    reserved: dict[str, int] = field(default_factory=dict)
    lent: int = 0
    lender: str = ""

    @property
    def left(self) -> int:
        """Tokens that are neither used nor reserved for a child; may be negative."""
        return self.allowance - self.spent - self.lent

    def reserve(self, child: str, tokens: int) -> None:
        """Set `tokens` more aside for a child."""
        self.reserved[child] = self.reserved.get(child, 0) + tokens
        self.lent += tokens

    def settle(self, child: str, spent: int) -> None:
        """A child came to rest: what it used is spent, what else was set aside for it is free again."""
        self.lent -= self.reserved.pop(child, 0)
        self.spent += spent

    def close(self) -> None:
        """The agent came to rest and owes nobody anything."""
        self.allowance = self.spent = 0
        self.lender = ""
