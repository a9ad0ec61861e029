"""The process in which llama.cpp runs: it ends with whoever started it, and says why it can't load a file."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from iact.core.errors import ModelUnreachable
from iact.models.llama_process import LlamaProcess
from tests.iact.models.hub_server import gguf


def started(folder: Path, content: bytes) -> LlamaProcess:
    path = folder / "it.gguf"
    path.write_bytes(content)
    return LlamaProcess(path, "key", 512)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))


def test_a_file_without_a_model_is_told_in_a_sentence(tmp_path: Path) -> None:
    process = started(tmp_path, gguf())
    with pytest.raises(ModelUnreachable, match=r"can't be loaded .*connect a model"):
        process.start()
    assert not process.running


def test_it_can_be_stopped_while_it_loads(tmp_path: Path) -> None:
    """The file is a pipe that nobody writes to, so loading it never ends by itself."""
    (tmp_path / "cache").mkdir()
    pipe = tmp_path / "pipe.gguf"
    subprocess.run(["mkfifo", str(pipe)], check=True)
    process = LlamaProcess(pipe, "key", 512)
    raised: list[ModelUnreachable] = []

    def start() -> None:
        try:
            process.start()
        except ModelUnreachable as error:
            raised.append(error)

    loading = threading.Thread(target=start)
    loading.start()
    while not process.running:  # it is started in the other thread
        time.sleep(0.01)
    process.stop()
    loading.join()
    assert len(raised) == 1
    assert not process.running


def test_stopped_before_it_began_it_does_not_stay(tmp_path: Path) -> None:
    process = started(tmp_path, gguf())
    process.stop()
    with pytest.raises(ModelUnreachable):
        process.start()
    assert not process.running


def test_it_ends_when_its_parent_is_gone() -> None:
    program = Path(sys.modules[LlamaProcess.__module__].__file__ or "").with_name("llama_program.py")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import llama_program; llama_program.start = lambda asked: (object(), {}); llama_program.main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(program.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("{}\n")
    child.stdin.flush()
    assert child.stdout.readline() == "{}\n"
    assert child.poll() is None
    child.stdin.close()
    assert child.wait() == 0
    child.stdout.close()
