"""Which statements a text makes, by plain rules: no model is asked, and what is in doubt is none. Pure.

A statement is one clause about its person, the project or the world that holds beyond the task at hand: a wish, a
constraint, a decision, a fact. A question, an order, an example or a quotation is none. English and German are
understood, the languages of the page.

    I'm allergic to peanuts, and please write dates as 2026-01-31 here.
    └── a constraint ──────┘ └── an order for this task, so no statement
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from iact.core.ports import LONGEST_STATEMENT, StatementKind

_SHORTEST: Final = 8
"""The fewest characters of one statement."""

_MOST: Final = 12
"""The most statements that one text can make."""

_REMEMBERED: Final = 512
"""For how many texts the answer is kept: a message is asked about when it is read, and again when it is distilled."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement of a text."""

    text: str
    """The clause as it was written, as a sentence of its own."""
    kind: StatementKind
    withdraws: bool = False
    """Whether it says that something no longer holds."""


@lru_cache(maxsize=_REMEMBERED)
def statements_in(text: str) -> tuple[Clause, ...]:
    """The statements that a person makes in a message."""
    found = [clause for sentence in _sentences(own_words(text)) for clause in _clauses(sentence)]
    return tuple(found[:_MOST])


def statements_kept(text: str, kind: StatementKind) -> tuple[Clause, ...]:
    """The statements that an agent keeps with REMEMBER, a sentence each. `kind`: as it said."""
    found = [
        Clause(_as_sentence(sentence), kind, _withdraws(sentence))
        for sentence in _sentences(own_words(text))
        if not is_order(sentence) and len(sentence) >= _SHORTEST // 2
    ]
    return tuple(clause for clause in found if len(clause.text) <= LONGEST_STATEMENT)[:_MOST]


def is_order(text: str) -> bool:
    """Whether a text orders its reader to do something, so that it must never be told to another agent."""
    return _ORDER.search(_plain(text)) is not None


def is_bare_order(text: str) -> bool:
    """Whether a clause orders something and does not say that it holds from now on."""
    plain = _plain(text)
    orders = _IMPERATIVE.search(plain) is not None or _ASKS.match(plain) is not None
    return is_order(plain) or (orders and _kind_of(plain) is None)


def can_be_decision(text: str) -> bool:
    """Whether a clause can say what was decided: the rule for decisions says so, or it begins with a subject. An order
    begins with its verb. Scripts without spaces between words are not judged."""
    plain = _plain(text)
    return _DECISION.search(plain) is not None or _SUBJECT.match(plain) is not None or plain[:1] >= "\u2e80"


def asserted(text: str) -> str:
    """What a person says in a message, without its questions and what an order hands over behind a colon."""
    sentences = list[str]()
    for sentence in _sentences(own_words(text)):
        before, colon, _ = sentence.partition(":")
        hands_over = bool(colon) and is_bare_order(_INTRODUCTION.sub("", before))
        if hands_over:
            # All that follows can be somebody else's.
            break
        if not sentence.endswith("?"):
            sentences.append(sentence)
    return "\n".join(sentences)


def as_clause(text: str, kind: StatementKind, *, withdraws: bool = False) -> Clause:
    """A clause that somebody else has found in a text. `withdraws`: they said so."""
    return Clause(_as_sentence(text), kind, withdraws or _withdraws(text))


# --- the parts of a text ----------------------------------------------------------------------------------------

_BLOCK: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*\s*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED: Final = re.compile(r"^\s*>.*$", re.MULTILINE)
_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+|\n+")
_MARKER: Final = re.compile(r"^(?:[-*+•]|\d{1,2}[.)])\s+")
_INTRODUCTION: Final = re.compile(
    r"^(?:(?:and|but|also|so|ok(?:ay)?|well|actually|eigentlich|hi|hello|hallo|fyi|by the way|btw|please (?:note|remember|keep in mind)(?: that)?"
    r"|remember(?: that)?|note(?: that)?|keep in mind(?: that)?"
    r"|und|aber|auch|übrigens|also|bitte merk dir,?(?: dass)?|merk dir,?(?: dass)?|beachte,?(?: dass)?)\b[,:]?\s+)+",
    re.IGNORECASE,
)
_JOINT: Final = re.compile(
    r"\s*;\s*|\s+[–—]\s+|,?\s+(?:and|but|und|aber|sondern|while|während)\s+|,\s+", re.IGNORECASE
)
"""Where a sentence may be divided, if another clause begins behind it."""

