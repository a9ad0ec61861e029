"""A text that arrives in many small pieces."""

from __future__ import annotations


class StreamedText:
    """Takes pieces at the cost of each piece alone, and joins them when the text is asked for."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: str) -> None:
        """Take the next piece."""
        if piece:
            self._pieces.append(piece)

    def clear(self) -> None:
        """Forget what came so far."""
        self._pieces.clear()

    @property
    def text(self) -> str:
        """All of it. Asking again costs nothing until more has come."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""
