"""An object store in memory whose network can fail in every way that matters, and one that reports its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from iact.core.errors import StoreUnavailable


@dataclass
class Objects:
    """`before`: called with every request (operation, name); may raise. `lost`: whether the answer is lost."""

    content: dict[str, bytes] = field(default_factory=dict)
    before: Callable[[str, str], None] = lambda what, name: None
    lost: Callable[[str, str], bool] = lambda what, name: False
    address: str = "memory://tests"

    def create(self, name: str, data: bytes) -> bool:
        self.before("create", name)
        made = name not in self.content
        if made:
            self.content[name] = data
        if self.lost("create", name):
            raise StoreUnavailable("No answer came.")
        return made

    def get(self, name: str) -> bytes | None:
        self.before("get", name)
        return self.content.get(name)

    def names(self, prefix: str, *, after: str = "") -> Iterator[str]:
        self.before("names", prefix)
        yield from sorted(name for name in self.content if name.startswith(prefix) and name > after)

    def remove(self, name: str) -> None:
        self.before("remove", name)
        self.content.pop(name, None)

    def overwrite(self, name: str, data: bytes) -> None:
        self.before("overwrite", name)
        self.content[name] = data
        if self.lost("overwrite", name):
            raise StoreUnavailable("No answer came.")
