"""Removes a module's secrets from its output: the last line of defence. The first is not to give it any.

It finds the exact value, and the value as encoded in JSON and in a URL. A malicious module can still leak a secret in
another encoding; the protection against that is that a person approved it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from iact.core.modules.outcome import Completed, Outcome, Raised, StateChange, TimedOut
from iact.core.ports import JSON


class Scrub:
    """Replaces the values of `secrets`, by name. Without secrets, everything passes unchanged."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        found = {
            form: f"[secret {name}]"
            for name, value in secrets.items()
            for form in (
                value,
                json.dumps(value)[1:-1],
                json.dumps(value, ensure_ascii=False)[1:-1],
                quote(value, ""),
            )
        }
        # Longer forms first: one value may be the beginning of another.
        self._forms = dict(sorted(found.items(), key=lambda item: -len(item[0])))
        self._longest = max((len(form) for form in self._forms), default=0)
        self._held = ""

    def __bool__(self) -> bool:
        return bool(self._forms)

    def text(self, text: str) -> str:
        """Scrub a whole text."""
        for form, instead in self._forms.items():
            text = text.replace(form, instead)
        return text

    def feed(self, text: str) -> str:
        """Scrub the next piece of a stream, and hold back an end that may be the beginning of a value; `flush` returns
        it."""
        held = self.text(self._held + text)
        keep = self._begun(held)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def flush(self) -> str:
        """The rest of the stream."""
        held, self._held = self._held, ""
        return held

    def _begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a value."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            end = text[len(text) - length :]
            if any(form.startswith(end) for form in self._forms):
                return length
        return 0

    def json(self, value: JSON) -> JSON:
        """Scrub every text in a value, at any depth."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.json(one) for one in value]
            case dict():
                return {self.text(key): self.json(one) for key, one in value.items()}
            case _:
                return value

    def state(self, change: StateChange) -> StateChange:
        """Scrub a state of the module."""
        return StateChange(
            self.text(change.state), tuple(map(self.text, change.entry_points)), self.text(change.note)
        )

    def outcome(self, outcome: Outcome) -> Outcome:
        """Scrub the outcome of a call."""
        match outcome:
            case Completed():
                data = self.json(dict(outcome.data))
                assert isinstance(data, dict)
                artifacts = tuple(replace(one, name=self.text(one.name)) for one in outcome.artifacts)
                state = self.state(outcome.state) if outcome.state is not None else None
                text = self.text(outcome.output)
                return replace(outcome, output=text, data=data, artifacts=artifacts, state=state)
            case Raised():
                return Raised(
                    self.text(outcome.type), self.text(outcome.message),
                    self.text(outcome.trace), self.text(outcome.output),
                )  # fmt: skip
            case TimedOut():
                return TimedOut(self.text(outcome.output))


class ScrubBytes:
    """The same for the content of one artifact, in chunks. A value is blanked out, so that sizes don't change."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._values = sorted((value.encode() for value in secrets.values()), key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Scrub the next chunk; the result differs in length by what is held back between chunks."""
        held = self._held + data
        for value in self._values:
            held = held.replace(value, b"*" * len(value))
        keep = 0 if last else self._begun(held)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def _begun(self, data: bytes) -> int:
        longest = max((len(value) for value in self._values), default=1) - 1
        for length in range(min(longest, len(data)), 0, -1):
            end = data[len(data) - length :]
            if any(value.startswith(end) for value in self._values):
                return length
        return 0
