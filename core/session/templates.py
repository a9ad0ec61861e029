"""Plans that a person saved, by name: `plans/NAME.yaml` in the data directory, in the format of `iact plan run`.

A user may edit a file at any time, so its content is in the journal of each session that used it.
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
    """The saved plans of one data directory."""

    def __init__(self, data: Path) -> None:
        self._folder: Final = data / "plans"

    def names(self) -> list[str]:
        """The names of the templates."""
        if not self._folder.is_dir():
            return []
        return sorted(one.stem for one in self._folder.glob("*.yaml") if _NAME.match(one.stem))

    def read(self, name: str) -> str:
        """The text of a template.

        Raises:
            UsageError: there is no such template, or it can't be read.
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
        """Save a plan under a name, and replace any earlier one.

        Raises:
            UsageError: the name is invalid, or the text is not a plan.
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
