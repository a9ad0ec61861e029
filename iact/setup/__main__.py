"""The command line of the set-up; see the package's docstring."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from iact.setup import (
    browser,
    bubblewrap,
    engine,
    environment,
    git,
    gvisor,
    image,
    model,
    node,
    proxies,
    workshop,
)
from iact.setup.report import ROOT, Missing, SetupFailed, say


def _environment() -> Missing | None:
    environment.ensure()
    return None


_STEPS: dict[str, Callable[[], Missing | None]] = {
    "environment": _environment,
    "engine": engine.ensure,
    "git": git.ensure,
    "library": model.ensure_library,
    "model": model.ensure,
    "image": image.ensure,
    "workshop": workshop.ensure,
    "browser": browser.ensure,
    "bubblewrap": bubblewrap.ensure,
    "gvisor": gvisor.ensure,
    "node": node.ensure,
    "proxies": proxies.ensure,
}
_GROUPS: dict[str, Sequence[str]] = {
    "setup": ("environment", "engine", "git", "model", "image", "workshop"),
    # The server downloads the model by itself, while its page can be used already.
    "run": ("environment", "engine", "git", "library", "image", "workshop"),
    "test": (
        "environment",
        "engine",
        "git",
        "library",
        "image",
        "browser",
        "bubblewrap",
        "gvisor",
        "node",
        "proxies",
    ),
}


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the repository's lock, so that two `make` runs at the same time don't interfere."""
    handle = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is running here; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def main(arguments: Sequence[str]) -> int:
    """Run the steps named by `arguments`. Returns 0 on success, 1 on failure, 2 for an unknown step."""
    names = [step for name in arguments or ["setup"] for step in _GROUPS.get(name, (name,))]
    unknown = [name for name in names if name not in _STEPS]
    if unknown:
        known = ", ".join([*_GROUPS, *_STEPS])
        print(f"setup: there is no step {unknown[0]!r}; the steps are: {known}.", file=sys.stderr)
        return 2
    try:
        with _alone():
            missing = [outcome for name in names if (outcome := _STEPS[name]()) is not None]
    except SetupFailed as failure:
        say(str(failure))
        return 1
    except subprocess.SubprocessError as failure:
        say(f"{failure}")
        return 1
    for item in missing:
        say(str(item))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
