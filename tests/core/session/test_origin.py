"""Where values come from is followed through every way that a value or a word can take, by the core alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.variables import text_value
from iact.core.modules.approval import Approvals
from iact.core.records.calls import Call
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import Replay, replay
from iact.core.tree import apply_shared_state, origin
from iact.core.tree.agent import Pending
from iact.core.tree.decision import texts
from iact.core.tree.interpret import whole_digest_of
from iact.core.tree.tree import Tree
from tests.core.session.fakes import FakeHost, World, replies, runtime
from tests.core.session.test_clearance import clearances, question

FETCH = "```web.fetch\nEvil text with 7\n```"
WEB = "tool:web.fetch"


def play(
    data: Path,
    script: Mapping[str, Sequence[str]],
    *says: str,
    policy: str = "",
    intent: int = 2,
    allow: bool | None = None,
) -> tuple[World, Replay]:
    """Say `says` one after the other; every question is answered with `allow` (None: there must be none)."""
    world, approvals = World(), Approvals.load(data.parent / f"{data.name}.json")
    approvals.approve("mail", "1" * 64, ["send"])

    async def main() -> Path:
        async with runtime(
            data, replies(script), world=world, host=FakeHost(more=True), policy=policy,
            authorities=Authorities(approvals=approvals),
        ) as opened:  # fmt: skip
            session = await opened.open(intent=intent)
            for text in says or ("Go",):
                said = await session.say(text)
                if allow is not None:
                    await session.clear(await question(session, said.n), allow)
                await session.answer(said.n)
            assert allow is not None or not clearances(session.records(), "ask")
            return session.journal

    return world, replay(asyncio.run(main()), verify=True)


def labels(tree: Tree, path: str, name: str) -> frozenset[str]:
    return tree.agents[path].table[name].labels


def gates(records: Sequence[Record]) -> list[tuple[object, str]]:
    return [(one.fields["allow"], one.text("by")) for one in records if one.kind == "gate"]


def test_what_the_user_wrote_is_the_users(tmp_path: Path) -> None:
    _, played = play(tmp_path, {"/": ["Hello."]}, "Look\n\n```python\nx = 1\n```")
    assert labels(played.tree, "/", "code_1") == {"user"}
    assert played.tree.root.labels == frozenset()
    assert list(played.tree.said) == ["Look\n\n```python\nx = 1\n```"]


def test_what_an_agent_writes_carries_what_it_has_read(tmp_path: Path) -> None:
    script = {
        "/": ["```VAR before\nx\n```", FETCH, "```text name=block\ny\n```\n```VAR after\nx\n```", "Done."]
    }
    _, played = play(tmp_path, script)
    assert labels(played.tree, "/", "before") == {"model"}
    assert labels(played.tree, "/", "fetch_1") == {"model", WEB}
    assert labels(played.tree, "/", "after") == {"model", WEB}
    assert labels(played.tree, "/", "block") == {"model", WEB}
    assert played.tree.root.labels == {WEB}


def test_a_call_taints_a_child_and_a_reply_its_caller(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL reader\nRead.\n```", "```CALL other\nGo.\n```", "Done."],
        "/reader": [FETCH, "It says\n\n```text\nEvil\n```"],
        "/other": ["Fine."],
    }
    _, played = play(tmp_path, script)
    tree = played.tree
    assert tree.agents["/reader"].labels == {WEB}
    assert tree.root.labels == {WEB}
    assert tree.agents["/other"].labels == {WEB}
    assert labels(tree, "/", "reader_1") == {"model", WEB}
    assert labels(tree, "/", "code_1") == {"model", WEB}


def test_a_late_reply_that_is_collected_taints_too(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL_ASYNC reader\nRead.\n```\n```WAIT\n```", "Done."],
        "/reader": [FETCH, "It says: Evil"],
    }
    assert play(tmp_path, script)[1].tree.root.labels == {WEB}


def test_a_value_passed_by_name_taints_only_who_reads_it(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL carrier\nKeep it.\n```", "Done."],
        "/carrier": ["```CALL reader\nFetch it.\n```", "```SHOW fetch_1\n```", "Done."],
        "/carrier/reader": [FETCH, "Here: $fetch_1"],
    }
    _, played = play(tmp_path, script)
    assert labels(played.tree, "/carrier", "fetch_1") == {"model", WEB}
    assert played.tree.agents["/carrier"].labels == {WEB}


def test_a_value_inside_of_an_argument_carries_its_labels(tmp_path: Path) -> None:
    """What a rule, a question, the result and the digest are told of an argument includes the variables inside of it."""
    _, played = play(tmp_path, {"/": ["Hello."]}, "Send the table to bob.")
    tree, agent = played.tree, played.tree.root
    evil = text_value("evil", labels=frozenset({WEB}))
    bound = Bound({"to": "bob", "table": {"rows": None, "note": "mine"}}, {"/table/rows": evil})

    assert texts(bound) == {"to": "bob", "table": {"rows": "evil", "note": "mine"}}
    assert origin.given(tree, agent, bound) == {"to": {"user"}, "table": {"model", WEB}}
    assert origin.passed(bound) == {WEB}

    provenance = origin.provenance_of(tree, agent, bound)
    assert provenance.of("table") == {"model", WEB}
    assert provenance.strange(provenance.all(), ()) == {WEB}

    other = Bound(bound.arguments, {"/table/rows": text_value("good", labels=frozenset({WEB}))})
    assert whole_digest_of(other) != whole_digest_of(bound)


def test_what_a_reader_writes_in_its_layer_comes_out_of_it_with_its_labels(tmp_path: Path) -> None:
    """A value that the agent never read goes into its layer by name, and is read there by the next call."""
    _, played = play(
        tmp_path, {"/": ["```CALL other\nHello.\n```", "Hello."], "/other": ["Hello."]}, intent=0
    )
    tree, agent = played.tree, played.tree.root
    tree.layers = True
    evil = text_value("evil", labels=frozenset({WEB}))
    spec = ActionSpec("shell.run", "", impact=1)
    pending = Pending(0, spec.name, "", "", spec, Bound({"command": "cat > kept"}, {"stdin": evil}))
    call = Call(turn=1, action=0, function=spec.name, impact=0, args="")

    apply_shared_state.begin(tree, agent, pending, played.records[-1], call)
    assert WEB in origin.around(tree, agent, "files.read")
    assert WEB not in origin.around(tree, tree.agents["/other"], "files.read"), (
        "no other agent reads it there"
    )


def test_show_is_reading(tmp_path: Path) -> None:
    """A child that was only handed a name is clean until it looks."""
    policy = '[scope.default]\nfunctions = ["*"]\ntrusted = ["nothing"]'
    script = {
        "/": ["```CALL a\n$code_1\n```", "Done."],
        "/a": ["```SHOW code_1\n```", "Done."],
    }
    _, played = play(tmp_path, script, "See\n\n```text\nx\n```", policy=policy)
    assert labels(played.tree, "/a", "code_1") == {"user"}
    assert played.tree.agents["/a"].labels == frozenset()


def test_the_same_content_from_two_sources_is_from_both(tmp_path: Path) -> None:
    """A value can't be washed by having somebody clean send the same content."""
    script = {
        "/": [FETCH.replace("7", "8"), "```CALL a\nSay it.\n```", "Done."],
        "/a": ["```VAR fetch_1\nEvil text with 8\n\n```", "Here: $fetch_1"],
    }
    _, played = play(tmp_path, script)
    assert WEB in labels(played.tree, "/", "fetch_1")


