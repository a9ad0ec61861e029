"""What the user wrote in a session. Whether a value stands there is asked of every argument of every call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iact.core.gate.user_values import could_have, wrote


class UserWords:
    """Messages in order. A look at all of them together comes first, so that long sessions pay for few of them."""

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
        """One more."""
        self._texts.append(text)
        self._lower += "\n" + text.lower()

    def remove(self, text: str) -> None:
        """Take one back."""
        self._texts.remove(text)
        self._lower = "\n" + "\n".join(self._texts).lower()

    def change(self, old: str, new: str) -> None:
        """It was said otherwise."""
        self._texts = [new if one == old else one for one in self._texts]
        self._lower = "\n" + "\n".join(self._texts).lower()

    def holds(self, value: str) -> bool:
        """Whether the user wrote `value`, in one of its written forms."""
        return could_have(self._lower, value) and any(wrote(said, value) for said in self._texts)
