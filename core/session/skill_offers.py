"""Skills that agents write and a person approves: the first step towards a memory of how things are done.

The files are read once, without following links. Exactly what was read is in the journal, is shown to the person, and
is kept if the person says yes. Until then nothing of it is in the catalogue, and none of it has run. Under every
policy, only a person can approve it.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iact.core.characters import escaped
from iact.core.errors import ModuleFault, ModuleLost, PackagesUnavailable, UsageError
from iact.core.gate.gate import Ticket
from iact.core.modules.invoker import FunctionCall
from iact.core.modules.outcome import Completed, Outcome, Raised
from iact.core.ports import CatalogueEntry, ModuleHost, ModuleSource
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.skills import SkillFile, SkillOffer
from iact.core.session.forms import Forms
from iact.core.session.live import Live
from iact.core.session.module_loader import ModuleLoader
from iact.core.stored.skill import MADE, Skill, read_below
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.origin import around, strange

MOST_TEXT: Final = 100_000
"""The maximum length of all its files together, in characters, because a person must read them."""
MOST_FILES: Final = 40
_MOST_LINES: Final = 5000
"""The maximum number of lines of a file whose changes are shown."""
_PATH: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_. -]*(/[A-Za-z0-9_.][A-Za-z0-9_. -]*)*")

Files = Mapping[str, str]
"""The text of each file, by its path in the skill."""


class SkillOffers:
    """The offers of one session. `folder`: what its agents work in."""

    def __init__(
        self, live: Live, host: ModuleHost, loader: ModuleLoader, forms: Forms, folder: Path
    ) -> None:
        self._live = live
        self._host = host
        self._loader = loader
        self._forms = forms
        self._folder = folder

    async def carry_out(
        self, ticket: Ticket, call: FunctionCall, agent: Agent, pending: Pending, copy: Path | None
    ) -> Outcome:
        """Carry out a SKILL: ask the person, and keep what they approve. `copy`: the copy of the workspace that the
        agent works in, if any.

        Raises:
            SandboxError: there is no sandbox.
        """
        ticket.redeem(call.request)
        try:
            attached = call.attached.get("folder")
            folder = attached.text() if attached is not None else str(call.arguments.get("folder"))
            skill, files = await asyncio.to_thread(_texts, copy or self._folder, folder.strip())
            before = await self._before(skill)
            if before == files and self._loader.approved(skill.module):
                return _said(f"The skill {skill.name} is in the catalogue already, as it is.")

            tree = self._live.tree
            read = sorted(strange(tree, agent.labels | around(tree, agent, call.function)))
            offer = await asyncio.to_thread(_offer, skill, files, before, tuple(read))
            if not self._accepted(pending.call, offer):
                refusal = await self._ask(agent, pending, offer)
                if refusal is not None:
                    return refusal

            # What was shown is kept, and not what is in the folder by now.
            texts = {**files, **skill.sources()}
            contents = {name: text.encode() for name, text in texts.items()}
            await self._loader.keep_approved(ModuleSource(skill.module, contents, skill.summary))
        except (UsageError, ModuleFault, PackagesUnavailable) as error:
            return Raised(type(error).__name__, str(error), "", "")
        except ModuleLost as error:
            text = f"The skill's module {skill.module} did not start."
            return Raised("ModuleLost", text, error.log or str(error), "")
        return _said(
            f"The user approved the skill {skill.name}. It is in the catalogue from now on; "
            f"`{skill.module}.read` gives its text."
        )

    async def _before(self, skill: Skill) -> Files | None:
        """The existing skill of that name; None if there is none.

        Raises:
            UsageError: it can't be replaced.
        """
        entry = next((one for one in await self._host.catalogue() if one.name == skill.module), None)
        if entry is None:
            return None
        if entry.shared or entry.origin == "shipped":
            raise UsageError(
                f"An administrator set the skill {skill.name} for everybody; choose another name."
            )
        return await self._files_of(entry)

    async def _files_of(self, entry: CatalogueEntry) -> Files:
        found = await self._host.files(entry.name, entry.digest)
        return {name: data.decode("utf-8", "replace") for name, data in found.items() if name not in MADE}

    async def _ask(self, agent: Agent, pending: Pending, offer: SkillOffer) -> Outcome | None:
        """Ask the person. Returns what the agent is told if they don't approve the skill, else None."""
        words = f"{agent.path} offers the skill {offer.name}: {' '.join(offer.description.split())}"
        reply = await self._forms.decide(agent, pending, escaped(words, every=True), skill=offer)
        if reply.action == "accept":
            return None
        if reply.action == "decline":
            return Raised("NotApproved", f"The user did not approve the skill {offer.name}.", "", "")

        # Nobody decided: the person can still come back to it.
        why = f"The skill {offer.name} was not approved. {reply.reason}".strip()
        text = f"{why} Its folder stays; the user can add it with `iact skill add`."
        return Raised("NotApproved", text, "", "")

    def _accepted(self, call: int, offer: SkillOffer) -> bool:
        """Whether a person had approved exactly this for this call before the process ended."""
        asks: set[int] = set()
        for record in self._live.records:
            match record.content:
                case FormAsk(call=asked_call, skill=SkillOffer() as skill) if asked_call == call:
                    if _whole(skill) == _whole(offer):
                        asks.add(record.n)
                case FormAnswer(ask=ask, decision="accept") if ask in asks:
                    return True
        return False


