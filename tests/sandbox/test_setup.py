"""The set-up and the doctor: they find what is there, and name what isn't together with its remedy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from iact import doctor
from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker import engine as engine_connection
from iact.settings import Settings
from iact.setup import __main__ as setup
from iact.setup import engine, environment, packages
from iact.setup.report import Missing, SetupFailed

ROOT = Path(__file__).resolve().parents[2]


def test_an_unknown_step_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main(["nonsense"]) == 2
    assert "no step 'nonsense'" in capsys.readouterr().err


def test_what_is_missing_is_said_and_does_not_stop_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def missing() -> Missing:
        ran.append("engine")
        return Missing("No engine", "tools are off", "sudo install it")

    def fine() -> None:
        ran.append("model")

    steps = {
        "environment": fine,
        "engine": missing,
        "git": fine,
        "model": fine,
        "image": fine,
        "workshop": fine,
    }
    monkeypatch.setattr(setup, "_STEPS", steps)
    assert setup.main(["setup"]) == 0
    assert ran == ["model", "engine", "model", "model", "model", "model"]
    assert "setup: No engine, so tools are off; run: sudo install it" in capsys.readouterr().err


def test_a_failure_ends_the_setup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise SetupFailed("No packages could be had.")

    monkeypatch.setattr(setup, "_STEPS", {"environment": fails})
    assert setup.main(["environment"]) == 1
    assert "No packages could be had." in capsys.readouterr().err


def test_engine_is_recognised_by_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    assert engine.ping() == "absent"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(1000).startswith(b"GET /_ping ")
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nOK")

        thread = threading.Thread(target=answer)
        thread.start()
        assert engine.ping() == "ok"
        thread.join()
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert engine.ping() == "foreign"


def test_pid_files_of_the_dead_are_forgotten_and_those_of_the_living_kept(tmp_path: Path) -> None:
    name = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    pid_file = tmp_path / "x.pid"
    pid_file.write_text(str(os.getpid()), encoding="ascii")
    engine._forget_the_dead(pid_file, name)
    assert pid_file.exists()
    engine._forget_the_dead(pid_file, "dockerd")  # the number is somebody else's by now
    assert not pid_file.exists()
    engine._forget_the_dead(pid_file, "dockerd")


def test_without_rights_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(packages, "run", lambda *_, **__: pytest.fail("it ran something"))
    assert packages.install(["docker.io"], why="a test") is False


def test_python_is_found_and_named_by_the_shell_script() -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "iact/setup/python.sh")],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    version = subprocess.run(
        [done.stdout.strip(), "-c", "import sys; print(sys.version_info >= (3, 11))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert version.stdout == "True\n"


def test_no_python_is_a_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n", encoding="ascii")
    (tmp_path / "id").chmod(0o755)
    script = (
        (ROOT / "iact/setup/python.sh")
        .read_text(encoding="utf-8")
        .replace("/usr/bin/python3", "/nonexistent")
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "no Python 3.11 or newer" in done.stderr
    assert "sudo apt-get install python3" in done.stderr


def test_the_stamp_follows_lock_and_project() -> None:
    digest = environment._digest()
    assert len(digest) == 64
    assert digest == environment._digest()


def test_the_lock_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert "--index" not in lock
    assert lock.count("--hash=sha256:") > 500


def test_the_lock_holds_what_the_project_asks_for() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    locked = {line.split("==")[0] for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if "==" in line and line[0].isalpha()}  # fmt: skip
    names = {entry.split(">")[0].split("=")[0].split("[")[0].strip().lower() for entry in wanted}
    assert names <= locked, "run `make lock`"


def test_doctor_finds_this_machine_well(tmp_path: Path) -> None:
    found = {check.check: check for check in doctor.checks(Settings(data=tmp_path / "data"))}
    assert set(found) == {
        "python",
        "engine",
        "isolation",
        "image",
        "bubblewrap",
        "kernel",
        "namespaces",
        "browser",
        "model",
        "versions",
        "live",
        "readers",
        "data",
        "disk",
        "leftovers",
    }
    for name in ("python", "kernel", "engine", "isolation", "versions", "live", "data", "disk", "leftovers"):
        assert found[name].ok, found[name]
        assert found[name].remedy == ""


def test_doctor_names_what_is_wrong_and_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = {check.check: check for check in doctor.checks(Settings(data=tmp_path / "file" / "data"))}
    for name in ("engine", "isolation", "image", "data"):
        assert not found[name].ok
        assert found[name].detail.endswith(".")
        assert found[name].remedy
    assert "docker.io" in found["engine"].remedy


def test_setup_starts_without_any_package() -> None:
    """As on a fresh machine: an isolated interpreter that sees the standard library and the repository alone."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import iact.setup.__main__"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_engine_that_hangs_is_told_apart_from_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_connection, "_ANSWERS_WITHIN", 1)
    place = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place}")
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(place))
        deaf.listen()
        with pytest.raises(SandboxUnavailable, match=r"takes connections but does not answer.*restart"):
            engine_connection.connect()
        found = {check.check: check for check in doctor.checks(Settings(data=tmp_path))}
    assert "takes connections but does not answer" in found["engine"].detail
    assert "restart docker" in found["engine"].remedy
    assert not found["isolation"].ok
