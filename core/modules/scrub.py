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
        forms = {form: f"[secret {name}]" for name, value in secrets.items() for form in _forms(value)}
        # Longer forms first: one value may be the beginning of another.
        self._forms = dict(sorted(forms.items(), key=lambda item: -len(item[0])))
        self._longest = max((len(form) for form in self._forms), default=0)
        self._held = ""
        """The end of a stream so far that may be the beginning of a value."""

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
        clean = self.text(self._held + text)
        upto = len(clean) - self._begun(clean)
        self._held = clean[upto:]
        return clean[:upto]

    def flush(self) -> str:
        """The rest of the stream."""
        rest = self._held
        self._held = ""
        return rest

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
                return [self.json(item) for item in value]
            case dict():
                return {self.text(key): self.json(item) for key, item in value.items()}
            case _:
                return value

    def state(self, change: StateChange) -> StateChange:
        """Scrub a state of the module."""
        entry_points = tuple(self.text(name) for name in change.entry_points)
        return StateChange(self.text(change.state), entry_points, self.text(change.note))

    def outcome(self, outcome: Outcome) -> Outcome:
        """Scrub the outcome of a call."""
        match outcome:
            case Completed():
                return self._completed(outcome)
            case Raised():
                return Raised(
                    type=self.text(outcome.type),
                    message=self.text(outcome.message),
                    trace=self.text(outcome.trace),
                    output=self.text(outcome.output),
                )
            case TimedOut():
                return TimedOut(self.text(outcome.output))

    def _completed(self, outcome: Completed) -> Completed:
        data = self.json(dict(outcome.data))
        assert isinstance(data, dict)
        return replace(
            outcome,
            output=self.text(outcome.output),
            data=data,
            artifacts=tuple(replace(sent, name=self.text(sent.name)) for sent in outcome.artifacts),
            state=self.state(outcome.state) if outcome.state is not None else None,
        )


def _forms(value: str) -> tuple[str, ...]:
    """A secret as it may be written: as it is, in JSON with and without letters beyond ASCII, and in an address."""
    return (
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, ""),
    )


class ScrubBytes:
    """The same for the content of one artifact, in chunks. A value is blanked out, so that sizes don't change."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._values = sorted((value.encode() for value in secrets.values()), key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Scrub the next chunk; the result differs in length by what is held back between chunks."""
        clean = self._held + data
        for value in self._values:
            clean = clean.replace(value, b"*" * len(value))

        begun = 0 if last else self._begun(clean)
        upto = len(clean) - begun
        self._held = clean[upto:]
        return clean[:upto]

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a value."""
        longest = max((len(value) for value in self._values), default=1) - 1
        for length in range(min(longest, len(data)), 0, -1):
            end = data[len(data) - length :]
            if any(value.startswith(end) for value in self._values):
                return length
        return 0
