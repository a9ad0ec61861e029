"""What an agent's actions take from a manifest, and what of it is believed."""

from __future__ import annotations

import pytest

from iact.core.modules.manifest import Manifest
from iact.core.modules.registry import Loaded, specs_of
from iact.core.ports import Origin

_FUNCTION = {"summary": "Looks.", "schema_text": '{"type":"object","properties":{}}'}
MANIFEST = Manifest.model_validate(
    {
        "name": "den",
        "functions": (
            {**_FUNCTION, "name": "look"},
            {**_FUNCTION, "name": "jobs", "held": True},
            {**_FUNCTION, "name": "stop", "held": True, "impact": 2},
        ),
        "needs": {"workspace": "write", "own_instances": True},
    }
)


@pytest.mark.parametrize(
    ("origin", "impacts"), [("shipped", [0, 0, 2]), ("user", [0, 1, 2]), ("agent", [0, 1, 2])]
)
def test_that_what_runs_beside_writers_only_looks_is_believed_of_what_ships(
    origin: Origin, impacts: list[int]
) -> None:
    specs = specs_of(Loaded(MANIFEST, "1", origin, frozenset({"look", "jobs", "stop"})))
    assert [spec.impact for spec in specs] == impacts
    assert [spec.held for spec in specs] == [False, True, True]


def test_how_it_runs_follows_from_what_it_needs() -> None:
    start = Loaded(MANIFEST, "1", "shipped", frozenset()).start
    assert (start.views, start.own) == (True, True)
    read = Manifest.model_validate({**MANIFEST.model_dump(), "needs": {"workspace": "read"}})
    start = Loaded(read, "1", "shipped", frozenset()).start
    assert (start.views, start.own) == (False, False)


def test_a_manifest_says_so_in_every_form() -> None:
    assert Manifest.from_json(MANIFEST.to_json()) == MANIFEST
    assert Manifest.from_proto(MANIFEST.to_proto()) == MANIFEST
