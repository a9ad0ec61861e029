"""What the official conformance suite (`@modelcontextprotocol/conformance` 0.1.16) says of our module `mcp` as a client.

Each scenario is a server of the suite's, which looks at what our client sends. Those about OAuth start a process each to
come to nothing, so they are all run with the long tests alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.node import FOLDER, NODE
from tests.rounds import LONG

ROOT: Final = Path(__file__).parents[2]
SUITE: Final = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

CORE: Final = {
    "initialize": (1, 0),
    "tools_call": (1, 0),
    "sse-retry": (3, 0),
    # A call of a module has no way to ask a person: elicitation is not declared, and the server says so.
    "elicitation-sep1034-client-defaults": (0, 6),
}
"""Passed and failed checks."""

NO_OAUTH: Final = {
    "auth/metadata-default": (0, 5),
    "auth/metadata-var1": (0, 5),
    "auth/metadata-var2": (0, 4),
    "auth/metadata-var3": (0, 4),
    "auth/basic-cimd": (0, 1),
    "auth/scope-from-www-authenticate": (0, 1),
    "auth/scope-from-scopes-supported": (0, 1),
    "auth/scope-omitted-when-undefined": (0, 1),
    "auth/scope-step-up": (0, 2),
    "auth/scope-retry-limit": (0, 1),
    "auth/token-endpoint-auth-basic": (0, 3),
    "auth/token-endpoint-auth-post": (0, 3),
    "auth/token-endpoint-auth-none": (0, 3),
    "auth/pre-registration": (0, 1),
    "auth/2025-03-26-oauth-metadata-backcompat": (0, 4),
    "auth/2025-03-26-oauth-endpoint-fallback": (0, 3),
    "auth/resource-mismatch": (1, 0),  # passes since nothing is asked for where it must not be
    "auth/offline-access-scope": (0, 1),
    "auth/offline-access-not-supported": (0, 1),
    "auth/client-credentials-jwt": (0, 1),
    "auth/client-credentials-basic": (0, 1),
    "auth/cross-app-access-complete-flow": (0, 2),
}
"""A module signs in nowhere: what it may reach without is all that it reaches, and a key is a secret in its environment."""

_RESULT: Final = re.compile(r"^Passed: (\d+)/\d+, (\d+) failed", re.MULTILINE)


def suite(*arguments: str) -> str:
    """What the suite prints."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [NODE, str(SUITE), *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


def test_every_scenario_of_the_suite_is_named() -> None:
    listed = suite("list", "--client")
    assert set(re.findall(r"^  - (\S+)", listed, re.MULTILINE)) == {*CORE, *NO_OAUTH}


@pytest.mark.parametrize(
    "scenario", [*CORE, *(NO_OAUTH if LONG else ["auth/metadata-default", "auth/resource-mismatch"])]
)
def test_what_passes_of_a_client_scenario(scenario: str) -> None:
    command = f"{sys.executable} -m tests.ext_modules.mcp_conformance_client"
    printed = suite("client", "--command", command, "--scenario", scenario, "--timeout", "120000")
    found = _RESULT.search(printed)
    assert found is not None, printed
    assert (int(found[1]), int(found[2])) == {**CORE, **NO_OAUTH}[scenario], printed
