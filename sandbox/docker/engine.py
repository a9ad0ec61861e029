"""The connection to the Docker engine, and the advice for a person when there is none.

The engine's client blocks, so code on the event loop calls it through `sandbox.threads`.
"""

from __future__ import annotations

import os
import socket

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

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

DEFAULT = "/var/run/docker.sock"

EngineFailure = (DockerException, RequestException)
"""The exceptions of the engine's client: its own, and those of the HTTP library below it."""


def connect(timeout: int = 60) -> docker.DockerClient:
    """Connect to the engine that DOCKER_HOST or the default socket names. Blocks; `timeout` in seconds per request.

    Raises:
        SandboxUnavailable: no engine answers, or it refuses us.
    """
    knock()
    try:
        return docker.DockerClient.from_env(version="auto", timeout=timeout, max_pool_size=MOST)
    except EngineFailure as error:
        raise SandboxUnavailable(NO_ENGINE) from error


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
    except OSError as error:
        raise SandboxUnavailable(NO_ENGINE) from error
