"""The modules that can be started: found as folders, identified by digest, never imported.

A module is a folder with a `module.toml` (what a person should know before it first runs, and what it needs mounted)
and its source: `module.py`, or the program that `command` names, in any language.

Before a module runs, it is copied into the data directory under its digest. So a container has exactly the source that
the digest identifies, readable for any user it runs as, even if the repository is edited in the meantime.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

from google.protobuf import json_format
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from iact.core import whole_file
from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.ports import CatalogueEntry, ModuleSource, Origin
from iact.sandbox.egress import targets
from iact.sandbox.images import payload, workshop
from iact.sandbox.images.recipe import Recipe
from iact.sandbox.limits import INSIDE
from iact.sandbox.module_versions import ModuleVersions
from iact.sandbox.packages import checked
from protos.iact.ext_module.v1 import ext_module_pb2

LOCK = "requirements.lock"
"""In a module's folder: its requirements with their digests, if there are many."""
MANIFEST = "manifest.json"
"""In the folder of a shipped module: its manifest, so that it need not be started to know it."""
_NAME = "^[a-z][a-z0-9_]{0,31}$"
_PURPOSE = 600
"""The most characters of a manifest's purpose."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class _Needs(BaseModel):
    """The table `needs` of a `module.toml`; 0 means "as the sandbox decides"."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    workspace: Literal["none", "read", "write"] = "none"
    memory: int = Field(default=0, ge=0)
    cpu: float = Field(default=0, ge=0)
    pids: int = Field(default=0, ge=0)
    egress: list[str] = Field(default=[], max_length=50)
    secrets: list[str] = Field(default=[], max_length=50)
    optional_secrets: list[str] = Field(default=[], max_length=50)
    own_instances: bool = False

    @field_validator("egress")
    @classmethod
    def _targets(cls, value: list[str]) -> list[str]:
        targets(value)
        return value

    @field_validator("memory", mode="before")
    @classmethod
    def _bytes(cls, value: object) -> object:
        match = re.fullmatch(r"(\d+)([kmg]?)", str(value).lower())
        if match is None:
            raise ValueError('write a number of bytes, or "512m"')
        return int(match[1]) * _UNITS[match[2]]


class _Image(BaseModel):
    """The table `image` of a `module.toml`: additional contents of its system. Only for shipped modules."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    packages: list[Annotated[str, Field(pattern="^[a-z0-9][a-z0-9+.-]{1,60}$")]] = Field(
        default=[], max_length=20
    )
    workshop: bool = False


class _Trusted(BaseModel):
    """The table `trusted` of a `module.toml`: rights that only shipped modules can have."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    root: bool = False
    apps: bool = False
    prepared: bool = False
    settings: list[Annotated[str, Field(pattern="^[a-z_]{1,30}$")]] = Field(default=[], max_length=10)


class _Card(BaseModel):
    """A whole `module.toml`."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    name: str = Field(pattern=_NAME)
    summary: str = Field(max_length=600)
    requirements: list[Annotated[str, AfterValidator(checked)]] = Field(default=[], max_length=200)
    needs: _Needs = _Needs()
    mcp: dict[str, object] | None = None
    image: _Image | None = None
    trusted: _Trusted | None = None
    system: str = Field(default="", pattern="^(sha256:[0-9a-f]{64})?$")
    command: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(default=[], max_length=50)


@dataclass(frozen=True, slots=True)
class Trusted:
    """The additional rights of a shipped module. `settings`: the user's settings that its process receives."""

    root: bool = False
    """In the workshop it is real root, on a writable system, if the engine keeps its users apart from the host's."""
    apps: bool = False
    """It serves web apps, which the user can open."""
    prepared: bool = False
    """It may run before a session calls it, as a viewer and as a worker."""
    settings: tuple[str, ...] = ()


_NOT_TRUSTED: Final = Trusted()


