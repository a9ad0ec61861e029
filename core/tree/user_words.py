"""What the user wrote in a session. Every argument of every call is searched for in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iact.core.gate.user_values import could_have, wrote


class UserWords:
    """The user's messages, in order. A joint check of all comes first, so long sessions rarely check each message."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._lower = ""
        for text in texts:
            self.append(text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    def append(self, text: str) -> None:
        """Add a message."""
        self._texts.append(text)
        self._lower += "\n" + text.lower()

    def remove(self, text: str) -> None:
        """Remove a message."""
        self._texts.remove(text)
        self._lower = "\n" + "\n".join(self._texts).lower()

    def change(self, old: str, new: str) -> None:
        """Replace a message that was reworded."""
        self._texts = [new if one == old else one for one in self._texts]
        self._lower = "\n" + "\n".join(self._texts).lower()

    def holds(self, value: str) -> bool:
        """Whether the user wrote `value`, in one of its written forms."""
        return could_have(self._lower, value) and any(wrote(said, value) for said in self._texts)
