"""`static`: the plan is never judged; only the recovery ladder changes it (Graph Harness)."""

from __future__ import annotations

from iact.core.plan.modes.base import Mode


class Static(Mode):
    """Never judges."""