def test_files_carry_labels_from_one_agent_to_another(tmp_path: Path) -> None:
    script = {
        "/": [
            "```CALL_ASYNC writer\nWrite.\n```\n```CALL_ASYNC idle\nRest.\n```\n```WAIT idle\n```",
            "```WAIT\n```",
            "Done.",
        ],
        "/writer": [FETCH, "```t.write\nEvil\n```", "Written."],
        "/idle": ["Resting."],
    }
    _, played = play(tmp_path, script)
    assert played.tree.shared.files == {WEB}
    more = {**script, "/": [*script["/"][:-1], "```t.read\nfile\n```", "Done."]}
    _, played = play(tmp_path / "more", more)
    assert labels(played.tree, "/", "read_1") >= {"inside:t.read", WEB}


def test_what_is_said_of_a_skill_has_the_labels_of_the_files(tmp_path: Path) -> None:
    """A mistake in it is told in words of the files, which may be a stranger's."""
    _, played = play(tmp_path, {"/": [FETCH + "\n\n```t.write\nEvil\n```", "```SKILL nothing\n```", "Done."]})
    assert labels(played.tree, "/", "skill_1") >= {"inside:SKILL", WEB}
    assert played.tree.agents["/"].labels >= {"inside:SKILL", WEB}


def test_a_fork_of_a_child_keeps_what_was_read(tmp_path: Path) -> None:
    script = {"/": [FETCH, "```CALL a fork=true\nGo.\n```", "Done."], "/a": ["Fine.", "Fine.", "Fine."]}
    _, played = play(tmp_path, script)
    assert played.tree.agents["/a"].labels == {WEB}


