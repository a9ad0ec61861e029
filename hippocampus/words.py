"""Splits text into the words that carry meaning, for lexical matching and for finding what a text is about.

Identifiers (`billing_service.py`, `HTTP-429`) are kept both whole and in parts: static embeddings know them least, and
engineers ask for them most. English endings are cut roughly; a wrong stem costs little because both sides of a
comparison are cut the same way.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+(?:[_.'’-][^\W_]+)*")
_PART: Final = re.compile(r"[_.'’-]")

STOP: Final = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "don't",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "get",
        "got",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "i'd",
        "i'll",
        "i'm",
        "i've",
        "if",
        "in",
        "into",
        "is",
        "it",
        "it's",
        "its",
        "itself",
        "just",
        "kind",
        "let",
        "like",
        "lot",
        "made",
        "make",
        "many",
        "may",
        "me",
        "might",
        "more",
        "most",
        "much",
        "my",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "oh",
        "on",
        "once",
        "one",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "really",
        "s",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "that's",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "use",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
        "ok",
        "okay",
        "yes",
        "yeah",
        "please",
        "thing",
        "things",
        "went",
        "go",
        "going",
        "want",
        "aber",
        "als",
        "am",
        "an",
        "auch",
        "auf",
        "aus",
        "bei",
        "bin",
        "bis",
        "bitte",
        "da",
        "das",
        "dass",
        "dein",
        "dem",
        "den",
        "der",
        "des",
        "die",
        "dies",
        "diese",
        "doch",
        "du",
        "ein",
        "eine",
        "einem",
        "einen",
        "einer",
        "er",
        "es",
        "für",
        "habe",
        "haben",
        "hat",
        "ich",
        "ihr",
        "im",
        "in",
        "ist",
        "ja",
        "kann",
        "man",
        "mein",
        "meine",
        "meinem",
        "meinen",
        "meiner",
        "mich",
        "mir",
        "mit",
        "nach",
        "noch",
        "nur",
        "oder",
        "sein",
        "sich",
        "sie",
        "sind",
        "so",
        "und",
        "uns",
        "unser",
        "unsere",
        "unserem",
        "unseren",
        "unserer",
        "vom",
        "von",
        "vor",
        "war",
        "was",
        "wenn",
        "wie",
        "wir",
        "wird",
        "zu",
        "zum",
        "zur",
    ]
)
"""Words that say nothing about what a text is about, in English and German."""

_SUBJECT: Final = 4
"""The most words of a subject."""

_ENDINGS: Final = ("ingly", "edly", "ings", "ing", "ied", "ies", "ed", "es", "ly", "s")


def stem(word: str) -> str:
    """A word without its English ending, at least three letters long."""
    if not word.isalpha() or len(word) < 4:
        return word

    for ending in _ENDINGS:
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3:
            return _without_ending(word, root, ending)
    return word.removesuffix("e") if len(word) > 4 else word


def _without_ending(word: str, root: str, ending: str) -> str:
    """The stem of a word that has this ending. `root`: what is before it."""
    if ending in ("ies", "ied"):
        return f"{root}y"
    if ending == "s" and word.endswith("ss"):
        return word

    # "planned" comes from "plan", and "called" from "call".
    is_doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "ls"
    if is_doubled and ending in ("ing", "ed", "ings"):
        root = root[:-1]
    return root.removesuffix("e") if len(root) > 3 else root


def terms(text: str) -> list[str]:
    """The stems of the words that carry meaning, in order, with repetitions; identifiers whole and in parts."""
    stems: list[str] = []
    for word in _WORD.findall(text.casefold()):
        plain = word.replace("’", "'").removesuffix("'s")
        if plain in STOP:
            continue

        parts = [part for part in _PART.split(plain) if part]
        if len(parts) > 1:
            stems.append(plain)
        for part in parts:
            is_short = len(part) == 1 and not part.isdigit()
            if part not in STOP and not is_short:
                stems.append(stem(part))
    return stems


def subject_of(text: str) -> str:
    """The first words of a statement that say what it is about."""
    words = [word for word in _WORD.findall(text) if word.casefold().replace("’", "'") not in _UNTELLING]
    return " ".join(words[:_SUBJECT])


_UNTELLING: Final = STOP | frozenset(
    [
        "prefer",
        "prefers",
        "rather",
        "love",
        "loves",
        "hate",
        "like",
        "likes",
        "dislike",
        "enjoy",
        "always",
        "never",
        "future",
        "call",
        "please",
        "decided",
        "agreed",
        "settled",
        "chose",
        "answer",
        "write",
        "bevorzuge",
        "mag",
        "liebe",
        "hasse",
        "immer",
        "nie",
        "niemals",
        "künftig",
        "antworte",
        "schreibe",
        "entschieden",
        "beschlossen",
        "i'm",
        "i've",
        "we've",
        "don't",
    ]
)
"""Words of a statement that don't belong to its subject."""
