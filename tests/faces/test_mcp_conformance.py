"""The results of the official conformance suite (`@modelcontextprotocol/conformance` 0.2.0-alpha.12) for
`iact serve --faces` over HTTP, for both revisions that the suite has requirements for.

Most of its scenarios call tools, resources and prompts of a server that is written for the suite. Failures of these
scenarios say nothing about this product. The test recognizes them by their messages.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Final

import pytest
from pydantic import BaseModel, TypeAdapter

from tests.acceptance.mcp_client import connected_by_http
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_a2a import key_of, serving
from tests.endpoint import Endpoint
from tests.faces.conformance import GUIDES, assert_has, assert_names
from tests.faces.relay import relayed
from tests.node import FOLDER, NODE

SUITE: Final = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

WHOLE: Final = {
    "2025-11-25": {
        "server-initialize": 3,
        "ping": 2,
        "tools-list": 3,
        "resources-list": 2,
        "server-sse-multiple-streams": 2,
        "dns-rebinding-protection": 2,
        "server-session-lifecycle": 3,
    },
    "2026-07-28": {
        "tools-list": 3,
        "resources-list": 2,
        "sep-2164-resource-not-found": 3,
        "server-sse-multiple-streams": 1,
        "dns-rebinding-protection": 2,
        "http-header-validation": 14,
        "input-required-result-ignore-extra-params": 1,
        "input-required-result-missing-input-response": 1,
        "input-required-result-unsupported-methods": 2,
        "input-required-result-validate-input": 3,
    },
}
"""Scenarios in which nothing fails, with how many checks pass."""

PARTLY: Final[dict[str, dict[str, int]]] = {
    "2025-11-25": {},
    "2026-07-28": {"server-stateless": 21, "caching": 7},
}
"""Those in which much passes, and what fails is not offered or not there to be tried."""

NOT_OFFERED: Final = {
    "logging-set-level",  # deprecated in revision 2026-07-28; progress says what happens
    "tools-call-with-logging",
    "completion-complete",  # ids of sessions come from the list of resources
    "resources-subscribe",  # revision 2026-07-28 has subscriptions/listen in its place, which we don't offer either
    "resources-unsubscribe",
    "prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource",
    "prompts-get-with-image", "sep-2549-prompts-list-caching-hints", "sep-2322-non-tool-incomplete",  # we have no prompts
}  # fmt: skip
"""Checks of what we don't offer, and don't claim to: none of it is in our capabilities."""

FIXTURE: Final = re.compile(
    r"There is no (tool|resource) '|^Not testable: |^Tool 'json_schema_2020_12_tool' not found"
    r"|^routing-task fixture from Check 2 unavailable|^tools/call for failing_job returned error code -32602"
    r"|^Expected InputRequiredResult|^Prerequisite failed: "
)
"""What a check says that needs the suite's own tools and resources: not applicable."""
METHOD: Final = "Method not found"

TOTAL: Final = {"2025-11-25": (42, 10, 15), "2026-07-28": (103, 8, 56)}
"""How many checks pass, fail for what is not offered, and fail for what is the suite's own, of all scenarios."""


class Check(BaseModel):
    """What one check found."""

    id: str
    status: str
    errorMessage: str = ""


def found_in(folder: Path) -> dict[str, list[Check]]:
    """What was written for each scenario."""
    checks = TypeAdapter(list[Check])
    return {
        re.sub(r"^server-(.+)-\d{4}-\d\d-\d\dT.*$", r"\1", one.parent.name): checks.validate_json(
            one.read_bytes()
        )
        for one in folder.glob("*/checks.json")
    }


@pytest.mark.parametrize("revision", WHOLE)
async def test_what_passes_of_the_suites_server_scenarios(tmp_path: Path, revision: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with Endpoint({"/": ["There is a session now."]}) as endpoint:
        product = Product.at(data, endpoint, **NO_MODULES)
        with serving(product) as url:
            async with connected_by_http(url, key_of(product)) as on:
                await on.client.call_tool("iact_ask", {"task": "Begin."})
            async with relayed(url, key_of(product)) as relay:
                process = await asyncio.create_subprocess_exec(
                    NODE, str(SUITE), "server", "--url", f"{relay}/mcp", "--requirements", revision,
                    "--timeout", "300000", "-o", str(tmp_path / "found"),
                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                )  # fmt: skip
                printed, _ = await process.communicate()
    found = found_in(tmp_path / "found")
    passed = {name: [one.status for one in checks].count("SUCCESS") for name, checks in found.items()}
    failed = {name: [one for one in checks if one.status == "FAILURE"] for name, checks in found.items()}
    said = (
        json.dumps({name: [str(one) for one in checks] for name, checks in failed.items()}) + printed.decode()
    )
    whole = {name: passed[name] for name, checks in failed.items() if not checks and passed[name]}
    assert whole == WHOLE[revision], said
    assert {name: passed[name] for name in PARTLY[revision]} == PARTLY[revision], said
    lacking = [one for checks in failed.values() for one in checks if one.id in NOT_OFFERED]
    others = [one for checks in failed.values() for one in checks if one.id not in NOT_OFFERED]
    assert all(METHOD in one.errorMessage for one in lacking), said
    assert all(FIXTURE.search(one.errorMessage) for one in others), said
    assert (sum(passed.values()), len(lacking), len(others)) == TOTAL[revision], said


def table() -> str:
    """As the guide has it."""
    kinds = (
        "checks that pass",
        "checks that fail because they call tools and resources that only the suite's own server has",
        "checks that fail because they need what iact does not offer: prompts, completion, logging levels, subscriptions",
        "checks that fail for other reasons",
    )
    counted = [(passed, foreign, lacking, 0) for passed, lacking, foreign in TOTAL.values()]
    lines = [f"| | {' | '.join(TOTAL)} |", f"|---|{'---|' * len(TOTAL)}"]
    lines += [
        f"| {what} | {' | '.join(str(one) for one in numbers)} |"
        for what, *numbers in zip(kinds, *counted, strict=True)
    ]
    return "\n".join(lines)


def test_the_guide_says_what_passes() -> None:
    assert_has("mcp-server.md", table())
    told = (GUIDES / "mcp-server.md").read_text(encoding="utf-8")
    for scenarios in WHOLE.values():
        for name in scenarios:
            assert f"`{name.removeprefix('input-required-result-')}`" in told
    for name, passed in PARTLY["2026-07-28"].items():
        assert re.search(rf"`{name}`:? {passed} (checks )?pass", told)
    assert_names("mcp-server.md", "@modelcontextprotocol/conformance")
