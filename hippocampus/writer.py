"""Everything that changes the store. Blocking; runs in one thread, one call after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from iact.hippocampus.decisions import origin
from iact.hippocampus.extraction import shorten
from iact.hippocampus.fragment import Fragment, MemoryScope, fragment_id
from iact.hippocampus.indexes import Indexes
from iact.hippocampus.ranking import dot
from iact.hippocampus.revision import comparable, negative, relation, slot
from iact.hippocampus.store import FragmentSet, Store, StoredHit

_REVISED: Final = 16
"""Nearest fragments that a new statement is compared with."""

_FAR: Final = 0.3
"""The cosine below which two texts are not about one thing, with the built-in model. Comparing texts costs more."""

Vectors = Sequence[Sequence[float]]


class MemoryWriter:
    """Writes the fragments of one embedder to a store, and keeps their lexical indexes up to date."""

    def __init__(self, store: Store, indexes: Indexes, embedder: str) -> None:
        self._store = store
        self._indexes = indexes
        self._embedder = embedder

    def fragment_set(self, scope: MemoryScope) -> FragmentSet:
        """The set of a scope's fragments."""
        return FragmentSet(scope, self._embedder)

    def fragment_sets(self, user: str) -> list[FragmentSet]:
        """All fragment_sets of a user."""
        found = self._store.fragment_sets()
        return [one for one in found if one.scope.user == user and one.embedder == self._embedder]

    def add(self, fragments: Sequence[Fragment], vectors: Vectors) -> None:
        """Store fragments, oldest first. Those that may replace or contradict others are compared with them.

        Fragments that are already stored stay unchanged: their marks may contain more by now.
        """
        stored = self.stored(fragments)
        pending: dict[str, tuple[Fragment, Sequence[float]]] = {}
        for fragment, vector in zip(fragments, vectors, strict=True):
            if fragment.id not in stored:
                asked = self._replacing(fragment, pending) if fragment.supersedes else fragment
                settled = self._settled(asked, vector, pending) if _revises(asked) else asked
                pending[fragment.id] = (settled, vector)
        self._put(list(pending.values()))

    def merge(self, user: str, fragment: Fragment, vector: Sequence[float]) -> bool:
        """Store a consolidated fragment in place of its sources. False if one of them is gone or was replaced."""
        fragment_set = self.fragment_set(fragment.scope)
        sources = self._store.get(fragment_set, fragment.sources)
        if len(sources) != len(fragment.sources) or any(hit.fragment.superseded_by for hit in sources):
            return False
        replaced = [(replace(hit.fragment, superseded_by=fragment.id), hit.vector) for hit in sources]
        self._put([(fragment, vector), *replaced])
        return True

    def stored(self, fragments: Sequence[Fragment]) -> set[str]:
        """The ids of those that are already stored."""
        by_scope: dict[MemoryScope, list[str]] = {}
        for one in fragments:
            by_scope.setdefault(one.scope, []).append(one.id)
        return {
            hit.fragment.id
            for scope, ids in by_scope.items()
            for hit in self._store.get(self.fragment_set(scope), ids)
        }

    def edited(self, user: str, identity: str, text: str) -> dict[str, str]:
        """The new texts of a record's fragments when one of them is edited, by id; empty if there is no such fragment.

        Fragments that contain the old text change with it. Those that occur only in the old text become empty, to be
        removed.
        """
        found = self.find(user, identity)
        if found is None:
            return {}
        old, record = found[1].fragment.text, origin(identity)
        texts = {identity: text}
        for one in self.everything(user):
            if one.id == identity or origin(one.id) != record:
                continue
            if old in one.text:
                texts[one.id] = shorten(one.text.replace(old, text))
            elif one.text in old and one.text not in text:
                texts[one.id] = ""
        return texts

    def rewrite(self, user: str, texts: Mapping[str, str], vectors: Mapping[str, Sequence[float]]) -> None:
        """Change fragments' texts as if they had always read so. Fragments consolidated from the old texts are removed.

        A fragment that replaced one of them because an agent said so is written again, and replaces it again.
        """
        stored = {
            hit.fragment.id: hit
            for fragment_set in self.fragment_sets(user)
            for hit in self._store.all(fragment_set)
        }
        again = set(texts)
        while more := {key for key in stored.keys() - again if _named(stored[key].fragment, again)}:
            again |= more
        removed = [hit.fragment for key, hit in stored.items() if key in again]
        made = {key for key, hit in stored.items() if not again.isdisjoint(hit.fragment.sources)}
        distilled = [stored[key].fragment for key in made - again]
        self.remove(user, [*removed, *distilled])
        fresh = [_unmarked(one, texts.get(one.id, one.text)) for one in removed]
        ordered = sorted((one for one in fresh if one.text), key=lambda one: (one.at, one.id))
        self.add(ordered, [vectors.get(one.id, stored[one.id].vector) for one in ordered])

    def find(self, user: str, identity: str) -> tuple[FragmentSet, StoredHit] | None:
        """A fragment of the user by its id."""
        for fragment_set in self.fragment_sets(user):
            for hit in self._store.get(fragment_set, [identity]):
                return fragment_set, hit
        return None

    def gone_with(self, user: str, ids: Iterable[str]) -> list[Fragment]:
        """The fragments to remove when these are forgotten.

        These are the fragments that they were made from, all others from the same records, and any that were made from
        those.
        """
        stored = self.everything(user)
        wanted = set(map(origin, ids))
        wanted.update(origin(source) for one in stored if one.id in wanted for source in one.sources)
        return [one for one in stored if not wanted.isdisjoint(map(origin, (one.id, *one.sources)))]

    def of_sessions(self, user: str, sessions: Sequence[str]) -> list[Fragment]:
        """The fragments that came from these sessions, and those that were made from them and others."""
        wanted = set(sessions)
        return [
            one
            for one in self.everything(user)
            if one.session in wanted or any(source.partition("/")[0] in wanted for source in one.sources)
        ]

    def everything(self, user: str) -> list[Fragment]:
        """All fragments of a user."""
        return [
            one for fragment_set in self.fragment_sets(user) for one in self._store.fragments(fragment_set)
        ]

    def remove(self, user: str, fragments: Sequence[Fragment], *, scrub: bool = True) -> None:
        """Delete fragments, and remove all marks that refer to them from others.

        `scrub`: also leave no byte of them on the disk. That rewrites their fragment_sets, which can't be read meanwhile.
        """
        gone = {one.id for one in fragments}
        touched: list[FragmentSet] = []
        for fragment_set in self.fragment_sets(user):
            here = [one.id for one in fragments if one.scope == fragment_set.scope]
            if here:
                self._store.delete(fragment_set, here)
                self._indexes.remove(fragment_set, here)
            left = [_without(hit, gone) for hit in self._store.all(fragment_set)]
            changed = [hit for hit in left if hit is not None]
            self._put([(hit.fragment, hit.vector) for hit in changed])
            if here or changed:
                touched.append(fragment_set)
        if scrub:
            self._store.scrub(touched)

    def clear(self, user: str) -> None:
        """Empty the user's memory, before a rebuild."""
        for fragment_set in self._store.fragment_sets():
            if fragment_set.scope.user == user:
                self._indexes.drop(fragment_set)
                self._store.drop(fragment_set)

    def foreign(self) -> list[FragmentSet]:
        """Sets with another embedder's vectors, to be embedded again."""
        return [one for one in self._store.fragment_sets() if one.embedder != self._embedder]

    def texts(self, fragment_set: FragmentSet) -> list[Fragment]:
        """Everything in a fragment set."""
        return list(self._store.fragments(fragment_set))

    def hits(self, fragment_set: FragmentSet) -> list[StoredHit]:
        """Everything in a fragment set, with vectors."""
        return list(self._store.all(fragment_set))

    def carry(self, fragments: Sequence[Fragment], vectors: Vectors) -> None:
        """Store fragments with the marks that they have."""
        self._put(list(zip(fragments, vectors, strict=True)))

    def drop(self, fragment_set: FragmentSet) -> None:
        """Remove a whole fragment set."""
        self._indexes.drop(fragment_set)
        self._store.drop(fragment_set)

    def _put(self, given: Sequence[tuple[Fragment, Sequence[float]]]) -> None:
        by_scope: dict[MemoryScope, list[tuple[Fragment, Sequence[float]]]] = {}
        for one in given:
            by_scope.setdefault(one[0].scope, []).append(one)
        for scope, several in by_scope.items():
            fragments = [fragment for fragment, _ in several]
            self._store.put(self.fragment_set(scope), fragments, [vector for _, vector in several])
            self._indexes.put(self.fragment_set(scope), fragments)

    def _settled(
        self,
        fragment: Fragment,
        vector: Sequence[float],
        pending: dict[str, tuple[Fragment, Sequence[float]]],
    ) -> Fragment:
        """Mark, in `pending`, what the fragment replaces or contradicts. Return the fragment with its own marks."""
        scopes = {fragment.scope, MemoryScope(fragment.scope.user, "user")}
        others = [(one, dot(vector, its)) for one, its in pending.values() if one.scope in scopes]
        for scope in sorted(scopes, key=lambda one: one.key):
            hits = self._store.nearest(self.fragment_set(scope), [vector], _REVISED)[0]
            others.extend((hit.fragment, hit.similarity) for hit in hits if hit.fragment.id not in pending)
        for other, near in others:
            fragment, changed = settle(fragment, other, near)
            if changed is not None:
                self._mark(changed, pending)
                if changed.superseded_by:
                    self._mark_whole(changed, pending)
        return fragment

    def _replacing(
        self, fragment: Fragment, pending: dict[str, tuple[Fragment, Sequence[float]]]
    ) -> Fragment:
        """Mark the fragments that this one replaces according to an agent. Untrusted ones replace no trusted ones."""
        done: list[str] = []
        for identity in fragment.supersedes:
            held = pending.get(identity)
            found = self.find(fragment.scope.user, identity)
            other = held[0] if held else found[1].fragment if found else None
            if other is None or other.superseded_by or (fragment.untrusted and not other.untrusted):
                continue
            self._mark(replace(other, superseded_by=fragment.id), pending)
            done.append(identity)
        return replace(fragment, supersedes=tuple(done))

    def _mark(self, changed: Fragment, pending: dict[str, tuple[Fragment, Sequence[float]]]) -> None:
        """Keep a stored or pending fragment's new marks."""
        if changed.id in pending:
            pending[changed.id] = (changed, pending[changed.id][1])
            return
        for hit in self._store.get(self.fragment_set(changed.scope), [changed.id]):
            pending[changed.id] = (changed, hit.vector)

    def _mark_whole(self, replaced: Fragment, pending: dict[str, tuple[Fragment, Sequence[float]]]) -> None:
        """Mark the message that contains a replaced fragment as replaced, too."""
        whole = fragment_id(replaced.session, replaced.record)
        held = pending.get(whole)
        found = (
            [held[0]]
            if held
            else [hit.fragment for hit in self._store.get(self.fragment_set(replaced.scope), [whole])]
        )
        for one in found:
            if (
                one.id != replaced.id
                and not one.superseded_by
                and replaced.text in " ".join(one.text.split())
            ):
                self._mark(replace(one, superseded_by=replaced.superseded_by), pending)


