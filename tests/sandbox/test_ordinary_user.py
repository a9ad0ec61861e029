"""bubblewrap for an ordinary user: the same suites, run again as one where these tests are root's.

Such a user has no control groups and can mount nothing, so freezing and shared temporary files are done otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.sandbox.bubblewrap import system_folder
from tests.sandbox.calling import need_bubblewrap

USER = 4711
ROOT = Path(__file__).parents[2]
AS_USER = (
    "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
    # To read this checkout, wherever it is. What it starts has none of it.
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--",
)  # fmt: skip
RUN = """
import ctypes, os, sys
PR_CAP_AMBIENT, CLEAR_ALL = 47, 4
assert os.geteuid() != 0
ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder of that user's, with a copy of the base system where that user's cache is."""
    need_bubblewrap()
    made = Path(tempfile.mkdtemp(prefix="iact-user-"))
    system = system_folder.ensure(print)
    copy = made / "cache" / "iact" / "systems" / system.name
    copy.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(system), str(copy)], check=True)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(made)], check=True)
    yield made
    subprocess.run(["chmod", "-R", "u+rwX", str(made)], check=False)
    shutil.rmtree(made)


@pytest.mark.skipif(os.geteuid() != 0, reason="the suites themselves are an ordinary user's then")
def test_the_same_holds_for_an_ordinary_user(place: Path) -> None:
    suites = [str(ROOT / "tests" / "sandbox" / suite) for suite in ("test_viewers.py", "test_isolation.py")]
    # An ordinary user mounts nothing, so there is nothing mounted to look at.
    chosen = [*suites, "-k", "bubblewrap and not what_is_mounted"]
    folders = [f"--basetemp={place / 'tests'}", "--rootdir", str(ROOT), "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*AS_USER, sys.executable, "-c", RUN, *chosen, *folders, "-q", "-rs"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(place / "cache"), "HOME": str(place)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert " skipped" not in ran.stdout
