"""An install is let go as long as nothing but its own index can have told it what to ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from iact.core.context import history
from iact.core.context.prompt import STANDARD
from iact.core.gate.gate import Ticket
from iact.core.gate.installs import Installer
from iact.core.language.actions import HELP
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall
from iact.core.ports import Report
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.agent_context import AgentContext
from iact.core.tree.installing import ends, only_installs
from iact.core.tree.live_folder import UnseenCall
from iact.core.tree.tree import Tree
from tests.core.session import test_carried
from tests.core.session.fakes import World
from tests.core.session.test_carried import Desk, Question, ask

POLICY: Final = """
[scope.default]
functions = ["*"]
[scope.default.egress]
shell = ["index.test", "second.test", "evil.test"]
"""

_INDEX: Final = ("index.test", 443)
_SECOND: Final = ("second.test", 443)

TOGETHER: Final = {
    "/": [
        "```CALL_ASYNC installer\nInstall.\n```\n\n```CALL_ASYNC other\nRead.\n```\n\n```WAIT\n```",
        "```WAIT\n```",
    ],
    "/other": ["```shell.run\nstranger\n```"],
}
"""Two agents at once. The other one meets a stranger while the installer's call is under way."""


class Shells(Desk):
    """A shell for each agent. An install begins, waits until the other agent has met a stranger, and asks its index.

    `again`: the hosts that it asks afterwards. `stays`: whether the other agent's call is still under way.
    """

    again: tuple[tuple[str, int], ...] = (_INDEX,)
    stays = False

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._installing, self._met, self._asked = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        ticket.redeem(call.request)
        permit = self.permit("shell", call.request.agent)
        if str(call.arguments["command"]) == "stranger":
            await self._installing.wait()
            assert await permit("evil.test", 443)
            self._met.set()
            if self.stays:
                await self._asked.wait()
        else:
            self._installing.set()
            if call.request.agent != "/":
                await self._met.wait()
            await permit(*_INDEX)
            for host, port in self.again:
                await permit(host, port)
            self._asked.set()
        return Completed("Done.", "text/plain", {}, None, (), None)


def questions(
    path: Path, monkeypatch: pytest.MonkeyPatch, script: str, *, together: bool = False, stays: bool = False,
    again: tuple[tuple[str, int], ...] = (_INDEX,),
) -> list[Question]:  # fmt: skip
    """What a person is asked while an agent runs a script."""

    class Here(Shells):
        pass

    Here.again, Here.stays = again, stays
    monkeypatch.setattr(test_carried, "Desk", Here)
    run = f"```shell.run\n{script}\n```"
    says = {**TOGETHER, "/installer": [run]} if together else {"/": [run]}
    return ask(path, says, policy=POLICY)


INSTALLS: Final = ("npm install", "pip install -r requirements.txt")


@pytest.mark.parametrize("script", INSTALLS)
def test_an_install_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    assert questions(tmp_path, monkeypatch, script) == []


@pytest.mark.parametrize("script", INSTALLS)
def test_a_second_host_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """npm, too: a dependency from a repository brings settings of npm's, and these name programs that npm runs."""
    asked = questions(tmp_path, monkeypatch, script, again=(_SECOND,))
    assert [what for what, _ in asked] == ["shell>second.test"]


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("script", INSTALLS)
def test_an_install_beside_an_agent_that_meets_a_stranger_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, stays: bool
) -> None:
    """What stands in the lists of packages may be the stranger's words by now, and the user's secrets their names."""
    asked = questions(tmp_path, monkeypatch, script, together=True, stays=stays)
    assert [what for what, _ in asked] == ["shell>index.test"]


STRANGER: Final = frozenset({"tool:shell.run"})


def under_way(installer: Installer) -> tuple[Tree, Agent, Pending]:
    """An install that has reached its index, in a live directory, as the tree has it."""
    tree = Tree(strict=False, blobs=lambda digest: b"")
    tree.agents["/"] = agent = Agent("/", "user", "", "smart", AgentContext(history.begin(STANDARD)))
    pending = Pending(0, "BASH", "BASH", "", HELP, call=5, installs=installer)
    agent.actions.append(pending)
    tree.shared.writing[5] = STRANGER
    tree.live.working[5] = UnseenCall(5, "/", "shell.run", STRANGER, installer)
    return tree, agent, pending


def lets_go(tree: Tree, *paths: str) -> bool:
    return only_installs(tree, list(tree.live.working.values()), paths)


def test_what_an_install_made_is_let_go() -> None:
    tree, agent, pending = under_way("npm")
    assert lets_go(tree, "package.json", "node_modules/a/a.js")

    ends(tree, agent, pending)
    agent.actions.clear()
    tree.shared.files |= STRANGER
    assert lets_go(tree, "package.json", "node_modules/a/a.js")
    assert not lets_go(tree, "package.json", "Makefile")


def test_what_pip_built_writes_no_list_of_npm() -> None:
    tree, _, _ = under_way("pip")
    assert lets_go(tree, ".local/bin/tool")
    assert not lets_go(tree, "package.json")


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("where", ["files", "under way", "removed"])
def test_what_an_install_beside_a_stranger_made_is_held(where: str, ended: bool) -> None:
    """The stranger's word has the label of the install's own, and another place."""
    tree, agent, pending = under_way("npm")
    match where:
        case "files":
            tree.shared.files |= STRANGER
        case "under way":
            tree.shared.writing[6] = STRANGER
        case _:
            pending.beside |= STRANGER
    if ended:
        ends(tree, agent, pending)
        agent.actions.clear()
        tree.shared.writing.clear()
    assert not lets_go(tree, "package.json")
