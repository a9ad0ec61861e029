"""Coverage-guided fuzzing of the language: `make fuzz`, or

    python -m tests.core.language.fuzz [--minutes 10] [--corpus DIR]

Any text must be read without a failure, alike however it is cut into chunks, and its fences must be those that
markdown-it-py finds. What the fuzzer found worth keeping stands in `corpus/`, one text in a file, and is held to the
same laws by `test_corpus.py` at every test run. Of what a run finds, those texts are taken over that lead from one
line of the language to another as nothing before them did.

It needs atheris, which `make fuzz` installs; nothing else does.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Final

from iact.core.language import labels
from iact.core.language.actions import CORE_ACTIONS, Registry
from iact.core.language.grammar import Mistake, bind, split
from iact.core.language.scanner import Block, ScanEvent, Scanner, scan
from iact.core.language.variables import Table, mentions, rename, text_value
from tests.core.language.documents import ours, theirs

CORPUS: Final = Path(__file__).parent / "corpus"
LONGEST: Final = 600
"""Bytes of one input: long enough for every rule to meet every other one."""

Step = tuple[str, int, int]
"""File, line before, line."""

Trace = Callable[[FrameType, str, object], object]

_STRANGE_SPACE: Final = re.compile(r"(?![ \t\n\r])\s")
_LANGUAGE: Final = str(Path(scan.__code__.co_filename).parent)
_REGISTRY: Final = Registry(CORE_ACTIONS.values())
_ALONE: Final = """\
import sys
import atheris
with atheris.instrument_imports(include=["iact.core.language"]):
    from tests.core.language.fuzz import check, decoded
atheris.Setup(sys.argv, lambda data: check(decoded(data)))
atheris.Fuzz()
"""
"""The program of the process that fuzzes: what is to be covered must be imported in there."""


def _table() -> Table:
    table = Table()
    table.define("v", text_value("3"))
    table.define("long", text_value("x" * 70_000))
    return table


def check(text: str) -> None:
    """Hold one text to the laws of the language.

    Raises:
        AssertionError: it breaks one; any other exception is a failure as well.
    """
    whole, kept = _fed(text, [max(1, len(text))])
    dice = random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    assert _fed(text, [1]) == (whole, kept), "one character at a time"
    assert _fed(text, [dice.randint(1, 9) for _ in range(4)]) == (whole, kept), "in chunks"
    again = scan(kept, _REGISTRY.is_action)
    assert again.kept == kept, "what was kept reads otherwise"
    # NUL: CommonMark 2.3. Two things markdown-it-py has otherwise than the specification: a last line of blanks
    # without an end is no line to it, and around HTML any white space of Unicode counts, not space and tab alone.
    visible = text.replace("\0", "\ufffd") + "\n"
    if not _STRANGE_SPACE.search(visible):
        assert ours(visible) == theirs(visible), "other fences than markdown-it-py's"
    for event in whole:
        if isinstance(event, Block):
            _bind(event)
    _label(text)


def _fed(text: str, sizes: list[int]) -> tuple[list[ScanEvent], str]:
    scanner, events, at, turn = Scanner(_REGISTRY.is_action), list[ScanEvent](), 0, 0
    while at < len(text):
        events += scanner.feed(text[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    return events + scanner.end(), scanner.kept


def _bind(block: Block) -> None:
    """Arguments are read, or answered by a sentence, for every action there is."""
    taken = split(block.info)
    if isinstance(taken, Mistake):
        assert taken.sentence.strip()
        return
    table = _table()
    for spec in CORE_ACTIONS.values():
        bound = bind(spec, taken[1], block.body, table)
        assert not isinstance(bound, Mistake) or bound.sentence.startswith(f"`{spec.name}` was not run")


def _label(text: str) -> None:
    """What is shown of a text can't leave its fence, and deceives nobody."""
    clean = labels.clean(text)
    assert labels.clean(clean) == clean, "cleaned twice is not cleaned once"
    blocks = scan(labels.fenced(clean), lambda name: True).blocks
    assert [block.closed for block in blocks] == [True], "content left its fence"
    table = _table()
    assert set(mentions(text, table)) <= set(table)
    assert rename(rename(text, {"v": "w"}), {"w": "v"}).count("$") == text.count("$")


def decoded(data: bytes) -> str:
    """An input as text: any bytes are some text."""
    return data.decode("utf-8", "surrogateescape")


def seeds() -> list[bytes]:
    """The corpus."""
    return [path.read_bytes() for path in sorted(CORPUS.iterdir())]


def steps(data: bytes) -> set[Step]:
    """From which line to which an input leads, within the language."""
    found: set[Step] = set()
    last = 0

    def trace(frame: FrameType, event: str, _: object) -> Trace | None:
        nonlocal last
        if not frame.f_code.co_filename.startswith(_LANGUAGE):
            return None
        found.add((frame.f_code.co_filename, last, frame.f_lineno))
        last = frame.f_lineno
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]  # it calls itself otherwise typed
    try:
        check(decoded(data))
    finally:
        sys.settrace(None)
    return found


def keep(found: Iterable[bytes], corpus: Path) -> int:
    """Take those inputs into the corpus, shortest first, that lead where nothing before them led; how many."""
    known = set[Step]().union(*(steps(path.read_bytes()) for path in corpus.iterdir()))
    kept = 0
    for data in sorted(found, key=len):
        new = steps(data)
        if not new <= known:
            known |= new
            kept += 1
            (corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    return kept


def main(arguments: list[str]) -> int:
    """Fuzz, then take over what led somewhere new; 1 if an input failed, which is then named."""
    parser = argparse.ArgumentParser(prog="python -m tests.core.language.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder, failed = Path(made) / "found", Path(made) / "failed-"
        folder.mkdir()
        options = [f"-max_len={LONGEST}", "-timeout=20", f"-max_total_time={round(chosen.minutes * 60)}"]
        program = [
            sys.executable,
            "-c",
            _ALONE,
            *options,
            f"-artifact_prefix={failed}",
            str(folder),
            str(chosen.corpus),
        ]
        ran = subprocess.run(program, check=False)
        for path in Path(made).glob("failed-*"):
            print(f"failed: {path.read_bytes()!r}")
        if ran.returncode == 0:
            print(
                f"{keep((path.read_bytes() for path in folder.iterdir()), chosen.corpus)} texts are new in the corpus."
            )
    return 1 if ran.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
