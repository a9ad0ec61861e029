"""Commands about plan files are typed while a plan is written: they load nothing that only a session needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAN = """\
goal: Look
steps:
  - {id: kernel, call: shell.run, params: {command: "uname -r"}}
  - {id: tell, agent: writer, task: "Tell it.", after: [kernel]}
"""

_RUN = """\
import json, sys
from iact.cli import main
status = main(sys.argv[1:])
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""

OF_SESSIONS = {
    "chromadb", "docker", "grpc", "httpx", "kubernetes", "numpy", "onnxruntime", "openai", "requests", "sqlalchemy",
    "starlette", "websockets",
    "iact.core.session.runtime", "iact.core.tree.apply", "iact.core.tree.tree", "iact.wiring",
}  # fmt: skip
"""What takes long to import: engines, endpoints, servers, memory, and the rules of a session."""

COMMANDS = {
    "check": "2 steps in 2 waves; it can run.",
    "graph": "kernel",
    "explain": "2 steps in 2 waves, mode static",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_about_a_file_loads_nothing_of_a_session(tmp_path: Path, command: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    environment = {**os.environ, "IACT_DATA": str(tmp_path / "data")}

    done = subprocess.run(
        [sys.executable, "-c", _RUN, "plan", command, str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )

    assert COMMANDS[command] in done.stdout, done
    status, loaded = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    assert OF_SESSIONS.isdisjoint(loaded), sorted(OF_SESSIONS.intersection(loaded))


def test_functions_are_looked_up_although_no_sandbox_is_opened(tmp_path: Path) -> None:
    """What ships with the product declares itself in a file."""
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN.replace("shell.run", "shell.ran"))
    done = subprocess.run(
        [sys.executable, "-m", "iact", "plan", "check", str(file), "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "IACT_DATA": str(tmp_path / "data"), "PATH": ""},
    )
    assert done.returncode == 1, done
    (problem,) = json.loads(done.stdout)["problems"]
    assert "shell.ran" in problem
