"""Closes the browser that the tests of the page share after the last of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.browser import SHARED


@pytest.fixture(scope="session", autouse=True)
def _shared_browser() -> Iterator[None]:
    yield
    SHARED.close()
