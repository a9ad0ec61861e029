"""Secrets that give access: minted here, shown once, and stored as digests.

Each has 256 random bits, so it can't be guessed, and a plain digest is as safe as a slow one. Passwords, which people
choose, are different (`passwords`).
"""

from __future__ import annotations

import hashlib
import secrets


def mint() -> str:
    """A new secret, of characters that are allowed in a URL and a cookie."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """The digest of a secret, which is stored in its place."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def mint_id() -> str:
    """A new id for a row. It gives no access, and is never reused."""
    return secrets.token_hex(8)
