"""Embedders: the built-in one, and any endpoint with OpenAI's protocol.

The built-in model is the table of 256-dimensional token vectors that the package `wordllama` contains in its wheel.
Only its two files are read: importing the package would set up logging for the whole process, and include a loader that
downloads missing files. A text's vector is the mean of its tokens'.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import statistics
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Embedder

if TYPE_CHECKING:
    import numpy
    from openai import AsyncOpenAI
    from tokenizers import Tokenizer

_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_LONGEST: Final = 8_000
"""The most characters of a text that are embedded."""

_BATCH: Final = 256

_UNRELATED: Final = (
    "The invoice for March was paid by bank transfer.",
    "Our cat sleeps on the radiator all winter.",
    "Rewrite the parser so that it reads one line at a time.",
    "Tickets for the concert on Friday are sold out.",
    "I would rather have my coffee without sugar.",
    "The bridge was closed because of the storm.",
    "Merge the two branches and tag the release.",
    "She studies marine biology in Lisbon.",
    "What is the capital of Mongolia?",
    "Please book a table for four at eight.",
    "The disk of the backup server is nearly full.",
    "He broke his arm when he fell off a horse.",
    "Translate this letter into French.",
    "Sales fell by seven percent in the second quarter.",
    "The recipe needs two eggs and a pinch of salt.",
    "Why does the login page load so slowly?",
)
"""Unrelated sentences: an embedder's similarities between them are its noise."""


class WordEmbedder:
    """The built-in model. Loads at the first use, in a thread. Never needs a network."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._loading = asyncio.Lock()
        self._table: numpy.ndarray | None = None
        self._tokenizer: Tokenizer | None = None

    @property
    def name(self) -> str:
        return "wordllama-l2-supercat-256"

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Unit vectors. A few texts are embedded on the loop (20 µs each), many in a thread."""
        if self._table is None:
            async with self._loading:
                if self._table is None:
                    await asyncio.to_thread(self._load)
        if len(texts) <= 4:
            return self._embed(texts)
        return await asyncio.to_thread(self._embed, texts)

    def _load(self) -> None:
        from tokenizers import Tokenizer

        directory = self._directory or _package()
        try:
            table = _mapped(directory / _WEIGHTS)
            tokenizer = Tokenizer.from_file(str(directory / _TOKENIZER))
        except Exception as error:
            raise MemoryUnavailable(
                f"The embedded embedding model can't be read from {directory}: {error}. "
                "Install the package wordllama again."
            ) from error

        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._table = table  # last: whoever sees it takes the rest for loaded

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        table = self._table
        assert table is not None
        assert self._tokenizer is not None
        encodings = self._tokenizer.encode_batch(
            [text[:_LONGEST] for text in texts], add_special_tokens=False
        )
        return [_mean(table, encoding.ids) for encoding in encodings]


def _package() -> Path:
    """The folder of the package's files, found without importing it."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise MemoryUnavailable("The embedded embedding model is missing: install the package wordllama.")
    return Path(spec.origin).parent


def _mapped(path: Path) -> numpy.ndarray:
    """The vectors of all tokens, which the system reads from the file when they are used.

    Source: the safetensors format, whose own reader copies the whole table into memory. The file has a length of 8
    bytes, a header in JSON, and the numbers.
    """
    import numpy

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(length))["embedding.weight"]
    if table["dtype"] != "F16":
        raise ValueError(f"its numbers are {table['dtype']} and not F16")
    start = 8 + length + table["data_offsets"][0]
    return numpy.asarray(numpy.memmap(path, dtype="<f2", mode="r", offset=start, shape=tuple(table["shape"])))


def _mean(table: numpy.ndarray, ids: Sequence[int]) -> list[float]:
    """The mean of the tokens' vectors, of unit length; zeros if the table has none of the tokens."""
    import numpy

    known = [number for number in ids if number < len(table)]
    if not known:
        return [0.0] * int(table.shape[1])

    # Stored in half that precision, for half the memory.
    mean = table[known].mean(axis=0, dtype=numpy.float32)
    length = float(numpy.linalg.norm(mean))
    if length:
        mean = mean / length
    vector: list[float] = mean.tolist()
    return vector


class OpenAIEmbedder:
    """Embeddings from an endpoint with OpenAI's protocol."""

    def __init__(self, client: AsyncOpenAI, model: str, *, dimensions: int | None = None) -> None:
        self._client = client
        self._model = model
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", self._model).strip("-")
        return f"openai-{plain}-{self._dimensions}" if self._dimensions else f"openai-{plain}"

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Unit vectors, requested in batches."""
        from openai import OpenAIError

        vectors: list[list[float]] = []
        try:
            for start in range(0, len(texts), _BATCH):
                vectors += await self._embed(texts[start : start + _BATCH])
        except OpenAIError as error:
            raise MemoryUnavailable(
                f"The endpoint for embeddings did not serve the model {self._model!r}: {error}. "
                "Check its address, key and model, or unset them to use the embedded one."
            ) from error

        if len(vectors) != len(texts):
            raise MemoryUnavailable(
                f"The endpoint for embeddings returned {len(vectors)} vectors for {len(texts)} texts; "
                "use another endpoint."
            )
        return vectors

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of one batch, in its order."""
        from openai import omit

        answer = await self._client.embeddings.create(
            model=self._model,
            input=[text[:_LONGEST] or " " for text in texts],  # endpoints refuse an empty one
            encoding_format="float",
            dimensions=self._dimensions or omit,
        )
        in_order = sorted(answer.data, key=lambda row: row.index)
        return [_unit(row.embedding) for row in in_order]


def _unit(vector: Sequence[float]) -> list[float]:
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector] if length else list(vector)


async def noise_floor(embedder: Embedder) -> float:
    """The cosine that unrelated texts stay below with this embedder: their mean plus 4.5 standard deviations.

    It is that many because a query is compared with thousands of statements, and the nearest of them is an outlier;
    measured by `benchmarks/memory`.
    """
    vectors = await embedder.embed(_UNRELATED)
    cosines = [sum(map(float.__mul__, left, right)) for left, right in combinations(vectors, 2)]
    return statistics.fmean(cosines) + 4.5 * statistics.pstdev(cosines)
