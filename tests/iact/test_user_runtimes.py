"""What each user of a server has is by itself, but for the models and the policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.choices import Choices
from iact.core.errors import UsageError
from iact.core.gate.policy_file import FILE
from iact.core.models.roles import Models
from iact.core.ports import Spending
from iact.settings import load
from iact.user_folders import folder_of
from iact.user_runtimes import open_tenants
from iact.web.ports import FirstMessage
from iact.wiring import models_of, open_runtime
from tests.core.session.fakes import ScriptedModel


class Unbounded:
    """A quota with room for everything."""

    async def reserve(self, most: Spending) -> Unbounded:
        return self

    async def settle(self, used: Spending) -> None:
        """Nobody counts."""

    async def sessions(self, *, begun: bool = False) -> None:
        """Any number."""

    async def containers(self) -> None:
        """Any number."""

    def count(self, kind: str, taken: Callable[[], int]) -> None:
        """Nobody shares anything."""


def test_users_share_models_and_policy_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "IACT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IACT_SANDBOX", "off")
    monkeypatch.setenv("IACT_MEMORY", "off")
    (tmp_path / FILE).write_text('[scope.team]\nfunctions = ["*"]\n')

    async def main() -> None:
        settings = load(data=str(tmp_path))
        models = models_of(settings)
        async with open_runtime(settings, opened=models) as local:
            choices = Choices(settings, local.use_models)
            async with open_tenants(settings, models, choices, "team", lambda user: Unbounded()) as tenants:
                async with tenants.lease("ada") as ada, tenants.lease("bob") as bob:
                    session = await ada.runtime.open(None)
                    assert ada.runtime.store.holds(session.id)
                    assert not bob.runtime.store.holds(session.id)
                    assert not local.store.holds(session.id)
                    assert (folder_of(tmp_path, "ada") / "sessions" / session.id).is_dir()
                    assert ada.product is not None
                    assert bob.product is not None
                    ada.product.choices.keep_first_message(FirstMessage("Ada's", "Hello."))
                    assert not bob.product.choices.first_messages()
                    before = bob.runtime.model_label
                    local.use_models(Models({"smart": ScriptedModel(lambda asked: "")}))
                    assert bob.runtime.model_label == local.model_label != before
                with pytest.raises(UsageError):
                    async with tenants.lease("../ada"):
                        raise AssertionError("nobody has this id")

    asyncio.run(asyncio.wait_for(main(), 60))
