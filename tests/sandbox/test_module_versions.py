"""The user's catalogue on disk: versions that never change, one of which counts, and nothing outside its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.ports import ModuleSource
from iact.sandbox.catalogue import Catalogue
from tests.sandbox.calling import write_module


def source(code: str = "x = 1\n", name: str = "mine", **more: bytes) -> ModuleSource:
    return ModuleSource(name, {"module.py": code.encode(), **more}, summary='A "module"\nof mine.')


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path / "data", shipped=write_module(tmp_path / "shipped", "ours", "x = 0\n"))


def names(catalogue: Catalogue) -> list[tuple[str, str]]:
    return [(entry.name, entry.origin) for entry in catalogue.entries()]


def test_what_was_added_counts_once_it_is_adopted(catalogue: Catalogue) -> None:
    entry = catalogue.add(source(), "agent")
    assert names(catalogue) == [("ours", "shipped")]
    assert catalogue.find("mine", entry.digest).digest == entry.digest
    catalogue.adopt("mine", entry.digest, "agent")
    assert names(catalogue) == [("ours", "shipped"), ("mine", "agent")]
    assert catalogue.entries()[1].summary == 'A "module"\nof mine.'
    catalogue.adopt("mine", entry.digest, "user")
    assert names(catalogue)[1] == ("mine", "user")


def test_an_older_version_can_still_be_started_by_its_digest(catalogue: Catalogue) -> None:
    first, second = (catalogue.add(source(code), "user") for code in ("x = 1\n", "x = 2\n"))
    for entry in (first, second):
        catalogue.adopt("mine", entry.digest, "user")
    assert catalogue.find("mine").digest == second.digest
    old = catalogue.find("mine", first.digest)
    assert (catalogue.copy_of(old) / "module.py").read_text() == "x = 1\n"
    catalogue.remove("mine")
    assert names(catalogue) == [("ours", "shipped")]
    assert catalogue.find("mine", first.digest).digest == first.digest
    with pytest.raises(SandboxUnavailable, match="no module 'mine'"):
        catalogue.find("mine")
    with pytest.raises(UsageError, match="No module 'mine' was added"):
        catalogue.remove("mine")


def test_the_same_source_is_the_same_version(catalogue: Catalogue) -> None:
    assert catalogue.add(source(), "user").digest == catalogue.add(source(), "agent").digest


def test_an_agent_can_not_take_the_place_of_what_a_person_added(catalogue: Catalogue) -> None:
    entry = catalogue.add(source(), "user")
    catalogue.adopt("mine", entry.digest, "user")
    with pytest.raises(UsageError, match="A person added a module mine"):
        catalogue.add(source("x = 2\n"), "agent")


def test_what_ships_with_the_product_can_not_be_replaced(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match="ships with the product"):
        catalogue.add(source(name="ours"), "user")
    with pytest.raises(UsageError, match="ships with the product"):
        catalogue.remove("ours")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a//b", ".hidden", "a/../../x", "", "a\nb", "__pycache__/x"]
)
def test_no_file_leads_outside(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(UsageError, match="can't be named"):
        catalogue.add(ModuleSource("mine", {"module.py": b"", name: b"x"}), "agent")


@pytest.mark.parametrize("name", ["Bad", "a-b", "..", "x" * 33, ""])
def test_a_name_that_can_not_be_is_refused(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(UsageError, match="can't be named"):
        catalogue.add(source(name=name), "agent")


def test_a_card_that_is_wrong_leaves_nothing(catalogue: Catalogue, tmp_path: Path) -> None:
    wrong = ModuleSource("mine", {"module.py": b""}, requirements=("--index-url=http://x",))
    with pytest.raises(UsageError, match=r"^module\.toml is wrong at 'requirements\.0'"):
        catalogue.add(wrong, "agent")
    with pytest.raises(UsageError, match="describes 'other', not 'mine'"):
        catalogue.add(
            ModuleSource("mine", {"module.py": b"", "module.toml": b'name = "other"\nsummary = ""'}), "user"
        )
    with pytest.raises(UsageError, match="smaller"):
        catalogue.add(source("#" * (33 << 20)), "user")
    with pytest.raises(UsageError, match="4 MiB; make it smaller"):
        catalogue.add(source("#" * (5 << 20)), "agent")
    assert list((tmp_path / "data" / "modules" / "mine").glob("*")) == []


def test_a_damaged_pointer_is_no_module(catalogue: Catalogue, tmp_path: Path) -> None:
    entry = catalogue.add(source(), "user")
    catalogue.adopt("mine", entry.digest, "user")
    pointer = tmp_path / "data" / "modules" / "mine" / "current.json"
    for text in ('{"version": "../../shipped/ours", "origin": "user"}', "{", '{"version": 1}'):
        pointer.write_text(text)
        assert names(catalogue) == [("ours", "shipped")]
