"""The programs in the guides, as somebody new runs them: from the built wheel, with clients from the package index.

The wheel takes its dependencies from the environment of the tests, as in `test_packaging`; the clients are in an
environment of their own, which nothing of the repository is in. So this needs an index. The model is a script.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.product import ROOT
from tests.endpoint import Endpoint, HttpError, Reply
from tests.packaging.test_packaging import Built, Installed, built, installed

__all__ = ["built", "installed"]

GUIDES: Final = ROOT / "docs" / "how-to"
CLIENTS: Final = ("openai", "langchain-openai", "openai-agents", "a2a-sdk", "httpx")
"""What the guides say to install beside iact."""
PATIENCE: Final = 540.0
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INDEX: Final = ("PIP_", "http_proxy", "https_proxy", "no_proxy")
"""Beginnings of the variables that say where packages come from."""

POLICY: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["files.write"]\n'
CALLS_WEATHER: Final = '```FRONTEND tool=weather\n{"city": "Bonn"}\n```'
WRITES: Final = "```files.write path=a.txt\nhello\n```"


@dataclass(frozen=True, slots=True)
class Program:
    """A block of code in a guide."""

    guide: str
    begins: str
    """What it imports first."""
    replies: Sequence[str | Reply]
    """What the model says."""
    prints: str
    """A pattern of all that it prints."""
    status: int = 0
    serves: bool = True
    """Whether it asks a server; otherwise it embeds a session."""
    policy: str = ""

    def code(self) -> str:
        """The block as it is in the guide."""
        text = (GUIDES / self.guide).read_text(encoding="utf-8")
        blocks: list[str] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        (found,) = [block for block in blocks if self.begins in block]
        return found


PROGRAMS: Final = {
    "openai": Program(
        "responses.md", "from openai import OpenAI", ["Letters.", "Notes."], r"Letters\.\nNotes\.\n"
    ),
    "langchain": Program(
        "responses.md", "from langchain_openai", [CALLS_WEATHER, "It rains."], r"It rains\.\n"
    ),
    "agents": Program("responses.md", "from agents import", [CALLS_WEATHER, "It rains."], r"It rains\.\n"),
    "a2a": Program(
        "a2a.md", "from a2a.client", [WRITES, "No module, so no file."],
        r"-> Write hello into a\.txt\n<- task TASK_STATE_WORKING\n(?s:.*)<- artifact: No module, so no file\.\n"
        r"<- status_update TASK_STATE_COMPLETED\n",
    ),
    "embedded": Program(
        "embed.md", 'session.ask("Show', ["Four kilobytes."], r"Four kilobytes\.\n\S+journal\.md\n", serves=False
    ),
    "embedded, watched": Program(
        "embed.md", "exchange.questions.waiting", ["Nothing to write."], r"Nothing to write\.\n", serves=False
    ),
    "embedded, failing": Program(
        "embed.md", "exchange.questions.waiting", [Reply(error=HttpError(401, "No such key."))], "",
        status=1, serves=False,
    ),
}  # fmt: skip


@dataclass(slots=True)
class Fresh:
    """Two environments far from the repository: one with the wheel, one with the clients."""

    place: Path
    iact: Path
    """The folder of the environment with the wheel."""

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def clients(self) -> Path:
        """The folder of the environment with the clients."""
        return self.place / "clients"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_INDEX)}
        return {**kept, "IACT_DATA": str(self.data), "IACT_MEMORY": "off", "IACT_SANDBOX": "off", **more}


def test_guides_name_the_wheel_that_is_built(built: Built) -> None:
    named = [guide.name for guide in GUIDES.glob("*.md") if "dist/iact-" in guide.read_text(encoding="utf-8")]
    assert len(named) > 5
    for guide in named:
        text = (GUIDES / guide).read_text(encoding="utf-8")
        assert {*re.findall(r"dist/(iact-[\w.]+\.whl)", text)} <= {built.wheel.name}, guide


@pytest.fixture(scope="module")
def fresh(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    made = Fresh(tmp_path_factory.mktemp("fresh"), installed.place / "venv")
    subprocess.run([sys.executable, "-m", "venv", str(made.clients)], check=True, timeout=PATIENCE)
    command = [str(made.clients / "bin" / "python"), "-m", "pip", "install", "--quiet", *CLIENTS]
    done = subprocess.run(
        command, env=made.environment(), cwd=made.place, capture_output=True, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@contextmanager
def serving(fresh: Fresh, endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """`iact serve --faces 0`. Yields the address of the faces, and the key."""
    command = [str(fresh.iact / "bin" / "iact"), "serve", "--port", "0", "--faces", "0"]
    environment = fresh.environment(OPENAI_BASE_URL=endpoint.url, IACT_MODEL="scripted")
    with subprocess.Popen(
        command, env=environment, cwd=fresh.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("iact: ready ")
            told = process.stdout.readline()
            assert told.startswith("iact: faces at "), told
            key = json.loads((fresh.data / "server.json").read_text(encoding="utf-8"))["key"]
            yield told.split()[-1], str(key)
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_guides_program_does_what_it_says(fresh: Fresh, name: str) -> None:
    program = PROGRAMS[name]
    with Endpoint({"/": program.replies}) as endpoint:
        if program.serves:
            with serving(fresh, endpoint) as (address, key):
                told = {
                    "OPENAI_BASE_URL": f"{address}/v1",
                    "OPENAI_API_KEY": key,
                    "AGENT": address,
                    "KEY": key,
                }
                done = run(fresh, fresh.clients, program.code(), told)
        else:
            told = {"OPENAI_BASE_URL": endpoint.url, "IACT_MODEL": "scripted"}
            done = run(fresh, fresh.iact, program.code(), told)
    assert done.returncode == program.status, done.stdout + done.stderr
    assert re.fullmatch(program.prints, done.stdout), done.stdout


def run(fresh: Fresh, environment: Path, code: str, told: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment, as a file of its own."""
    file = fresh.place / "program.py"
    file.write_text(code, encoding="utf-8")
    return subprocess.run(
        [str(environment / "bin" / "python"), str(file)], env=fresh.environment(**told), cwd=fresh.place,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


def test_every_program_of_these_guides_is_played() -> None:
    for guide in {program.guide for program in PROGRAMS.values()}:
        text = (GUIDES / guide).read_text(encoding="utf-8")
        played = {program.code() for program in PROGRAMS.values() if program.guide == guide}
        assert set(re.findall(r"```python\n(.*?)```", text, re.DOTALL)) == played
