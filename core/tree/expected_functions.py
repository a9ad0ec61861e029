"""Blocks that call functions of a module which the same reply deploys or loads before them.

While the reply was read, no such function existed, so its block was taken for an ordinary one. It is an action all the
same; what it calls, and whether that exists, is found out when its turn comes. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from iact.core.language.actions import DEPLOY, LOAD, Registry
from iact.core.language.grammar import Mistake, split
from iact.core.language.scanner import Block

_BRINGING: Final = (DEPLOY.name, LOAD.name)


def with_expected(blocks: Sequence[Block], registry: Registry) -> tuple[Block, ...]:
    """Return the blocks of a reply, with those as actions that call what an action before them brings."""
    if not any(block.info.startswith(_BRINGING) for block in blocks):
        return tuple(blocks)

    brought = set[str]()
    read = list[Block]()
    for block in blocks:
        name = block.info.split(None, 1)[0] if block.info else ""
        module, _, function = name.partition(".")
        if block.action and name in _BRINGING and name in registry:
            brought.add(_module_of(block))
        elif not block.action and function.isidentifier() and module in brought:
            block = replace(block, action=True)
        read.append(block)
    return tuple(read)


def _module_of(block: Block) -> str:
    """The module that a DEPLOY or a LOAD names; empty if it can't be read."""
    taken = split(block.info)
    if isinstance(taken, Mistake):
        return ""
    named = [argument.text for argument in taken[1] if argument.key in (None, "name")]
    return named[0] if named else ""
