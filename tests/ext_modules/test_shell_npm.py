"""An install with real npm: nothing of the packages or the project is run, and what was not run is said. Other scripts run all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ext_modules.sdk.testing import Bench, Done
from ext_modules.shell.module import module


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a dependency that wants to run something, and a script that wants something before it."""
    monkeypatch.setenv("IACT_WORKSPACE", str(tmp_path))
    package = tmp_path / "package"
    package.mkdir()
    content = {"name": "wants", "version": "1.0.0", "scripts": {"postinstall": "touch ran"}}
    (package / "package.json").write_text(json.dumps(content))
    scripts = {"prepare": "touch prepared", "prebuild": "touch prebuilt", "build": "touch built"}
    own = {
        "name": "own",
        "version": "1.0.0",
        "dependencies": {"wants": "file:wants-1.0.0.tgz"},
        "scripts": scripts,
    }
    (tmp_path / "package.json").write_text(json.dumps(own))
    assert play(tmp_path, "cd package && npm pack --silent && mv wants-1.0.0.tgz ..").data["exit_status"] == 0
    return tmp_path


def play(workspace: Path, command: str) -> Done:
    async def run() -> Done:
        return await Bench(module, session=str(workspace)).call("run", {"command": command})

    return asyncio.run(run())


def test_nothing_is_run_in_an_install_and_what_was_not_run_is_said(project: Path) -> None:
    done = play(project, "npm install --silent")

    assert done.data["exit_status"] == 0, done
    assert (project / "node_modules" / "wants").is_dir()
    assert not (project / "node_modules" / "wants" / "ran").exists()
    assert not (project / "prepared").exists()
    assert done.output == (
        "[What packages run when they are installed was not run; `npm rebuild` runs it. "
        "The project's own prepare was not run; `npm run prepare` runs it.]\n"
    )

    assert play(project, "npm rebuild --silent").data["exit_status"] == 0
    assert (project / "node_modules" / "wants" / "ran").exists()


@pytest.mark.parametrize(
    "script", ["npm install --silent --ignore-scripts=false", "npm install --silent && true"]
)
def test_another_script_runs_what_npm_runs(project: Path, script: str) -> None:
    done = play(project, script)

    assert (done.data["exit_status"], done.output) == (0, "")
    assert (project / "node_modules" / "wants" / "ran").exists()


def test_a_project_s_scripts_have_what_stands_before_them(project: Path) -> None:
    assert play(project, "npm run --silent build").data["exit_status"] == 0
    assert (project / "prebuilt").exists()
    assert (project / "built").exists()
