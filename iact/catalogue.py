"""Commands about what runs in the sandbox: `module list`, `image build`, `doctor`."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from core.errors import ModuleFault, SandboxError
from core.modules.door import Door
from core.modules.manifest import Manifest
from core.ports import CatalogueEntry, ModuleHost
from iact.doctor import checks
from iact.settings import Settings
from sandbox import image, open_host
from sandbox.engine import connect


def list_modules(settings: Settings, *, as_json: bool) -> int:
    """Print the catalogue. A module that has never run here shows no functions."""
    entries = asyncio.run(_catalogue(settings))
    if as_json:
        print(json.dumps([_module(entry) for entry in entries], ensure_ascii=False, indent=2))
        return 0
    for entry in entries:
        print(f"{entry.name}  {entry.digest[:12]}  {entry.origin}  {entry.summary}")
        for function in _functions(entry):
            print(f"  {function['name']}  impact {function['impact']}")
    return 0


async def _catalogue(settings: Settings) -> list[CatalogueEntry]:
    host = await open_host(settings.data, backend=settings.sandbox)
    try:
        entries = await host.catalogue()
        new = [entry.name for entry in entries if entry.manifest is None]
        if new:
            await _describe(host, new)
            entries = await host.catalogue()
        return list(entries)
    finally:
        await host.close()


async def _describe(host: ModuleHost, names: Sequence[str]) -> None:
    """Start modules that have never run here and ask what they offer; what can't be started stays new."""
    with tempfile.TemporaryDirectory(prefix="iact-describe-") as folder:
        door = Door(host, f"describe-{secrets.token_hex(4)}", Path(folder))
        try:
            for name in names:
                try:
                    await door.describe(name, _tell)
                except (SandboxError, ModuleFault) as error:
                    _tell(f"{name}: {error}")
        finally:
            await door.close()


def _tell(line: str) -> None:
    print(f"iact: {line}", file=sys.stderr, flush=True)


def _module(entry: CatalogueEntry) -> dict[str, object]:
    manifest = _manifest(entry)
    return {
        "name": entry.name,
        "version": manifest.version if manifest else None,
        "state": "ready" if manifest else "new",
        "digest": entry.digest,
        "functions": _functions(entry),
    }


def _manifest(entry: CatalogueEntry) -> Manifest | None:
    return Manifest.from_proto(entry.manifest) if entry.manifest is not None else None


def _functions(entry: CatalogueEntry) -> list[dict[str, object]]:
    manifest = _manifest(entry)
    return [
        {"name": f"{entry.name}.{one.name}", "impact": one.impact, "approved": entry.origin == "shipped"}
        for one in (manifest.functions if manifest else ())
    ]


def build_image(source: Literal["registry", "debian"] | None) -> int:
    """Build the sandbox's base image unless it is there."""
    with closing(connect()) as client:
        made = image.ensure(client, _tell, source=source)
    print(made.reference)
    return 0


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Print what works here; 1 if something does not."""
    found = checks(settings.data)
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
    else:
        for one in found:
            print(f"{'ok ' if one.ok else 'NO '} {one.check}: {one.detail}")
            if one.remedy:
                print(f"    → {one.remedy}")
    return 0 if all(one.ok for one in found) else 1
