"""Loads a module file, and the `module.toml` next to it, from any directory."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from ext_modules.sdk.module import Module, Needs

PACKAGE: Final = "loaded_ext_module"
"""The package under which the module's directory is imported, so that its files can import each other."""

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def load(path: Path) -> Module:
    """Import `path` and return the `Module` that it defines, with the version and needs from its `module.toml`.

    Raises:
        ImportError: the file defines no module, or more than one.
        ValueError: its module.toml is not valid.
    """
    for stale in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[stale]  # from a module that was loaded earlier
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(path.resolve().parent)]
    sys.modules[PACKAGE] = package
    loaded = importlib.import_module(f"{PACKAGE}.{path.stem}")

    # One module may have several names.
    modules = {id(value): value for value in vars(loaded).values() if isinstance(value, Module)}
    if len(modules) != 1:
        raise ImportError(
            f"{path} must define exactly one Module at its top level; it defines {len(modules)}."
        )
    (module,) = modules.values()

    settings = path.with_name("module.toml")
    if settings.exists():
        apply(module, tomllib.loads(settings.read_text(encoding="utf-8")))
    return module


def apply(module: Module, settings: Mapping[str, object]) -> None:
    """Set `module`'s version and needs from the content of a module.toml.

    Raises:
        ValueError: a value is of the wrong type, or the name is another module's.
    """
    name = settings.get("name", module.name)
    if name != module.name:
        raise ValueError(f"module.toml is about {name!r}, but the module is named {module.name!r}.")
    module.version = str(settings.get("version", module.version))
    needs = settings.get("needs", {})
    if not isinstance(needs, dict):
        raise ValueError("The [needs] of module.toml must be a table.")
    module.needs = needs_of(cast(Mapping[str, object], needs))


def needs_of(table: Mapping[str, object]) -> Needs:
    """Parse the [needs] table of a module.toml.

    Raises:
        ValueError: a value is of the wrong type.
    """
    workspace = table.get("workspace", "none")
    if workspace not in ("none", "read", "write"):
        raise ValueError(
            f'The workspace in module.toml is {workspace!r}; it must be "none", "read" or "write".'
        )

    cpu = table.get("cpu", 0)
    pids = table.get("pids", 0)
    if not isinstance(cpu, (int, float)) or not isinstance(pids, int):
        raise ValueError("The cpu and pids in module.toml must be numbers.")

    own_instances = table.get("own_instances", False)
    forgets = table.get("forgets", False)
    if not isinstance(own_instances, bool) or not isinstance(forgets, bool):
        raise ValueError("The own_instances and forgets in module.toml must be true or false.")

    return Needs(
        egress=_texts(table, "egress"),
        secrets=(*_texts(table, "secrets"), *_texts(table, "optional_secrets")),
        workspace=workspace,
        memory_bytes=_bytes(table.get("memory", 0)),
        cpu=float(cpu),
        pids=pids,
        own_instances=own_instances,
        forgets=forgets,
    )


def _texts(table: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"The {name} in module.toml must be a list of strings.")
    return tuple(value)


def _bytes(value: object) -> int:
    match = re.fullmatch(r"(\d+)([kmg]?)", str(value).lower())
    if not match:
        raise ValueError(f'The memory in module.toml is {value!r}; write a number of bytes, or "512m".')
    return int(match[1]) * _UNITS[match[2]]