def _said(text: str) -> Completed:
    return Completed(text, "text/plain", {}, None, (), None)


def _whole(offer: SkillOffer) -> tuple[str, Files]:
    return offer.module, {one.path: one.text for one in offer.files}


def _texts(root: Path, folder: str) -> tuple[Skill, Files]:
    """Read the skill in a folder, with the texts of its files, which a person must be able to read. Blocks.

    Raises:
        UsageError: it is not a skill, or a person can't read it.
    """
    skill, files = read_below(root, folder)
    if len(files) > MOST_FILES:
        raise UsageError(
            f"A skill that is offered has at most {MOST_FILES} files; this one has {len(files)}."
        )

    texts: dict[str, str] = {}
    for name, data in files.items():
        if _PATH.fullmatch(name) is None:
            raise UsageError(
                "The files of a skill have names of letters, digits, blanks, dots, hyphens and underscores."
            )
        try:
            texts[name] = data.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"The file {name} of the skill is no text, and a person could not read it."
            ) from error

    if sum(map(len, texts.values())) > MOST_TEXT:
        raise UsageError(
            f"A skill that is offered has at most {MOST_TEXT:,} characters, for a person is to read it."
        )
    return skill, texts


def _offer(skill: Skill, files: Files, before: Files | None, read: tuple[str, ...]) -> SkillOffer:
    """What is shown to the person. Blocks while the files are compared."""
    old = before or {}
    return SkillOffer(
        name=skill.name,
        description=skill.description,
        module=skill.module,
        files=tuple(_file(name, text, old.get(name)) for name, text in files.items()),
        replaces=before is not None,
        gone=tuple(sorted(old.keys() - files.keys())),
        read=read,
    )


def _file(path: str, text: str, before: str | None) -> SkillFile:
    """One file of a skill, with what is different from `before`."""
    if before is None:
        return SkillFile(path=path, text=text)
    if before == text:
        return SkillFile(path=path, text=text, change="same")

    # Only line feeds end a line here. Every other separator stays in its line, where it is shown escaped: otherwise a
    # change of separators, which can turn a comment into a command, would have no difference to show.
    old_lines = before.split("\n")
    new_lines = text.split("\n")
    differs = ""
    if len(old_lines) + len(new_lines) <= _MOST_LINES:
        difference = difflib.unified_diff(
            old_lines, new_lines, f"{path} (as it is)", f"{path} (as offered)", lineterm=""
        )
        differs = "\n".join(difference)
    return SkillFile(path=path, text=text, change="changed", differs=differs)
