"""What a person stops has stopped: a fork before a call does not make it."""

from __future__ import annotations

from dataclasses import replace

from core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.test_control import shell


def test_a_fork_before_a_command_does_not_run_it_unless_that_is_asked_for(stage: Stage) -> None:
    """`iact journal fork --at N --say TEXT`, at the turn that wrote the command and before anybody decided on it."""
    original = stage.product(stage.endpoint({"/": [shell("touch made"), "Made."]}))
    first = original.ask("Make the file.")
    assert (first.workspace / "made").exists()
    at = next(one.n for one in first.records if one.kind == "turn")

    # Each fork goes its own way, behind an endpoint of its own.
    beside = stage.endpoint({"/": ["I leave it."]}), stage.endpoint({"/": ["Made here, too.", "I went on."]})
    product, other = (
        replace(original, settings={**original.settings, "OPENAI_BASE_URL": one.url}) for one in beside
    )
    kept = product.run(
        "journal", "fork", first.session, "--at", str(at), "--say", "Do NOT run that.", "--json"
    )
    assert kept.status == 0, kept
    careful = kept.answer()
    assert careful.reply == "I leave it."
    assert not (careful.workspace / "made").exists()
    after = careful.records[at:]
    assert [(one.kind, one.text("status")) for one in after[:3]] == [
        ("fork", ""),
        ("result", "forked"),
        ("say", ""),
    ]
    assert not [one for one in after if one.kind in ("gate", "call")]
    assert "`shell.run` was not carried out: the session was forked here." in beside[0].requests[-1].last

    run = other.run("journal", "fork", first.session, "--at", str(at), "--say", "Go on.", "--run", "--json")
    assert run.status == 0, run
    assert (run.answer().workspace / "made").exists()
    assert run.answer().reply == "I went on.", "what was pending comes to its answer first"
    for one in (careful, run.answer()):
        assert product.run("replay", "--verify", one.session).status == 0
        assert read_journal(one.journal).records[at].fields.get("drops", False) is (one is careful)
