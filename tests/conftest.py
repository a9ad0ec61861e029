"""What every test shares: no setting of whoever runs the tests leaks into them.

A proxy, an endpoint or a data directory in the environment would make a test speak to something
real, or write where a user keeps sessions.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import prefix

_FOREIGN = ("OPENAI_", "IACT_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_OUR_OWN = ("IACT_TEST_SCALE",)


_WITH_REAL_PARTS = (
    "acceptance", "benchmarks", "core/modules", "core/session", "examples", "ext_modules", "hippocampus", "iact", "packaging",
    "sandbox", "web",
)  # fmt: skip
"""Rooms whose tests drive real browsers, servers, containers and processes, or many tasks: a loaded machine starves them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where nobody watches, such a test gets one more try; each try that failed is listed in the summary."""
    if not os.environ.get("CI"):
        return
    rooms = [Path(__file__).parent / room for room in _WITH_REAL_PARTS]
    for item in items:
        if any(item.path.is_relative_to(room) for room in rooms):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs on a loop of its own; what it leaves running is cancelled."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="session", autouse=True)
def _clean_environment() -> Iterator[None]:
    """Take settings and proxies out of the environment for the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name not in _OUR_OWN and (name.startswith(_FOREIGN) or name.lower() in _PROXIES):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def scale() -> float:
    """IACT_TEST_SCALE (default 1) multiplies the rounds of slow tests."""
    return float(os.environ.get("IACT_TEST_SCALE", "1"))


@pytest.fixture(autouse=True)
def _prefix_law(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold every conversation that the test recorded to the prefix law."""
    yield
    conversations = prefix.drain()
    if request.node.get_closest_marker("no_prefix_law") is None:
        for conversation in conversations:
            conversation.check()
