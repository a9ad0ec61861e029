"""Secrets that let somebody in: minted here, shown once, and stored as digests.

Each has 256 bits of chance, so that it can't be guessed, and a plain digest of it is as good as a slow one. Passwords,
which people choose, are another matter (`passwords`).
"""

from __future__ import annotations

import hashlib
import secrets


def mint() -> str:
    """A new secret, of letters that fit into an address and a cookie."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def mint_id() -> str:
    """A new name for a row; it lets nobody in, and is never used again."""
    return secrets.token_hex(8)
