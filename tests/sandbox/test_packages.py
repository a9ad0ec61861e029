"""A module's packages: exact versions, checked digests, wheels alone, unpacked once and imported inside."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from iact.core.errors import SandboxUnavailable
from iact.sandbox import DockerHost, catalogue, packages
from iact.sandbox.images.payload import package_folder
from tests.sandbox.calling import write_module
from tests.sandbox.inside import called

WEB = catalogue.read(package_folder("ext_modules") / "web", sdk="")


@pytest.mark.parametrize(
    "line",
    [
        "certifi", "certifi>=1", "certifi==1 --pre", "-r x", "--index-url=http://x", "a @ http://x", "a==1\n-r x",
        "./a.whl", "a==1 --hash=md5:00", "a==1; python_version>'3'", "git+https://x", "",
    ],
)  # fmt: skip
def test_anything_but_an_exact_version_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        packages.checked(line)


def test_exact_versions_are_taken() -> None:
    for line in ("a==1", "a-b.c==1.2.post3+x", "a[b,c]==1.0", f"a==1 --hash=sha256:{'0' * 64}"):
        assert packages.checked(line) == line


def test_every_shipped_module_has_digests() -> None:
    for module in catalogue.Catalogue(Path("/nonexistent")).modules().values():
        assert packages.hashed(module.requirements), module.name


def test_packages_are_unpacked_once_and_readable_by_all(tmp_path: Path) -> None:
    said: list[str] = []
    first = packages.site(tmp_path / "sites", WEB.requirements, "3.11", said.append)
    assert packages.site(tmp_path / "sites", WEB.requirements, "3.11", said.append) == first
    assert said == ["fetching the module's Python packages: pypdfium2, certifi"]
    assert stat.S_IMODE((first / "certifi" / "cacert.pem").stat().st_mode) == 0o644
    assert stat.S_IMODE(first.stat().st_mode) == 0o755
    assert [path.name for path in (tmp_path / "sites").iterdir()] == [first.name]


def test_a_package_that_is_not_the_one_is_refused(tmp_path: Path) -> None:
    wrong = [line[:-64] + "0" * 64 for line in WEB.requirements]
    with pytest.raises(SandboxUnavailable, match="could not be fetched"):
        packages.site(tmp_path / "sites", wrong, "3.11", print)
    assert list((tmp_path / "sites").iterdir()) == []


IMPORTING = """
from ext_modules.sdk import Module

module = Module("importing", "Imports a package.")

@module.function(impact=0)
def where() -> list[str]:
    import certifi, grpc, os
    try:
        open(os.path.join(os.path.dirname(certifi.__file__), "x"), "w")
        written = "written"
    except OSError:
        written = "read-only"
    return [certifi.__file__, grpc.__file__, written]
"""


def test_a_module_imports_its_packages_and_cannot_change_them(
    loop: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are fetched once for all data directories of a user."""
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))
    listed = "[" + ", ".join(f'"{line}"' for line in WEB.requirements) + "]"
    shipped = write_module(tmp_path / "shipped", "importing", IMPORTING, requirements=listed)
    fetched: list[str] = []

    def hear(line: str) -> None:
        fetched.extend([line] if line.startswith("fetching") else [])

    async def scenario() -> None:
        for name in ("one", "other"):
            host = DockerHost(tmp_path / name, shipped=shipped)
            instance = await host.start("importing", session="s", workspace=tmp_path, report=hear)
            async with called(instance) as caller:
                assert await caller.text("where") == (
                    '["/run/site/certifi/__init__.py", "/opt/iact/site/grpc/__init__.py", "read-only"]'
                )
            await host.close()

    loop.run(scenario())
    assert fetched == ["fetching the module's Python packages: pypdfium2, certifi"]
