"""Limits that clients must know, so that they need not import the server."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 256 * 1024
"""The size limit of one message to the server, in bytes."""