def settle(fragment: Fragment, other: Fragment, near: float) -> tuple[Fragment, Fragment | None]:
    """The new fragment and the changed other one (None: unchanged), each with its marks; `near`: their cosine."""
    if (near < _FAR and slot(fragment.text) is None) or not comparable(fragment, other):
        return fragment, None
    late = (fragment.at, fragment.id) >= (other.at, other.id)
    newer, older = (fragment, other) if late else (other, fragment)
    said = relation(newer, older, near)
    if said == "none":
        return fragment, None
    if said == "contradicts":
        changed = replace(other, contradicts=_with(other.contradicts, fragment.id))
        return replace(fragment, contradicts=_with(fragment.contradicts, other.id)), changed
    if late:
        changed = replace(other, superseded_by=fragment.id)
        return replace(fragment, supersedes=_with(fragment.supersedes, other.id)), changed
    changed = replace(other, supersedes=_with(other.supersedes, fragment.id))
    return replace(fragment, superseded_by=other.id), changed


def _revises(fragment: Fragment) -> bool:
    """Whether a statement can replace or contradict another; most can't, and comparing costs a query."""
    if fragment.kind == "preference":
        return True
    return fragment.kind in ("decision", "fact", "lesson") and (
        slot(fragment.text) is not None or negative(fragment.text)
    )


def _named(fragment: Fragment, ids: set[str]) -> bool:
    """Whether the fragment replaces one of these because an agent said so."""
    said = fragment.occasion == "remember" and not fragment.sources
    return said and not ids.isdisjoint(fragment.supersedes)


def _unmarked(fragment: Fragment, text: str) -> Fragment:
    """The fragment with this text and only the marks that don't come from comparing texts."""
    given = fragment.supersedes if fragment.occasion == "remember" or fragment.sources else ()
    return replace(fragment, text=text, supersedes=given, superseded_by="", contradicts=())


def _with(ids: tuple[str, ...], identity: str) -> tuple[str, ...]:
    return ids if identity in ids else (*ids, identity)


def _without(hit: StoredHit, gone: set[str]) -> StoredHit | None:
    """The fragment without its marks for removed fragments; None if it had none."""
    one = hit.fragment
    if one.superseded_by not in gone and gone.isdisjoint((*one.supersedes, *one.contradicts)):
        return None
    changed = replace(
        one,
        superseded_by="" if one.superseded_by in gone else one.superseded_by,
        supersedes=tuple(other for other in one.supersedes if other not in gone),
        contradicts=tuple(other for other in one.contradicts if other not in gone),
    )
    return StoredHit(changed, hit.vector)