@dataclass(frozen=True, slots=True)
class CatalogueModule:
    """A module as read from its folder."""

    name: str
    summary: str
    folder: Path
    digest: str
    """SHA-256 hex over its source and the SDK's."""
    origin: Origin
    workspace: Literal["none", "read", "write"]
    memory: int
    """In bytes; 0 leaves the choice to the sandbox, as for the next two."""
    cpus: float
    """In cores."""
    processes: int
    egress: tuple[str, ...] = ()
    """Targets, as "host:port"."""
    requirements: tuple[str, ...] = ()
    """As "name==version", perhaps with digests."""
    program: tuple[str, ...] = ()
    """Requirements of the separate program that the module runs: an MCP server."""
    packages: tuple[str, ...] = ()
    """Debian packages that must be in its image."""
    workshop: bool = False
    """It runs in the workshop, if a person chose one."""
    trusted: Trusted = _NOT_TRUSTED
    sources: tuple[tuple[str, Path], ...] = ()
    """Its source: the path of each file in the module's folder, and where the file is."""
    command: tuple[str, ...] = ()
    """The program that serves the contract; if empty, the SDK serves `module.py`."""
    system: str = ""
    """The digest of an image that a person supplied, in which it runs instead of ours."""
    own_instances: bool = False
    """Whether each agent has its own instances, so that no other agent sees their processes and temporary files."""
    optional_secrets: tuple[str, ...] = ()
    """Secrets that it can work without: users are not notified if one is not stored."""
    shared: bool = False
    """It is in use, and an administrator set it for all users: it gets the shared secrets, and never a user's own."""

    def served_at(self, socket: str) -> list[str]:
        """The command line, inside, that serves it on a unix socket. Words that begin with ./ refer to its folder."""
        own = [
            word.replace("./", f"{INSIDE}/", 1) if word.startswith("./") else word for word in self.command
        ]
        return [
            # -P: imports nothing from the workspace, which is its current directory.
            *(own or ("python3", "-P", "-m", "ext_modules.sdk", "serve", f"{INSIDE}/module.py")),
            "--socket",
            socket,
        ]


