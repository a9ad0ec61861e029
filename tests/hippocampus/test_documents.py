"""Functions by meaning: what a text is about, with the real embedder, and never later than a turn can wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from iact.core.errors import MemoryUnavailable
from iact.hippocampus import WordEmbedder, open_hippocampus
from iact.hippocampus.documents import Documents
from tests.hippocampus.fakes import DictStore, StandingClock, opener

FUNCTIONS = {
    "shell.run": "Runs a shell command. Run commands, scripts and programs in the workspace.",
    "files.write": "Writes a file. Creates or replaces a text file.",
    "mail.send": "Sends an email to a recipient.",
    "image.resize": "Resizes a picture to a width and height.",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Make the photo smaller, 800 pixels wide.", ["image.resize"]),
        ("Tell Anna by e-mail that I come at eight.", ["mail.send"]),
        ("Hello, how are you?", []),
        ("compute 17 + 25", []),
        ("", []),
    ],
)
def test_what_a_text_is_about(text: str, found: list[str]) -> None:
    assert asyncio.run(Documents(WordEmbedder()).about(text, FUNCTIONS)) == found


class Embedder:
    """The real one, as slow or as broken as a test wants; counts what it read."""

    def __init__(self) -> None:
        self._real = WordEmbedder()
        self.read: list[str] = []
        self.gate = asyncio.Event()
        self.fail = False
        self.name = self._real.name

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        await self.gate.wait()
        if self.fail:
            raise MemoryUnavailable("The endpoint is down.")
        self.read.extend(texts)
        return await self._real.embed(texts)


async def test_documents_are_read_once() -> None:
    embedder = Embedder()
    embedder.gate.set()
    documents = Documents(embedder)
    for _ in range(3):
        assert await documents.about("Send the mail.", FUNCTIONS) == ["mail.send"]
    assert sum(text in FUNCTIONS.values() for text in embedder.read) == len(FUNCTIONS)


async def test_a_slow_model_is_asked_behind_and_a_broken_one_tells_nothing(tmp_path: Path) -> None:
    embedder = Embedder()
    async with open_hippocampus(
        tmp_path, embedder, clock=StandingClock(), budget=0.01, open_store=opener(DictStore())
    ) as opened:
        memory = opened.of("anna")
        assert await memory.about("Send the mail.", FUNCTIONS) == []
        embedder.gate.set()
        async with asyncio.timeout(300):
            await opened.settled()
        assert set(FUNCTIONS.values()) <= set(embedder.read)
        embedder.fail = True
        assert await memory.about("Resize the picture.", FUNCTIONS) == []
