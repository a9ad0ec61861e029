"""Plays one cell: to the moment, its end, what is left, and the next start."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.ends.begun import Begun, Script, begun, product_of
from benchmarks.ends.cells import Cell
from benchmarks.ends.traces import Place, Traces
from tests.acceptance.product import Product, Ran, reap
from tests.endpoint import Endpoint

WITHIN: Final = 15.0
"""Seconds after an end in which everything must have ended."""
_MARKERS: Final = count(1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell."""

    cell: Cell
    seconds: float
    """From the end until nothing of the command goes on."""
    status: int | None
    """The command's exit status; negative: the signal that killed it."""
    left: tuple[str, ...]
    """What did nothing any more, and was there until the next start."""
    says: tuple[str, ...]
    """What the next start says of the end, to the person and to the model."""
    wrong: str
    """What may not be; "" if all is well."""

    def told(self) -> str:
        """One line for people."""
        left = f", left: {', '.join(self.left)}" if self.left else ""
        return f"{self.seconds:.1f} s, status {self.status}{left}"

    @classmethod
    def read(cls, line: str) -> Outcome:
        """The inverse of `json.dumps(asdict(outcome))`."""
        fields = json.loads(line)
        lists = {name: tuple(fields[name]) for name in ("left", "says")}
        return cls(**{**fields, **lists, "cell": Cell(**fields["cell"])})


def play(cell: Cell, folder: Path) -> Outcome:
    """Play one cell in an empty folder."""
    # No other process has such an argument: seconds, with a fraction that is counted.
    marker = f"7200.{folder.name[-4:].encode().hex()}{next(_MARKERS)}"
    marker = "".join(sign for sign in marker if sign.isdigit() or sign == ".")
    script = Script(cell, marker)
    with Endpoint(script, crashes=True) as endpoint:
        product = product_of(cell, folder, endpoint)
        place = Place(product.data, folder / "tmp", marker)
        try:
            return _played(cell, product, script, place)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome(
                cell, 0, None, (), (), f"{type(error).__name__} in {last.name}: {str(error)[:600]}"
            )
        finally:
            reap(product.data)


def _played(cell: Cell, product: Product, script: Script, place: Place) -> Outcome:
    with begun(cell, product, script, place) as running:
        known = place.processes()
        script.over = True
        seconds, left = _ended(running, place, known)
        said = running.said
        status = running.process.poll()

    wrong = list[str]()
    if left.going_on:
        wrong.append(f"after {WITHIN:.0f} s there was still: {', '.join(left.going_on)}")
    if left.lying and cell.in_order:
        wrong.append(f"an end in order left: {', '.join(left.lying)}")
    if "Traceback" in said:
        wrong.append(f"it ended with a traceback: {said[-600:]}")

    script.gate.release()
    session, again = _next_start(product)
    after = place.traces(())
    if again.status != 0:
        wrong.append(f"the next start ended with {again.status}: {again.stderr[-400:]}")
    if after:
        wrong.append(f"after the next start there was: {', '.join([*after.going_on, *after.lying])}")
    return Outcome(
        cell, round(seconds, 1), status, left.lying, _says(product, session, again), "; ".join(wrong)
    )


def _ended(running: Begun, place: Place, known: set[tuple[int, str]]) -> tuple[float, Traces]:
    """Send the end. How long something went on, and what is left after that."""
    began = time.monotonic()
    running.end()
    while True:
        running.runs()  # reaps it, so that it is no zombie
        left = place.traces(known)
        took = time.monotonic() - began
        waits_for = left.going_on or (left.lying if running.cell.in_order else ())
        if not waits_for or took >= WITHIN:
            return took, left
        time.sleep(0.1)


def _next_start(product: Product) -> tuple[str, Ran]:
    """Go on in the session that there is, or in a new one."""
    listed = product.run("session", "list", "--json")
    sessions = [str(one["id"]) for one in json.loads(listed.stdout)] if listed.status == 0 else []
    going_on = ["--session", sessions[0]] if sessions else []
    return (sessions[0] if sessions else ""), product.run("run", *going_on, "Go on.")


def _says(product: Product, session: str, again: Ran) -> tuple[str, ...]:
    """What the next start says on standard error, apart from where the journal is, which every run says."""
    found = list[str]()
    for line in again.stderr.splitlines():
        if line.strip() and not line.startswith(("journal: ", "to go on: ")):
            said = line.strip().replace(str(product.data), "DATA")
            found.append(said.replace(session, "ID") if session else said)
    return tuple(found)
