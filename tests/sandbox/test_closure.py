"""Packages are found with their dependencies and nothing of them runs, whatever a wheel's metadata asks for."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

import pytest

from iact.core.errors import PackagesUnavailable
from iact.sandbox import packages, unpack_inside
from iact.sandbox.images import closure


class LocalIndex:
    """A folder of wheels that pip takes for the index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, version: str = "1.0", *needs: str) -> None:
        """Put a wheel into it."""
        info = f"{name}-{version}.dist-info"
        head = "".join(
            f"{line}\n" for line in ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}")
        )
        files = {
            f"{name}.py": f"VERSION = {version!r}\n",
            f"{info}/METADATA": head + "".join(f"Requires-Dist: {need}\n" for need in needs),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
        with zipfile.ZipFile(self.folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
            for path, text in (*files.items(), (f"{info}/RECORD", record)):
                archive.writestr(path, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return LocalIndex(folder)


def _site(tmp_path: Path, *lines: str) -> Path:
    """Fetch packages, and unpack them as a sandbox does."""
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    for name in ("wheels", "unpacked"):
        (place / name).mkdir()
    room = unpack_inside.Room()
    for wheel in packages.fetch(lines, "3.11", place / "wheels", closure.on_host):
        unpack_inside.unpack(wheel, place / "unpacked", room)
    site = tmp_path / "sites" / "one"
    packages.take_over(place / "unpacked", site)
    return site


def _hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A source package whose `setup.py` leaves a trace, and the trace."""
    source, trace = tmp_path / "hostile", tmp_path / "trace"
    source.mkdir()
    code = f"open({str(trace)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name='hostile', version='1')\n"
    (source / "setup.py").write_text(code)
    return source, trace


@pytest.mark.parametrize(
    "spelling",
    ["hostile @ file://{path}", "Hostile@file://{path}", "hostile @ file://{path} ; python_version > '3'"],
)
@pytest.mark.parametrize("deep", [False, True])
def test_a_dependency_given_as_an_address_is_refused_and_nothing_runs(
    tmp_path: Path, index: LocalIndex, spelling: str, deep: bool
) -> None:
    source, trace = _hostile(tmp_path)
    need = spelling.format(path=source)
    if deep:
        index.add("innocent", "1.0", "middle")
        index.add("middle", "1.0", need)
    else:
        index.add("innocent", "1.0", need)
    with pytest.raises(PackagesUnavailable, match="Packages come from the index only"):
        _site(tmp_path, "innocent==1.0")
    assert not trace.exists()
    assert not (tmp_path / "sites").exists()


def test_an_address_in_an_extra_that_nobody_asked_for_is_nothing(tmp_path: Path, index: LocalIndex) -> None:
    source, trace = _hostile(tmp_path)
    index.add("innocent", "1.0", f"hostile @ file://{source} ; extra == 'more'")
    assert (_site(tmp_path, "innocent==1.0") / "innocent.py").exists()
    with pytest.raises(PackagesUnavailable, match="address"):
        _site(tmp_path, "innocent[more]==1.0")
    assert not trace.exists()


def test_dependencies_come_along_in_versions_that_fit_all(tmp_path: Path, index: LocalIndex) -> None:
    for version in ("1.0", "1.5", "2.0"):
        index.add("base", version)
    index.add("first", "1.0", "base", "second")
    index.add("second", "1.0", "base<2", "other ; python_version < '3'")
    site = _site(tmp_path, "first==1.0")
    assert (site / "base.py").read_text() == "VERSION = '1.5'\n"
    assert not (site / "other.py").exists()


def test_what_excludes_each_other_is_refused(tmp_path: Path, index: LocalIndex) -> None:
    for version in ("1.0", "2.0"):
        index.add("base", version)
    index.add("first", "1.0", "base>=2", "second")
    index.add("second", "1.0", "base<2")
    with pytest.raises(PackagesUnavailable):
        _site(tmp_path, "first==1.0")


def test_a_source_is_no_wheel(tmp_path: Path, index: LocalIndex) -> None:
    source, trace = _hostile(tmp_path)
    with zipfile.ZipFile(index.folder / "hostile-1.0.zip", "w") as archive:
        archive.write(source / "setup.py", "hostile-1.0/setup.py")
    with pytest.raises(PackagesUnavailable):
        _site(tmp_path, "hostile==1.0")
    assert not trace.exists()


@pytest.mark.parametrize("pinned", [False, True])
def test_the_host_downloads_a_wheel_and_runs_and_opens_nothing_of_it(
    tmp_path: Path, index: LocalIndex, pinned: bool
) -> None:
    """A wheel full of what Python, pip and shells run by themselves, where they look for it. What comes is one file."""
    says = f"open({str(tmp_path / 'RAN')!r}, 'w')\n"
    info = "eager-1.0.dist-info"
    files = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: eager\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\npip = eager:main\n[distutils.commands]\nx = eager:main\n",
        **dict.fromkeys(
            (
                "eager.py",
                "setup.py",
                "sitecustomize.py",
                "usercustomize.py",
                "pip/__init__.py",
                "pip/__main__.py",
            ),
            says,
        ),
        "eager.pth": f"import builtins; {says}",
        "eager-1.0.data/scripts/pip": f"#!/bin/sh\ntouch {tmp_path / 'RAN'}\n",
        "eager-1.0.data/data/pyproject.toml": "[build-system]\nrequires = ['eager']\nbuild-backend = 'eager'\n",
    }
    wheel = index.folder / "eager-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": "".join(f"{path},,\n" for path in files)}.items():
            archive.writestr(path, text)

    line = "eager==1.0"
    if pinned:
        line += f" --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (came,) = packages.fetch([line], "3.11", wheels, closure.on_host)
    assert came.read_bytes() == wheel.read_bytes()
    assert [path for path in wheels.rglob("*") if path.is_file()] == [came]
    assert not (tmp_path / "RAN").exists()


def test_a_wheel_that_was_replaced_on_the_index_is_refused(tmp_path: Path, index: LocalIndex) -> None:
    index.add("eager")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with pytest.raises(PackagesUnavailable):
        packages.fetch([f"eager==1.0 --hash=sha256:{'0' * 64}"], "3.11", wheels, closure.on_host)
