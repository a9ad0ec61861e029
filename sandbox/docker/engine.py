"""The connection to the Docker engine, and the advice for a person when there is none.

The engine's client blocks, so code on the event loop calls it through `sandbox.threads`.
"""

from __future__ import annotations

import os
import socket

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException, Timeout

from iact.core.errors import SandboxUnavailable
from iact.sandbox.threads import MOST

NO_ENGINE = (
    "No Docker engine answers, so tools can't run; install and start one with "
    "`sudo apt-get install docker.io` (or run `make setup` as root)."
)
NO_RIGHTS = (
    "The Docker engine refuses this user, so tools can't run; "
    'run `sudo usermod -aG docker "$USER"` and log in again.'
)
SILENT = (
    "The Docker engine takes connections but does not answer, so tools can't run; restart it with "
    "`sudo systemctl restart docker` or `sudo service docker restart`."
)

DEFAULT = "/var/run/docker.sock"

EngineFailure = (DockerException, RequestException)
"""The exceptions of the engine's client: its own, and those of the HTTP library below it."""


_ANSWERS_WITHIN = 10
"""Seconds in which an engine must answer the first request. It needs milliseconds."""


def connect(timeout: int = 60) -> docker.DockerClient:
    """Connect to the engine that DOCKER_HOST or the default socket names. Blocks; `timeout` in seconds per request.

    Raises:
        SandboxUnavailable: no engine answers, or it refuses us.
    """
    knock()
    first = min(timeout, _ANSWERS_WITHIN)
    try:
        client = docker.DockerClient.from_env(version="auto", timeout=first, max_pool_size=MOST)
    except EngineFailure as error:
        raise SandboxUnavailable(advice(error)) from error

    client.api.timeout = timeout
    return client


def advice(error: BaseException) -> str:
    """What a person is told about an engine that failed with `error`: whether there is none, or one that hangs."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Timeout):
            return SILENT
        cause = cause.__cause__ or cause.__context__
    return NO_ENGINE


def knock() -> None:
    """Check that an engine listens where it should. Blocks, but takes almost no time if it does.

    Called before anything that may find the engine gone: its client wraps that in several layers of errors, and leaves
    a socket open.

    Raises:
        SandboxUnavailable: nothing listens, or it refuses us.
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
    except TimeoutError as error:
        raise SandboxUnavailable(SILENT) from error
    except OSError as error:
        raise SandboxUnavailable(NO_ENGINE) from error
