"""A hundred session folders from somebody who wants something of the host, and everything one can do with them.

Whatever is done ends well or in one sentence, within a bound; nothing outside is written or run; nothing of the host
is read: neither shown, nor put into a session that is made of such a folder.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from iact.commands import journals, sessions, workspace
from iact.core.errors import ForeignSession
from iact.core.journal.file import FILE, read_journal
from iact.core.stored.replay import replay
from iact.sandbox.workspace.versions import GitVersions
from iact.settings import Settings, load
from tests.command import iact
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.hostile.crafted import chain
from tests.hostile.folders import ATTACKS, SECRET, Bait, make, old_store, version_in
from tests.hostile.looks import look, looks
from tests.sealing import SEALER, give_key

FOLDERS = 100
PATIENCE = 300
"""Seconds after which something counts as hanging."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ordinary session of another installation: three agents' worth of words, files, a blob, two versions."""
    data = tmp_path_factory.mktemp("elsewhere")
    long = "long " * 6000
    script = {
        "/": [f"```READ\n{long}\n```\n```CALL a\nTask.\n```", "```WRITE\nx\n```", "Done."],
        "/a": ["A done."],
    }

    async def main() -> Path:
        async with runtime(data, replies(script), chunk=4096) as opened:
            session = await opened.open(intent=2)
            await session.ask("Go")
            return session.journal.parent

    folder = asyncio.run(main())
    (folder / "workspace" / "kept").write_text("now")
    records = read_journal(folder).records
    headers = version_in(records, old_store(folder))
    (folder / FILE).write_bytes(chain(headers, [one.body for one in records]))
    return folder


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """What hangs inside fails the test."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"{what} does not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def go_on(data: Path, session: str) -> None:
    """Open a session with versions of its files, say something, and let the model write a file."""
    script = ScriptedModel(
        lambda asked: "```WRITE\nours\n```" if asked.turn % 2 == 0 else "Ready.", context=1_000_000
    )

    async def main() -> None:
        async with runtime(data, replies({}), model=script, world=World()) as opened:
            await (await opened.open(session)).ask("And now?")

    asyncio.run(main())


def adopted(data: Path, settings: Settings, folder: Path) -> None:
    """Adopt it, go on with it, and use its versions."""
    known = {path.name for path in (data / "sessions").iterdir()}

    async def main() -> str:
        async with runtime(data, replies({}), versions=GitVersions()) as opened:
            return await opened.adopt(folder)

    name = asyncio.run(main())
    made = data / "sessions" / name
    assert {path.name for path in (data / "sessions").iterdir()} == known | {name}
    tree = replay(made, verify=True, sealer=SEALER).tree
    assert tree.workspace == "scratch"
    assert tree.grant.intent == 1
    go_on(data, name)
    for action in (
        lambda: workspace.log(settings, name, as_json=False),
        lambda: workspace.diff(settings, name, ["99"]),
        lambda: workspace.restore(settings, name, "99", as_json=False),
    ):
        look(action)
    versions = GitVersions()
    if not (made / "versions").exists():
        versions.keep(made / "workspace", made / "versions")


def actions(data: Path, settings: Settings, folder: Path) -> dict[str, Callable[[], object]]:
    name = folder.name
    return {
        **{key: value for key, value in looks(settings, folder).items() if key != "adopt"},
        "list": lambda: sessions.list_sessions(settings, as_json=True),
        "resume": lambda: go_on(data, name),
        "fork": lambda: journals.fork(settings, folder, at=None, text=None, as_json=False),
        "fork at 1": lambda: journals.fork(settings, folder, at=1, text=None, as_json=False),
        "log": lambda: workspace.log(settings, name, as_json=False),
        "diff": lambda: workspace.diff(settings, name, ["99"]),
        "restore": lambda: workspace.restore(settings, name, "99", as_json=False),
        "adopt": lambda: adopted(data, settings, folder),
    }


REFUSED = ("resume", "fork", "fork at 1", "diff", "restore")
"""What only a session of one's own can have."""


