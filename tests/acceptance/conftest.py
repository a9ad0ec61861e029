"""One stage per test, with scripted endpoints and products, and the laws that are checked at its end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.acceptance.laws import journal_law
from tests.acceptance.product import Product, containers_of, reap
from tests.endpoint import Endpoint, Script

_numbers = itertools.count(1)


@dataclass
class Stage:
    """Endpoints and products of one test. `crashes`: a process that asks this endpoint may be killed or lose its disk.
    `gateway`: each product is a host with a store, and its sessions are reached through a gateway."""

    folder: Path
    gateway: bool = False
    endpoints: list[Endpoint] = field(default_factory=list)
    data: set[Path] = field(default_factory=set)

    def endpoint(
        self, script: Script, *, by_turn: bool = False, crashes: bool = False, reject: Sequence[str] = ()
    ) -> Endpoint:
        """A scripted endpoint that ends with the test."""
        made = Endpoint(script, by_turn=by_turn, crashes=crashes, reject=reject).start()
        self.endpoints.append(made)
        return made

    def product(self, endpoint: Endpoint | str | None = None, **settings: str) -> Product:
        """The product with a new data directory. Each has its own name for the model."""
        number = next(_numbers)
        data = self.folder / f"data-{number}"
        data.mkdir()
        self.data.add(data)
        given = {"IACT_MODEL": f"scripted-{number}", **settings}
        if self.gateway:
            given |= {"IACT_STORE": f"file://{self.folder}/store-{number}", "IACT_HOST": f"host-{number}"}
        return replace(Product.at(data, endpoint, **given), gateway=self.gateway)

    def end(self) -> None:
        """Close everything, then check the laws."""
        for endpoint in self.endpoints:
            endpoint.stop()
        for endpoint in self.endpoints:
            endpoint.conversation.check()
            endpoint.assert_used()
        for data in self.directories():
            for journal in data.glob("sessions/*/journal.md"):
                journal_law(journal)
            assert not containers_of(data)
            assert not list((data / "run").glob("*"))

    def directories(self) -> list[Path]:
        """All data directories: those of products, and those of their users."""
        return [one for data in self.data for one in (data, *data.glob("users/*"))]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    try:
        made.end()
    finally:
        for data in made.directories():
            reap(data)
