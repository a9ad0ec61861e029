"""A session that stopped for want of room goes on once there is some, without anybody restarting anything."""

from __future__ import annotations

from pathlib import Path

from iact.core.errors import JournalUnwritable
from tests.core.session.fakes import replies, runtime


async def test_a_session_without_room_goes_on_when_there_is_some(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["One.", "Two."]})) as opened:
        session = await opened.open()
        await session.ask("Go")
        session._live.stop(JournalUnwritable("The disk is full."))
        again = await opened.open(session.id)
        assert again is not session  # there is room
        assert again.failure is None
        assert (await again.ask("On")).body == "Two."
