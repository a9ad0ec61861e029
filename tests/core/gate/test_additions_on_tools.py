"""Each kind of file that acts by itself, on the tool that takes it: it acts once the file is there, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.gate.additions import KINDS, acting_kind
from iact.core.ports import FileState
from tests.core.gate.acting_scenes import Scene, scenes, tool_of

SCENES = scenes()


def _name(scene: Scene) -> str:
    return f"{scene.kind}-{next(iter(scene.added))}"


@pytest.mark.parametrize("scene", SCENES, ids=_name)
def test_the_tool_takes_the_file_by_itself(tmp_path: Path, scene: Scene) -> None:
    if tool_of(scene) is None and not scene.command[0].startswith("venv/"):
        pytest.skip(f"{scene.command[0]} is not on this machine")
    folder = tmp_path / "mine"
    folder.mkdir()
    scene.lay(folder, scene.before)
    for command in scene.prepare:
        scene.run(folder, command)

    assert scene.sign not in scene.run(folder, scene.command)

    scene.lay(folder, scene.added)
    assert scene.sign in scene.run(folder, scene.command)


@pytest.mark.parametrize("scene", SCENES, ids=_name)
def test_one_of_the_files_is_of_the_kind(scene: Scene) -> None:
    found = set()
    for path, content in scene.added.items():
        mode = 0o755 if isinstance(content, str) and content.startswith("#!") else 0o644
        kind = acting_kind(path, FileState("file", mode))
        if kind is not None:
            found.add(kind.name)
    assert scene.kind in found


def test_a_kind_is_called_shown_if_and_only_if_a_tool_was_run() -> None:
    assert {kind.name for kind in KINDS if kind.shown} == {scene.kind for scene in SCENES}
    assert len({scene.kind for scene in SCENES}) >= 40
