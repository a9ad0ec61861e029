"""The first message of an agent: what it may use, in an order that agents share, and who it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.context.first_message import ESSENTIAL, RARE, READS_ONLY, identity
from iact.core.context.tokens import estimate
from iact.core.gate.policy_file import Policies
from iact.core.models.roles import Models
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import replay
from tests.core.session.fakes import (
    MAIL,
    MANIFEST,
    Asked,
    FakeModules,
    Script,
    ScriptedModel,
    TickingClock,
    World,
    replies,
)
from tests.core.session.shipped import ShippedHost
from tests.sealing import give_key

MOST_LISTED = 500
"""The most tokens of the list of functions, when all that ships is there."""


def play(
    data: Path, script: Script, *says: str, intent: float = 1, fast: bool = False, policy: str = ""
) -> ScriptedModel:
    """The contexts of a session with all shipped modules, a user's `mail`, and `t` of nobody's approval."""
    give_key(data)
    model = ScriptedModel(script)
    models = {"smart": model, "fast": ScriptedModel(script)} if fast else {"smart": model}

    async def main() -> Path:
        async with Runtime(
            data,
            Models(models),
            ShippedHost(MAIL, MANIFEST),
            clock=TickingClock(),
            policies=lambda: Policies.from_toml(policy),
            open_modules=lambda host, session, workspace: FakeModules(World()),
        ) as opened:
            session = await opened.open(intent=intent)
            for text in says or ("Go",):
                await session.ask(text)
            return session.journal

    replay(asyncio.run(main()), verify=True)
    return model


def first(data: Path, *, intent: float = 1, fast: bool = False) -> str:
    return play(data, lambda asked: "Done.", intent=intent, fast=fast).asked[0].messages[1].content


def of(model: ScriptedModel, path: str) -> str:
    """The first message of an agent."""
    return next(asked.messages[1].content for asked in model.asked if asked.path == path)


def listed(text: str) -> list[str]:
    """The names of the functions in the list."""
    return [line[3:].split("`")[0].split()[0] for line in text.split("\n") if line.startswith("- `")]


def test_what_all_agents_share_stands_before_who_this_one_is(tmp_path: Path) -> None:
    text = first(tmp_path)
    parts = [f"Documentation of `{name}`" for name in ESSENTIAL]
    parts += [
        "Functions that you can use",
        "\nYou are agent /, called by the user.\n",
        "Message from the user:",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert places[0] == 0
    for fact in ("/workspace", "No network but hosts that a person allows", "python3"):
        assert fact in text[: places[1]], "it stands with the documentation of shell.run"


def test_functions_are_listed_by_use_and_what_is_rarely_needed_is_one_line(tmp_path: Path) -> None:
    text = first(tmp_path)
    assert listed(text) == [
        "shell.run",
        "files.list", "files.read", "files.write", "files.edit", "files.search", "files.diff",
        "python.run",
        "web.search", "web.fetch",
        "mail.send",
        "t.read", "t.write", "t.destroy", "t.fail", "t.lose",
    ]  # fmt: skip
    (rare,) = [line for line in text.split("\n") if line.startswith("- rarely needed")]
    assert "`HELP name` tells more" in rare
    places = [rare.index(f"`{module}") for module in RARE]
    assert places == sorted(places)
    assert "`docs.read path=… …` PDF" in rare
    assert "`sql.query <statement> …`" in rare
    assert "`git.status path=.`, `git.diff old=… …`" in rare
    assert "git.commit" not in text


def test_agents_elsewhere_are_listed_where_a_peer_is_allowed(tmp_path: Path) -> None:
    policy = '[scope.default]\nfunctions = ["*"]\n[scope.default.egress]\na2a = ["peer.example:443"]\n'
    text = play(tmp_path, lambda asked: "Done.", policy=policy).asked[0].messages[1].content
    assert "a2a.ask" in listed(text)
    (rare,) = [line for line in text.split("\n") if line.startswith("- rarely needed")]
    assert "`a2a`" not in rare
    assert "`sql.query" in rare


def test_the_list_of_what_ships_fits_its_budget(tmp_path: Path) -> None:
    text = first(tmp_path)
    start = text.index("Functions that you can use")
    lines = text[start : text.index("\n\n", start)].split("\n")
    shipped = [line for line in lines if not line.startswith(("- `t.", "- `mail."))]
    assert len(shipped) > 10
    assert estimate("\n".join(shipped)) <= MOST_LISTED


def test_agents_share_the_prefix_byte_for_byte(tmp_path: Path) -> None:
    script = {
        "/": ['```CALL a role="a writer"\nWrite.\n```\n```CALL b\nSomething else.\n```', "Done."],
        "/a": ["Written."],
        "/b": ["Else."],
    }
    model = play(tmp_path, replies(script))
    heads = {of(model, path).partition("You are agent ")[0] for path in ("/", "/a", "/b")}
    assert len(heads) == 1
    assert len(heads.pop()) > 2_000
    for path, caller in (("/", "the user"), ("/a", "/"), ("/b", "/")):
        assert f"\nYou are agent {path}, called by {caller}.\n" in of(model, path)
    assert of(model, "/a").index("You are agent") < of(model, "/a").index("a writer")


def test_a_reader_is_told_so_and_offered_what_reads(tmp_path: Path) -> None:
    script = {"/": ["```CALL reader intent=0\nRead it.\n```", "Done."], "/reader": ["Read."]}
    model = play(tmp_path, replies(script))
    told = of(model, "/reader")
    assert READS_ONLY in told.split("\n")
    assert told.index("You are agent /reader") < told.index(READS_ONLY) < told.index("Message from")
    assert listed(told) == [
        "shell.run", "files.list", "files.read", "files.search", "files.diff", "web.search", "web.fetch",
    ]  # fmt: skip
    for hidden in ("files.write", "git.commit", "browser", "mail.send"):
        assert hidden not in told.partition("You are agent")[0], hidden
    assert READS_ONLY not in of(model, "/"), "its caller may do more"

    shared = told[: told.index("Functions that you can use")]
    assert "Documentation of `files.read`" in shared
    assert of(model, "/").startswith(shared), "both begin with what a reader may use"


def test_a_root_at_intent_0_is_a_reader(tmp_path: Path) -> None:
    text = first(tmp_path, intent=0)
    assert READS_ONLY in text.split("\n")
    assert "files.write" not in listed(text)


def test_a_reader_with_a_layer_is_told_how_long_what_it_writes_is_there() -> None:
    assert "it is gone when you have answered." in identity("/", "user", "", reads_only=True, layer=True)
    assert "gone" not in identity("/", "user", "", reads_only=True)


def test_a_forked_reader_is_told_as_well(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if "You are agent /a," in asked.newest:
            assert READS_ONLY in asked.newest.split("\n")
            assert "Functions that you can use" not in asked.newest, "its caller's history has them"
            return "Read."
        return "```CALL a fork=true intent=0\nGo on.\n```" if asked.turn == 0 else "Done."

    model = play(tmp_path, script)
    assert any("You are agent /a," in asked.newest for asked in model.asked)


def test_what_an_agent_may_not_use_at_all_is_not_there(tmp_path: Path) -> None:
    script = {"/": ['```CALL a scope="files.read sql.*"\nRead it.\n```', "Done."], "/a": ["Read."]}
    told = of(play(tmp_path, replies(script)), "/a")
    assert listed(told) == ["files.read"]
    assert "Documentation of `shell.run`" not in told
    assert "rarely needed, `HELP name` tells more: `sql.query <statement> …` query data files\n" in told


def test_a_rare_module_is_named_if_none_of_its_natural_functions_may_be_used(tmp_path: Path) -> None:
    script = {"/": ['```CALL a scope="git.commit"\nCommit it.\n```', "Done."], "/a": ["Done."]}
    told = of(play(tmp_path, replies(script)), "/a")
    assert "rarely needed, `HELP name` tells more: `git` status, history, commits\n" in told


def test_models_are_named_if_there_are_several(tmp_path: Path) -> None:
    assert "model=" not in first(tmp_path / "one")
    assert "A CALL can name a model: model=smart, model=fast." in first(tmp_path / "two", fast=True)


@pytest.mark.parametrize("intent", [0, 1])
def test_a_change_of_rights_does_not_change_what_was_sent(tmp_path: Path, intent: float) -> None:
    """The prefix law: what an agent was told first stays, whatever a person allows it later."""
    give_key(tmp_path)
    model = ScriptedModel(lambda asked: "Done.")

    async def main() -> Path:
        async with Runtime(
            tmp_path,
            Models({"smart": model}),
            ShippedHost(),
            clock=TickingClock(),
            open_modules=lambda host, session, workspace: FakeModules(World()),
        ) as opened:
            session = await opened.open(intent=intent)
            await session.ask("Go")
            await session.set_intent(1 - intent)
            await session.ask("Go on")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert model.asked[0].messages[1].content.split("(state)")[0] in model.asked[1].messages[1].content
    assert (READS_ONLY in model.asked[1].messages[1].content) is (intent == 0)
