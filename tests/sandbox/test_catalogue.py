"""Modules as folders: read without being run, known by digest, copied before they are mounted."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.modules.manifest import Manifest
from iact.sandbox import catalogue
from iact.sandbox.catalogue import MANIFEST, Catalogue
from iact.sandbox.images import payload
from tests.sandbox.calling import write_module


def test_shipped_modules_are_found() -> None:
    shell = Catalogue(Path("/nonexistent")).modules()["shell"]
    assert shell.origin == "shipped"
    assert shell.workspace == "write"
    assert shell.memory == 512 << 20
    assert len(shell.digest) == 64


def test_nothing_of_a_module_is_run_to_list_it(tmp_path: Path) -> None:
    shipped = write_module(tmp_path / "shipped", "trap", "raise SystemExit('it was run')\n")
    (entry,) = Catalogue(tmp_path, shipped=shipped).entries()
    assert (entry.name, entry.summary, entry.manifest) == ("trap", "A module for a test.", None)


def test_digest_follows_source_and_sdk(tmp_path: Path) -> None:
    folder = write_module(tmp_path, "a", "x = 1\n") / "a"
    first = catalogue.read(folder, sdk="1").digest
    assert catalogue.read(folder, sdk="1").digest == first
    assert catalogue.read(folder, sdk="2").digest != first
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "module.cpython-311.pyc").write_bytes(b"x")
    assert catalogue.read(folder, sdk="1").digest == first
    (folder / "more.py").write_text("", encoding="utf-8")
    assert catalogue.read(folder, sdk="1").digest != first


def test_manifest_is_remembered_for_its_digest_only(tmp_path: Path) -> None:
    shipped = write_module(tmp_path / "shipped", "a", "x = 1\n")
    known = Catalogue(tmp_path / "data", shipped=shipped)
    known.remember(known.find("a").digest, b"manifest")
    assert Catalogue(tmp_path / "data", shipped=shipped).entries()[0].manifest == b"manifest"
    (shipped / "a" / "module.py").write_text("x = 2\n", encoding="utf-8")
    assert known.entries()[0].manifest is None


def test_copy_is_readable_by_all_and_stays_as_it_was(tmp_path: Path) -> None:
    shipped = write_module(tmp_path / "shipped", "a", "x = 1\n")
    (shipped / "a" / "module.py").chmod(0o600)
    (shipped / "a" / "link").symlink_to("/etc/passwd")
    known = Catalogue(tmp_path / "data", shipped=shipped)
    copy = known.copy_of(known.find("a"))
    (shipped / "a" / "module.py").write_text("x = 2\n", encoding="utf-8")
    assert (copy / "module.py").read_text(encoding="utf-8") == "x = 1\n"
    assert stat.S_IMODE((copy / "module.py").stat().st_mode) == 0o644
    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    assert not (copy / "link").is_symlink()
    assert known.copy_of(known.find("a")) != copy


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("name = ", "can't be read as TOML"),
        ('name = "Bad Name"\nsummary = "x"', "wrong at 'name'"),
        ('name = "a"', "wrong at 'summary'"),
        ('name = "a"\nsummary = "x"\n[needs]\nmemory = "much"', "wrong at 'needs.memory'"),
        ('name = "a"\nsummary = "x"\n[needs]\nworkspace = true', "wrong at 'needs.workspace'"),
        (
            'name = "a"\nsummary = "x"\nrequirements = ["requests"]',
            "wrong at 'requirements.0'.*name==version",
        ),
        ('name = "a"\nsummary = "x"\nrequirements = ["a==1 --pre"]', "wrong at 'requirements.0'"),
        ('name = "a"\nsummary = "x"\nrequirements = ["--index-url=http://x"]', "wrong at 'requirements.0'"),
        ('name = "a"\nsummary = "x"\nrequirements = ["a @ http://x/a.whl"]', "wrong at 'requirements.0'"),
        ('name = "a"\nsummary = "x"\nrequirements = ["a==1\\n-r x"]', "wrong at 'requirements.0'"),
        ('name = "a"\nsummary = "x"\n[needs]\negress = ["*:443"]', "wrong at 'needs.egress'"),
    ],
)
def test_a_wrong_card_is_named(tmp_path: Path, card: str, message: str) -> None:
    folder = write_module(tmp_path, "a", "x = 1\n") / "a"
    (folder / "module.toml").write_text(card, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        catalogue.read(folder, sdk="")


def test_a_module_without_source_is_named(tmp_path: Path) -> None:
    folder = write_module(tmp_path, "a", "") / "a"
    (folder / "module.py").unlink()
    with pytest.raises(UsageError, match=r"no module\.py"):
        catalogue.read(folder, sdk="")


def test_an_unknown_module_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"no module 'b'; there are: a\."):
        Catalogue(tmp_path, shipped=write_module(tmp_path / "shipped", "a", "")).find("b")


SHIPPED = sorted(card.parent for card in payload.package_folder("ext_modules").glob("*/module.toml"))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: str(folder.name))
def test_what_ships_as_its_manifest_is_what_it_says(folder: Path, tmp_path: Path) -> None:
    """If it does not: python -m ext_modules.sdk describe ext_modules/NAME/module.py > ext_modules/NAME/manifest.json"""
    said = subprocess.run(
        [sys.executable, "-m", "ext_modules.sdk", "describe", str(folder / "module.py")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said == (folder / MANIFEST).read_text(encoding="utf-8")
    (entry,) = [each for each in Catalogue(tmp_path).entries() if each.name == folder.name]
    assert entry.manifest is not None
    assert Manifest.from_proto(entry.manifest).name == folder.name
