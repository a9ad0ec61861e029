"""Which agent wrote which file of the workspace last, as data.

`core.tree.apply_file_owners` has the rules that change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WritingCall:
    """A call that may write in the workspace.

    `names`: files that it is known to write. `only_these`: it writes no others.
    """

    agent: str
    names: frozenset[str]
    only_these: bool


@dataclass(frozen=True, slots=True)
class Overwriting:
    """An agent changed a file that was not its own.

    `by`: its path; `of`: the paths of those who may have written the file. `decides`: the agent above all of them, whose
    task they work on. `at_once`: they wrote it while the agent did, so whose content is there is not known.
    """

    path: str
    by: str
    of: tuple[str, ...]
    decides: str
    at_once: bool = False


@dataclass(slots=True)
class FileOwners:
    """Who wrote what last. `owners`: for each file, the agent, or those whose calls ran at the same time.

    `uploaded`: files of a person that no version has yet. `calls`: those that may have written and are not accounted for,
    by record. `for_writers`, `for_callers`: what those who wrote, and those who decide, are not told yet. `meetings`: an
    agent, another, and a file that they wrote at the same time, of which the first was told.
    """

    owners: dict[str, frozenset[str]] = field(default_factory=dict)
    calls: dict[int, WritingCall] = field(default_factory=dict)
    uploaded: set[str] = field(default_factory=set)
    for_writers: list[Overwriting] = field(default_factory=list)
    for_callers: list[Overwriting] = field(default_factory=list)
    meetings: set[tuple[str, str, str]] = field(default_factory=set)
