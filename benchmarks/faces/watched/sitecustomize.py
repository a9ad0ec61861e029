"""Loaded by every process that the benchmark starts. Hides packages as if they were not installed, and writes at exit
which modules were loaded.

Environment: `IACT_BENCH_HIDDEN`, names of packages separated by spaces; `IACT_BENCH_MODULES`, the file to write.
"""

from __future__ import annotations

import atexit
import importlib.abc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


class _Hidden(importlib.abc.MetaPathFinder):
    """A finder before all other finders. `names`: the packages that it hides."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def _tell(place: Path) -> None:
    place.write_text("\n".join(sorted(sys.modules)), encoding="utf-8")


if os.environ.get("IACT_BENCH_HIDDEN"):
    sys.meta_path.insert(0, _Hidden(frozenset(os.environ["IACT_BENCH_HIDDEN"].split())))
if os.environ.get("IACT_BENCH_MODULES"):
    atexit.register(_tell, Path(os.environ["IACT_BENCH_MODULES"]))
