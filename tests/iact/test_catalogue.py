"""`iact module list`, `iact image build` and `iact doctor`, as a person or a program sees them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests import command


def iact(*arguments: str, data: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    around = {**os.environ, "IACT_DATA": str(data), **environment}
    return command.iact(*arguments, environment=around, cwd=data.parent)


def test_the_shipped_modules_are_listed_with_their_functions(tmp_path: Path) -> None:
    done = iact("module", "list", "--json", data=tmp_path)
    assert done.returncode == 0, done.stderr
    shell = next(one for one in json.loads(done.stdout) if one["name"] == "shell")
    assert set(shell) == {"name", "version", "state", "digest", "functions"}
    assert {"name": "shell.run", "impact": 1, "approved": True} in shell["functions"]
    assert "shell.run  impact 1" in iact("module", "list", data=tmp_path).stdout


def test_without_a_sandbox_the_list_says_why_and_what_to_do(tmp_path: Path) -> None:
    done = iact("module", "list", data=tmp_path, IACT_SANDBOX="off")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "IACT_SANDBOX=off" in done.stderr


def test_the_image_is_found_again(tmp_path: Path) -> None:
    done = iact("image", "build", data=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("iact-base:")
    assert iact("image", "build", data=tmp_path).stdout == done.stdout


def test_the_doctor_names_what_works_and_every_remedy(tmp_path: Path) -> None:
    found = json.loads(iact("doctor", "--json", data=tmp_path).stdout)
    assert {"bubblewrap", "engine", "image", "model", "data", "disk", "python"} <= {
        one["check"] for one in found
    }
    assert all(set(one) == {"check", "ok", "detail", "remedy"} for one in found)
    broken = iact("doctor", "--json", data=tmp_path, DOCKER_HOST="unix:///nowhere.sock")
    engine = next(one for one in json.loads(broken.stdout) if one["check"] == "engine")
    assert (broken.returncode, engine["ok"]) == (1, False)
    assert engine["remedy"]
