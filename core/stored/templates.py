"""Plans that a person saved, by name: `plans/NAME.yaml` in the data directory, in the format of `iact plan run`.

A user may edit a file at any time, so its content is in the journal of each session that used it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError
from iact.core.plan.model import PlanError
from iact.core.plan.template import OfferedValue, Template, mark, read_template
from iact.core.ports import JSON

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_LARGEST: Final = 1 << 20


class Templates:
    """The saved plans of one data directory."""

    def __init__(self, data: Path) -> None:
        self._folder: Final = data / "plans"
        self._lines: dict[str, tuple[tuple[int, int], str]] = {}
        """For each template, when its file was changed and how long it was, and its parameters then."""

    def names(self) -> list[str]:
        """The names of the templates."""
        if not self._folder.is_dir():
            return []
        return sorted(one.stem for one in self._folder.glob("*.yaml") if _NAME.match(one.stem))

    def usable(self) -> dict[str, Template]:
        """The templates that can be read, by name."""
        found: dict[str, Template] = {}
        for name in self.names():
            with contextlib.suppress(UsageError):
                found[name] = self.template(name)
        return found

    def lines(self) -> list[str]:
        """The templates as agents are told of them: `NAME`, or `NAME file=… count=…` where values must be given.

        A template that cannot be read is named, too: its user is told what is wrong.
        """
        return [f"{name} {self._line(name)}".rstrip() for name in self.names()]

    def _line(self, name: str) -> str:
        try:
            known = self._file(name).stat()
            state = known.st_mtime_ns, known.st_size
            if name not in self._lines or self._lines[name][0] != state:
                self._lines[name] = state, self.template(name).line
            return self._lines[name][1]
        except (UsageError, OSError):
            return ""

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

    def template(self, name: str) -> Template:
        """A template, with its parameters.

        Raises:
            UsageError: there is no such template, or it is not one.
        """
        text = self.read(name)
        try:
            return read_template(text)
        except PlanError as error:
            raise UsageError(f"The plan template {name!r} can't be used: {error}") from error

    def filled(self, name: str, values: Mapping[str, JSON]) -> str:
        """The text of the plan that a template makes with these values for its parameters.

        Raises:
            UsageError: there is no such template, or these are not the values that it needs.
        """
        return self.template(name).fill(values, name=name)

    def save(self, name: str, text: str, parameters: Mapping[str, str] | None = None) -> Path:
        """Save a plan under a name, and replace any earlier one.

        `parameters`: values of the plan that are left open, by the names under which they are given when it is used.

        Raises:
            UsageError: the name is invalid, the text is not a plan, or the plan does not have these values.
        """
        file = self._file(name)
        kept = mark(text, parameters or {})
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            beside = file.with_suffix(".new")
            beside.write_text(kept, encoding="utf-8")
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


__all__ = ["OfferedValue", "Template", "Templates", "read_template"]
