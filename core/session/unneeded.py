"""Since when each open session has been needed by nobody, so that it can be closed after a while."""

from __future__ import annotations

from collections.abc import Iterable


class UnneededSessions:
    """The open sessions that nobody needs, and since when, by a monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def look(self, unneeded: Iterable[str], now: float) -> None:
        """Note which sessions nobody needs now. One that was needed in between begins again."""
        before = self._since
        self._since = {session: before.get(session, now) for session in unneeded}

    def for_longer_than(self, seconds: float, now: float) -> list[str]:
        """The sessions that nobody has needed for at least so many seconds."""
        return [session for session, since in self._since.items() if now - since >= seconds]

    def forget(self, session: str) -> None:
        """Somebody asks for this session: its time begins again."""
        self._since.pop(session, None)
