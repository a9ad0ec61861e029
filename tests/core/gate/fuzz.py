"""What the classifier says of a script, against what a real bash does with it: `make test-long`, or

    python -m tests.core.gate.fuzz [--minutes 10] [--seed 1]

Scripts are made and mutated (`mutation`); those that count as a look are run for real, each in a directory of its own
in which it may write. A script that changes its directory, or that runs a program which nobody knows, is a find: it is
made as small as it goes and put into `corpus/fuzzed`, and every test run reads it.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.gate.shell import judge_script
from iact.core.gate.shell.programs import known_program
from tests.core.gate.hostile import COMMANDS
from tests.core.gate.jail import Jail, folder_for_jail, need_bubblewrap
from tests.core.gate.mutation import mutant, smaller
from tests.snapshot import differences

KEPT: Final = Path(__file__).parent / "corpus" / "fuzzed"
SETUP: Final = """
mkdir vd home && echo one > vd/a.txt && echo keep > victim.txt && printf 'a b\\nc d\\n' > f
"""
_BATCH: Final = 150
_LONGEST: Final = 400
_ELSEWHERE: Final = ("/", "sleep", "yes", "tail", "wait", "git ")
"""What takes long, reads the whole machine, or needs more than this small directory."""


@dataclass(frozen=True, slots=True)
class Find:
    """A script that counts as a look, and what it did."""

    script: str
    did: list[str]


@dataclass(slots=True)
class Count:
    """What was tried. `judged` scripts were made, `run` of them counted as a look and were run."""

    judged: int = 0
    run: int = 0


class Fuzzer:
    """Makes scripts, and runs those that count as a look."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._jail = Jail(folder, SETUP)
        self._dice = random.Random(seed)
        self._corpus = [
            command
            for command in [*(command for _, command in COMMANDS), *kept()]
            if not any(word in command for word in _ELSEWHERE)
        ]
        self.count = Count()

    def batch(self, size: int = _BATCH) -> list[Find]:
        """Run as many scripts that count as a look."""
        looks: dict[str, None] = {}
        while len(looks) < size:
            script = mutant(self._dice, self._corpus)
            self.count.judged += 1
            if len(script) <= _LONGEST and not any(word in script for word in _ELSEWHERE) and is_look(script):
                looks[script] = None
        self.count.run += size
        return self.try_out(list(looks))

    def try_out(self, scripts: Sequence[str]) -> list[Find]:
        """Those of `scripts` that did something."""
        if not scripts:
            return []
        try:
            after = self._jail.run(scripts, seconds=1)
        except subprocess.CalledProcessError:
            # the jail itself did not come up, or was brought down: by one of them, if it happens with that one alone
            if len(scripts) == 1:
                return [Find(scripts[0], ["ended the jail"])]
            half = len(scripts) // 2
            return [*self.try_out(scripts[:half]), *self.try_out(scripts[half:])]
        found = [
            Find(script, [one for one in differences(self._jail.before, each) if not _known(one)])
            for script, each in zip(scripts, after, strict=True)
        ]
        return [one for one in found if set(one.did) - {"changed: ."}]

    def shrink(self, find: Find) -> Find:
        """The smallest script with an effect of which this can be made by leaving pieces out."""
        while True:
            candidates = [each for each in dict.fromkeys(smaller(find.script)) if each and is_look(each)]
            shorter = self.try_out(candidates)
            if not shorter:
                return find
            find = min(shorter, key=lambda one: len(one.script))


def is_look(script: str) -> bool:
    """Whether the classifier lets a script run where only looking is allowed."""
    return judge_script(script).impact(live=True) == 0


def _known(difference: str) -> bool:
    """Whether only a program was missing that the gate knows and this machine lacks."""
    return difference.startswith("came: ran-") and known_program(difference.removeprefix("came: ran-"))


def kept() -> list[str]:
    """What was found before."""
    return [file.read_text(encoding="utf-8") for file in sorted(KEPT.glob("*.sh"))]


def keep(find: Find) -> Path:
    """Put a find into the corpus."""
    KEPT.mkdir(exist_ok=True)
    file = KEPT / f"{hashlib.sha256(find.script.encode()).hexdigest()[:12]}.sh"
    file.write_text(find.script, encoding="utf-8")
    return file


def main(minutes: float, seed: int) -> int:
    """Fuzz for some minutes; the exit status says whether something was found."""
    need_bubblewrap()
    until = time.monotonic() + minutes * 60
    begun = time.monotonic()
    found: list[Find] = []
    with folder_for_jail() as folder:
        fuzzer = Fuzzer(folder, seed)
        while time.monotonic() < until:
            for find in fuzzer.batch():
                small = fuzzer.shrink(find)
                if small.script not in {one.script for one in found}:
                    found.append(small)
                    print(f"FIND {small.script!r} did {small.did}: {keep(small).name}", flush=True)
        seconds = time.monotonic() - begun
        count = fuzzer.count
    print(
        f"{count.judged} scripts judged, {count.run} of them counted as a look and were run, in {seconds:.0f} s: "
        f"{count.judged / seconds:.0f} a second, {count.run / seconds:.0f} run; {len(found)} finds (seed {seed})"
    )
    return 1 if found else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fuzz the shell classifier against a real bash.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    chosen = parser.parse_args()
    sys.exit(main(chosen.minutes, chosen.seed))
