"""Set-up for every test: no setting of the user who runs the tests leaks into them.

A proxy, an endpoint or a data directory in the environment would make a test talk to something
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
from tests.slow import ON_BOARD, SLOW

# A machine under load generates examples slowly; that is no fault of the tested code.
settings.register_profile(
    "rounds", max_examples=rounds(30), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rounds")

_FOREIGN = ("OPENAI_", "IACT_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_OUR_OWN = ("IACT_TEST_SCALE",)
_OWN_ENGINE = re.compile(r"[\[-](gvisor|mapped|root|gvisor-root)\]")


def _is_slow(test: str) -> bool:
    """Whether a test, or a whole file, only runs in `make test-slow`."""
    inside = test.removeprefix("tests/")
    return inside.startswith(SLOW) or (
        inside.startswith("sandbox/") and _OWN_ENGINE.search(inside) is not None
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files that will not run, so that the workers do not import them."""
    if config.option.markexpr != "not slow":
        return None
    return _is_slow(f"{collection_path.relative_to(Path(__file__).parents[1])}") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow. On the build server these tests get a second try, and each retry is listed."""
    for item in items:
        if _is_slow(item.nodeid):
            item.add_marker("slow")
            if item.nodeid.removeprefix("tests/").startswith(ON_BOARD):
                item.add_marker("board")
            if os.environ.get("CI"):
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Turn the garbage collector off while tests are collected, and exclude the collected objects later.

    Each worker collects all tests; this saves a third of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _together(nodeid: str) -> str:
    """The group of a test. The tests of a file, and all tests that need the tests' own engine, run in one process.

    Such an engine takes ten seconds of processor time to start, and each process would start one.
    """
    file, _, test = nodeid.partition("::")
    own_engine = not LONG and file.startswith("tests/sandbox/") and _OWN_ENGINE.search(test)
    return "an engine of the tests' own" if own_engine else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """The scheduler for `--dist loadfile`."""
    if config.getoption("dist") != "loadfile":
        return None
    made = LoadScopeScheduling(config, log)
    made._split_scope = _together
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on a new loop. Tasks that it leaves running are cancelled."""
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
        # The model on board takes a gigabyte; the tests that need it, which are slow, ask for it.
        patch.setenv("IACT_EMBEDDED", "off")
        yield


@pytest.fixture(autouse=True)
def _prefix_law(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check every conversation that the test recorded against the prefix law."""
    yield
    conversations = prefix.drain()
    if request.node.get_closest_marker("no_prefix_law") is None:
        for conversation in conversations:
            conversation.check()
