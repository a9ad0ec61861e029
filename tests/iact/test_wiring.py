"""From settings to models: an endpoint with one model needs no name for it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from iact.core.errors import UsageError
from iact.core.ports import ChatMessage, Embedder
from iact.core.rates import Rate
from iact.core.records.parts import PlanBounds, RateTerms
from iact.core.session.models import open_models
from iact.hippocampus import Hippocampus, open_hippocampus
from iact.hippocampus.memory import ATTENDED, OPENING
from iact.settings import Settings, load
from iact.wiring import endpoint_of, endpoint_rates, open_runtime, options_of, roles_of
from tests.endpoint import Endpoint


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long an endpoint may take to list its models is not what is tested here, and a busy machine takes longer."""
    monkeypatch.setattr("iact.core.session.models._LISTING_SECONDS", 300.0)


def named(endpoint: str, key: str | None = None) -> str:
    """The name of the model that plays "smart" at `endpoint`, with no setting that names one."""
    models = open_models(endpoint_of(Settings(base_url=endpoint, api_key=key)))
    asyncio.run(models.close())
    return models.profile("smart").name


def test_the_only_model_of_an_endpoint_is_used() -> None:
    with Endpoint({}, models=["llama"], api_key="secret") as endpoint:
        assert named(endpoint.url, "secret") == "llama"


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (["a", "b"], " It has a, b."),
        ([f"m{number}" for number in range(9)], " It has m0, m1, m2, m3, m4, m5, m6, m7, …."),
        ([], ""),
    ],
)
def test_a_choice_is_left_to_the_user(models: Sequence[str], told: str) -> None:
    with Endpoint({}, models=models) as endpoint:
        with pytest.raises(UsageError) as raised:
            named(endpoint.url, None)
        assert str(raised.value) == (
            f"No model is named for the endpoint {endpoint.url};"
            f" set IACT_MODEL to the name of one of its models.{told}"
        )


def test_an_endpoint_that_rejects_the_key_is_not_said_to_have_no_models() -> None:
    with Endpoint({}, models=["a"], api_key="right") as endpoint:
        with pytest.raises(UsageError) as raised:
            named(endpoint.url, "wrong")
        assert str(raised.value) == (
            f"The endpoint {endpoint.url} rejects the key (HTTP 401), so it can't be asked for its models; "
            "correct the key, or set IACT_MODEL to the name of one of its models."
        )


def test_an_endpoint_that_is_gone_is_said_not_to_answer() -> None:
    with Endpoint({}) as endpoint:
        url = endpoint.url
    with pytest.raises(UsageError) as raised:
        named(url, None)
    told = str(raised.value)
    assert told.startswith(f"The endpoint {url} does not answer (")
    assert told.endswith("so it can't be asked for its models; start it, or correct its address.")


TOML = """\
base_url = "http://127.0.0.1:9/v1"
api_key = "ours"
model = "big"

[models.fast]
base_url = "http://127.0.0.1:10/v1"
key = "FAST_KEY"
model = "small"
context = 8192
dialect = "tools"

[models.painter]
model = "seer"
takes = ["image"]

[plans]
concurrency = 3
planner = "painter"
trust_below = 0.5
rounds = 5

[rates.web]
per_second = 2
burst = 4
"""


def test_any_number_of_roles_each_with_its_own_endpoint_and_key(tmp_path: Path) -> None:
    (tmp_path / "iact.toml").write_text(TOML)
    settings = load(data=str(tmp_path), environment={})
    roles = roles_of(settings, {"FAST_KEY": "theirs"})
    fast, painter = roles["fast"], roles["painter"]
    assert (fast.url, fast.key, fast.model, fast.context, fast.dialect) == (
        "http://127.0.0.1:10/v1", "theirs", "small", 8192, "tools"
    )  # fmt: skip
    assert (painter.url, painter.key, painter.model, painter.takes) == (
        "http://127.0.0.1:9/v1",
        "ours",
        "seer",
        ("image",),
    )
    models = open_models(endpoint_of(settings), roles=roles)
    assert {role: models.profile(role).name for role in ("smart", "fast", "painter", "other")} == {
        "smart": "big",
        "fast": "small",
        "painter": "seer",
        "other": "big",
    }
    asyncio.run(models.close())


