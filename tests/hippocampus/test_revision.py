"""When a newer statement replaces, contradicts or leaves alone an older one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from iact.core.ports import StatementKind
from iact.core.tree.statements import statements_in
from iact.hippocampus import WordEmbedder
from iact.hippocampus.ranking import dot
from iact.hippocampus.revision import Relation, relation, slot
from iact.hippocampus.writer import settle
from tests.hippocampus.fakes import statement


def near(one: str, two: str) -> float:
    async def embed() -> float:
        left, right = await WordEmbedder().embed([one, two])
        return dot(left, right)

    return asyncio.run(embed())


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        ("preference", "I prefer dark mode.", "I prefer light mode.", "replaces"),
        ("preference", "I prefer tea.", "I prefer coffee now, not tea.", "replaces"),
        ("preference", "Answer in German.", "Answer in English from now on.", "replaces"),
        ("preference", "Call me Bob.", "Call me Robert.", "replaces"),
        ("preference", "I like spicy food.", "I don't like spicy food any more.", "replaces"),
        ("preference", "Always use metric units.", "Always use imperial units.", "replaces"),
        ("preference", "I prefer dark mode.", "I prefer dark mode!", "replaces"),
        ("preference", "I like spicy food.", "I like Thai food.", "none"),
        ("preference", "Always answer in metric units.", "Always answer in German.", "none"),
        ("preference", "I prefer short answers.", "I prefer trains to planes.", "none"),
        ("preference", "I prefer Python for scripts.", "I prefer Python for notebooks.", "none"),
        ("preference", "I prefer tabs.", "Forget that I prefer tabs.", "replaces"),
        ("preference", "I'm allergic to peanuts.", "I'm no longer allergic to peanuts.", "replaces"),
        ("preference", "I'm allergic to peanuts.", "From now on, write dates as 31.01.2026.", "none"),
        (
            "preference",
            "From now on, write dates as 2026-01-31.",
            "From now on, write dates as 31.01.2026.",
            "replaces",
        ),
        ("preference", "Ich bevorzuge kurze Antworten.", "Ich bevorzuge jetzt lange Antworten.", "replaces"),
        (
            "preference",
            "Ich bin allergisch gegen Nüsse.",
            "Ich bin nicht mehr allergisch gegen Nüsse.",
            "replaces",
        ),
        ("fact", "My phone number is 123.", "My phone number is 456.", "replaces"),
        ("fact", "I live in Oslo.", "I live in Bergen.", "replaces"),
        ("fact", "My phone number is 123.", "My room number is 456.", "none"),
        ("fact", "The importer drops empty lines.", "The importer does not drop empty lines.", "contradicts"),
        ("fact", "My brother is tall.", "My brother is in Rome for work.", "none"),
        ("fact", "The server listens on port 80.", "The server listens on port 8080 now.", "replaces"),
        ("fact", "The backup runs on Monday.", "The backup runs on Friday.", "none"),
        ("fact", "The importer drops empty lines.", "The cat drops its toys.", "none"),
    ],
)
def test_what_a_newer_statement_does(kind: StatementKind, old: str, new: str, expected: Relation) -> None:
    said = statements_in(new)
    withdraws = bool(said) and said[0].withdraws
    newer = replace(statement(new, identity="s/2", kind=kind, days=1), withdraws=withdraws)
    older = statement(old, identity="s/1", kind=kind, days=2)
    assert relation(newer, older, near(new, old)) == expected


def test_what_came_from_outside_replaces_nothing_of_the_users() -> None:
    older = statement("My phone number is 123.", identity="s/1", days=2)
    newer = statement("My phone number is 666.", identity="s/2", days=1, untrusted=("tool:web.fetch",))
    assert relation(newer, older, 0.9) == "contradicts"
    both = statement("My phone number is 5.", identity="s/0", days=3, untrusted=("tool:web.fetch",))
    assert relation(newer, both, 0.9) == "replaces"


def test_a_late_arrival_does_not_replace_what_is_newer() -> None:
    late = statement("I prefer dark mode.", identity="s/9", kind="preference", days=5)
    held = statement("I prefer light mode.", identity="s/1", kind="preference", days=1)
    mine, theirs = settle(late, held, 0.8)
    assert mine.replaced_by == "s/1"
    assert theirs is not None
    assert theirs.replaces == ("s/9",)
    assert not theirs.replaced_by


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("My phone number is 123", "phon number", "123"),
        ("I now work for Gull Press", "work", "gull press"),
        ("Please answer in German.", "answer", "german"),
    ],
)
def test_slots(text: str, name: str, value: str) -> None:
    assert slot(text) == (name, value)
    assert slot("Nothing of that form") is None
