"""What counts as a look, run for real where it may write: it changes nothing, at home neither."""

from __future__ import annotations

from iact.core.gate.shell import judge_script
from iact.core.gate.shell.programs import known_program
from tests.core.gate.hostile import SETUP
from tests.core.gate.jail import Jail, folder_for_jail, need_bubblewrap
from tests.core.gate.test_shell_corpus import commands
from tests.rounds import LONG
from tests.snapshot import differences

MARK = "came: ran-"
"""A program that is not on this machine leaves this."""


def test_everyday_looks_change_nothing() -> None:
    """Each of them in a long run, every fourth in a short one."""
    need_bubblewrap()
    looks = [one for one in commands("plain", "observe") if judge_script(one).impact(live=True) == 0]
    tried = looks[:: 1 if LONG else 4]
    with folder_for_jail() as folder:
        jail = Jail(folder, SETUP)
        found = {
            look: [one for one in differences(jail.before, after) if not _missing(one)]
            for look, after in zip(tried, jail.run(tried, seconds=1), strict=True)
        }
    assert {look: did for look, did in found.items() if set(did) - {"changed: ."}} == {}


def _missing(difference: str) -> bool:
    """Whether this says only that a program is not on this machine, which the gate knows."""
    return difference.startswith(MARK) and known_program(difference.removeprefix(MARK))
