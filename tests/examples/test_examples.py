"""The recorded examples: they verify, show what they promise, and can be viewed without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from iact.core.errors import IactError
from iact.core.journal import read_journal
from iact.core.records.record import Record, blobs_of
from iact.core.stored.replay import replay
from iact.examples import EXAMPLES, HERE, Example
from tests.acceptance.conftest import Stage, stage
from tests.acceptance.product import NO_MODULES, acknowledged
from tests.acceptance.test_browser import page_of

__all__ = ["stage"]

AGAIN: Final = (
    "If a prompt, a label or a rule was changed on purpose, record the examples anew with: make examples"
)

LARGEST: Final = 2_000_000
"""Bytes of all of them; they come with every installation."""


def _named(one: Example) -> str:
    return one.name


@pytest.mark.parametrize("example", EXAMPLES, ids=_named)
def test_an_example_verifies(example: Example) -> None:
    try:
        replay(example.folder, verify=True)
    except IactError as error:
        pytest.fail(f"The example {example.name} does not verify: {error} {AGAIN}")


@pytest.mark.parametrize("example", EXAMPLES, ids=_named)
def test_all_of_an_example_is_there_and_nothing_else(example: Example) -> None:
    wanted = {digest for record in read_journal(example.folder).records for digest in blobs_of(record)}
    assert {path.name for path in example.folder.glob("blobs/*")} == wanted
    assert {path.name for path in example.folder.iterdir()} <= {"journal.md", "blobs"}


def test_together_they_are_small() -> None:
    files = [path for one in EXAMPLES for path in one.folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST


def test_every_folder_is_an_example() -> None:
    assert {path.parent.name for path in HERE.glob("*/journal.md")} == {one.name for one in EXAMPLES}


# --- what each of them promises -----------------------------------------------------------------------


def _paths(records: Sequence[Record]) -> set[str]:
    return {one.agent for one in records}


def _results(records: Sequence[Record], function: str) -> list[Record]:
    return [one for one in records if one.kind == "result" and one.text("function") == function]


def _research(records: Sequence[Record]) -> bool:
    """Three children were at work before the first of them replied."""
    spawned = [one.n for one in records if one.kind == "spawn" and one.agent.count("/") == 1]
    replied = [one.n for one in records if one.kind == "reply" and one.agent != "/"]
    return len(spawned) == 3 and max(spawned) < min(replied) and "/lzma/checker" in _paths(records)


def _analysis(records: Sequence[Record]) -> bool:
    """Three charts were drawn, and all are in the answer."""
    pictures = [one for one in records if one.kind == "result" and one.text("media") == "image/png"]
    answer = next(one.body for one in records if one.kind == "reply" and one.agent == "/")
    return len(pictures) == 3 and answer.count("](") == 3


def _cleaned(records: Sequence[Record]) -> bool:
    """What one run defined the next one found; two figures are in the answer, and the report's numbers are what was counted."""
    first, second = _results(records, "python.run")
    answer = next(one.body for one in records if one.kind == "reply" and one.agent == "/")
    written = next(one.body for one in records if one.kind == "turn" and "path=report.md" in one.body)
    counted = dict(re.findall(r"'([a-zA-Z ]+)': (\d+)", second.body))
    checked = _results(records, "sql.query")[-1].body
    return (
        "NameError" not in second.body + first.body
        and answer.count("](") == 2
        and all(number in written for number in counted.values())
        and len(counted) == 5
        and checked.count("| True |") == 3
    )


def _bugfix(records: Sequence[Record]) -> bool:
    """Red, then green, and the reviewer did nothing that writes."""
    runs = [one.body for one in _results(records, "shell.run") if "Ran " in one.body]
    impacts = [one.number("impact") for one in records if one.kind == "gate" and one.agent == "/reviewer"]
    return "FAILED" in runs[0] and runs[-1].endswith("OK\n") and set(impacts) == {0}


def _service(records: Sequence[Record]) -> bool:
    """Its tests failed and passed, and what was tested is served, at the address that the answer names."""
    runs = [one.body for one in _results(records, "shell.run")]
    (served,) = _results(records, "app.serve")
    data = served.fields["data"]
    return (
        len(runs) == 2
        and "sqlite3.OperationalError" in runs[0]
        and runs[1].endswith("OK\n")
        and isinstance(data, dict)
        and str(data["url"]) in [one.body for one in records if one.kind == "reply"][-1]
    )