@pytest.mark.parametrize("seed", range(FOLDERS))
def test_nothing_is_run_written_or_read(
    seed: int, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bait, data = Bait.lay(tmp_path / "host"), tmp_path / "data"
    give_key(data)
    (data / "sessions").mkdir()
    settings = load(data=str(data))
    folder, attacks = make(seed, base, data / "sessions", bait)
    for name, action in actions(data, settings, folder).items():
        what = f"{name} of a folder with {attacks}"
        with bounded(what):
            try:
                said, error = look(action)
            except Exception as bug:
                raise AssertionError(f"{what} raised {bug!r}") from bug
        assert not bait.marker.exists(), what
        assert SECRET not in said + error, what
        assert "\n" not in error, what
        if name in REFUSED:
            assert error, what
    for file in _files(data, without=folder):
        assert SECRET.encode() not in file.read_bytes(), (attacks, file)
    assert sorted(path.name for path in bait.private.iterdir()) == ["letter"]
    assert not list(data.glob("sessions/.forking-*"))


def _files(data: Path, *, without: Path) -> Iterator[Path]:
    """Every plain file below, no link followed, but for the hostile folder itself."""
    for place, folders, names in os.walk(data):
        folders[:] = [one for one in folders if Path(place) / one != without]
        for name in names:
            file = Path(place) / name
            if not file.is_symlink() and file.is_file() and file.stat().st_size < 64 << 20:
                yield file


def test_every_attack_is_among_them(base: Path, tmp_path: Path) -> None:
    found: set[str] = set()
    bait = Bait.lay(tmp_path / "host")
    for seed in range(len(ATTACKS)):
        folder, attacks = make(seed, base, tmp_path, bait)
        found |= set(attacks.split(", "))
        shutil.rmtree(folder)
    assert found == {attack.__name__.strip("_") for attack in ATTACKS}


def test_without_an_attack_it_is_a_session_like_any_other(base: Path, tmp_path: Path) -> None:
    """So that what is refused above is refused for what it is."""
    data = tmp_path / "data"
    give_key(data)
    (data / "sessions").mkdir()
    folder = data / "sessions" / base.name
    shutil.copytree(base, folder)
    settings = load(data=str(data))
    for name, action in actions(data, settings, folder).items():
        said, error = look(action)
        assert bool(error) == (name in REFUSED), (name, said, error)
        assert not error or "iact session adopt" in error, (name, error)
    (made,) = [path for path in (data / "sessions").iterdir() if path.name != folder.name]
    assert (made / "workspace" / "kept").read_text() == "first"  # as the version says that was restored


SAMPLE = (3, 8, 10, 13, 14)
"""Folders that real commands are run on; each of them on one."""
COMMANDS = (
    ("journal", "check"), ("replay", "--tree"), ("replay", "--verify"), ("replay", "--json"), ("context",),
    ("journal", "html"), ("journal", "tail"), ("journal", "fork"), ("session", "adopt"),
)  # fmt: skip


@pytest.mark.parametrize("seed", SAMPLE)
def test_real_commands_say_one_sentence_and_end(seed: int, base: Path, tmp_path: Path) -> None:
    bait, data = Bait.lay(tmp_path / "host"), tmp_path / "data"
    give_key(data)
    (data / "sessions").mkdir()
    folder, attacks = make(seed, base, data / "sessions", bait)
    environment = {
        **os.environ, "IACT_DATA": str(data), "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "x",
        "IACT_MODEL": "none", "IACT_SANDBOX": "off", "IACT_MEMORY": "off",
    }  # fmt: skip
    share = COMMANDS[SAMPLE.index(seed) :: len(SAMPLE)]
    running = [*((*words, str(folder)) for words in share), ("run", "--session", folder.name, "hello")]
    for words in running:
        done = iact(*words, environment=environment, cwd=tmp_path, seconds=PATIENCE)
        what = f"{words} of a folder with {attacks}: {done.stderr!r}"
        assert done.returncode in (0, 1, 2), what
        said = done.stdout + done.stderr
        assert "internal error" not in said, what
        assert "Traceback" not in said, what
        assert SECRET not in said, what
        assert "\x1b" not in said, what
        assert not bait.marker.exists(), what
        if words[0] == "run":
            assert done.returncode == 1, what
        if done.returncode:
            last = done.stderr.strip().splitlines()
            assert last[-1].startswith("iact: "), what


def test_resuming_a_foreign_session_ends_with_status_1_and_names_the_command(
    base: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    give_key(data)
    (data / "sessions").mkdir()
    shutil.copytree(base, data / "sessions" / base.name)
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "IACT_MODEL": "none",
        "IACT_SANDBOX": "off",
    }
    done = iact(
        "run", "--data", str(data), "--session", base.name, "hello",
        environment=environment, cwd=tmp_path, seconds=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("iact: ")]
    assert f"iact session adopt {base.name}" in line
    assert "before seals were kept" in line
    with pytest.raises(ForeignSession):
        go_on(data, base.name)
