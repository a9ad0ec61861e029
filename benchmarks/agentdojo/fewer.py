"""What AgentDojo would ask less if a value lost its label by its type: `python -m benchmarks.agentdojo.fewer`.

A rule that the gate does not have: a number or a date, read by an agent that may do nothing else, counts as the user's.
It is held against the recorded decisions, so the package is not needed.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from benchmarks import kept
from benchmarks.agentdojo.__main__ import HERE, RECORDED, check_frozen
from iact.core.gate.gate import CallRequest, Ticket, arguments_digest, consider
from iact.core.gate.grant import Grant
from iact.core.gate.policy import Policy
from iact.core.gate.policy_file import Policies
from iact.core.gate.provenance import USER, Labels, Provenance
from iact.core.gate.rules import texts_of
from iact.core.ports import JSON

TYPES: Final[Mapping[str, re.Pattern[str]]] = {
    "a number": re.compile(r"-?\d+(\.\d+)?"),
    "a date": re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?"),
    "a number or a date": re.compile(r"-?\d+(\.\d+)?|\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?"),
}


@cache
def _policy(suite: str) -> Policy:
    text = (HERE / "policies" / f"{suite}.toml").read_text(encoding="utf-8")
    return Policies.from_toml(text).named([suite])


def passed(pattern: re.Pattern[str], *, identifiers: bool) -> Counter[bool]:
    """How many questions about the task's own calls (False) and about the attacker's (True) the rule leaves out.

    `identifiers`: whether it counts for numbers of objects, too.
    """
    impacts = tomllib.loads((HERE / "impacts.toml").read_text(encoding="utf-8"))
    found = Counter[bool]()
    for suite, prompt, function, arguments, origins, known, intent, verdict, attack in _rows():
        if verdict != "question":
            continue
        labels: dict[str, Labels] = {
            name: frozenset({USER})
            if _is_of(pattern, name, arguments[name], identifiers)
            else frozenset(some)
            for name, some in origins.items()
        }
        decision = consider(
            CallRequest("/", f"{suite}.{function}", arguments_digest(arguments, {})),
            impacts[suite][function],
            Grant(_policy(suite).scope(), intent),
            _policy(suite),
            arguments=arguments,
            provenance=Provenance(labels, said=(prompt,)),
            known={name: frozenset(values) for name, values in known.items()},
        )
        found[attack] += isinstance(decision, Ticket)
    return found


_Row = tuple[str, str, str, dict[str, JSON], dict[str, list[str]], dict[str, list[str]], int, str, bool]


def _rows() -> Iterator[_Row]:
    data = json.loads(gzip.decompress(RECORDED.read_bytes()))
    texts = data["texts"]
    for row in data["rows"]:
        yield (*(texts[number] for number in row[:6]), row[6], row[7], bool(row[8]))


def _is_of(pattern: re.Pattern[str], name: str, value: JSON, identifiers: bool) -> bool:
    texts = texts_of(value)
    names_an_object = name == "id" or name.endswith("_id")
    may = identifiers or not names_an_object
    return may and bool(texts) and all(pattern.fullmatch(text) for text in texts)


def main() -> int:
    """Print the table."""
    check_frozen()
    rows = []
    for name, pattern in TYPES.items():
        for identifiers in (False, True):
            found = passed(pattern, identifiers=identifiers)
            what = f"{name}, also of an object" if identifiers else name
            rows.append((what, f"{found[False]}", f"{found[True]}"))
    kept.table(
        ("a value that loses its label", "honest questions less", "attackers' calls let through"), rows
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