class Catalogue:
    """The available modules, and their manifests and copies below `data`/modules."""

    def __init__(
        self,
        data: Path,
        *,
        shipped: Path | None = None,
        folders: Sequence[Path] = (),
        shared: Path | None = None,
    ) -> None:
        """`shipped`: a folder of modules instead of our own. `folders`: additional modules of the user.

        `shared`: a directory like `data` with the modules that an administrator set for all users.
        """
        self._data = data
        self._memory = data / "modules"
        self._kept = ModuleVersions(self._memory)
        self._shipped = shipped
        self._folders = tuple(folders)
        self._shared = ModuleVersions(shared / "modules") if shared is not None else None
        self._memories = [self._memory, *([shared / "modules"] if shared is not None else [])]
        self.root = False
        """Whether modules that may be real root are root here."""

    def modules(self) -> dict[str, CatalogueModule]:
        """Return all modules by name. Reads their source again each time: it is small, and may have changed."""
        shipped = self._shipped or payload.package_folder("ext_modules")
        base = payload.sdk_digest()
        known: dict[str, CatalogueModule] = {}
        for card in sorted(shipped.glob("*/module.toml")):
            module = read(card.parent, sdk=base)
            known[module.name] = module

        for folder in self._folders:
            ours = folder.parent == payload.package_folder("ext_modules")  # one of ours, to be checked alone
            module = read(folder, sdk=base, origin="shipped" if ours else "user")
            if module.name in known:
                raise UsageError(f"There is already a module {module.name}; rename the one in {folder}.")
            known[module.name] = module

        # Neither a module that ships with the product nor one that is set for all users can be replaced.
        shared = self._shared.current() if self._shared is not None else ()
        for folder, origin in shared:
            module = replace(read(folder, sdk=base, origin=origin), shared=True)
            known.setdefault(module.name, module)
        for folder, origin in self._kept.current():
            module = read(folder, sdk=base, origin=origin)
            known.setdefault(module.name, module)
        return known

    def find(self, name: str, digest: str | None = None) -> CatalogueModule:
        """Return the module `name`, in the version `digest` or as it is in the catalogue.

        Raises:
            SandboxUnavailable: there is no such module.
        """
        modules = self.modules()
        current = modules.get(name)
        if current is not None and digest in (None, current.digest):
            return current
        # There is only one version of a shipped module.
        if current is not None and current.origin == "shipped":
            return current

        if digest is not None:
            earlier = self._version(name, digest)
            if earlier is not None:
                return earlier

        which = f" in the version {digest[:12]}" if current is not None and digest is not None else ""
        raise SandboxUnavailable(
            f"There is no module {name!r}{which}; there are: {', '.join(modules) or 'none'}."
        )

    def _version(self, name: str, digest: str) -> CatalogueModule | None:
        """A version of a module that somebody added, whether or not it is in use."""
        base = payload.sdk_digest()
        for versions in (self._kept, self._shared):
            if versions is None:
                continue
            for folder, origin in versions.versions(name):
                module = read(folder, sdk=base, origin=origin)
                if module.digest == digest:
                    return module
        return None

    def entries(self) -> Sequence[CatalogueEntry]:
        """The entries for `core`, each with the manifest known for its digest."""
        return [self._entry(module) for module in self.modules().values()]

    def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        """Store a version of a module that is not in use yet.

        Raises:
            UsageError: it can't be a module, or its name belongs to one of ours.
        """
        current = self.modules().get(source.name)
        if current is not None and current.origin == "shipped":
            raise UsageError(f"A module {source.name} ships with the product; choose another name.")
        if current is not None and current.shared:
            raise UsageError(
                f"An administrator added a module {source.name} for all users; choose another name."
            )
        if current is not None and origin == "agent" and current.origin == "user":
            raise UsageError(f"A person added a module {source.name}; choose another name.")

        folder = self._kept.add(source, origin)
        try:
            module = read(folder, sdk=payload.sdk_digest(), origin=origin)
            if module.name != source.name:
                raise UsageError(f"The module.toml describes {module.name!r}, not {source.name!r}.")
            if module.system and origin != "user":
                raise UsageError("The module.toml names an image as its system; only a person can add one.")
        except UsageError as error:
            shutil.rmtree(folder)
            raise UsageError(str(error).replace(f"{folder}/", "")) from error
        return self._entry(module)

    def adopt(self, name: str, digest: str, origin: Origin) -> None:
        """Make an added version the one in use for its name."""
        self._kept.adopt(self.find(name, digest).folder, origin)

    def files(self, name: str, digest: str) -> dict[str, bytes]:
        """The files of a version, by relative path.

        Raises:
            SandboxUnavailable: there is no such version.
        """
        return {inside: place.read_bytes() for inside, place in self.find(name, digest).sources}

    def remove(self, name: str) -> None:
        """Remove a module from the catalogue.

        Raises:
            UsageError: there is no such module, or it ships with the product.
        """
        current = self.modules().get(name)
        if current is not None and current.origin == "shipped":
            raise UsageError(f"The module {name} ships with the product and can't be removed.")
        if current is not None and current.shared:
            raise UsageError(
                f"An administrator added the module {name} for all users; only an administrator can remove it."
            )
        self._kept.remove(name)

    def recipe_of(self, module: CatalogueModule) -> Recipe:
        """The system that `module` runs in."""
        chosen = workshop.load(self._data) if module.workshop else None
        return chosen.recipe(module.packages) if chosen is not None else Recipe(module.packages)

    def _entry(self, module: CatalogueModule) -> CatalogueEntry:
        manifest = self._manifest(module)
        chosen = workshop.load(self._data) if module.workshop and manifest is not None else None
        if chosen is not None and manifest is not None:
            manifest = _told(manifest, chosen.described(root=self.root and module.trusted.root))
        return CatalogueEntry(
            module.name, module.digest, module.origin, module.summary, manifest, module.shared
        )

    def remember(self, digest: str, manifest: bytes) -> None:
        """Store the manifest of the module with this digest."""
        self._memory.mkdir(parents=True, exist_ok=True)
        whole_file.replace(self._memory / f"{digest}.manifest", manifest)

    def _manifest(self, module: CatalogueModule) -> bytes | None:
        """The module's known manifest. Shipped modules come with theirs, so they need not be started for it."""
        for memory in self._memories:
            with suppress(OSError):
                return (memory / f"{module.digest}.manifest").read_bytes()
        shipped = module.folder / MANIFEST
        if module.origin != "shipped" or not shipped.is_file():
            return None
        said = json_format.Parse(shipped.read_text(encoding="utf-8"), ext_module_pb2.Manifest())
        return said.SerializeToString(deterministic=True)

    def copy_of(self, module: CatalogueModule) -> Path:
        """The folder with a copy of `module`'s source, readable by all; made once per digest."""
        self._memory.mkdir(parents=True, exist_ok=True)
        target = self._memory / module.digest
        if target.is_dir():
            return target

        draft = Path(tempfile.mkdtemp(dir=self._memory, prefix=".copy-"))
        try:
            for name, source in module.sources:
                copy = draft / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)

            for path in (draft, *draft.rglob("*")):
                path.chmod(0o755 if path.is_dir() or module.command else 0o644)
            os.rename(draft, target)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if not target.is_dir():  # otherwise another process was faster, with the same content
                raise
        return target


