"""One agent's share of the session's tokens. `core.tree.budget` decides who lends to whom, and how much."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Account:
    """Tokens of one activation. `lender`: the agent that pays for it; empty for the root and for an agent at rest.

    `allowance`: tokens that it may use. `spent`: tokens that it and its returned children have used. `reserved`: tokens
    set aside for each child that is working for it. `lent`: the sum of `reserved`.
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
        """Set aside `tokens` more for a child."""
        self.reserved[child] = self.reserved.get(child, 0) + tokens
        self.lent += tokens

    def settle(self, child: str, spent: int) -> None:
        """Close a child's reservation: count what the child used as spent and free the rest."""
        self.lent -= self.reserved.pop(child, 0)
        self.spent += spent

    def close(self) -> None:
        """Reset the account when the agent comes to rest: no allowance, nothing spent, no lender."""
        self.allowance = self.spent = 0
        self.lender = ""
