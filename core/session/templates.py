"""Plans that a person kept, by name: `plans/NAME.yaml` in the data directory, as `iact plan run` takes them.

A file may change whenever somebody edits it. So what it held is in the journal of each session that used it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError
from iact.core.plan.forms import read_plan

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_LARGEST: Final = 1 << 20


class Templates:
    """The kept plans of one data directory."""

    def __init__(self, data: Path) -> None:
        self._folder: Final = data / "plans"

    def names(self) -> list[str]:
        """Which there are."""
        if not self._folder.is_dir():
            return []
        return sorted(one.stem for one in self._folder.glob("*.yaml") if _NAME.match(one.stem))

    def read(self, name: str) -> str:
        """What a template holds.

        Raises:
            UsageError: there is none, or it can't be read.
        """
        file = self._file(name)
        try:
            with file.open(encoding="utf-8") as opened:
                text = opened.read(_LARGEST + 1)
        except FileNotFoundError:
            there = ", ".join(self.names()) or "none yet"
            raise UsageError(f"There is no plan template {name!r}; there are: {there}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The plan template {name!r} can't be read: {error}.") from error
        return text

    def save(self, name: str, text: str) -> Path:
        """Keep a plan under a name, in place of what was kept there.

        Raises:
            UsageError: the name can't be one, or the text is no plan.
        """
        file = self._file(name)
        read_plan(text, id=name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            beside = file.with_suffix(".new")
            beside.write_text(text, encoding="utf-8")
            beside.replace(file)
        except OSError as error:
            raise UsageError(f"The plan template {name!r} can't be written: {error}.") from error
        return file

    def _file(self, name: str) -> Path:
        if not _NAME.match(name):
            raise UsageError(
                f"{name[:80]!r} can't name a plan template. Use up to 64 letters, digits, - and _, a letter or digit first."
            )
        return self._folder / f"{name}.yaml"