TO = "```mail.send to={to}{more}\nHello\n```"
USERS = '[scope.default]\nfunctions = ["*"]\n[[scope.default.require]]\nfunction = "mail.send"\nparameter = "to"\nwithin = ["user"]\n'


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        ([TO.format(to="bob", more="")], False),
        ([FETCH, TO.format(to="bob", more="")], True),
        ([FETCH, TO.format(to="$fetch_1", more="")], True),
        (["```t.read\nEvil\n```", TO.format(to="$read_1", more="")], False),
    ],
)
def test_the_default_rule_asks_about_impact_two_touched_from_outside(
    tmp_path: Path, script: list[str], asked: bool
) -> None:
    _, played = play(tmp_path, {"/": [*script, "Done."]}, allow=True if asked else None)
    assert gates(played.records)[-1] == (True, "clearance" if asked else "impact")


@pytest.mark.parametrize(
    ("to", "asked"),
    [("bob@example.com", False), ("eve@example.com", True), ("$code_1", False), ("$fetch_1", True)],
)
def test_a_rule_about_a_parameter_takes_what_the_user_wrote(tmp_path: Path, to: str, asked: bool) -> None:
    """A literal that stands in what the user wrote, or a variable that the user brought; with impact 2, no taint."""
    before = [FETCH] if to == "$fetch_1" else []
    script = {"/": [*before, TO.format(to=to, more=""), "Done."]}
    said = "Write to bob@example.com\n\n```text\nann@example.com\n```"
    _, played = play(tmp_path, script, said, policy=USERS, allow=False if asked else None)
    assert gates(played.records)[-1] == (not asked, "clearance" if asked else "impact")


def test_a_number_read_from_a_variable_keeps_its_labels(tmp_path: Path) -> None:
    policy = (
        '[scope.default]\nfunctions = ["*"]\ntrusted = ["tool:web.*"]\n'
        '[[scope.default.require]]\nfunction = "mail.send"\nparameter = "copies"\nwithin = ["user"]\n'
    )
    fetched = "```web.fetch\n7\n```"
    script = {"/": [fetched, TO.format(to="bob", more=" copies=$fetch_1"), "Done."]}
    _, played = play(tmp_path, script, policy=policy, allow=False)
    (asked,) = clearances(played.records, "ask")
    origins = asked.fields["provenance"]
    assert isinstance(origins, dict)
    assert origins["copies"] == ["model", WEB]


def test_a_policy_can_trust_a_source(tmp_path: Path) -> None:
    policy = '[scope.default]\nfunctions = ["*"]\ntrusted = ["tool:web.*"]'
    script = {"/": [FETCH, TO.format(to="bob", more=""), "Done."]}
    _, played = play(tmp_path, script, policy=policy)
    assert gates(played.records)[-1] == (True, "impact")


def test_only_a_person_takes_labels_away(tmp_path: Path) -> None:
    script = {"/": [FETCH, "Read.", TO.format(to="$fetch_1", more=""), "Sent."]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), host=FakeHost(more=True)) as opened:
            session = await opened.open(intent=2)
            await session.ask("Read it")
            await session.declassify("/", "fetch_1")
            await session.declassify("/")
            await session.ask("Send it")
            return session.journal

    played = replay(asyncio.run(main()), verify=True)
    assert gates(played.records)[-1] == (True, "impact")
    assert labels(played.tree, "/", "fetch_1") == {"user"}


# --- nothing washes a label off ---------------------------------------------------------------------------

PASSED = """\
goal: Have it looked at
steps:
  - {id: page, call: web.fetch, params: {text: "Evil 7"}}
  - {id: look, agent: looker, task: "Look.", refs: {page: {step: page}}}
"""
LONG = "Evil 7. " * 300


def looker(*turns: str, page: str = LONG) -> dict[str, list[str]]:
    """A child that has a page by name, and has not read it."""
    plan = PASSED.replace("Evil 7", page)
    return {"/": [f"```PLAN p\n{plan}```", "Done."], "/p/looker": [*turns, "Seen."]}


def read_by(
    tmp_path: Path,
    agent: str,
    *turns: str,
    more: Mapping[str, Sequence[str]] | None = None,
    page: str = LONG,
) -> frozenset[str]:
    _, played = play(tmp_path, {**looker(*turns, page=page), **(more or {})})
    return played.tree.agents[agent].labels


def test_a_name_alone_is_not_read(tmp_path: Path) -> None:
    assert WEB not in read_by(tmp_path, "/p/looker", "I look.\n\n```VAR mine\nx\n```")


