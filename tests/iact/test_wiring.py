"""From settings to models: an endpoint with one model needs no name for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from core.errors import UsageError
from core.session.models import open_models
from iact.settings import Settings
from iact.wiring import endpoint_of
from tests.endpoint import Endpoint


def named(endpoint: str, key: str | None = None) -> str:
    """The name of the model that plays "smart" at `endpoint`, with no setting that names one."""
    models = open_models(endpoint_of(Settings(base_url=endpoint, api_key=key)))
    asyncio.run(models.close())
    return models.profile("smart").name


def test_the_only_model_of_an_endpoint_is_used() -> None:
    with Endpoint({}, models=["llama"], api_key="secret") as endpoint:
        assert named(endpoint.url, "secret") == "llama"


@pytest.mark.parametrize(
    ("models", "key", "told"),
    [
        (["a", "b"], None, " It has a, b."),
        ([f"m{number}" for number in range(9)], None, " It has m0, m1, m2, m3, m4, m5, m6, m7, …."),
        ([], None, ""),
        (["a"], "wrong", ""),
    ],
)
def test_a_choice_is_left_to_the_user(models: Sequence[str], key: str | None, told: str) -> None:
    with Endpoint({}, models=models, api_key="right" if key else None) as endpoint:
        with pytest.raises(UsageError) as raised:
            named(endpoint.url, key)
        assert str(raised.value) == (
            f"No model is named for the endpoint {endpoint.url};"
            f" set IACT_MODEL to the name of one of its models.{told}"
        )
