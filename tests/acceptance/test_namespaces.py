"""Two commands on one data directory that can't see each other's processes: neither takes what the other one uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ends.traces import Place
from tests.acceptance.product import Product, reap, until
from tests.endpoint import Endpoint, Reply, Request

_APART = {
    "docker": ("unshare", "--pid", "--fork", "--kill-child"),
    "bubblewrap": ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
}
"""Runs a command as process 1 of a namespace of its own, which ends with it. bubblewrap needs the list of processes to be
that of the namespace, as it is in a container; the engine must see the mounts that are made."""
_LASTS = "7200.4711"


def _answer(request: Request) -> Reply:
    if "Stay." in request.last:
        return Reply(f"I stay.\n\n```shell.run\nsleep {_LASTS}\n```")
    if request.turn == 0:
        return Reply("I look.\n\n```shell.run\necho here; echo $$\n```")
    return Reply("Done.")


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
@pytest.mark.no_prefix_law("several sessions of one model, each at its first turn")
@pytest.mark.parametrize("backend", ["docker", "bubblewrap"])
def test_each_leaves_the_other_alone_and_removes_what_a_killed_one_left(tmp_path: Path, backend: str) -> None:
    data, temporary = tmp_path / "data", tmp_path / "tmp"
    data.mkdir()
    temporary.mkdir()
    with Endpoint(_answer, crashes=True) as endpoint:
        product = Product.at(data, endpoint, IACT_SANDBOX=backend, TMPDIR=str(temporary))
        try:
            _played(product, Place(data, temporary, _LASTS), _APART[backend])
        finally:
            reap(data)


def _played(product: Product, place: Place, apart: tuple[str, ...]) -> None:
    stays = [*apart, sys.executable, "-m", "iact", "run", "Stay."]
    with subprocess.Popen(
        stays,
        env=product.environment,
        cwd=product.data.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            until(place.has_marked, "a call in the first namespace")
            known = place.processes()
            containers = product.containers()

            other = product.run("run", "Look.", inside=apart)
            assert (other.status, other.stdout) == (0, "Done.\n"), other
            assert process.poll() is None
            assert place.has_marked(), "the other one's call goes on"
            assert product.containers() == containers
            assert "no process left anything behind" in product.run("doctor", inside=apart).stdout
        finally:
            process.send_signal(signal.SIGKILL)

    until(lambda: not place.traces(known).going_on, "the end of everything in the first namespace", within=15)
    again = product.run("run", "Look.", inside=apart)
    assert (again.status, again.stdout) == (0, "Done.\n"), again
    assert not place.traces(known)
