"""Keeps on disk what llama.cpp has computed for static prompts: one file for each installation, model and prompt.

All installations of a user share the folder, as they share that of the models. A file belongs to the installation in its
name, and only that one replaces it by what it needs now: two checkouts with different prompts never delete each other's.
Where another installation has the same content, it is linked and not computed again. What nobody has used for a month is
deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.models.weights import cache_folder

_UNUSED_SECONDS: Final = 30 * 86_400
_ENDING: Final = ".bin"


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state of one prompt, model and library, as one installation keeps it."""

    installation: str
    model: str
    """Digest of the model's file."""
    content: str
    """Digest of all that the state depends on."""

    @property
    def name(self) -> str:
        """The file's name in the folder of states."""
        return f"{self.installation}-{self.model}-{self.content}{_ENDING}"

    def find(self) -> bool:
        """Whether it is there, possibly linked from another installation. Marks it as used. Blocks."""
        own = state_folder() / self.name
        with contextlib.suppress(OSError):
            if not own.exists():
                self._link_from_another(own)
            os.utime(own)
            return True
        return False

    def _link_from_another(self, own: Path) -> None:
        for other in state_folder().glob(f"*-{self.model}-{self.content}{_ENDING}"):
            os.link(other, own)
            return

    def put(self, written: str) -> None:
        """Put a file of the folder in its place, and delete what it replaces and what nobody uses. Blocks.

        Raises:
            OSError: the file can't be moved or deleted.
        """
        folder = state_folder()
        (folder / written).replace(folder / self.name)
        for old in self._outdated(folder):
            old.unlink(missing_ok=True)

    def _outdated(self, folder: Path) -> Iterator[Path]:
        """What this installation kept for the same model before, and what has not been used for long."""
        unused_since = time.time() - _UNUSED_SECONDS
        for path in folder.glob(f"*{_ENDING}"):
            if path.name == self.name:
                continue
            is_ours = path.name.startswith(f"{self.installation}-{self.model}-")
            with contextlib.suppress(FileNotFoundError):  # another process deletes the same
                if is_ours or path.stat().st_mtime < unused_since:
                    yield path


def kept_state(model_sha256: str, content: bytes, place: Path | None = None) -> KeptState:
    """The state for a model and all else that it depends on.

    `content`: the prompt, the library, and whatever else changes the state. `place`: where the installation is; None: this
    one.
    """
    place = place or Path(__file__).resolve().parent
    return KeptState(
        installation=hashlib.sha256(bytes(place)).hexdigest()[:8],
        model=model_sha256[:8],
        content=hashlib.sha256(content).hexdigest()[:16],
    )


def state_folder() -> Path:
    """Where computed states of static prompts are kept."""
    folder = cache_folder() / "models" / "state"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
