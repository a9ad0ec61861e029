"""The tokens that a piece of work took, from its records."""

from __future__ import annotations

from collections.abc import Iterable

from iact.core.ports import Usage
from iact.core.records.dialogue import Reply, Turn
from iact.core.records.record import Record


def used(records: Iterable[Record]) -> Usage:
    """The tokens of all models in these records."""
    prompt = cached = completion = 0
    for record in records:
        content = record.content
        generation = content.generation if isinstance(content, Turn | Reply) else None
        if generation is not None:
            prompt += generation.usage.prompt
            cached += generation.usage.cached
            completion += generation.usage.completion
    return Usage(prompt, cached, completion)
