"""Commands that change a directory and try to look harmless: each is seen to change one, and none is taken for a look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iact.core.gate.shell import judge_script
from tests.core.gate.hostile import COMMANDS, FAMILIES, IDLE, SETUP
from tests.core.gate.jail import Jail, folder_for_jail, need_bubblewrap
from tests.rounds import LONG
from tests.snapshot import differences, snapshot


@dataclass(frozen=True, slots=True)
class Effect:
    """What a command did. `lost`: what had been there is not there any more, or not all of it."""

    changed: list[str]
    lost: list[str]


@pytest.fixture(scope="module")
def effects() -> Iterator[dict[str, Effect]]:
    """What commands do where they may write: each of them in a long run, every sixth in a short one."""
    need_bubblewrap()
    with folder_for_jail() as folder:
        jail = Jail(folder, SETUP)

        def look(place: Path) -> Effect:
            return Effect(differences(jail.before, snapshot(place)), lost(jail.filled, place))

        commands = [command for _, command in COMMANDS][:: 1 if LONG else 6]
        yield dict(zip(commands, jail.look(commands, look), strict=True))


def lost(before: Path, after: Path) -> list[str]:
    """The files of `before` that are gone, or that do not begin any more with what they held."""
    return [
        str(file.relative_to(before))
        for file in before.rglob("*")
        if file.is_file()
        and not file.is_symlink()
        and file.name != "index"  # git writes it anew whenever it looks
        and not kept(file, after / file.relative_to(before))
    ]


def kept(before: Path, after: Path) -> bool:
    return after.is_file() and after.read_bytes().startswith(before.read_bytes())


def test_the_corpus_is_large_and_of_many_kinds() -> None:
    own = {family: commands for family, commands in FAMILIES.items() if family != "found"}
    assert len(own) >= 20
    assert sum(map(len, own.values())) >= 340
    assert len({command for _, command in COMMANDS}) == len(COMMANDS)
    assert set(IDLE) <= {command for _, command in COMMANDS}
    assert all(IDLE.values()), "a reason is missing"
    assert len(IDLE) < len(COMMANDS) / 6


@pytest.mark.parametrize("family", FAMILIES)
def test_none_is_taken_for_a_look(family: str) -> None:
    taken = {command for command in FAMILIES[family] if judge_script(command).impact(live=False) == 0}
    assert not taken


def test_each_changes_the_directory_where_it_may_write(effects: dict[str, Effect]) -> None:
    idle = [command for command, effect in effects.items() if not effect.changed and command not in IDLE]
    assert idle == []


def test_what_loses_something_needs_intent_2_where_it_is_live(effects: dict[str, Effect]) -> None:
    """The classifier alone sees to that where there is no overlay."""
    light = {
        command: effect.lost
        for command, effect in effects.items()
        if effect.lost and judge_script(command).impact(live=True) < 2
    }
    assert light == {}
