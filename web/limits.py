"""Limits that clients must know, so that they need not import the server."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 256 * 1024
"""The size limit of one message to the server, in bytes."""

PING_SECONDS: Final = 2.5
"""Seconds between two looks whether the other end of a websocket is still heard; if not, it is asked."""

SILENT_SECONDS: Final = 11.0
"""Seconds without a byte from the other end after which a websocket is given up. It is noticed within one more look, so
within 15 seconds."""