def test_a_small_value_is_read_in_the_message_that_brings_it(tmp_path: Path) -> None:
    """It stands there whole, and taints its reader exactly as SHOW does."""
    assert WEB in read_by(tmp_path, "/p/looker", page="Evil 7")
    shown = read_by(tmp_path / "shown", "/p/looker", "```SHOW page\n```", page="Evil 7")
    assert shown == read_by(tmp_path / "short", "/p/looker", page="Evil 7")
    assert shown == read_by(tmp_path / "long", "/p/looker", "```SHOW page\n```")


@pytest.mark.parametrize(
    "turn",
    [
        "```SHOW page\n```",
        "```t.read text=$page\n```",
        "```t.write text=$page\n```",
        "```REMEMBER text=$page\n```",
        "```RECALL query=$page\n```",
    ],
)
def test_a_result_made_of_a_variable_is_reading_it(tmp_path: Path, turn: str) -> None:
    assert WEB in read_by(tmp_path, "/p/looker", turn)


def test_a_child_that_gets_a_variable_as_its_message_or_role_has_read_it(tmp_path: Path) -> None:
    for place, turn in enumerate(("```CALL kid message=$page\n```", "```CALL kid role=$page\nGo.\n```")):
        found = read_by(tmp_path / str(place), "/p/looker/kid", turn, more={"/p/looker/kid": ["Fine."]})
        assert WEB in found


def test_a_plan_that_stands_in_a_variable_is_its_authors(tmp_path: Path) -> None:
    inner = "goal: g\nsteps:\n  - {id: a, call: t.read, params: {text: x}}\n  - {id: b, call: t.read, params: {text: y}}\n"
    page = PASSED.replace('"Evil 7"', repr(inner).replace("'", '"'))
    script = {
        "/": [f"```PLAN p\n{page}```", "Done."],
        "/p/looker": ["```PLAN inner plan=$page\n```", "Seen."],
    }
    _, played = play(tmp_path, script)
    assert WEB in played.tree.agents["/p/looker/inner"].labels


def test_a_mistake_about_a_variable_shows_nothing_of_it(tmp_path: Path) -> None:
    _, played = play(tmp_path, looker("```mail.send to=bob copies=$page\nx\n```"))
    agent = played.tree.agents["/p/looker"]
    assert WEB not in agent.labels
    task, *later = [one for one in agent.context.history.messages() if one.role == "user"]
    # The arguments of the call that brought it are the plan's own words, and are in the task.
    of_the_page = re.sub(r", from web\.fetch \{.*", "", task.content)
    assert "- $page (text/plain, " in of_the_page
    assert "Evil" not in of_the_page
    assert "`mail.send` was not run" in later[0].content
    assert not any("Evil" in message.content for message in later)


def test_what_an_agent_wrote_stays_its_own_through_a_tool_that_adds_nothing(tmp_path: Path) -> None:
    """A page's words, repeated by its reader to a tool of the workspace, come back with the page's label."""
    script = {"/": [FETCH, "```t.read\nEvil\n```", "Done."]}
    _, played = play(tmp_path, script)
    assert WEB in labels(played.tree, "/", "read_1")


def test_what_words_of_the_users_found_is_told_from_what_the_agents_words_found(tmp_path: Path) -> None:
    script = {"/": ["```t.read\nthe bill\n```\n```t.read\nanother\n```", "Done."]}
    _, played = play(tmp_path, script, "Find the bill")
    assert labels(played.tree, "/", "read_1") == {"inside:t.read", "user"}
    assert labels(played.tree, "/", "read_2") == {"inside:t.read", "model"}


@pytest.mark.parametrize("approved", [False, True])
def test_a_policy_does_not_trust_a_name_that_an_agent_has_taken(tmp_path: Path, approved: bool) -> None:
    """`trusted` and `sources` mean the module that the person knows, not one that has its name."""
    policy = (
        '[scope.default]\nfunctions = ["*"]\ntrusted = ["tool:mail.*", "tool:web.*"]\n'
        '[[scope.default.require]]\nfunction = "t.write"\nparameter = "text"\nsources = ["tool:mail.send"]\n'
    )
    approvals = Approvals.load(tmp_path / "approvals.json")
    if approved:
        approvals.approve("mail", "1" * 64, ["send"])
    script = {"/": ["```mail.send to=bob\nbob\n```", "```t.write text=$send_1\n```", "Done."]}

    async def main() -> Path:
        async with runtime(
            tmp_path / "data", replies(script), host=FakeHost(more=True), policy=policy,
            authorities=Authorities(approvals=approvals),
        ) as opened:  # fmt: skip
            session = await opened.open(intent=2)
            said = await session.say("Write bob to bob")
            if not approved:
                await session.clear(await question(session, said.n), False)
            await session.answer(said.n)
            return session.journal

    played = replay(asyncio.run(main()), verify=True)
    assert gates(played.records)[-1] == ((True, "impact") if approved else (False, "clearance"))
