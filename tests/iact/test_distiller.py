"""Memory's model is asked for a typed value, and what it says around a note stays out of memory."""

from __future__ import annotations

import asyncio
import random

import pytest

from iact.core.errors import StructuredFailed
from iact.core.models.openai import OpenAIModel
from iact.core.models.roles import Models
from iact.core.ports import ModelProfile
from iact.distiller import distiller
from tests.core.session.fakes import ScriptedModel, TickingClock, replies
from tests.endpoint import Endpoint


def distilled(*said: str) -> tuple[str, Endpoint]:
    async def main(url: str) -> str:
        profile = ModelProfile("fast", 8192)
        model = OpenAIModel(
            base_url=url, key=None, profile=profile, clock=TickingClock(), rng=random.Random(1)
        )
        distill = distiller(lambda: Models({"smart": model, "fast": model}).own("fast"))
        assert distill is not None
        try:
            return await distill("Merge: a, b.")
        finally:
            await model.close()

    with Endpoint({"*": said}) as endpoint:
        return asyncio.run(main(endpoint.url)), endpoint


def test_the_endpoint_is_asked_for_a_note_by_schema() -> None:
    note, endpoint = distilled('{"note": "a and b."}')
    assert note == "a and b."
    assert "json_schema" in str(endpoint.requests[0].body["response_format"])


def test_what_stands_around_the_note_stays_out() -> None:
    assert distilled('Sure! Here it is:\n```json\n{"note": "a and b."}\n```\nAnything else?')[0] == "a and b."


def test_an_answer_that_is_no_note_is_a_typed_failure() -> None:
    with pytest.raises(StructuredFailed):
        distilled(*["I would rather not."] * 5)


def test_without_a_fast_model_nothing_is_merged() -> None:
    assert distiller(lambda: Models({"smart": ScriptedModel(replies({}))}).own("fast")) is None