def _plan(records: Sequence[Record]) -> bool:
    """The call that sends was asked about, and made after the answer."""
    asked = [one.n for one in records if one.kind == "clearance"]
    sent = _results(records, "notices.send")
    return len(asked) == 2 and len(sent) == 1 and sent[0].text("status") == "ok" and asked[-1] < sent[0].n


def _module(records: Sequence[Record]) -> bool:
    """The first version failed; the second served both agents."""
    checks = _results(records, "ean.check")
    return checks[0].text("status") == "error" and {
        one.agent for one in checks if one.text("status") == "ok"
    } == {
        "/",
        "/auditor",
    }


def _correction(records: Sequence[Record]) -> bool:
    """What was stopped was thrown away."""
    modes = [one.text("mode") for one in records if one.kind == "control" and one.text("op") == "inject"]
    left = [one.agent for one in records if one.kind == "discard"]
    return modes == ["interrupt", "deliver"] and left == ["/editor/writer"]


def _asked(records: Sequence[Record], plan: str = "/plan") -> list[str]:
    """The kinds of the questions about a plan, in order."""
    return [one.text("question") for one in records if one.kind == "ask" and one.agent == plan]


def _ends(records: Sequence[Record], plan: str) -> dict[str, tuple[str, int]]:
    """How each step of a plan ended, at which attempt."""
    changes = [one for one in records if one.kind == "node" and one.agent == plan]
    return {one.text("node"): (one.text("to"), one.number("attempt")) for one in changes}


def _meeting(records: Sequence[Record]) -> bool:
    """Only what the person wanted was booked, and the invitations went out after their yes."""
    booked = [one.body for one in _results(records, "meetings.create")]
    ends = _ends(records, "/plan")
    return (
        len(booked) == 1
        and "2026-05-06T14:00" in booked[0]
        and ends["interjection-1"][0] == "executed"
        and ends["event"][0] == ends["invitations"][0] == "cancelled"
        and "Invited" in _results(records, "meetings.invite")[0].body
    )


def _harness(records: Sequence[Record]) -> bool:
    """One mend was enough: the other was dropped with its copy of the workspace, and no model was asked about it."""
    ends = _ends(records, "/logout")
    executed = {"search_auth", "search_utils", "read_auth", "read_utils", "analyze", "fix_b", "run_tests"}
    return (
        {one for one, (state, _) in ends.items() if state == "executed"}
        == {*executed, "update_docs", "report"}
        and ends["fix_a"] == ("skipped", 1)
        and [one.text("node") for one in records if one.kind == "copy" and one.text("version")] == ["fix_b"]
        and not _asked(records, "/logout")
        and any("OK" in one.body for one in _results(records, "shell.run"))
    )


def _rounds(records: Sequence[Record]) -> bool:
    """The first question took two rounds, the second was given up after one."""
    ends = [one.text("plan") for one in records if one.kind == "reply" and one.agent.startswith("/plan")]
    first, second = (_asked(records, one).count("analyze") for one in ("/plan", "/plan-2"))
    return ends == ["concluded", "partial"] and (first, second) == (2, 1)


def _profiled(records: Sequence[Record]) -> bool:
    """Three calls; a branch took the median, a recovery found the file, the repair the warmest month."""
    results = [one.body for one in _results(records, "shell.run")]
    return (
        _asked(records) == ["profile", "repair", "reason"]
        and any(one.startswith("median") for one in results)
        and {one.text("what") for one in records if one.text("op") == "rule"} == {"branch", "recovery"}
        and any(one.startswith("2025-07 27.1") for one in results)
    )


PROMISES: Final[dict[str, Callable[[Sequence[Record]], bool]]] = {
    "research": _research,
    "analysis": _analysis,
    "cleaned": _cleaned,
    "bugfix": _bugfix,
    "service": _service,
    "plan": _plan,
    "meeting": _meeting,
    "harness": _harness,
    "rounds": _rounds,
    "profiled": _profiled,
    "module": _module,
    "correction": _correction,
}