def test_a_key_is_shown_to_no_other_endpoint(tmp_path: Path) -> None:
    (tmp_path / "iact.toml").write_text(TOML.replace('key = "FAST_KEY"\n', ""))
    roles = roles_of(load(data=str(tmp_path), environment={}), {})
    assert roles["fast"].key is None
    assert roles["painter"].key == "ours"


def test_what_is_set_of_plans_and_rates_is_what_sessions_are_bound_by(tmp_path: Path) -> None:
    (tmp_path / "iact.toml").write_text(TOML)
    bounds = options_of(load(data=str(tmp_path), environment={})).bounds.plans
    assert (bounds.concurrency, bounds.planner, bounds.trust_below, bounds.rounds) == (3, "painter", 0.5, 5)
    assert bounds.rates == {"web": RateTerms(per_second=2, burst=4)}
    assert options_of(Settings()).bounds.plans == PlanBounds()


def test_an_endpoint_is_asked_as_often_as_its_rate_says_by_all_roles_together(tmp_path: Path) -> None:
    """Three requests by two roles at two a second: the last comes a second after the first."""
    with Endpoint({"/": ["one", "two", "three"]}, models=["a"]) as endpoint:
        host = endpoint.url.split("/")[2]
        (tmp_path / "iact.toml").write_text(
            f'base_url = "{endpoint.url}"\n[models.fast]\ndialect = "text"\n'
            f'[rates."{host}"]\nper_second = 2\n[rates.web]\nper_second = 1\n'
        )
        settings = load(data=str(tmp_path), environment={})
        assert endpoint_rates(settings) == {host: Rate(2.0)}
        assert options_of(settings).bounds.plans.rates == {"web": RateTerms(per_second=1)}
        models = open_models(endpoint_of(settings), roles=roles_of(settings), rates=endpoint_rates(settings))

        async def ask(role: str) -> None:
            asked = [ChatMessage("user", "You are agent /, called by user.")]
            async for _ in models.model(role).stream(asked):
                pass

        async def scene() -> float:
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for role in ("smart", "fast", "smart"):
                    group.create_task(ask(role))
            await models.close()
            return time.monotonic() - began

        assert asyncio.run(scene()) >= 1.0
        assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('planner = "painter"', 'planner = "ghost"'), "names the role 'ghost', which has no [models.ghost]"),
        (
            ("trust_below = 0.5", "risk_weights = [1.0, 1.0, 0.0, 0.0, 0.0]"),
            "must add up to 1, but add up to 2",
        ),
        (("trust_below = 0.5", "guarded_from = 0.9"), "guarded_from must not be above repair_from"),
        (("concurrency = 3", "concurrency = 0"), "plans.concurrency can't be 0"),
        (("per_second = 2", "per_second = 0"), "rates.web.per_second can't be 0"),
        (("[models.painter]", "[models.Painter]"), "models.Painter"),
    ],
)
def test_what_can_not_be_is_told_with_its_name(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    (tmp_path / "iact.toml").write_text(TOML.replace(*change))
    with pytest.raises(UsageError) as raised:
        load(data=str(tmp_path), environment={})
    assert says in str(raised.value)


def test_a_key_that_is_not_there_is_told_by_the_name_of_its_variable(tmp_path: Path) -> None:
    (tmp_path / "iact.toml").write_text(TOML)
    with pytest.raises(UsageError, match="FAST_KEY, which is neither"):
        roles_of(load(data=str(tmp_path), environment={}), {})


@pytest.mark.parametrize(("attended", "seconds"), [(True, ATTENDED), (False, OPENING)])
async def test_a_first_turn_waits_for_memory_longer_where_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attended: bool, seconds: float
) -> None:
    given: list[float] = []

    def noted(directory: Path, embedder: Embedder, **rest: Any) -> AbstractAsyncContextManager[Hippocampus]:
        given.append(rest["opening"])
        return open_hippocampus(directory, embedder, **rest)

    monkeypatch.setattr("iact.memory.open_hippocampus", noted)
    environment = {"PATH": os.environ["PATH"], "IACT_SANDBOX": "off", "IACT_MEMORY": "on"}
    settings = load(
        data=str(tmp_path),
        environment={**environment, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "IACT_MODEL": "m"},
    )
    async with open_runtime(settings, attended=attended) as runtime:
        assert runtime.memory is not None
    assert given == [seconds]
    assert ATTENDED < OPENING
