"""The models that a person added (`iact model add`): which there are, and where they come from.

The list is a file of the data directory, `models.json`. Files of the hub are kept in the cache folder, named by their
digest; a person's own files stay where they are, and are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from iact.core import json_file
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.models.weights import KNOWN, ChosenFile, OwnFile, cache_folder, select

FILE: Final = "models.json"
"""The name of the list in the data directory."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
"""What a model may be called."""

_RESERVED: Final = frozenset({*KNOWN, "off"})
_WHAT: Final = "models"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A model in a GGUF file, from the hub or a person's own."""

    kind: Literal["hub", "file"]
    source: str
    """As it was added: `hub:OWNER/NAME:FILE` or `file:PATH`."""
    path: str
    size: int
    """In bytes."""
    sha256: str
    licence: str = ""
    """As its source states it; empty if it doesn't."""
    revision: str = ""
    """The commit of the hub's repository."""
    trained: int = 0
    """The window in tokens that the model was trained with; 0 if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEndpoint:
    """A model behind an endpoint. Its key is kept among the secrets, under `key_name`."""

    kind: Literal["endpoint"] = "endpoint"
    source: str
    """The preset that it was added with."""
    url: str
    model: str
    key: str = ""
    """The name of the environment variable or secret that holds its key; empty if it needs none."""


AddedModel = AddedFile | AddedEndpoint


class _List(BaseModel):
    """The file's content."""

    model_config = ConfigDict(extra="ignore")

    models: dict[str, AddedFile | AddedEndpoint] = {}


_ADAPTER: Final = TypeAdapter(_List)


class AddedModels:
    """The list of one data directory."""

    def __init__(self, data: Path) -> None:
        self._file = data / FILE

    def all(self) -> Mapping[str, AddedModel]:
        """The models by name, in the order in which they were added. Blocks.

        Raises:
            UsageError: the list can't be read.
        """
        try:
            return _ADAPTER.validate_json(self._file.read_bytes()).models
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            raise UsageError(f"The list of models in {self._file} can't be read: {_first(error)}.") from error

    def put(self, name: str, model: AddedModel) -> None:
        """Add a model, replacing one of the same name. Blocks.

        Raises:
            UsageError: the name can't be used, or the list can't be written.
        """
        if not NAME.fullmatch(name) or name in _RESERVED:
            raise UsageError(
                f"{name!r} can't be the name of a model; use small letters, digits, dots and dashes, and none of "
                f"{', '.join(sorted(_RESERVED))}."
            )
        with json_file.locked(self._file, _WHAT):
            self._write({**self.all(), name: model})

    def remove(self, name: str) -> None:
        """Take a model off the list. Blocks.

        Raises:
            UsageError: there is none, or the list can't be written.
        """
        with json_file.locked(self._file, _WHAT):
            models = dict(self.all())
            if models.pop(name, None) is None:
                raise no_such_model(name)
            self._write(models)

    def _write(self, models: Mapping[str, AddedModel]) -> None:
        listed: dict[str, JSON] = {name: asdict(model) for name, model in models.items()}
        json_file.replace_json(self._file, {"models": listed}, _WHAT)


def _first(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}" if first["loc"] else first["msg"]


def no_such_model(name: str) -> UsageError:
    """What is said about a name that is on no list."""
    return UsageError(f"There is no model {name!r}; iact model list shows which there are.")


def name_of_file(file: str) -> str:
    """The name that a model gets from its file's name."""
    stem = Path(file).name.lower().removesuffix(".gguf")
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")[:80] or "model"


def place_of(file: str, sha256: str) -> Path:
    """Where a file of the hub is kept."""
    return cache_folder() / "models" / "hub" / sha256[:16] / Path(file).name


def own_file(name: str, model: AddedFile) -> OwnFile:
    """An added file as a model that this process can run."""
    return OwnFile(name, Path(model.path), model.size, model.sha256, model.trained)


def chosen_file(choice: str | None, data: Path) -> ChosenFile:
    """The file that the setting `embedded` names; without one, the largest that fits this machine. Blocks."""
    if choice is None or choice in _RESERVED:
        return select(choice)
    try:
        model = AddedModels(data).all().get(choice)
    except UsageError as error:
        return ChosenFile(None, str(error))
    if isinstance(model, AddedFile):
        return ChosenFile(own_file(choice, model))
    return ChosenFile(
        None,
        f"The setting embedded (or IACT_EMBEDDED) names the model {choice!r}, which is not here; add it with iact model "
        "add, or choose one that iact model list shows.",
    )
