"""What the page is told of prices, from the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.choices import Choices
from iact.core.errors import UsageError
from iact.settings import ModelSettings, Settings, load
from iact.surroundings import ServerSurroundings
from iact.web.ports import Prices


def around(settings: Settings) -> ServerSurroundings:
    return ServerSurroundings(Choices(settings, lambda models: None))


def test_without_prices_there_is_no_cost() -> None:
    assert around(Settings()).prices() is None
    assert around(Settings(price_cached=1)).prices() is None


def test_what_is_reused_costs_as_much_as_the_rest_unless_it_is_set() -> None:
    assert around(Settings(price_prompt=3, price_completion=15)).prices() == Prices(3, 3, 15)
    assert around(Settings(price_prompt=3, price_cached=0)).prices() == Prices(3, 0, 0)
    cheap = ModelSettings(model="small", price_prompt=1, price_completion=2)
    assert around(Settings(price_prompt=3, models={"fast": cheap})).prices() == Prices(
        3, 3, 0, {"small": Prices(1, 1, 2)}
    )


def test_prices_come_from_the_file_and_the_environment(tmp_path: Path) -> None:
    (tmp_path / "iact.toml").write_text("price_prompt = 2.5\nprice_completion = 10\n", encoding="utf-8")
    read = load(environment={"IACT_DATA": str(tmp_path), "IACT_PRICE_COMPLETION": "12"})
    assert around(read).prices() == Prices(2.5, 2.5, 12)
    with pytest.raises(UsageError, match="price_prompt"):
        load(environment={"IACT_DATA": str(tmp_path), "IACT_PRICE_PROMPT": "-1"})
