"""The embedded model, and an endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Embedder
from iact.hippocampus import OpenAIEmbedder, WordEmbedder
from iact.hippocampus.embedding import noise_floor
from iact.hippocampus.ranking import dot


def test_the_embedded_model_gives_what_its_own_package_gives() -> None:
    handlers, level = logging.root.handlers[:], logging.root.level
    try:
        import wordllama  # type: ignore[import-untyped]
    finally:
        logging.root.handlers[:], logging.root.level = handlers, level
    texts = ["Hello, my friend!", "naïve Größe 漢字", "x" * 500]
    place = Path(wordllama.__file__).parent
    theirs = wordllama.WordLlama.load(cache_dir=place, disable_download=True).embed(texts, norm=True)
    ours = asyncio.run(WordEmbedder().embed(texts))
    for mine, other in zip(ours, theirs.tolist(), strict=True):
        assert mine == pytest.approx(other, abs=1e-5)


def test_unit_vectors_and_none_for_nothing() -> None:
    one, empty = asyncio.run(WordEmbedder().embed(["some words", ""]))
    assert dot(one, one) == pytest.approx(1.0, abs=1e-5)
    assert set(empty) == {0.0}
    assert len(one) == 256


async def test_the_floor_parts_related_from_unrelated() -> None:
    embedder = WordEmbedder()
    floor = await noise_floor(embedder)
    assert 0.1 < floor < 0.4
    texts = [
        "Which port does the staging server use?",
        "The staging server listens on port 9000.",
        "I sing in a choir.",
    ]
    question, answer, other = await embedder.embed(texts)
    assert dot(question, answer) > floor > dot(question, other)


def test_a_missing_model_is_said_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MemoryUnavailable, match="Install the package wordllama"):
        asyncio.run(WordEmbedder(tmp_path).embed(["x"]))


@contextmanager
def endpoint(status: int = 200) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """An endpoint for embeddings: vectors (3, 4, length of the text), in reversed order."""
    asked: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            data = [
                {"object": "embedding", "index": n, "embedding": [3.0, 4.0, float(len(text))]}
                for n, text in enumerate(body["input"])
            ]
            answer = json.dumps(
                {
                    "object": "list",
                    "data": data[::-1],
                    "model": "m",
                    "usage": {"prompt_tokens": 1, "total_tokens": 1},
                }
            ).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_endpoint_is_asked_in_batches_and_answers_in_any_order() -> None:
    async def scene(address: str) -> None:
        async with AsyncOpenAI(base_url=address, api_key="k", max_retries=0) as client:
            embedder: Embedder = OpenAIEmbedder(client, "text-embedding-3-small", dimensions=3)
            assert embedder.name == "openai-text-embedding-3-small-3"
            texts = ["x" * (n % 7) for n in range(300)]
            found = await embedder.embed(texts)
            assert len(found) == 300
            for text, vector in zip(texts, found, strict=True):
                length = max(1, len(text))
                norm = (25 + length**2) ** 0.5
                assert list(vector) == pytest.approx([3 / norm, 4 / norm, length / norm])

    with endpoint() as (address, asked):
        asyncio.run(scene(address))
    sizes = []
    for one in asked:
        given = one["input"]
        assert isinstance(given, list)
        sizes.append(len(given))
    assert sizes == [256, 44]


def test_an_endpoint_that_fails_is_said_with_the_remedy() -> None:
    async def scene(address: str) -> None:
        async with AsyncOpenAI(base_url=address, api_key="k", max_retries=0) as client:
            await OpenAIEmbedder(client, "m").embed(["x"])

    with endpoint(500) as (address, _), pytest.raises(MemoryUnavailable, match="did not serve the model 'm'"):
        asyncio.run(scene(address))
