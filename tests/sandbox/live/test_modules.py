"""Real modules of every backend on an overlay: what they write waits, what the user writes they see, jobs go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.sandbox.live import open_live
from iact.sandbox.live.overlay import Overlay
from tests.sandbox.backends import AnyHost, Backend, each_backend
from tests.sandbox.calling import shell
from tests.sandbox.live.trees import plant, refreshed, snapshot

pytestmark = each_backend


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Path:
    folder = tmp_path_factory.mktemp(f"live-{backend.name}")
    folder.chmod(0o755)
    return plant(folder, {"a": "one\n", "d/x": "one\n", "d/e/y": "one\n"})


@pytest.fixture(scope="module")
def overlay(directory: Path, data: Path) -> Iterator[Overlay]:
    made = open_live(directory, data / "sessions" / "live" / "live")
    yield made
    made.close()


def test_a_worker_a_viewer_and_a_job(
    loop: asyncio.Runner, host: AnyHost, backend: Backend, directory: Path, overlay: Overlay
) -> None:
    async def run(script: str, *, look: bool = False) -> str:
        instance = await backend.start(
            host,
            "shell",
            session="live",
            workspace=overlay.folder,
            right="look" if look else "work",
            agent="/",
        )
        return (await shell(instance, script)).output

    def save(path: str, content: str) -> None:
        draft = directory / f"{path}.new"
        draft.write_text(content)
        draft.rename(directory / path)

    async def scenario() -> None:
        before = snapshot(directory)
        refreshed(overlay)
        assert await run("cat a d/x", look=True) == "one\none\n"
        await run(
            "echo mine >> a; mkdir n; echo mine > n/f; rm d/x; (cd d/e && exec sleep 4711 > /dev/null 2>&1) &"
        )
        assert await run("echo no >> a; rm -rf d; ls", look=True) != ""
        assert snapshot(directory) == before
        assert [(change.kind, change.path) for change in overlay.changes()] == [
            ("modify", "a"), ("delete", "d/x"), ("add", "n"), ("add", "n/f")
        ]  # fmt: skip
        assert {each.outcome for each in overlay.apply(["a", "n", "n/f"])} == {"applied"}
        assert (directory / "a").read_text() == "one\nmine\n"
        assert snapshot(directory)["n/f"] == ("file", 0o644, b"mine\n")
        save("a", "the user's\n")
        save("d/e/y", "the user's\n")
        (directory / "d" / "z").write_text("new\n")
        stale = refreshed(overlay)
        # gVisor's gofer holds whatever a module has looked at, so what the user replaces then can't be seen.
        assert bool(stale) == (backend.kind == "gvisor"), stale
        expected = "one\nmine\none\nnew\nmine\n" if stale else "the user's\nthe user's\nnew\nmine\n"
        for look in (True, False):
            assert await run("cat a d/e/y d/z n/f; cat d/x 2>/dev/null", look=look) == expected
        await run("echo again >> n/f; echo more >> a")
        outcomes = {
            each.path: each.outcome for each in overlay.apply([each.path for each in overlay.changes()])
        }
        assert outcomes == {"a": "conflict" if stale else "applied", "d/x": "applied", "n/f": "applied"}
        left = "the user's\n" if stale else "the user's\nmore\n"
        assert {path: state[2].decode() for path, state in snapshot(directory).items()} == {
            "a": left, "d": "", "d/e": "", "d/e/y": "the user's\n", "d/z": "new\n", "n": "", "n/f": "mine\nagain\n"
        }  # fmt: skip
        await host.end_session("live")

    loop.run(scenario())
