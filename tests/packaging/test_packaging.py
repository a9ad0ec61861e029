"""What people install: the two distributions hold what they need, and the wheel alone, far from the repository, works.

The wheel is built from the source distribution, so a file that is missing there is missing in both. The installed one
takes its dependencies from the environment of the tests: the registry is not part of what is tested here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from iact.core.journal import read_journal
from tests.acceptance.product import ROOT, containers_of, reap
from tests.endpoint import Endpoint

PACKAGES: Final = ("ext_modules", "iact", "protos")
"""What the wheel puts at the top of an environment. `ext_modules` and `protos` are the names by which a module's own
code, written by anybody, imports the SDK."""
ROOMS: Final = ("accounts", "cluster", "core", "examples", "faces", "hippocampus", "sandbox", "web")
"""Folders of the repository that are inside `iact` once they are built."""
LEFT_OUT: Final = ("iact/examples/recording/",)
"""Below packages, but of use in the repository only."""

PATIENCE: Final = 300.0
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "DOCKER_HOST", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR")


def tracked() -> set[str]:
    """The repository's files, as they are or would be under version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def built_name(name: str) -> str:
    """Where a file of the repository is in what is built."""
    return f"iact/{name}" if name.startswith(tuple(f"{room}/" for room in ROOMS)) else name


@dataclass(frozen=True, slots=True)
class Built:
    """The two distributions."""

    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    source, out = folder / "source", folder / "out"
    for name in tracked():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    for room in ROOMS:
        (source / "iact" / room).symlink_to(f"../{room}")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return Built(wheel, sdist)


def test_the_wheel_holds_all_of_the_packages_and_nothing_else(built: Built) -> None:
    names = {name for name in zipfile.ZipFile(built.wheel).namelist() if ".dist-info/" not in name}
    built_names = {built_name(name) for name in tracked()}
    wanted = {name for name in built_names if name.startswith(tuple(f"{one}/" for one in PACKAGES))}
    assert names == {name for name in wanted if not name.startswith(LEFT_OUT)}


def test_the_source_distribution_holds_the_repository(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}
    made = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    assert names - made == {built_name(name) for name in tracked()}


# --- the wheel alone ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel in it, and a place far from the repository."""

    place: Path

    @property
    def data(self) -> Path:
        return self.place / "data"

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {**kept, "IACT_DATA": str(self.data), "IACT_MEMORY": "off", **settings}

    def command(self, *arguments: str) -> list[str]:
        return [str(self.place / "venv" / "bin" / "iact"), *arguments]

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return self.python([], self.command(*arguments), **settings)

    def python(
        self, arguments: Sequence[str], command: Sequence[str] = (), **settings: str
    ) -> subprocess.CompletedProcess[str]:
        made = command or [str(self.place / "venv" / "bin" / "python"), *arguments]
        return subprocess.run(
            made, env=self.environment(**settings), cwd=self.place, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("away")
    venv = place / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=PATIENCE)
    (site,) = venv.glob("lib/python*/site-packages")
    # A plain line is put on the path as it is; the repository, which stands in a .pth file there, is not.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    command = ["install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", str(built.wheel)]
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), *command]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return Installed(place)


def test_it_is_the_wheel_that_runs(installed: Installed) -> None:
    done = installed.python(
        [
            "-c",
            "import ext_modules, protos, iact.core, iact.examples; print(iact.core.__file__, iact.examples.__file__)",
        ]
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(str(installed.place / "venv")) == 2
    assert str(ROOT) not in done.stdout


def test_the_version_has_one_home(installed: Installed, built: Built) -> None:
    done = installed.run("--version")
    assert done.returncode == 0, done.stderr
    version = done.stdout.removeprefix("iact ").strip()
    assert built.wheel.name.startswith(f"iact-{version}-")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_doctor_and_the_examples_are_there(installed: Installed) -> None:
    assert '"check": "engine"' in installed.run("doctor", "--json").stdout
    done = installed.run("replay", "plan", "--verify")
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout


def test_the_server_comes_up_and_serves_its_page(installed: Installed) -> None:
    with subprocess.Popen(
        installed.command("serve"), env=installed.environment(IACT_SANDBOX="off"), cwd=installed.place,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert re.fullmatch(r"iact: ready http://127\.0\.0\.1:\d+/\?token=\S+\n", line), line
        finally:
            process.terminate()
            assert process.wait(300) == 0


def test_a_tool_is_called_in_a_container(installed: Installed) -> None:
    """The image is made of what the wheel brought: its SDK, its protocol, its modules."""
    script = {"/": ["I look.\n\n```shell.run\necho from a container\n```", "It works."]}
    try:
        with Endpoint(script) as endpoint:
            settings = {
                "OPENAI_BASE_URL": endpoint.url,
                "IACT_MODEL": "scripted",
                "IACT_SANDBOX": "docker",
            }
            done = installed.run("run", "Look.", **settings)
        assert (done.returncode, done.stdout) == (0, "It works.\n"), done.stderr
        (journal,) = installed.data.glob("sessions/*/journal.md")
        assert [one.body for one in read_journal(journal).records if one.kind == "result"] == [
            "from a container\n"
        ]
        assert not containers_of(installed.data)
    finally:
        reap(installed.data)
