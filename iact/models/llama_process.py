"""Starts and stops the process in which llama.cpp serves a model's file (`llama_program`)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iact.core.errors import ModelUnreachable
from iact.models.kept_states import state_folder

LIBRARY: Final = "libgomp1"
"""Debian's package of a library that llama.cpp also needs; minimal systems lack it."""

_PROGRAM: Final = Path(__file__).with_name("llama_program.py")
_MOST_THREADS: Final = 8
_BATCH: Final = 256  # tokens; a cancelled request is noticed between batches
_CACHE_MIB: Final = 256


class LlamaProcess:
    """One process that serves one file. `key`: what requests must bring; only this process knows it."""

    def __init__(self, path: Path, key: str, context: int) -> None:
        """`context`: the window in tokens. Nothing is started yet."""
        self._asked: Mapping[str, object] = {
            "path": str(path), "key": key, "context": context, "threads": threads(), "batch": _BATCH,
            "cache_mib": _CACHE_MIB, "states": f"{state_folder()}{os.sep}",
        }  # fmt: skip
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> str:
        """Load the model, and return the server's address. Blocks for seconds, until `stop` at the latest.

        Raises:
            ModelUnreachable: llama.cpp is not installed, or can't load the file.
        """
        # In a session of its own: a terminal's Ctrl-C is for us, and we end it.
        process = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        self._process = process
        if self._stopped:
            self.stop()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{json.dumps(self._asked)}\n")
            process.stdin.flush()
            told = json.loads(process.stdout.readline() or "{}")
        except (OSError, ValueError):
            told = {}
        finally:
            process.stdout.close()
        if "address" in told:
            return str(told["address"])

        self.stop()
        raise _unreachable(str(told.get("fault", "load")), str(told.get("detail", "it ended while loading")))

    def stop(self) -> None:
        """End the process, also from another thread while it loads. Does nothing if it has ended."""
        self._stopped = True
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()


def _unreachable(fault: str, detail: str) -> ModelUnreachable:
    if fault == "package":
        return ModelUnreachable(
            "The model on board needs the package xllamacpp, which is not installed; run make setup, or connect a model "
            "of your own (OPENAI_BASE_URL)."
        )
    if fault == "library":
        return ModelUnreachable(
            f"The model on board needs a library of the system ({detail}); run `sudo apt-get install {LIBRARY}`, or "
            "connect a model of your own (OPENAI_BASE_URL)."
        )
    return ModelUnreachable(
        f"The model on board can't be loaded ({detail}); free some memory, or connect a model of your own "
        "(OPENAI_BASE_URL)."
    )


def threads() -> int:
    """How many threads compute: as many as there are idle processors now.

    They spin while they wait for each other. On a machine that is busy with something else, two are slower than one.
    """
    processors = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0]
    return max(1, min(_MOST_THREADS, processors - round(busy)))
