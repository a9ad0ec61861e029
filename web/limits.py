"""Limits that clients must know: they need not import the server for them."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 256 * 1024
"""Bytes of one message to the server."""
