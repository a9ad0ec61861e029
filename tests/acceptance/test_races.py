"""Races of steps that write, through the command line, the page and real containers: each in a copy of the workspace.

Two candidates write the same file. The winner's version is in the workspace and the other version is nowhere. This also
holds after `kill -9`, in a fork, and if another writer changed the file meanwhile.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import kill, until
from tests.acceptance.test_browser import page_of
from tests.acceptance.test_parallel import Planned, shell
from tests.acceptance.test_plans import answered, plan, replayed, states
from tests.acceptance.test_scenes import Spoken, served, speak, wake
from tests.endpoint import Request
from tests.rounds import short

Json = dict[str, object]
_LONG = 300.0
"""Seconds of patience where a container must start first."""

RACE: list[Json] = [
    shell("before", "echo old > old; echo kept > kept"),
    shell("slow", "echo slow >> note; mkdir -p left; echo slow > left/slow; sleep 600", after=["before"]),
    shell("quick", "cat old; echo quick >> note; rm old", after=["before"]),
    shell("then", "cat note; ls -R > seen", after=["slow", "quick"], join="any_of"),
]
HELD = "echo {0} >> note; echo {0} > {0}; until [ -e go ]; do sleep 0.05; done; rm go"
"""Writes in its copy, and waits there."""


def planned(head: str = "PLAN audit") -> str:
    steps = [
        shell("one", HELD.format("one")),
        shell("two", HELD.format("two")),
        shell("then", "cat note > seen", after=["one", "two"], join="any_of"),
    ]
    return plan(*map(json.dumps, steps), head=head)


def files(workspace: Path) -> dict[str, str]:
    found = [one for one in workspace.rglob("*") if one.is_file()]
    return {str(one.relative_to(workspace)): one.read_text() for one in found}


def told(records: list[Record], op: str) -> list[Record]:
    return [one for one in records if one.kind == "copy" and one.text("op") == op]


def copy_of(spoken: Spoken, step: str, *but: Path) -> Path:
    """The copy in which a step works now, which is none of those it had before."""
    found: list[Path] = []

    def there() -> bool:
        found[:] = [
            one.parent for one in (spoken.folder / "copies").glob(f"*/{step}") if one.parent not in but
        ]
        return bool(found)

    until(there, f"the copy of {step}", within=_LONG)
    return found[0]


def answer(request: Request) -> str:
    if not request.agent:
        return "no"
    return planned() if request.turn == 0 else "It is over."


@pytest.mark.parametrize("backend", short(["docker"], of=["docker", "bubblewrap"]))
def test_the_winners_copy_becomes_the_workspace(stage: Stage, backend: str) -> None:
    product = stage.product(stage.endpoint({}), IACT_SANDBOX=backend)
    ran = Planned(product, stage.folder, RACE)
    assert ran.states == {"before": "executed", "slow": "skipped", "quick": "executed", "then": "executed"}
    assert ran.output("quick") == "old\n", "a copy holds what stood in the workspace"
    assert ran.output("then") == "quick\n", "what comes behind the race meets what the winner wrote"
    found = files(ran.workspace)
    assert "slow" not in found.pop("seen")
    assert found == {"note": "quick\n", "kept": "kept\n"}
    assert not (ran.journal.parent / "copies").exists()
    assert product.containers() == []
    records = list(read_journal(ran.journal).records)
    assert [one.text("node") for one in told(records, "make")] == ["quick", "slow"]
    session = ran.journal.parent.name
    listed = json.loads(product.run("workspace", "log", "--session", session, "--json").stdout)
    assert [one["what"] for one in listed] == ["shell.run", "the copy of quick", "shell.run"]


def test_they_run_at_once_and_a_person_in_between_is_not_overwritten(stage: Stage) -> None:
    """The page says who won. What somebody else changed meanwhile stays, and the step that met it is tried again."""
    product = stage.product(stage.endpoint(answer))
    with served(product) as server, page_of(server) as page:
        page.locator("#composer-text").fill("Go.")
        page.keyboard.press("Enter")
        until(lambda: bool(product.journals()), "the session")
        (journal,) = product.journals()
        spoken = Spoken(product, journal.parent.name)
        one, two = copy_of(spoken, "one"), copy_of(spoken, "two")
        assert (one / "note").read_text() == "one\n"
        assert (two / "note").read_text() == "two\n"
        assert not (spoken.workspace / "note").exists()
        page.locator('[data-path="/audit"] > .node').click()
        page.get_by_role("tab", name="Plan").click()
        steps = page.locator("#inspector-panel").get_by_role("list", name="Steps").locator("li")
        expect(steps.filter(has_text="one").first).to_contain_text(
            "It races other steps, in a copy of the workspace."
        )
        (spoken.workspace / "note").write_text("mine\n")
        (one / "go").touch()
        met = spoken.wait_for("copy", "/audit", op="take")
        assert (met.text("version"), met.fields["conflicts"]) == ("", ["note"])
        assert files(spoken.workspace) == {"note": "mine\n"}
        again = copy_of(spoken, "one", one)
        assert (again / "note").read_text() == "mine\none\n", "its next copy has what met it"
        (again / "go").touch()
        answered(spoken)
        expect(steps.filter(has_text="one").first).to_contain_text("It won the race")
        expect(steps.filter(has_text="two").first).to_contain_text("It lost the race to one")
    assert files(spoken.workspace) == {"note": "mine\none\n", "one": "one\n", "seen": "mine\none\n"}
    assert not (spoken.folder / "copies").exists()
    assert states(replayed(product, spoken.folder)) == {
        "one": "executed",
        "two": "skipped",
        "then": "executed",
    }


def test_a_race_goes_on_after_a_kill_and_in_a_fork(stage: Stage) -> None:
    """What ran in copies when the server was killed is run again: nothing had come of it."""
    product = stage.product(stage.endpoint(answer, crashes=True))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        old = copy_of(spoken, "one"), copy_of(spoken, "two")
        assert kill(server.process)
    assert files(spoken.workspace) == {}
    at = spoken.records()[-1].n
    forked = json.loads(
        product.run("journal", "fork", str(spoken.folder), "--at", str(at), "--run", "--json").stdout
    )
    fork = Spoken(product, str(forked["session"]))
    with served(product) as server:
        for each in (spoken, fork):
            wake(each, server)
            copy_of(each, "one", *old)
            (copy_of(each, "two", *old) / "go").touch()
            answered(each)
            assert files(each.workspace) == {"note": "two\n", "two": "two\n", "seen": "two\n"}
            found = states(replayed(product, each.folder))
            assert (found["two"], found["one"]) == ("executed", "skipped")


GIT = """\
#!/bin/sh
case " $* " in *" cat-file "*)
  if [ -e {hold} ]; then touch {held}; while [ -e {hold} ]; do sleep 0.05; done; fi;;