_BEGINS: Final = re.compile(
    r"""(?:please\s+|bitte\s+|also\s+|auch\s+|then\s+|dann\s+|so\s+)*
        (?:i|i'[a-z]+|we|we'[a-z]+|you|he|she|it|they|my|our|your|his|her|their|the|this|that|these|there
          |always|never|from\ now|in\ future|don't|do|does|let|let's|can|could|would|will|if|when|because|since
          |write|use|call|answer|reply|respond|speak|make|draft|create|keep|tell|give|show|send|format|look|find
          |check|fix|add|remove|change|suggest|plan|run|read|translate|summari[sz]e|forget|stop|remember
          |ich|wir|du|ihr|sie|er|es|mein\w*|unser\w*|dein\w*|der|die|das|immer|nie|niemals|ab\ jetzt|künftig
          |schreib\w*|nimm|nutze?|verwende|antworte|mach\w*|gib|zeig\w*|such\w*|prüf\w*|sag\w*|vergiss|nenn\w*)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a clause of its own begins; what begins otherwise goes on with the clause before it."""

_FRAME: Final = re.compile(
    r"(?:please\s+|bitte\s+)?(?:from now on|in (?:the )?future|ab (?:jetzt|sofort)|in zukunft|künftig)",
    re.IGNORECASE,
)
"""What says that a wish holds from now on; the wish itself follows."""


def own_words(text: str) -> str:
    """A text without its blocks and block quotes, which are often not its author's."""
    return _QUOTED.sub("\n", _BLOCK.sub("\n", text))


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.split(text):
        sentence = _MARKER.sub("", part.strip())
        if sentence:
            yield " ".join(sentence.split())


def _plain(text: str) -> str:
    return text.replace("’", "'").strip()


def _clauses(sentence: str) -> Iterator[Clause]:
    """The statements in one sentence."""
    if sentence.endswith("?"):
        return

    for part in _divided(sentence):
        clause = _INTRODUCTION.sub("", part)
        plain = _plain(clause)
        kind = _kind_of(plain)
        fits = _SHORTEST <= len(clause) <= LONGEST_STATEMENT
        if kind is not None and fits and not is_order(plain) and not _PASSING.search(plain):
            yield Clause(_as_sentence(clause), kind, _withdraws(clause))


def _divided(sentence: str) -> list[str]:
    """The clauses of a sentence, each with what belongs to it."""
    clauses: list[str] = []
    begun = 0
    for joint in _JOINT.finditer(sentence):
        before, rest = _plain(sentence[begun : joint.start()]), _plain(sentence[joint.end() :])
        if _BEGINS.match(rest) and not _FRAME.fullmatch(before):
            clauses.append(sentence[begun : joint.start()])
            begun = joint.end()
    clauses.append(sentence[begun:])
    return clauses


def _as_sentence(clause: str) -> str:
    text = clause.strip().rstrip(",;:")
    ends = text.endswith((".", "!", "…", '"', ")"))
    return text[:1].upper() + text[1:] + ("" if ends else ".")


# --- what a clause is -------------------------------------------------------------------------------------------

_LANGUAGES: Final = (
    r"(?:english|german|french|spanish|italian|portuguese|dutch|polish|swedish|danish|norwegian|finnish|russian"
    r"|ukrainian|turkish|greek|arabic|hebrew|hindi|chinese|japanese|korean"
    r"|englisch|deutsch|französisch|spanisch|italienisch|portugiesisch|polnisch|russisch|türkisch)"
)

_DOES: Final = (
    r"(?:write|use|call|answer|reply|respond|speak|make|keep|tell|give|show|send|format|put|begin|start|end|sign|address|name"
    r"|schreib\w*|nimm|nutze?|verwende|antworte|mach\w*|gib|zeig\w*|nenn\w*|sprich|beginne?)"
)
"""How a wish begins that says elsewhere that it holds from now on."""

_ORDER: Final = re.compile(
    r"\byour caller\b|\bdein\w* aufrufer\w*\b"
    r"|\b(?:ignore|forget|disregard) (?:all |any |your |the )*(?:previous |prior |earlier )?(?:instructions|orders|rules|prompts?)\b",
    re.IGNORECASE,
)

_IMPERATIVE: Final = re.compile(
    r"^(?:please\s+|bitte\s+)?(?:write|make|draft|create|give|show|send|tell|look|find|check|fix|add|remove|change|suggest|plan|run|read"
    r"|translate|summari[sz]e|fetch|list|compute|calculate|explain|ignore|disregard|call|delete|open|download"
    r"|schreib\w*|mach\w*|gib|zeig\w*|such\w*|prüf\w*|sag\w*|nimm|erklär\w*|lösch\w*|ruf\w*)\b",
    re.IGNORECASE,
)
"""How an order begins."""

_SUBJECT: Final = re.compile(
    r"(?:i|we|our|my|the|it|they|he|she|this|that|there|ich|wir|unser\w*|mein\w*|der|die|das|es|sie"
    r"|je|nous|on|notre|le|la|les|il|nosotros|nuestr\w+|el|los|las|noi|io)\b",
    re.IGNORECASE,
)
"""How a clause with a subject begins."""

_ASKS: Final = re.compile(r"(?:please|bitte)\b", re.IGNORECASE)
"""How a clause begins that asks for something, whatever its verb is."""

_PASSING: Final = re.compile(
    r"\b(?:for now|this time|just this once|for (?:this|the) (?:task|session|message|answer|moment)|in this (?:session|task|chat)"
    r"|diesmal|dieses mal|nur heute|vorerst|in dieser sitzung)\b"
    r"|\b(?:like|love|hate|dislike|enjoy|prefer|mag|liebe|hasse)\s+(?:this|that|it|your|these|those|the (?:first|second|third|last|idea|plan|draft)"
    r"|das|dies\w*|dein\w*|den (?:ersten|zweiten|letzten))\b"
    r"|\bnever mind\b",
    re.IGNORECASE,
)
"""What holds only for the task at hand, or points at something in it."""

_WITHDRAWS: Final = re.compile(
    r"\b(?:no longer|any\s?more|not any longer|nicht mehr|nicht länger|kein\w* \w+ mehr)\b"
    r"|^(?:please |bitte )?(?:forget|vergiss)\b",
    re.IGNORECASE,
)

_GOES_ON: Final = re.compile(
    r"\b(?:no longer|don't|do not)\s+(?:eat|drink|smoke|drive)\b|\b(?:esse|trinke|rauche)\b.*\bmehr\b",
    re.IGNORECASE,
)
"""What says how somebody lives from now on, and withdraws nothing."""

_CONSTRAINT: Final = re.compile(
    r"""^(?:i|i'm|my|we|we're|our|ich|wir|mein\w*|unser\w*)\b.*
          \b(?:allerg\w+|intoleran\w+|unverträglich\w*|co?eliac|zöliakie|diabet\w+|vegetari\w+|vegan\w*|halal|kosher|koscher)\b
      | ^i\s+(?:can't|cannot|can\ not|don't|do\ not|never|no\ longer)\s+(?:eat|drink|tolerate|hear|see|smoke|drive)\b
      | ^ich\s+(?:esse|trinke|vertrage|rauche|fahre)\s+(?:kein\w*|nie|niemals|nicht)\b""",
    re.IGNORECASE | re.VERBOSE,
)

_WISH: Final = re.compile(
    rf"""^i(?:\s+(?:do|really|much|now|also|still|always|usually|generally|mostly|strongly|no\s+longer|don't|do\s+not|never))*
           \s+(?:prefer|like|love|hate|dislike|enjoy)\b
      | ^i(?:'d|\s+would)\s+(?:always\s+|much\s+)?(?:rather|prefer)\b
      | ^i\s+(?:can't\s+stand|don't\s+want|do\s+not\s+want|never\s+want|no\s+longer\s+want|always\s+want)\b
      | ^i\s+want\s+(?:you\s+to\s+(?:always|never)|all\b|every\b)
      | ^my\s+(?:favou?rite|preferred|preference)\b | ^(?:please\s+)?call\s+me\b | ^my\s+name\s+is\b
      | ^(?:please\s+)?(?:always|never|don't\s+ever)\s+\w
      | ^(?:please\s+)?(?:from\s+now\s+on|in\s+(?:the\s+)?future)\b
      | ^(?:please\s+)?(?:answer|reply|respond|write|speak)(?:\s+to\s+me)?(?:\s+(?:only|always))*\s+in\s+{_LANGUAGES}\b
      | ^(?:please\s+|bitte\s+)?{_DOES}\b.*\b(?:from\s+now\s+on|in\s+(?:the\s+)?future|ab\s+(?:jetzt|sofort)|in\s+zukunft|künftig)\b
      | ^(?:please\s+)?forget\s+that\b
      | ^ich\s+(?:(?:jetzt|immer|lieber|eigentlich|auch)\s+)*(?:bevorzuge|mag|liebe|hasse)\b
      | ^ich\s+(?:möchte|will)\s+(?:immer|nie|niemals|kein\w*|nicht\s+mehr)\b
      | ^(?:bitte\s+)?(?:immer|nie|niemals)\b | ^(?:bitte\s+)?(?:ab\s+(?:jetzt|sofort)|in\s+zukunft|künftig)\b
      | ^(?:bitte\s+)?(?:antworte|schreib\w*|sprich)(?:\s+(?:mir|bitte|immer|nur))*\s+auf\s+{_LANGUAGES}\b
      | ^(?:bitte\s+)?nenn\w*\s+mich\b | ^mein\w*\s+lieblings\w+ | ^ich\s+heiße\b
      | ^(?:bitte\s+)?vergiss,?\s+dass\b""",
    re.IGNORECASE | re.VERBOSE,
)

_DECISION: Final = re.compile(
    r"""^we(?:'ve|\s+have)?(?:\s+(?:now|all|just|finally))*\s+(?:decided|agreed|settled|chose|chosen|picked|voted)\b
      | ^(?:the|our)\s+decision\s+(?:is|was)\b | ^it\s+(?:is|was|has\s+been)\s+decided\b
      | ^wir\s+haben\b.*\b(?:entschieden|beschlossen|geeinigt|festgelegt)\b
      | ^(?:es|das)\s+(?:ist|wurde)\s+(?:beschlossen|entschieden)\b | ^unsere\s+entscheidung\b""",
    re.IGNORECASE | re.VERBOSE,
)

_FACT: Final = re.compile(
    r"""^(?:my|our)\s+(?!tasks?\b|questions?\b|problems?\b|requests?\b|points?\b|ideas?\b|next\b|last\b|goals?\b|plans?\b)
          [\w'/ -]{1,60}?\s(?:is|are|has|have|runs?|listens?|lives?|works?|starts?|takes?|goes|costs?|closes?|opens?|uses?|belongs?)\s
      | ^the\s+[\w'/ -]{1,40}?\s(?:is|are)\s+(?:called|named)\b | ^the\s+[\w'/ -]{1,40}?\slistens?\s+on\b
      | ^(?:i'm|i\s+am)\s+(?:a|an|the|from|based|left-handed|colou?r.?blind|deaf|blind|\d+\s+years?)\b
      | ^i\s+(?:now\s+)?(?:live|work|study|teach|speak|grew\s+up|was\s+born)\b
      | ^we\s+(?:use|run|host|deploy)\b
      | ^(?:mein|unser)e?\s+(?!aufgabe\b|frage\b|problem\b|bitte\b|ziel\b|plan\b|idee\b)
          [\w/ -]{1,50}?\s(?:ist|sind|heißt|heißen|hat|haben|läuft|liegt|wohnt|arbeitet|kostet|nutzt|verwendet)\s
      | ^(?:der|die|das)\s+[\w/ -]{1,40}?\sheißt\b
      | ^ich\s+(?:wohne|lebe|arbeite|studiere|spreche)\b | ^ich\s+bin\s+(?:ein\w*\b|aus\b|\d+\s+jahre)
      | ^wir\s+(?:nutzen|verwenden|betreiben)\b""",
    re.IGNORECASE | re.VERBOSE,
)


def _kind_of(clause: str) -> StatementKind | None:
    """What kind of statement a clause is; None if it is none."""
    if _CONSTRAINT.search(clause) or _WISH.search(clause):
        return "preference"
    if _DECISION.search(clause):
        return "decision"
    if _FACT.search(clause):
        return "fact"
    # What no longer holds was a statement once.
    return "preference" if _FORGET.search(clause) else None


_FORGET: Final = re.compile(
    r"^(?:i'm|i am|we|ich bin)\b.*\b(?:no longer|any\s?more|nicht mehr)\b", re.IGNORECASE
)


def _withdraws(clause: str) -> bool:
    plain = _plain(clause)
    return _WITHDRAWS.search(plain) is not None and _GOES_ON.search(plain) is None
