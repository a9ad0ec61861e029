"""The modules that ship, by their manifests: what an agent is offered is as in the product, though nothing can run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from google.protobuf import json_format

from iact.core.modules.manifest import Manifest
from iact.core.ports import CatalogueEntry
from protos.iact.ext_module.v1 import ext_module_pb2
from tests.core.session.fakes import FakeHost

_FOLDER = Path(__file__).resolve().parents[3] / "ext_modules"


def manifests() -> list[Manifest]:
    """The manifests of all shipped modules, by name."""
    found = []
    for path in sorted(_FOLDER.glob("*/manifest.json")):
        said = json_format.Parse(path.read_text(encoding="utf-8"), ext_module_pb2.Manifest())
        found.append(Manifest.from_proto(said.SerializeToString(deterministic=True)))
    return found


class ShippedHost(FakeHost):
    """A catalogue with every shipped module, and those of a user's own."""

    def __init__(self, *own: Manifest) -> None:
        super().__init__()
        self._own = own

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        def entry(manifest: Manifest, origin: str) -> CatalogueEntry:
            return CatalogueEntry(
                manifest.name,
                "0" * 64,
                "user" if origin == "user" else "shipped",
                manifest.purpose,
                manifest.to_proto(),
            )

        return [
            *(entry(manifest, "shipped") for manifest in manifests()),
            *(entry(manifest, "user") for manifest in self._own),
        ]
