"""Pauses the cyclic garbage collector while a journal is folded.

A fold makes hundreds of thousands of objects that stay, and hardly any cycles. The collector inspects all of them again
and again, which takes a tenth of the time (20,000 records: 20,200 records per processor second with it, 22,300
without).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable cyclic garbage collection inside. If it was already disabled, it stays disabled afterwards."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
