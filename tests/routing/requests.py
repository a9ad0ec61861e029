"""120 requests in six languages, written before the router: what each of them is like, and what may become of it.

`class` says which ways are right, and the columns behind it what a person says that the request is like.

    talk, one      a dialogue
    foreseeable    a plan that is written beforehand
    branch         a profile, whose rules hold the case
    multihop       a dialogue or a mode that observes; never what is written beforehand (PTR's counter-example)
    debug          likewise
    goal           a mode that judges the result and tries again
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.plan.modes.auto import Choice, Features

FILE: Final = Path(__file__).parent / "requests.tsv"

RIGHT: Final = {
    "talk": {"dialogue"},
    "one": {"dialogue"},
    "foreseeable": {"profile", "static"},
    "branch": {"profile"},
    "multihop": {"dialogue", "reflect", "nreflect", "orchestrator", "analyze"},
    "debug": {"dialogue", "reflect", "nreflect", "orchestrator", "analyze"},
    "goal": {"analyze", "reflect"},
}

WRONG: Final = {
    ("foreseeable", "dialogue"): "it works, one call after the other: slower, and more tokens",
    ("foreseeable", "analyze"): "it works, with a judgement that nobody needs",
    ("foreseeable", "reflect"): "it works, with judgements that nobody needs",
    ("branch", "dialogue"): "it works, one call after the other: slower, and more tokens",
    ("branch", "reflect"): "it works, with judgements that a rule could have spared",
    ("branch", "analyze"): "it works, with a judgement that a rule could have spared",
    ("goal", "dialogue"): "it works as far as the agent thinks of trying again by itself",
    ("goal", "profile"): "nothing judges the result, and nothing is tried again but one repair",
    (
        "multihop",
        "profile",
    ): "the second hop must be guessed before the first is known; only a climb mends that",
    ("debug", "profile"): "the cause must be guessed before anything was looked at; only a climb mends that",
    ("talk", "profile"): "a plan is written where words suffice",
    ("talk", "reflect"): "a plan is written where words suffice",
    ("talk", "analyze"): "a plan is written where words suffice",
    ("one", "profile"): "a plan is written for one call",
    ("one", "reflect"): "a plan is written for one call",
    ("one", "analyze"): "a plan is written for one call",
}
"""Why a way is wrong for a class, and what it costs."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `like`: what a person says that it is like."""

    language: str
    kind: str
    text: str
    like: Features


def requests() -> Iterator[Request]:
    """All of them."""
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            told = {name: row[name] == "1" for name in ("foreseeable", "depends", "repeat", "branches")}
            like = Features.model_validate({"steps": int(row["steps"]), **told})
            yield Request(row["language"], row["class"], row["text"], like)


def is_right(request: Request, choice: Choice) -> bool:
    """Whether a way is one of those that are right for the request's class."""
    return choice.way in RIGHT[request.kind]


def table(chosen: Iterable[tuple[Request, Choice]]) -> list[list[str]]:
    """Of each class: how many, how many right, and what the wrong ones got."""
    rows = []
    pairs = list(chosen)
    for kind in RIGHT:
        of = [(request, choice) for request, choice in pairs if request.kind == kind]
        got: dict[str, int] = {}
        for request, choice in of:
            if not is_right(request, choice):
                got[choice.way] = got.get(choice.way, 0) + 1
        wrong = "; ".join(f"{count} {way}: {WRONG[kind, way]}" for way, count in sorted(got.items()))
        rows.append([kind, str(len(of)), str(len(of) - sum(got.values())), wrong or "–"])
    return rows
