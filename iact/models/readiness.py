"""Whether the model on board can run on this machine. Nothing is loaded or changed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Literal

from iact.models.llama_process import LIBRARY
from iact.models.weights import ChosenFile


@dataclass(frozen=True, slots=True)
class Readiness:
    """What the model on board has, and what it lacks."""

    selection: ChosenFile
    """The file that would be used."""
    missing: Literal["", "package", "library"] = ""
    """What is needed to run it."""
    detail: str = ""
    """The system's message about that."""
    library: str = ""
    """The system package that contains what is missing."""


def look(selection: ChosenFile) -> Readiness:
    """Check what the model on board needs on this machine. Blocks."""
    try:
        importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        return Readiness(selection, "package", str(error))
    except ImportError as error:
        return Readiness(selection, "library", str(error), LIBRARY)
    return Readiness(selection)
