"""`iact module check`: every shipped module passes inside its container, and a broken one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iact.commands.check import check_module
from iact.core.errors import SandboxError, UsageError
from iact.sandbox.images.payload import package_folder
from iact.settings import Settings
from tests.rounds import LONG
from tests.sandbox.calling import need_bubblewrap, write_module
from tests.sandbox.foreign import FOREIGN

WRONG = """
from ext_modules.sdk import Module, wire

module = Module("wrong", "Claims an action of the core.")

@module.function(impact=0, alias="CALL")
def act(text: str) -> str:
    return text
"""


def test_a_program_without_the_sdk_keeps_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_bubblewrap()
    folder = tmp_path / "foreign"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "server.py").write_text(FOREIGN)
    (folder / "bin" / "start").write_text('#!/bin/sh\nexec python3 "$(dirname "$0")/server.py" "$@"\n')
    card = 'name = "foreign"\nsummary = "Doubles."\ncommand = ["./bin/start", "--quiet"]\n'
    (folder / "module.toml").write_text(card)
    status = check_module(folder, Settings(), backend="all", as_json=True)
    findings = json.loads(capsys.readouterr().out)
    assert status == 0, [one for one in findings if not one["ok"]]
    assert {finding["backend"] for finding in findings} == {"docker", "bubblewrap"}
    with pytest.raises(UsageError, match="has its own program"):
        check_module(folder, Settings(), here=True)


def test_a_python_file_is_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plain.py"
    file.write_text(WRONG.replace('"wrong"', '"plain"').replace(', alias="CALL"', ""))
    assert check_module(file, Settings()) == 0, capsys.readouterr().out
    assert check_module(file, Settings(), here=True) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", ["app", "browser", "files", "shell", "web"])
def test_what_we_ship_passes_in_its_container(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    need_bubblewrap()
    # The shell and the browser, which are made of most, have both; the browser's in tests/sandbox/test_browser_module.py.
    backend = "all" if LONG or name == "shell" else "docker" if name == "browser" else "bubblewrap"
    status = check_module(package_folder("ext_modules") / name, Settings(), backend=backend, as_json=True)
    findings = json.loads(capsys.readouterr().out)
    assert status == 0, findings
    assert {finding["backend"] for finding in findings} == (
        {"docker", "bubblewrap"} if backend == "all" else {backend}
    )
    assert {finding["check"] for finding in findings} >= {
        "describe: the core accepts the manifest", "health: SERVING", "the module is still running"
    }  # fmt: skip


def test_what_the_core_would_refuse_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_module(tmp_path, "wrong", WRONG) / "wrong"
    assert check_module(folder, Settings()) == 1
    assert "FAIL  describe: the core accepts the manifest" in capsys.readouterr().out


def test_here_needs_no_sandbox(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    assert check_module(package_folder("ext_modules") / "files", Settings(), here=True) == 0
    assert "ok    health: SERVING" in capsys.readouterr().out


def test_what_is_no_module_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"contains no module\.toml"):
        check_module(tmp_path, Settings())
    folder = write_module(tmp_path, "dead", "raise RuntimeError('no')\n") / "dead"
    with pytest.raises(SandboxError, match="RuntimeError: no"):
        check_module(folder, Settings())
