"""What every test shares: no setting of whoever runs the tests leaks into them.

A proxy, an endpoint or a data directory in the environment would make a test speak to something
real, or write where a user keeps sessions.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests import prefix
from tests.rounds import LONG, rounds
from tests.slow import SLOW

# A machine under load makes examples slowly; that is no fault of what is tested.
settings.register_profile(
    "rounds", max_examples=rounds(30), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rounds")

_FOREIGN = ("OPENAI_", "IACT_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_OUR_OWN = ("IACT_TEST_SCALE",)
_OWN_ENGINE = re.compile(r"[\[-](gvisor|mapped|root|gvisor-root)\]")


_WITH_REAL_PARTS = (
    "acceptance", "benchmarks", "core/modules", "core/session", "examples", "ext_modules", "hippocampus", "iact", "packaging",
    "sandbox", "web",
)  # fmt: skip
"""Rooms whose tests drive real browsers, servers, containers and processes, or many tasks: a loaded machine starves them."""


def _is_slow(test: str) -> bool:
    """Whether a test, or a whole file, is left to `make test-slow`."""
    inside = test.removeprefix("tests/")
    return inside.startswith(SLOW) or (
        inside.startswith("sandbox/") and _OWN_ENGINE.search(inside) is not None
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is not played need not be imported; each worker would."""
    if config.option.markexpr != "not slow":
        return None
    return _is_slow(f"{collection_path.relative_to(Path(__file__).parents[1])}") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow. Where nobody watches, what has real parts gets one more try; each that failed is listed."""
    rooms = tuple(f"tests/{room}/" for room in _WITH_REAL_PARTS)
    for item in items:
        if _is_slow(item.nodeid):
            item.add_marker("slow")
        if os.environ.get("CI") and item.nodeid.startswith(rooms):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for while tests are found, nor later among what was: modules and parameters stay.

    Each worker finds all tests; this takes a third off.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _together(nodeid: str) -> str:
    """Tests of one answer run in one process, in order: a file's, and all that need an engine of the tests' own.

    Such an engine takes ten seconds of processor time to start, and each process would start one.
    """
    file, _, test = nodeid.partition("::")
    own_engine = not LONG and file.startswith("tests/sandbox/") and _OWN_ENGINE.search(test)
    return "an engine of the tests' own" if own_engine else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """What `--dist loadfile` is here."""
    if config.getoption("dist") != "loadfile":
        return None
    made = LoadScopeScheduling(config, log)
    made._split_scope = _together
    return made


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


@pytest.fixture(autouse=True)
def _prefix_law(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold every conversation that the test recorded to the prefix law."""
    yield
    conversations = prefix.drain()
    if request.node.get_closest_marker("no_prefix_law") is None:
        for conversation in conversations:
            conversation.check()
