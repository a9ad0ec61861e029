"""An Agent Skill (agentskills.io): a folder with a `SKILL.md`, whose front matter says what it is for.

A skill becomes a module with the same code as every other skill, so it has what every module has. Its description is
offered where it fits, and only to agents that can use it. An agent asks for its text with a call, and the result is
labelled as a module's output. Its scripts run in the sandbox, behind the gate. A person approves it, bound to the
digest over all of its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from iact.core.errors import UsageError
from iact.core.modules.registry import SKILLS
from iact.core.stored.source import files_below

MADE: Final = frozenset({"module.toml", "module.py", "skill.json"})
"""The files that turn a skill's folder into a module; the skill itself has no files of these names."""

_FILE: Final = "SKILL.md"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FIELDS: Final = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1024
_LONGEST_COMPATIBILITY: Final = 500
_LONGEST_MODULE: Final = 32
_SUMMARY: Final = 190
_WORD: Final = re.compile(r"[a-z][a-z0-9+#-]{3,30}")
_COMMON: Final = frozenset(
    ["when", "with", "that", "this", "from", "into", "what", "your", "them", "have", "such", "uses", "user"]
)
"""Words that say nothing about a skill."""

_MODULE: Final = '''\
"""A skill: gives its text and files, and runs its scripts in the workspace."""

import json
import os
import sys
from pathlib import Path

from ext_modules.sdk import Module, Result
from ext_modules.sdk.process import Process

_HERE = Path(__file__).resolve().parent
_CARD = json.loads((_HERE / "skill.json").read_text())
_MOST = 400_000
module = Module(_CARD["module"], _CARD["description"][:600], keywords=_CARD["keywords"])


def _file(name: str) -> Path:
    found = (_HERE / name).resolve()
    if found.relative_to(_HERE).as_posix() not in _CARD["files"]:
        raise ValueError(f"This skill has no file {name}; it has {', '.join(_CARD['files'])}.")
    return found


def read(file: str = "SKILL.md") -> str:
    return _file(file).read_text("utf-8", "replace")[:_MOST]


async def run(script: str, arguments: list[str] | None = None) -> Result:
    found = _file(script)
    program = {".py": sys.executable, ".sh": "bash"}.get(found.suffix)
    if program is None:
        raise ValueError("Scripts that can be run end in .py or .sh.")
    place = os.environ.get("IACT_WORKSPACE", "/workspace")
    process = await Process.start(
        [program, str(found), *(arguments or [])], cwd=place, environment={**os.environ}
    )
    written = bytearray()
    code = None
    try:
        async for chunk in process.output():
            written += chunk[: max(0, _MOST - len(written))]
    finally:
        status = await process.end()
        code = status.code
    return Result(written.decode("utf-8", "replace"), data={"exit_status": code})


read.__doc__ = _CARD["documentation"]
module.function(impact=0, summary=_CARD["summary"])(read)
if _CARD["scripts"]:
    run.__doc__ = f"""Runs a script of the skill in the workspace: {', '.join(_CARD['scripts'])}.
Read the skill with {_CARD['module']}.read first.

```{_CARD['module']}.run script={_CARD['scripts'][0]}
```"""
    module.function(impact=1, summary="Run a script of this skill.", exclusive=True, idempotent=False)(run)
'''


def is_skill(module: str) -> bool:
    """Whether a module of this name is a skill."""
    return module.startswith(SKILLS)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as described by its `SKILL.md`, with the paths of its files."""

    name: str
    description: str
    files: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name of its module; a long name is cut, and made unique by a digest."""
        plain = SKILLS + self.name.replace("-", "_")
        if len(plain) <= _LONGEST_MODULE:
            return plain
        return f"{plain[: _LONGEST_MODULE - 9]}_{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def scripts(self) -> tuple[str, ...]:
        """The files that can be run."""
        return tuple(one for one in self.files if one.startswith("scripts/") and one.endswith((".py", ".sh")))

    @property
    def keywords(self) -> list[str]:
        """Words that cause its description to be offered."""
        words = [*self.name.split("-"), *_WORD.findall(self.description.lower())]
        return [one for one in dict.fromkeys(words) if one not in _COMMON][:60]

    @property
    def summary(self) -> str:
        """Its description as one short line."""
        line = " ".join(self.description.split())
        return line if len(line) <= _SUMMARY else line[: _SUMMARY - 1] + "…"

    def sources(self) -> dict[str, str]:
        """The files that turn its folder into a module, in addition to its own."""
        line = " ".join(self.description.split())
        summary = self.summary
        documentation = (
            f"{line}\n\nGives the instructions of the skill {self.name}; `file`: another of its files "
            f"({', '.join(self.files[:20])}).\n\n```{self.module}.read\n```"
        )
        card = {
            "module": self.module,
            "description": line,
            "summary": summary,
            "documentation": documentation,
            "keywords": self.keywords,
            "files": self.files,
            "scripts": self.scripts,
        }
        toml = [f"name = {json.dumps(self.module)}", f"summary = {json.dumps(summary, ensure_ascii=False)}"]
        toml += ["", "[needs]", f'workspace = "{"write" if self.scripts else "none"}"', ""]
        return {
            "module.toml": "\n".join(toml),
            "module.py": _MODULE,
            "skill.json": json.dumps(card, ensure_ascii=False, indent=1),
        }


