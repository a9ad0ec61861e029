"""`iact model test` on a file of one's own ends in time and with a sentence, also where its model never answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iact.commands import models
from iact.core.errors import IactError
from iact.models.added import AddedFile, AddedModels
from iact.settings import Settings, load
from tests.iact.models.hub_server import gguf


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(models, "_TELL_SECONDS", 0.1)
    return load(data=str(tmp_path / "data"), environment={})


def added(settings: Settings, path: Path) -> None:
    settings.data.mkdir()
    file = AddedFile(
        kind="file", source=f"file:{path}", path=str(path), size=path.stat().st_size, sha256="0" * 64
    )
    AddedModels(settings.data).put("mine", file)


def test_a_model_that_does_not_get_loaded_is_given_up_with_a_sentence(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is a pipe that nobody writes to, so loading it never ends by itself."""
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    added(settings, pipe)
    monkeypatch.setattr(models, "_LOADING_SECONDS", 0.5)
    with pytest.raises(IactError, match=r"mine was not loaded within 0\.5 seconds: .* Try a smaller file"):
        models.test(settings, "mine", as_json=False)

    told = capsys.readouterr().err
    assert told.startswith("note: loading mine (0 MB)\n")
    assert "note: still loading mine (0 MB): " in told


def test_a_file_that_is_no_model_is_refused_with_a_sentence(settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(gguf())
    added(settings, broken)
    with pytest.raises(IactError, match="can't be loaded"):
        models.test(settings, "mine", as_json=False)


def test_a_file_that_is_gone_is_told_with_a_sentence(settings: Settings, tmp_path: Path) -> None:
    gone = tmp_path / "gone.gguf"
    gone.write_bytes(b"GGUF")
    added(settings, gone)
    gone.unlink()
    with pytest.raises(IactError, match=r"no longer at .*gone\.gguf"):
        models.test(settings, "mine", as_json=False)
