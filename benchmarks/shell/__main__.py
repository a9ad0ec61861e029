"""How many everyday shell lines the classifier does not understand, and whether it takes hostile ones for read-only.

    python -m benchmarks.shell --data FOLDER

FOLDER contains the unpacked sources of two collections of shell examples that are published as packages, cheat 2.5.1
and eg 1.2.3. A hash splits their lines into those that the authors of the classifier have looked at, and those that
no one has looked at. The classifier must not take any line of the corpus of hostile commands for read-only.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from iact.core.gate.shell import Judgement, judge_script
from tests.core.gate.hostile import COMMANDS
from tests.core.gate.test_shell_corpus import HOSTILE

LONGEST: Final = 300
_UNFINISHED: Final = re.compile(r"<[\w ./-]+>|\[(?:options|file|OPTION)|\{\{|…|\.\.\.$|\\$")
"""Matches lines with a placeholder, and lines that continue on the next one."""


def examples(folder: Path) -> Iterator[str]:
    """The lines of both collections that are commands."""
    for file in sorted(folder.glob("cheat-*/cheat/cheatsheets/*")):
        if file.is_file() and file.suffix != ".py":
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if line and line[0] not in "# \t":
                    yield line.strip()
    for file in sorted(folder.glob("eg*/**/*.md")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if re.match(r"    \S", line):
                yield line.strip()


def everyday(lines: Iterable[str]) -> list[str]:
    """Whole lines that begin with a builtin, or with a program of this machine, each once."""
    listed = subprocess.run(["bash", "-c", "compgen -bk"], capture_output=True, text=True, check=True).stdout
    builtins = set(listed.split()) - {
        "{",
        "}",
        "!",
        "[[",
        "esac",
        "fi",
        "done",
        "do",
        "then",
        "else",
        "elif",
        "in",
    }
    kept: dict[str, None] = {}
    for line in lines:
        text = re.sub(r"^\$ ", "", line)
        words = re.sub(r"^\w+=\S*(?:\s|$)", "", text).split() or [""]
        name = words[0]
        whole = not _UNFINISHED.search(text) and len(text) <= LONGEST and name != "sudo"
        if whole and re.fullmatch(r"[\w.\[:+-]+", name) and (name in builtins or shutil.which(name)):
            kept[text] = None
    return list(kept)


def looked_at(line: str) -> bool:
    """Whether a line is in the half that was looked at."""
    return bool(hashlib.sha256(line.encode()).digest()[0] & 1)


def only_not_understood(judgement: Judgement) -> bool:
    """Whether a line is rated 2 only because something in it was not understood."""
    effects = {finding.effect for finding in judgement.findings}
    return "unknown" in effects and effects <= {"unknown", "modify"}


def row(name: str, lines: Iterable[str]) -> str:
    """One row of the table."""
    judged = [judge_script(line) for line in lines]
    unknown = sum(any(one.effect == "unknown" for one in each.findings) for each in judged)
    alone = sum(map(only_not_understood, judged))
    looks = sum(each.impact(live=True) == 0 for each in judged)
    return f"| {name} | {len(judged)} | {unknown} | {alone} | {looks} |"


def main(folder: Path) -> None:
    """Print the table."""
    lines = everyday(examples(folder))
    hostile = {command for _, command in COMMANDS} | {command for _, command in HOSTILE}
    print("| lines | all | not understood | rated 2 only for that | count as looks |\n|---|---|---|---|---|")
    print(row("looked at", filter(looked_at, lines)))
    print(row("held out", (line for line in lines if not looked_at(line))))
    print(row("hostile", hostile))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the unpacked collections")
    main(parser.parse_args().data)
