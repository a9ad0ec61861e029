"""What the official conformance suite (`@modelcontextprotocol/conformance` 0.2.0-alpha.12) says of our module `mcp` as a client.

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

from tests.faces.conformance import assert_has
from tests.node import FOLDER, NODE
from tests.rounds import LONG

ROOT: Final = Path(__file__).parents[2]
SUITE: Final = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

CORE: Final = {
    "initialize": (1, 0),
    "tools_call": (2, 0),
    "sse-retry": (3, 0),
    "request-metadata": (6, 0),
    "http-standard-headers": (3, 0),
    "http-custom-headers": (18, 0),
    "http-invalid-tool-headers": (12, 0),
    "json-schema-ref-no-deref": (1, 0),
    "elicitation-sep1034-client-defaults": (5, 0),
    "sep-2322-client-request-state": (5, 0),
    # It wants a tool's schema back, as the server sent it, in a call: our client calls, and echoes nothing.
    "json-schema-2020-12-preservation": (2, 1),
}
"""Passed and failed checks."""

SKILLS: Final = {
    "sep-2640-client-no-prefetch": (0, 0),
    "sep-2640-client-verify-digest": (0, 0),
    "sep-2640-client-verify-size": (0, 0),
    "sep-2640-client-verify-frontmatter": (0, 0),
}
"""Skills that a server offers: an extension that the module does not have, so there is nothing to check."""

NO_OAUTH: Final = {
    "auth/metadata-default": (0, 7),
    "auth/metadata-var1": (0, 7),
    "auth/metadata-var2": (0, 6),
    "auth/metadata-var3": (0, 6),
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
    "auth/resource-mismatch": (0, 1),
    "auth/offline-access-scope": (0, 1),
    "auth/offline-access-not-supported": (0, 1),
    "auth/authorization-server-migration": (2, 1),
    "auth/iss-supported": (0, 1),
    "auth/iss-not-advertised": (0, 1),
    "auth/iss-supported-missing": (0, 1),
    "auth/iss-wrong-issuer": (0, 1),
    "auth/iss-unexpected": (0, 1),
    "auth/iss-normalized": (0, 1),
    "auth/metadata-issuer-mismatch": (0, 1),
    "auth/client-credentials-jwt": (0, 1),
    "auth/client-credentials-basic": (0, 1),
    "auth/enterprise-managed-authorization": (0, 2),
    "auth/dpop": (0, 3),
    "auth/dpop-nonce": (0, 5),
    "auth/wif-jwt-bearer": (0, 1),
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
    assert set(re.findall(r"^  - (\S+)", listed, re.MULTILINE)) == {*CORE, *SKILLS, *NO_OAUTH}


@pytest.mark.parametrize("scenario", [*CORE, *([*SKILLS, *NO_OAUTH] if LONG else ["auth/metadata-default"])])
def test_what_passes_of_a_client_scenario(scenario: str) -> None:
    command = f"{sys.executable} -m tests.ext_modules.mcp_conformance_client"
    printed = suite("client", "--command", command, "--scenario", scenario, "--timeout", "300000")
    found = _RESULT.search(printed)
    assert found is not None, printed
    assert (int(found[1]), int(found[2])) == {**CORE, **SKILLS, **NO_OAUTH}[scenario], printed


def table() -> str:
    """As the guide has it."""
    lines = ["| scenarios of a client | | checks that pass | that fail | why |", "|---|---|---|---|---|"]
    for what, scenarios, why in (
        (
            "of the protocol",
            CORE,
            "`json-schema-2020-12-preservation` expects a tool's schema to be sent back in a call",
        ),
        ("of sign-in by OAuth", NO_OAUTH, "the module does not sign in anywhere; a key is a secret"),
        (
            "of skills that a server offers",
            SKILLS,
            "an extension that is not supported, so nothing is checked",
        ),
    ):
        passed, failed = (sum(one[place] for one in scenarios.values()) for place in (0, 1))
        lines.append(f"| {what} | {len(scenarios)} | {passed} | {failed} | {why} |")
    return "\n".join(lines)


def test_the_guide_says_what_passes() -> None:
    assert_has("mcp.md", table())