@pytest.mark.parametrize("example", EXAMPLES, ids=_named)
def test_an_example_shows_what_it_promises(example: Example) -> None:
    assert PROMISES[example.name](read_journal(example.folder).records)


# --- for somebody without a model ---------------------------------------------------------------------


def test_an_example_is_named_on_the_command_line(stage: Stage) -> None:
    product = stage.product(None, **NO_MODULES)
    ran = product.run("replay", "research", "--verify", "--json")
    assert ran.status == 0, ran
    assert json.loads(ran.stdout)["verified"] is True


def test_a_folder_of_that_name_without_a_journal_does_not_hide_it(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(None, **NO_MODULES)
    (product.data.parent / "research").mkdir()
    assert product.run("replay", "research").status == 0


def to_the_end(page: Page) -> None:
    """An example is told from where its person first says something; here it is wanted whole."""
    expect(page.locator(".entry.incoming").first).to_be_visible()
    expect(page.locator("[data-role=replay-total]")).not_to_contain_text("loaded")
    page.locator("[data-role=replay-last]").click()


def test_the_first_page_leads_to_them(stage: Stage) -> None:
    """No model, no session, no sandbox: the list, a picture in a dialogue and in its own dialog, and the way back."""
    product = stage.product(None, **NO_MODULES)
    with product.serving() as server, page_of(server) as page:
        listed = page.locator("[data-role=dialogue] .examples button")
        expect(listed).to_have_count(len(EXAMPLES))
        listed.filter(has_text="Data with plots").click()
        expect(page.locator("[data-role=model]")).to_contain_text("no live model")
        to_the_end(page)
        picture = page.locator(".entry[data-kind=reply][data-agent='/'] img.picture").first
        expect(picture).to_have_js_property("naturalWidth", 640)
        expect(picture).to_have_attribute("alt", "Every day, as the counter has them")

        page.get_by_role("tab", name="Variables").click()
        page.get_by_role("button", name="$line_1", exact=True).click()
        expect(page.locator("[data-role=variable-content] img.picture")).to_be_visible()
        page.keyboard.press("Escape")

        page.get_by_role("button", name="Close", exact=True).and_(
            page.locator("[data-role=replay-close]")
        ).click()
        expect(listed).to_have_count(len(EXAMPLES))
        page.locator("[data-role=sessions]").click()
        page.get_by_text("Recorded examples").click()
        page.locator("[data-role=sessions-examples] button").filter(has_text="mid-flight").click()
        expect(page).to_have_url(re.compile("#replay:correction$"))
        to_the_end(page)
        page.get_by_role("tab", name="Agents").click()
        expect(page.locator("[data-role=tree]")).to_contain_text("writer")
    assert not product.journals(), "looking makes no session"


def test_what_a_profile_came_to_is_told_beside_its_plan(stage: Stage) -> None:
    product = stage.product(None, **NO_MODULES)
    with product.serving() as server, page_of(server) as page:
        page.locator("[data-role=dialogue] .examples button").filter(has_text="Three calls").click()
        to_the_end(page)
        page.locator("[data-role=tree] [role=treeitem]").filter(has_text="plan").last.click()
        page.get_by_role("tab", name="Plan").click()
        facts = page.locator(".plan-facts")
        for told in (
            "so the plan ran with its rules",
            "Branched by rule",
            "Tried again by rule",
            "the plan was repaired once",
            "1, sound",
        ):
            expect(facts).to_contain_text(told)


def test_an_example_is_gone_on_with_in_a_fork(stage: Stage) -> None:
    """Whoever has a model can ask on, with their own; the example stays as it is."""
    before = (HERE / "research" / "journal.md").read_bytes()
    last = read_journal(HERE / "research").records[-1].n
    endpoint = stage.endpoint({"/": ["Because of the window size."]})
    product = stage.product(endpoint, **NO_MODULES)
    with product.serving() as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": None, "since": 0})
        acknowledged(socket, {"type": "open", "journal": "research"})
        acknowledged(socket, {"type": "fork", "at": last, "text": "Why is lzma behind?"})
        while True:
            frame = json.loads(socket.recv(timeout=300))
            if frame.get("type") == "record" and frame["n"] > last and frame["kind"] == "reply":
                break
    assert frame["body"] == "Because of the window size."
    assert (HERE / "research" / "journal.md").read_bytes() == before
