"""Caches what a module's calls found out, for later calls of it with the same key in this session.

A page that was read is the same for every agent that reads it again, even in a session that was closed meanwhile. The
content is private to the module: agents only see what a call of the module makes of it.
"""

from __future__ import annotations

from typing import Final

from iact.core.records.calls import Result
from iact.core.records.record import Record
from iact.core.tree.agent import Pending
from iact.core.tree.expectations import expect
from iact.core.tree.interpret import argument_text
from iact.core.tree.tree import Tree

_MOST: Final = 256
"""The most entries cached in one session; the oldest makes room."""
_LONGEST: Final = 2000
"""The most characters of a key."""


def key_of(pending: Pending) -> str:
    """The key under which a call's findings are cached; empty if they are not cached."""
    if not pending.spec.cache_key or pending.bound is None:
        return ""
    key = argument_text(pending.bound, pending.spec.cache_key).strip()
    return key if len(key) <= _LONGEST else ""


def cache(tree: Tree, pending: Pending, record: Record, result: Result) -> None:
    """Cache what a call found out, if its result holds any."""
    found = result.cached
    if found is None:
        return
    key = key_of(pending)
    own = result.status == "ok" and key != "" and found.name == key
    expect(tree, record, own, "caches under another key than its call's")
    if own:
        place = pending.spec.module or "", key
        tree.cached.pop(place, None)
        tree.cached[place] = found
        while len(tree.cached) > _MOST:
            del tree.cached[next(iter(tree.cached))]
