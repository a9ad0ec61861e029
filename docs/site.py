"""Adds pages from other folders of the repository to the documentation site.

mkdocs only reads the files of one folder, but README, CONTRIBUTING and others belong where people look for them. This
hook makes them pages of the site, and adjusts the links to and from them. Titles of sections come from the map,
`README.md`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
ELSEWHERE: Final = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "AGENTS.md": "agents.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    "examples/README.md": "examples.md",
    "tests/newcomer/README.md": "newcomer.md",
    "tests/sandbox/README.md": "sandbox-tests.md",
}
"""Files of the repository (paths from its root), and the pages that they become."""

_LINK: Final = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Adjust links whose targets are in a different folder on the site than in the repository."""
    here = page.file.src_uri
    if here.endswith("/journal.md"):  # its manifests would match every search
        page.meta["search"] = {"exclude": True}
    source = next((name for name, made in ELSEWHERE.items() if made == here), f"docs/{here}")

    def fit(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        if "://" in target:
            return link[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if there == "docs":
            there = "docs/README.md"
        wanted = ELSEWHERE.get(there) or there.removeprefix("docs/")
        return before + posixpath.relpath(wanted, posixpath.dirname(here) or ".") + after

    return _LINK.sub(fit, markdown)
