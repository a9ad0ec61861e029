"""Reads a plan's steps while it is still being written, so that the first can run before the last exists.

A step is complete when its closing brace arrives (JSON, and YAML's flow form) or, in YAML's block form, when the next
line is not part of it any more. Text around the plan (a sentence before it, a code fence) is skipped. `forms.read_form`
decides afterwards whether the finished text is a plan at all; this reader only runs ahead of it.
"""

from __future__ import annotations

import json
import re
from typing import Final

from iact.core.plan.forms import MAX_BYTES, read_data
from iact.core.plan.model import PlanError
from iact.core.ports import JSON

_ITEM: Final = re.compile(r"^(\s*)-(\s+|$)")
_STEPS: Final = re.compile(r"^(\s*)[\"']?steps[\"']?\s*:\s*$")
_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,})")


class StepReader:
    """Reads steps from text. `feed` takes the text in pieces of any size and returns the steps that are complete now,
    as plain data.

    `text`: all text so far.
    """

    def __init__(self) -> None:
        self.text = ""
        self._json: bool | None = None
        self._json_reader = _JsonSteps()
        self._line = ""
        self._in_steps = False
        self._indent: int | None = None
        self._item: list[str] = []

    def feed(self, piece: str) -> list[JSON]:
        """Return the steps that `piece` completes, in order.

        Raises:
            PlanError: the plan is too long.
        """
        self.text += piece
        if len(self.text) > MAX_BYTES:
            raise PlanError(f"the plan has more than {MAX_BYTES} characters; shorten it")
        found: list[JSON] = []
        for char in piece:
            if self._json:
                found.extend(self._json_reader.feed(char))
                continue
            self._line += char
            if self._json is None and self._line.strip() in ("{", "["):
                self._json = True
                found.extend(self._json_reader.feed(char))
            elif char == "\n":
                line, self._line = self._line, ""
                found.extend(self._take(line.rstrip("\n")))
            elif char == "}" and self._item_is_flow(self._line):
                found.extend(self._flow())
        return found

    def close(self) -> list[JSON]:
        """Return the steps that the end of the text completes."""
        if self._json:
            return []
        last, self._line = self._line, ""
        return [*self._take(last), *self._done()]

    # --- YAML -------------------------------------------------------------------------------------

    def _take(self, line: str) -> list[JSON]:
        if _FENCE.match(line):
            return self._done()
        if _STEPS.match(line):
            self._in_steps, self._json = True, False
            return self._done()
        item = _ITEM.match(line)
        if item and (self._in_steps or self._indent is not None) and self._indent in (None, len(item[1])):
            done = self._done()
            self._indent = len(item[1])
            self._item = [line]
            return done
        if self._indent is None or not line.strip():
            return []
        if len(line) - len(line.lstrip()) <= self._indent:
            done = self._done()
            self._indent, self._in_steps = None, False
            return done
        if self._item:
            self._item.append(line)
        return []

    def _done(self) -> list[JSON]:
        lines, self._item = self._item, []
        return _steps_in("\n".join(lines)) if lines else []

    def _item_is_flow(self, line: str) -> bool:
        head = self._item[0] if self._item else line
        item = _ITEM.match(head)
        return bool(item and self._in_steps and head[item.end() :].startswith("{"))

    def _flow(self) -> list[JSON]:
        fresh = bool(_ITEM.match(self._line)) and not self._item
        lines = [*self._item, self._line]
        item = _ITEM.match(lines[0])
        if item is None or (not fresh and not self._item) or self._indent not in (None, len(item[1])):
            return []
        steps = _steps_in("\n".join(lines))
        if steps:
            self._indent, self._item, self._line = len(item[1]), [], ""
        return steps


class _JsonSteps:
    """The objects in the array under "steps" (or in a top-level array), each as soon as it closes."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._string = False
        self._escaped = False
        self._key = ""
        self._last = ""
        self._array: int | None = None
        self._object = ""

    def feed(self, char: str) -> list[JSON]:
        if self._object or (char == "{" and self._array == len(self._open)):
            self._object += char
        if self._string:
            self._inside(char)
            return []
        if char == '"':
            self._string, self._last = True, ""
        elif char == ":":
            self._key = self._last
        elif char in "{[":
            if (
                char == "["
                and self._array is None
                and (not self._open or (self._key, len(self._open)) == ("steps", 1))
            ):
                self._array = len(self._open) + 1
            self._open.append(char)
        elif char in "}]" and self._open:
            self._open.pop()
            return self._closed()
        return []

    def _inside(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._string = False
            return
        self._last = (self._last + char)[-64:]

    def _closed(self) -> list[JSON]:
        if self._array is not None and len(self._open) < self._array:
            self._array = -1
        if self._object and len(self._open) == self._array:
            text, self._object = self._object, ""
            try:
                return [json.loads(text)]
            except ValueError:
                return []
        return []


def _steps_in(text: str) -> list[JSON]:
    """The step in one item of a YAML list; none if it is not (yet) a step."""
    if not text.strip():
        return []
    try:
        data = read_data(text)
    except PlanError:
        return []
    return [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
