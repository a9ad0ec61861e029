"""What people are shown of a session is what its tree holds, and nothing can be changed by looking."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact import examples
from iact.core.errors import UsageError
from iact.core.stored.replay import Replay, replay, view_of
from iact.core.tree.plan_report import plan_json
from tests.core.session.fakes import replies, runtime


def example(name: str) -> Replay:
    found = examples.find(name)
    assert found is not None
    return replay(found.folder)


@pytest.mark.parametrize("name", [one.name for one in examples.EXAMPLES])
def test_every_agent_is_a_node(name: str) -> None:
    read = example(name)
    nodes = {node.path: node for node in read.view.nodes()}
    assert list(nodes) == list(read.tree.agents)
    for path, agent in read.tree.agents.items():
        node = nodes[path]
        assert (node.caller, node.name, node.depth) == (agent.caller, agent.name, agent.depth)
        assert (node.kind == "plan") == (agent.plan is not None)
        assert node.usage.to_json() == agent.usage.to_json()
        assert node.state == read.tree.state(agent)
    assert read.view.usage == read.tree.usage()
    assert sum(node.prompt_tokens for node in nodes.values()) == read.view.usage.prompt_tokens
    assert read.view.record == read.at == len(read.records)


def test_a_view_of_the_first_records_is_a_replay_up_to_there() -> None:
    read = example("research")
    for at in (1, 2, len(read.records) // 2, len(read.records)):
        there = replay(read.path, at=at)
        assert view_of(read.records[:at], read.tree.blobs).nodes() == there.view.nodes()


def test_a_plan_is_shown_with_what_became_of_its_steps() -> None:
    read = example("plan")
    (plan,) = read.view.plans().values()
    agent = read.tree.agents[plan.path]
    assert agent.plan is not None
    assert dict(plan.facts) == plan_json(read.tree, agent)
    assert list(plan.steps) == [record.node.id for record in agent.plan.work()]
    for one, step in plan.steps.items():
        record = agent.plan.state.nodes[one]
        assert (step.state, step.error, step.needs) == (record.state, record.error, record.node.dependencies)
        assert all(plan.steps[each].layer < step.layer for each in step.needs)
    assert any(step.layer for step in plan.steps.values())


async def test_variables_come_newest_first_with_what_waits_to_be_read(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["```VAR name=one\n1\n```\n", "Done."]})) as opened:
        session = await opened.open()
        await session.ask("Begin.")
        await session.upload("two.txt", "text/plain", b"22")
        two, one = session.view.variables("/")
        assert (two.name, two.size, two.is_text, two.load()) == ("two", 2, True, b"22")
        assert (one.name, one.load()) == ("one", b"1")
        assert session.view.variable("/", "two").sha256 == two.sha256
        # The agent itself has it with its next turn only.
        assert list(session.view.names("/")) == ["one"]
        with pytest.raises(UsageError, match="has no variable"):
            session.view.variable("/", "three")
        with pytest.raises(UsageError, match="no agent '/nobody'"):
            session.view.variables("/nobody")


async def test_words_begin_actions_as_they_do_for_the_agent(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["Hello."]})) as opened:
        session = await opened.open()
        await session.ask("Begin.")
        is_action = session.view.is_action("/")
        assert is_action is not None
        assert (is_action("CALL"), is_action("t.read"), is_action("python")) == (True, True, False)
        assert session.view.is_action("/nobody") is None
        assert not session.view.names("/nobody")
