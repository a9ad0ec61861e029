"""A module's source, read from where a person keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.stored.source import read_source


def test_a_folder_is_named_by_its_card_and_links_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere"
    (folder / "part").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "module.toml").write_text('name = "mine"\n')
    (folder / "part" / "a.py").write_text("a")
    (folder / "__pycache__" / "a.pyc").write_text("b")
    (folder / "link").symlink_to("/etc/passwd")
    source = read_source(folder)
    assert (source.name, source.files) == ("mine", {"module.toml": b'name = "mine"\n', "part/a.py": b"a"})


def test_one_file_is_a_module_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    source = read_source(tmp_path / "mine.py")
    assert (source.name, source.files) == ("mine", {"module.py": b"x = 1\n"})


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    (tmp_path / "module.toml").write_text("name =")
    (tmp_path / "empty").mkdir()
    for path, why in {
        tmp_path: "can't be read as TOML",
        tmp_path / "empty": "contains no module.toml and no module.py",
        tmp_path / "nowhere": "There is no module at",
        tmp_path / "nowhere.py": "can't be read",
    }.items():
        with pytest.raises(UsageError, match=why):
            read_source(path)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "module.py").write_bytes(b"#" * (33 << 20))
    with pytest.raises(UsageError, match="32 MiB"):
        read_source(tmp_path / "large")