def read_skill(folder: Path) -> Skill:
    """Read the skill in `folder`, whose name must be the folder's. Links are left out; none of its code runs. Blocks.

    Raises:
        UsageError: it breaks the specification; the sentence says where.
    """
    return read_files(folder)[0]


def read_files(folder: Path) -> tuple[Skill, dict[str, bytes]]:
    """Read the skill in `folder`, as `read_skill`, with the content of its files. Blocks.

    Raises:
        UsageError: as `read_skill`.
    """
    return _read(Path(os.path.abspath(folder)))


def read_below(root: Path, folder: str) -> tuple[Skill, dict[str, bytes]]:
    """Read the skill in a folder of a workspace, as `read_files`. No link is followed on the way there either. Blocks.

    Raises:
        UsageError: there is no such folder, or as `read_files`.
    """
    parts = folder.removeprefix("/workspace/").removeprefix("./").rstrip("/").split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise UsageError(f"{folder[:200]!r} is no folder of the workspace; give its path from there.")
    with ExitStack() as opened:
        try:
            here = os.open(root, _FOLDER)
            opened.callback(os.close, here)
            for part in parts[:-1]:
                here = os.open(part, _FOLDER, dir_fd=here)
                opened.callback(os.close, here)
        except OSError as error:
            raise UsageError(f"There is no folder {folder[:200]!r} in the workspace.") from error
        return _read(Path(parts[-1]), at=here)


def _read(folder: Path, *, at: int | None = None) -> tuple[Skill, dict[str, bytes]]:
    try:
        files = {name: content for name, content in files_below(folder, at=at) if _is_own(name)}
        text = files[_FILE].decode()
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder} is no skill: it has no {_FILE} that can be read.") from error
    taken = MADE & files.keys()
    if taken:
        raise UsageError(
            f"A skill can't have a file of the name {', '.join(sorted(taken))} beside its {_FILE}."
        )
    return _skill(folder, text, tuple(sorted(files))), files


def _is_own(name: str) -> bool:
    return not any(part.startswith((".", "__pycache__")) for part in name.split("/"))


def _skill(folder: Path, text: str, files: tuple[str, ...]) -> Skill:
    said = _front_matter(folder, text)
    name, description = said.get("name"), said.get("description")
    unknown = sorted(str(one) for one in said if one not in _FIELDS)
    compatibility = said.get("compatibility", "")
    if unknown:
        raise UsageError(
            f"{folder}/{_FILE} has fields that the specification does not know: {', '.join(unknown)}."
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"The skill in {folder} needs a name of lower-case letters, digits and single hyphens, "
            f"{_LONGEST_NAME} characters at most."
        )
    if name != folder.name:
        raise UsageError(f"The skill {name} must be in a folder of that name, and is in {folder.name}.")
    if not isinstance(description, str) or not description.strip() or len(description) > _LONGEST_DESCRIPTION:
        raise UsageError(f"The skill {name} needs a description of 1 to {_LONGEST_DESCRIPTION} characters.")
    if not isinstance(compatibility, str) or len(compatibility) > _LONGEST_COMPATIBILITY:
        raise UsageError(
            f"The compatibility of the skill {name} must be a text of {_LONGEST_COMPATIBILITY} characters at most."
        )
    return Skill(name, description, files)


def _front_matter(folder: Path, text: str) -> dict[object, object]:
    found = re.match(r"---[ \t]*\n(.*?)\n---[ \t]*(\n|\Z)", text, re.DOTALL)
    if found is None:
        raise UsageError(f"{folder}/{_FILE} must begin with front matter between two lines of three hyphens.")
    try:
        said = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise UsageError(f"The front matter of {folder}/{_FILE} can't be read as YAML.") from error
    if not isinstance(said, dict):
        raise UsageError(f"The front matter of {folder}/{_FILE} must be a mapping.")
    return said