esac
exec {git} "$@"
"""


def test_a_winner_is_taken_over_after_a_kill_that_came_before(stage: Stage) -> None:
    """The server is killed when the winner is known and nothing of its copy stands in the workspace."""
    bin, hold, held = stage.folder / "bin", stage.folder / "hold", stage.folder / "held"
    bin.mkdir()
    git = next(place for one in os.environ["PATH"].split(":") if (place := Path(one) / "git").exists())
    (bin / "git").write_text(GIT.format(hold=hold, held=held, git=git))
    (bin / "git").chmod(0o755)
    product = stage.product(stage.endpoint(answer, crashes=True), PATH=f"{bin}:{os.environ['PATH']}")
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        copy_of(spoken, "two")
        hold.touch()  # the next that git is to give out is what the winner wrote
        (copy_of(spoken, "one") / "go").touch()
        until(held.exists, "the taking over")
        assert kill(server.process)
    assert not told(spoken.records(), "take")
    assert files(spoken.workspace) == {}
    hold.unlink()
    calls = [one.n for one in spoken.records() if one.kind == "call" and one.agent == "/audit"]
    with served(product) as server:
        wake(spoken, server)
        answered(spoken)
    assert files(spoken.workspace) == {"note": "one\n", "one": "one\n", "seen": "one\n"}
    (taken,) = told(spoken.records(), "take")
    assert taken.number("call") in calls, "what had been done is not done again"
    assert states(replayed(product, spoken.folder)) == {
        "one": "executed",
        "two": "skipped",
        "then": "executed",
    }


def test_writers_race_in_a_profile_as_well(stage: Stage) -> None:
    """Profile-Then-Reason, whose steps somebody else wrote: the profile, the race in copies, the report."""

    def about(request: Request) -> str:
        if request.agent:
            return planned("PLAN audit mode=profile") if request.turn == 0 else "It is over."
        return '{"confidence": 0.9}' if "where it may break" in request.last else "One it is. [one]"

    product = stage.product(stage.endpoint(about))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        copy_of(spoken, "two")
        (copy_of(spoken, "one") / "go").touch()
        answered(spoken)
    assert files(spoken.workspace) == {"note": "one\n", "one": "one\n", "seen": "one\n"}
    assert states(replayed(product, spoken.folder))["two"] == "skipped"


def test_what_cannot_be_undone_is_not_raced_and_a_live_directory_is_written_in_turn(stage: Stage) -> None:
    mine = stage.folder / "mine"
    mine.mkdir()
    steps = [shell("one", "echo one >> note"), shell("two", "echo two >> note")]
    steps.append(shell("then", "cat note", after=["one", "two"], join="any_of"))
    refused = [{**steps[0], "impact": 2}, *steps[1:]]

    def about(request: Request) -> str:
        return plan(*map(json.dumps, (refused, steps)[request.turn])) if request.turn < 2 else "Done."

    endpoint = stage.endpoint(about)
    product = stage.product(endpoint)
    done = product.ask("Go.", "--workspace", str(mine))
    assert done.reply == "Done."
    assert "what can't be undone is not raced" in endpoint.requests[1].last
    assert states(replayed(product, done.journal)) == {
        "one": "executed",
        "two": "skipped",
        "then": "executed",
    }
    assert (mine / "note").read_text() == "one\n"
    assert not told(done.records, "make")
    fired = [one.text("node") for one in done.records if one.kind == "fire"]
    assert fired == ["one", "then"], "the other's turn never came"
