"""A policy's rules for profiled plans, as the engine of plans reads them."""

from __future__ import annotations

import json

from iact.core.gate.policy import Policy
from iact.core.plan.modes.profile_rules import DomainRule


def domain_rules(policy: Policy) -> tuple[DomainRule, ...]:
    """The rules of a policy for profiled plans, in an order that depends on them alone."""
    return tuple(
        DomainRule(
            rule.function,
            rule.error,
            rule.when,
            {name: json.loads(value) for name, value in rule.set},
            rule.skip,
            dict(rule.auto),
        )
        for rule in sorted(policy.plans)
    )
