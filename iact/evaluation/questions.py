"""Question sets: the questions, what counts as right, and readers for the files as their authors publish them.

Users must get the files themselves, under their own licences. If a file is missing, the message says where to get it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from iact.core.errors import UsageError

Kind = Literal["text", "yes_no", "number", "letter", "contains", "open"]
"""How an answer is compared. `contains`: it must occur in the reply. `open`: there is no answer to compare with."""


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """One question of a set. `answers`: any of them is right. `group`: the category or level, for the tables.

    `program`: the text of a program that is stored in the session's folder as `tool.py`.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    kind: Kind = "text"
    group: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A published set. `files`: the names of its published files. `source`: who publishes it, and where."""

    name: str
    read: Callable[[str], list[EvalQuestion]]
    files: tuple[str, ...]
    source: str


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _trivia(text: str) -> list[EvalQuestion]:
    found = []
    for one in json.loads(text)["Data"]:
        answer = one["Answer"]
        names = [answer["Value"], *answer.get("Aliases", ()), *answer.get("NormalizedAliases", ())]
        found.append(EvalQuestion(str(one["QuestionId"]), one["Question"], tuple(dict.fromkeys(names))))
    return found


def _nq(text: str) -> list[EvalQuestion]:
    return [
        EvalQuestion(f"nq-{n}", f"{one['question']}?", tuple(one["answer"]))
        for n, one in enumerate(_lines(text), 1)
    ]


def _strategy(text: str) -> list[EvalQuestion]:
    return [
        EvalQuestion(str(one["qid"]), one["question"], ("yes" if one["answer"] else "no",), "yes_no")
        for one in json.loads(text)
    ]


def _gsm(text: str) -> list[EvalQuestion]:
    return [
        EvalQuestion(f"gsm8k-{n}", one["question"], (one["answer"].rpartition("####")[2].strip(),), "number")
        for n, one in enumerate(_lines(text), 1)
    ]


def _aqua(text: str) -> list[EvalQuestion]:
    return [
        EvalQuestion(
            f"aqua-{n}",
            "\n".join((one["question"], "", *one["options"])),
            (one["correct"].strip(),),
            "letter",
        )
        for n, one in enumerate(_lines(text), 1)
    ]


def _hotpot(text: str) -> list[EvalQuestion]:
    return [
        EvalQuestion(str(one["_id"]), one["question"], (one["answer"],), group=str(one.get("type", "")))
        for one in json.loads(text)
    ]


def _gaia(text: str) -> list[EvalQuestion]:
    """The questions that come without a file (KAIJU, table 6)."""
    return [
        EvalQuestion(
            str(one["task_id"]), one["Question"], (str(one["Final answer"]),), group=f"level {one['Level']}"
        )
        for one in _lines(text)
        if not one.get("file_name") and one.get("Final answer") not in (None, "", "?")
    ]


def _own(text: str) -> list[EvalQuestion]:
    found = []
    for n, one in enumerate(_lines(text), 1):
        given = one.get("answer")
        answers = () if given is None else (given,) if isinstance(given, str) else tuple(map(str, given))
        kind: Kind = one.get("kind", "text") if answers else "open"
        found.append(
            EvalQuestion(str(one.get("id", n)), one["question"], answers, kind, str(one.get("category", "")))
        )
    return found


SETS: Final[Mapping[str, QuestionSet]] = {
    one.name: one
    for one in (
        QuestionSet(
            "trivia_qa", _trivia, ("unfiltered-web-dev.json", "wikipedia-dev.json", "web-dev.json"),
            "TriviaQA, nlp.cs.washington.edu/triviaqa",
        ),
        QuestionSet(
            "nq_open", _nq, ("NQ-open.dev.jsonl", "NQ-open.efficientqa.dev.1.1.jsonl"),
            "NQ-Open, github.com/google-research-datasets/natural-questions, folder nq_open",
        ),
        QuestionSet(
            "strategy_qa", _strategy, ("strategyqa_train.json", "train.json", "dev.json"),
            "StrategyQA, allenai.org/data/strategyqa",
        ),
        QuestionSet("gsm8k", _gsm, ("gsm8k_test.jsonl", "test.jsonl"), "GSM8K, github.com/openai/grade-school-math"),
        QuestionSet("aqua_rat", _aqua, ("aqua_test.json", "test.json"), "AQuA-RAT, github.com/google-deepmind/AQuA"),
        QuestionSet(
            "hotpot_qa", _hotpot, ("hotpot_dev_fullwiki_v1.json", "hotpot_dev_distractor_v1.json"),
            "HotPotQA, hotpotqa.github.io",
        ),
        QuestionSet("gaia", _gaia, ("metadata.jsonl",), "GAIA (validation), huggingface.co/datasets/gaia-benchmark/GAIA"),
        QuestionSet("questions", _own, ("questions.jsonl",), "a file of your own; see docs/how-to/evaluate.md"),
    )
}  # fmt: skip


def load(name: str, place: Path) -> list[EvalQuestion]:
    """Load the questions of a set. `place`: its file, or a folder that contains it under one of its published names.

    Raises:
        UsageError: the file is missing, or is not in the format that its authors publish.
    """
    one = SETS[name]
    file = place
    if place.is_dir():
        file = next((place / named for named in one.files if (place / named).is_file()), place / one.files[0])
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        names = " or ".join(one.files)
        raise UsageError(
            f"The questions of {name} are not at {place} ({error.strerror}). Get {names} ({one.source}), and give the file or "
            "its folder with --questions."
        ) from error
    try:
        found = one.read(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{file} is not in the format of {one.source}: {type(error).__name__}: {error}."
        ) from error
    if not found:
        raise UsageError(f"{file} contains no questions.")
    if len({each.id for each in found}) < len(found):
        raise UsageError(f"Two questions in {file} have the same id.")
    return found


def chosen(questions: list[EvalQuestion], most: int | None, seed: int) -> list[EvalQuestion]:
    """Draw `most` questions with the seed, in the order of the file. Without `most`, return all of them."""
    if most is None or most >= len(questions):
        return questions
    drawn = set(random.Random(seed).sample(range(len(questions)), most))
    return [one for n, one in enumerate(questions) if n in drawn]


# --- what counts as right ---------------------------------------------------------------------------

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_SIGNS: Final = re.compile(r"[^\w\s]|_")
_NUMBER: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_ANSWER: Final = re.compile(r"^\W*answer\W*?:[ \t*_`]*(\S.*?)[ \t*_`]*$", re.IGNORECASE | re.MULTILINE)

ASKED: Final[Mapping[Kind, str]] = {
    "text": "a name, a number or a few words",
    "yes_no": "yes or no",
    "number": "a number",
    "letter": "the letter of an option",
    "contains": "the value that was wanted",
    "open": "what came out, in a sentence",
}


def answer_of(reply: str) -> str:
    """The answer in a reply: the last line marked as the answer, otherwise the whole reply."""
    said = _ANSWER.findall(reply)
    return str(said[-1]).strip() if said else reply.strip()


def normalized(text: str, kind: Kind) -> str:
    """An answer, normalized for comparison (PTR, 3.2)."""
    match kind:
        case "number":
            numbers = _NUMBER.findall(text)
            return f"{float(numbers[-1].replace(',', '')):g}" if numbers else ""
        case "yes_no":
            found = re.findall(r"\b(yes|no|true|false)\b", text.lower())
            return {"true": "yes", "false": "no"}.get(found[0], found[0]) if found else ""
        case "letter":
            found = re.findall(r"(?<![A-Za-z])([A-Ea-e])(?![A-Za-z])", text)
            return str(found[0]).upper() if found else ""
        case _:
            return " ".join(_ARTICLES.sub(" ", _SIGNS.sub(" ", text.lower())).split())


def exact(reply: str, question: EvalQuestion) -> bool:
    """Whether the answer is one of the right answers."""
    if question.kind == "contains":
        return any(one in reply for one in question.answers)
    given = normalized(answer_of(reply), question.kind)
    return bool(given) and any(given == normalized(one, question.kind) for one in question.answers)


def f1(reply: str, question: EvalQuestion) -> float:
    """Agreement by words with the best matching answer. For kinds other than text, the same as `exact`."""
    if question.kind != "text":
        return float(exact(reply, question))
    given = normalized(answer_of(reply), "text").split()
    return max((_overlap(given, normalized(one, "text").split()) for one in question.answers), default=0.0)


def _overlap(given: list[str], right: list[str]) -> float:
    rest, common = list(right), 0
    for word in given:
        if word in rest:
            rest.remove(word)
            common += 1
    return 2 * common / (len(given) + len(right)) if common else 0.0