def _told(manifest: bytes, lines: str) -> bytes:
    """Add the workshop's content to a manifest: to its purpose for people, and to its first function for agents."""
    said = ext_module_pb2.Manifest.FromString(manifest)
    if said.functions and lines:
        said.purpose = f"{said.purpose} {lines.partition(chr(10))[0]}"[:_PURPOSE]
        first = said.functions[0]
        first.documentation = f"{first.documentation.rstrip()}\n\n{lines}"
    return said.SerializeToString(deterministic=True)


def read(folder: Path, *, sdk: str, origin: Origin = "shipped") -> CatalogueModule:
    """Read the module in `folder`; `sdk`: digest of the SDK that it will run on.

    Raises:
        UsageError: its `module.toml` is not valid, or there is nothing to run.
    """
    path = folder / "module.toml"
    try:
        card = _Card.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} can't be read as TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{path} is wrong at {where!r}: {first['msg'].removeprefix('Value error, ')}."
        ) from error

    # Of a server of MCP, the bridge is the module; the card's requirements are for the server behind it.
    sources = _named(folder)
    requirements = card.requirements
    program: list[str] = []
    if card.mcp is not None:
        bridge = payload.package_folder("ext_modules") / "mcp"
        sources |= _named(bridge)
        requirements = payload.locked(bridge / LOCK)
        program = card.requirements
    elif LOCK in sources:
        requirements = _locked(sources[LOCK])

    if card.system and (not card.command or requirements):
        raise UsageError(
            f"{path} names an image as its system; it needs a command, and can have no requirements."
        )
    if "module.py" not in sources and not card.command:
        raise UsageError(
            f"{folder} contains a module.toml but no module.py; add the module's source, or name its "
            "program as command."
        )
    if origin != "shipped" and (card.image is not None or card.trusted is not None):
        named = "image" if card.image is not None else "trusted"
        raise UsageError(f"{path} has a table [{named}]; only modules that ship with iact can have one.")

    listed = tuple(sorted(sources.items()))
    content = [(name, file.read_bytes()) for name, file in listed]
    needs = card.needs
    return CatalogueModule(
        name=card.name,
        summary=card.summary,
        folder=folder,
        digest=payload.digest_of([*content, ("sdk", sdk.encode())]),
        origin=origin,
        workspace=needs.workspace,
        memory=needs.memory,
        cpus=needs.cpu,
        processes=needs.pids,
        egress=tuple(needs.egress),
        requirements=tuple(requirements),
        program=tuple(program),
        packages=tuple(card.image.packages) if card.image else (),
        workshop=bool(card.image and card.image.workshop),
        trusted=_trusted(card.trusted),
        sources=listed,
        command=tuple(card.command),
        system=card.system,
        own_instances=needs.own_instances,
        optional_secrets=tuple(needs.optional_secrets),
    )


def _trusted(table: _Trusted | None) -> Trusted:
    if table is None:
        return _NOT_TRUSTED
    return Trusted(table.root, table.apps, table.prepared, tuple(table.settings))


def _named(folder: Path) -> dict[str, Path]:
    return {file.relative_to(folder).as_posix(): file for file in payload.sources(folder)}


def _locked(path: Path) -> list[str]:
    """The requirements in a module's lock file.

    Raises:
        UsageError: a line is not an exact version.
    """
    try:
        return [checked(line) for line in payload.locked(path)]
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not a list of exact versions: {error}.") from error
