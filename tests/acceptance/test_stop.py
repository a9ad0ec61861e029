"""Stopping works in real containers: a fork from before a call does not make the call, and an interrupt ends it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from iact.core.journal import read_journal
from iact.core.views.events import OutputEvent
from tests.acceptance.conftest import Stage
from tests.acceptance.product import until
from tests.acceptance.test_control import opened, play, shell, sleepers
from tests.acceptance.test_scenes import served, speak


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


def test_an_interrupt_ends_a_running_script_with_all_its_processes_and_keeps_what_it_printed(
    stage: Stage,
) -> None:
    """`trap ''` and a process group of its own do not help; the agent reads the lines and then the message."""
    stubborn = "trap '' TERM; setsid sleep 4321 & echo tick 1; echo tick 2; sleep 4322"
    endpoint = stage.endpoint({"/": [shell(stubborn, "touch never"), "I stopped."]})

    async def scenario() -> None:
        product = stage.product(endpoint)
        async with opened(product) as runtime:
            session = await runtime.open()
            async with asyncio.timeout(300), session.watch() as events:
                said = await session.say("Go.")
                printed = ""
                async for event in events:
                    printed += event.text if isinstance(event, OutputEvent) else ""
                    if "tick 2" in printed:  # what a person has seen
                        break
            await session.inject("/", "Stop now.", "interrupt")
            assert (await session.answer(said.n)).body == "I stopped."
            async with asyncio.timeout(5):
                while await asyncio.to_thread(sleepers, product):  # noqa: ASYNC110 - they are in a container
                    await asyncio.sleep(0.01)
            outcomes = [one for one in session.records() if one.kind == "result"]
            assert [one.text("status") for one in outcomes] == ["cancelled", "skipped"]
            assert outcomes[0].body == "tick 1\ntick 2\n"
            assert not (session.workspace / "never").exists()

    play(scenario)
    heard = endpoint.requests[-1].last
    assert heard.index("tick 2") < heard.index("Stop now.")


def test_the_command_line_says_whether_what_runs_is_kept(stage: Stage) -> None:
    """`iact inject --mode interrupt --keep-calls` lets a command come to its end, `iact pause --now` ends it."""
    waits = "touch begun; until [ -e go ]; do sleep 0.05; done; echo finished"
    endpoint = stage.endpoint({"/": [shell(waits), "One.", shell("touch again; sleep 4323"), "Two."]})
    product = stage.product(endpoint)
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        spoken.appears("begun")
        kept = spoken.control("inject", "--mode", "interrupt", "--keep-calls", "Also this.")
        (spoken.workspace / "go").touch()
        result = spoken.wait_for("result", "/")
        assert (result.text("status"), result.body) == ("ok", "finished\n")
        spoken.wait_for("reply", "/")
        assert spoken.took("/", kept.n).kind == "reply"
        assert "Also this." in endpoint.requests[-1].last

        said = spoken.control("say", "Go on.")
        spoken.appears("again")
        paused = spoken.control("pause", "--now")
        ended = spoken.wait_for("result", "/", said.n)
        assert ended.text("status") == "cancelled"
        until(lambda: not sleepers(product), "the end of the command")
        assert len(endpoint.requests) == 3, "it is paused"
        spoken.control("resume")
        assert spoken.wait_for("reply", "/", paused.n).body == "Two."
