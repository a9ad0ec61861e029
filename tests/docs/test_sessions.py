"""The documentation's sessions with third-party programs: each journal verifies, and can be recorded again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from docs.sessions import __main__ as sessions
from docs.sessions.tap import Message
from docs.sessions.transcript import lines
from iact.core.journal import read_journal
from tests.acceptance.product import Product
from tests.rounds import short

KEPT: Final = sessions.HERE


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """One that has nothing to do with them."""
    return Product.at(tmp_path_factory.mktemp("data"))


def test_every_face_is_there() -> None:
    assert {one.parent.name for one in KEPT.glob("*/journal.md")} == set(sessions.SCENES)
    told = (KEPT / "README.md").read_text(encoding="utf-8")
    for name, scene in sessions.SCENES.items():
        page = (KEPT / name / "transcript.md").read_text(encoding="utf-8")
        assert scene.client in page, f"played with another version: python -m docs.sessions {name}"
        assert f"({name}/transcript.md)" in told
        guide = (KEPT.parent / "how-to" / scene.guide).read_text(encoding="utf-8")
        assert f"(../sessions/{name}/transcript.md)" in guide


@pytest.mark.parametrize("name", sessions.SCENES)
def test_a_kept_journal_verifies_and_a_changed_byte_is_named(
    name: str, product: Product, tmp_path: Path
) -> None:
    """If this fails after a prompt or a rule was changed: python -m docs.sessions"""
    kept = KEPT / name / "journal.md"
    verified = product.run("replay", "--verify", str(kept))
    assert (verified.status, "verified" in verified.stdout) == (0, True), verified
    assert product.run("journal", "check", str(kept)).status == 0

    records = read_journal(kept).records
    asked, answered = [one for one in records if one.kind == "clearance"]
    assert (asked.text("op"), answered.text("op"), answered.fields["allow"]) == (
        "ask",
        "answer",
        name != "inspect",
    )
    (said,) = [one for one in records if one.kind == "say"]
    changed = tmp_path / "journal.md"
    changed.write_bytes(kept.read_bytes().replace(said.body.encode(), said.body.swapcase().encode(), 1))
    refused = product.run("journal", "check", str(changed))
    assert refused.status != 0
    assert re.search(rf"\b{said.n}\b", refused.sentence), refused.sentence


@pytest.mark.parametrize("name", short(["responses"], of=[*sessions.SCENES]))
async def test_a_session_is_played_anew_as_it_is_kept(name: str, tmp_path: Path) -> None:
    await sessions.play(name, tmp_path / name)
    assert kinds(tmp_path / name) == kinds(KEPT / name)
    assert records(tmp_path / name) == records(KEPT / name)


def kinds(folder: Path) -> set[str]:
    """What client and product said, without the words."""
    page = re.sub(
        r"\d{8}-\d{6}-[0-9a-f]{8}", "SESSION", (folder / "transcript.md").read_text(encoding="utf-8")
    )
    return {line.partition("{")[0] for line in page.splitlines() if line[:1] in ("→", "←")}


def records(folder: Path) -> list[tuple[str, str]]:
    """What the journal holds, without the words."""
    return [(one.kind, one.agent) for one in read_journal(folder / "journal.md").records]


def test_what_is_long_deep_wide_or_again_is_left_out() -> None:
    long: list[Message] = [
        Message("→", "ask", {"jsonrpc": "2.0", "id": 1, "text": "many words " * 9, "_meta": {"a": 1}, "many": [1, 2, 3, 4]}),
        *(Message("←", "", {"type": "DELTA", "n": number}) for number in range(3)),
        Message("←", "", "two\nlines"),
    ]  # fmt: skip
    assert list(lines(long)) == [
        '→ ask {"text": "many words many words many words many words …", "_meta": "{…}", "many": [1, 2, 3, "1 more"]}',
        '← {"type": "DELTA", "n": 0}',
        "  … 2 more of this kind",
        "←\n  two\n  lines",
    ]
