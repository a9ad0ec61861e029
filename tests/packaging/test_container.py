"""The container image and the compose file: what can be held without building them, which needs an image registry."""

from __future__ import annotations

import json
import re
from typing import Final

import yaml

from iact.cli import parse
from iact.cli.options import Chosen
from tests.acceptance.product import ROOT
from tests.packaging.test_packaging import tracked

CONTAINERFILE: Final = (ROOT / "Containerfile").read_text(encoding="utf-8")
COMPOSE: Final = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def instruction(name: str) -> str:
    found = re.findall(rf"^{name} (.+)$", CONTAINERFILE, re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


def test_the_image_starts_a_command_that_there_is() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == ["iact"]
    chosen = parse(json.loads(instruction("CMD")))
    assert isinstance(chosen, Chosen)
    assert chosen.options["host"] == "127.0.0.1"


def test_both_containers_see_the_data_and_the_socket_at_one_path() -> None:
    """The engine is asked for files below the data directory by the path that the server knows."""
    services = COMPOSE["services"]
    mounts = [
        dict(reversed(one.split(":")) for one in services[name]["volumes"]) for name in ("iact", "engine")
    ]
    data = re.search(r"IACT_DATA=(\S+)", CONTAINERFILE)
    assert data is not None
    socket = services["iact"]["environment"]["DOCKER_HOST"].removeprefix("unix://")
    for place in (data[1], socket.rpartition("/")[0]):
        assert mounts[0][place] == mounts[1][place]
    assert f"--host=unix://{socket}" in services["engine"]["command"]


def test_only_the_engine_has_rights() -> None:
    services = COMPOSE["services"]
    assert "privileged" not in services["iact"]
    assert "cap_add" not in services["iact"]
    assert services["engine"]["network_mode"] == "none"


def test_what_the_versions_come_from_is_sent_along() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {"requirements.lock", "pyproject.toml", "MANIFEST.in"} <= tracked()
    assert not {"requirements.lock", "pyproject.toml", "examples", "iact"} & set(ignored)
    assert ".venv" in ignored
