"""Scene 23: one session through an editor, an MCP client and an OpenAI client. Each asks, steers and approves, and the
journal does not show which of them it was.

Scene 24, live spans that equal those of the journal, is in `test_tracing.py`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.talks import InEditor, Responses, Talk, in_editor, over_mcp, served
from tests.acceptance.test_clearance import asking
from tests.endpoint import Request

SAID_AND_DONE: Final = {"say", "turn", "gate", "clearance", "call", "result", "reply"}
_TOLD: Final = re.compile(r"[Mm]ake (\S+), please\.")


def answers(request: Request) -> str:
    """The model makes the file that it was told last."""
    told = _TOLD.search(request.last)
    return f"I do.\n\n```shell.run\ntouch {told[1]}\n```" if told else "Over."


@asynccontextmanager
async def talking(face: str, product: Product, folder: Path) -> AsyncIterator[Talk]:
    """A client, with what it takes."""
    if face == "editor":
        async with in_editor(product, folder) as editor:
            yield editor
    elif face == "mcp":
        async with over_mcp(product, "--workspace", str(folder)) as asked:
            yield asked
    else:
        with product.serving("serve", "--faces", "0", "--workspace", str(folder)) as server:
            assert server.process.stdout is not None
            faces = server.process.stdout.readline().split()[-1]
            yield served("responses", server, faces, server.key)
            server.process.terminate()
            assert server.process.wait(300) == 0


async def resume(talk: Talk, session: str, said: int) -> None:
    """Go on in a session, as each protocol has it. `said`: the record of what was said there last."""
    if isinstance(talk, InEditor):
        await talk.load(session)
    talk.session = session
    if isinstance(talk, Responses):
        talk.last = f"resp_{session}_{said}"


async def two_turns(talk: Talk, face: str) -> None:
    """Ask, and approve; then steer elsewhere, and deny."""
    await talk.say(f"Make {face}-1, please.")
    assert talk.asked
    assert (await talk.answer(allow=True)).endswith("Over.")
    await talk.say(f"Not that; make {face}-2, please.")
    assert talk.asked
    assert (await talk.answer(allow=False)).endswith("Over.")


def records(product: Product) -> list[Record]:
    (journal,) = product.journals()
    return read_journal(journal).records


def shape(found: list[Record], face: str) -> list[object]:
    """What a client did, as the journal has it, without numbers, times and the name of its file."""
    # What is there to be called is told with the first call, whoever asked for it, and is not compared.
    kept = [one for one in found if one.kind in SAID_AND_DONE]
    places = {one.n: place for place, one in enumerate(kept)}
    told: list[object] = []
    for one in kept:
        fields = {
            name: places[value] if name in ("turn", "call", "ask") and isinstance(value, int) else value
            for name, value in one.fields.items()
            if name in ("allow", "by", "op", "to", "status", "function", "mode", "waits", "remember", "action", "turn", "call", "ask")
        }  # fmt: skip
        told.append((one.kind, one.agent, one.body.replace(face, "FACE"), fields))
    return told


async def test_one_session_through_an_editor_an_mcp_client_and_an_openai_client(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint(answers)))
    folder = stage.folder / "project"
    folder.mkdir()
    session, said, parts = "", 0, {}
    for face in ("editor", "mcp", "openai"):
        before = len(records(product)) if session else 0
        async with talking(face, product, folder) as talk:
            if session:
                await resume(talk, session, said)
            await two_turns(talk, face)
            assert session in ("", talk.session), "it is the same one"
            session = talk.session
        found = records(product)
        says = [one.n for one in found if one.kind == "say" and one.n > before]
        said = says[-1]
        first = says[0]
        last = max(one.n for one in found if one.kind == "reply")
        parts[face] = shape([one for one in found if first <= one.n <= last], face)
        assert sorted(one.name for one in folder.iterdir() if one.name.startswith(face)) == [f"{face}-1"]
    assert len(parts["editor"]) > 10, parts["editor"]
    assert parts["editor"] == parts["mcp"] == parts["openai"]
    assert product.run("replay", "--verify", session).status == 0
    assert product.run("journal", "check", session).status == 0
