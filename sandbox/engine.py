"""The connection to the Docker engine, and what to tell a person when there is none.

The engine's client blocks, so whoever calls it from the event loop does that through `in_thread`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from core.errors import SandboxUnavailable
from core.ports import Report

NO_ENGINE = (
    "No Docker engine answers, so tools can't run; install and start one with "
    "`sudo apt-get install docker.io` (or run `make setup` as root)."
)
NO_RIGHTS = (
    "The Docker engine refuses this user, so tools can't run; "
    'run `sudo usermod -aG docker "$USER"` and log in again.'
)

DEFAULT = "/var/run/docker.sock"
_THREADS = 16

EngineFailure = (DockerException, RequestException)
"""What the engine's client raises: its own errors, and those of the HTTP library below it."""

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


def connect(timeout: int = 60) -> docker.DockerClient:
    """Connect to the engine that DOCKER_HOST or the default socket names. Blocks; `timeout` in seconds per request.

    Raises:
        SandboxUnavailable: none answers, or we may not talk to it.
    """
    knock()
    try:
        return docker.DockerClient.from_env(version="auto", timeout=timeout, max_pool_size=_THREADS)
    except EngineFailure as error:
        raise SandboxUnavailable(NO_ENGINE) from error


def knock() -> None:
    """Make sure that somebody listens where the engine should be. Blocks, for no time if so.

    Done before anything that may find the engine gone: its client wraps that in several layers of errors,
    and leaves a socket open.

    Raises:
        SandboxUnavailable: nobody listens, or we may not talk to them.
    """
    host = os.environ.get("DOCKER_HOST", "") or f"unix://{DEFAULT}"
    if not host.startswith("unix://"):
        return
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(host.removeprefix("unix://"))
    except PermissionError as error:
        raise SandboxUnavailable(NO_RIGHTS) from error
    except OSError as error:
        raise SandboxUnavailable(NO_ENGINE) from error


@functools.cache
def _executor() -> ThreadPoolExecutor:
    """Threads of our own: an engine that hangs must not take those that the journal's writer waits for."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="iact-engine")


def begin(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> asyncio.Future[_Result]:
    """Begin to run a blocking `function` in a thread; it runs to its end whatever becomes of the future."""
    return asyncio.get_running_loop().run_in_executor(
        _executor(), functools.partial(function, *args, **kwargs)
    )


async def in_thread(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Run a blocking `function` in a thread. When cancelled, wait for it to end first, then pass that on.

    A container that was being made while its caller was cancelled is known to that caller's clean-up this way.
    """
    running = begin(function, *args, **kwargs)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()
        raise


def from_thread(report: Report) -> Report:
    """`report`, callable from a thread: each line is handed to the event loop that is running now."""
    loop = asyncio.get_running_loop()

    def say(line: str) -> None:
        with suppress(RuntimeError):  # the loop is gone: nobody listens any more
            loop.call_soon_threadsafe(report, line)

    return say
