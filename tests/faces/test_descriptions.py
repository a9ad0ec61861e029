"""What faces publish of errors, and how they name a question in one line."""

from __future__ import annotations

from pathlib import Path

from iact.faces.failure import FAILURES
from iact.faces.mcp.unasked import denied_text, held_text
from iact.faces.responses.description import description
from tests.core.session.fakes import World, replies, runtime
from tests.core.session.test_forms import asks, question


def test_every_status_of_a_failure_is_described() -> None:
    published = description()["paths"]["/v1/responses"]["post"]["responses"]
    for kind in FAILURES:
        assert kind.code in published[str(kind.status)]["description"]


async def test_a_form_is_named_with_its_words_and_the_command_that_answers_it(tmp_path: Path) -> None:
    world = World()
    async with runtime(tmp_path, replies({"/": [asks("Where to?"), "Done."]}), world=world) as opened:
        session = await opened.open(intent=1)
        await session.say("Go.")
        asked = session.records(await question(session) - 1)[0]
        for line in (denied_text(session.id, asked), held_text(session.id, asked)):
            assert "Where to?" in line
            assert "\n" not in line
        assert f"iact clear {asked.n} --session {session.id} --allow" in held_text(session.id, asked)
