"""The lease of an image that a person brings, whose system may have no program that could watch one.

Its container joins the processes of another one, the keeper: a small container of our own, whose first process watches
the lease as it does in any container of ours (`first_process`). When that process ends, the kernel kills everything
among whose processes it is the first, and so the person's container, too. As the first process it gets no signal from
them that it does not expect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iact.sandbox.limits import Limits, Place

COMMAND: Final = ("sleep", "infinity")
"""What runs in a keeper beside its first process."""
_MEMORY: Final = 64 << 20
_PROCESSES: Final = 8


def place_of(place: Place) -> Place:
    """Where the keeper of a container at `place` is: it has the same user and the same sockets, and nothing else."""
    return replace(
        place, workspace=None, nested=(), temporary=None, egress=None, site=None, program=None, secrets={},
        root=False, right="work", layer=False,
    )  # fmt: skip


def bounds_of(bounds: Limits) -> Limits:
    """What a keeper may use at most."""
    return replace(bounds, memory=_MEMORY, processes=_PROCESSES)
