"""`iact policy set`: what is agreed to is the difference that was shown."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from iact.commands import policy
from iact.core.errors import Changed, UsageError
from iact.settings import Settings, load

ALL = '[scope.default]\nfunctions = ["*"]\n'
FILES = '[scope.default]\nfunctions = ["files.*"]\n'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    data = tmp_path / "data"
    data.mkdir()
    (data / "policy.toml").write_text(FILES, encoding="utf-8")
    return load(data=str(data), environment={"IACT_SANDBOX": "off"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "new.toml"
    place.write_text(ALL, encoding="utf-8")
    return place


def now(settings: Settings) -> str:
    return (settings.data / "policy.toml").read_text(encoding="utf-8")


def shown(settings: Settings, file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What is printed where there is no terminal, and its digest."""
    with pytest.raises(UsageError, match="There is no terminal"):
        policy.replace(settings, str(file), seen="")
    output = capsys.readouterr()
    found = re.search(r"^digest ([0-9a-f]{64})$", output.err, re.MULTILINE)
    assert found is not None
    return output.out, found.group(1)


def test_the_difference_is_shown_and_its_digest_is_the_yes(
    settings: Settings, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, digest = shown(settings, file, capsys)
    assert '-functions = ["files.*"]' in text
    assert '+functions = ["*"]' in text
    assert now(settings) == FILES
    assert policy.replace(settings, str(file), seen=digest) == 0
    assert now(settings) == ALL


@pytest.mark.parametrize("changed", ["the new one", "the old one"])
def test_a_file_that_changed_since_it_was_shown_is_refused(
    settings: Settings, file: Path, capsys: pytest.CaptureFixture[str], changed: str
) -> None:
    _, digest = shown(settings, file, capsys)
    other = file if changed == "the new one" else settings.data / "policy.toml"
    other.write_text('[scope.default]\nfunctions = ["shell.*"]\n', encoding="utf-8")
    before = now(settings)
    with pytest.raises(Changed):
        policy.replace(settings, str(file), seen=digest)
    assert now(settings) == before


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\u202e", "\u200b"])
def test_a_difference_of_characters_that_are_not_seen_is_shown(
    settings: Settings, file: Path, capsys: pytest.CaptureFixture[str], separator: str
) -> None:
    (settings.data / "policy.toml").write_text(f"{ALL}# \n", encoding="utf-8")
    file.write_text(f"{ALL}# {separator}\n", encoding="utf-8")
    text, _ = shown(settings, file, capsys)
    (line,) = [line for line in text.split("\n") if line.startswith("+") and not line.startswith("+++")]
    assert separator not in line
    assert "\\" in line


def test_the_same_policy_needs_no_yes(
    settings: Settings, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILES, encoding="utf-8")
    assert policy.replace(settings, str(file), seen="") == 0
    assert "already" in capsys.readouterr().err


def test_standard_input_takes_a_digest(
    settings: Settings, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, digest = shown(settings, file, capsys)
    monkeypatch.setattr("sys.stdin", io.StringIO(ALL))
    assert policy.replace(settings, "-", seen=digest) == 0
    assert now(settings) == ALL
