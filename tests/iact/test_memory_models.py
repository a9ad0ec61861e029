"""Which model reads what memory holds, by the settings."""

from __future__ import annotations

from iact.hippocampus import OpenAIEmbedder, WordEmbedder
from iact.memory import choose_embedder
from iact.settings import load


def test_embeddings_come_from_the_package_or_from_the_endpoint_that_is_named() -> None:
    assert isinstance(choose_embedder(load(environment={})), WordEmbedder)
    named = {"IACT_EMBEDDINGS": "small/model", "IACT_EMBEDDINGS_URL": "http://127.0.0.1:9/v1"}
    found = choose_embedder(load(environment=named))
    assert isinstance(found, OpenAIEmbedder)
    assert found.name == "openai-small-model"
