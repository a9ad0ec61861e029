"""Passwords as people choose them: stored with argon2, which makes each guess cost time and memory."""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from iact.core.errors import UsageError

SHORTEST: Final = 10
LONGEST: Final = 256
_HASHER: Final = PasswordHasher()
_AT_ONCE: Final = BoundedSemaphore(2)
"""Each hash takes 64 MiB for a moment; clients that try many at once wait in line."""

_NOBODY: Final = _HASHER.hash("a password that nobody has")


def hashed(password: str) -> str:
    """What is stored in place of a password.

    Raises:
        UsageError: it is too short, or too long.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise UsageError(f"A password must have {SHORTEST} to {LONGEST} characters. Choose another one.")
    with _AT_ONCE:
        return _HASHER.hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Whether the password is correct. Takes as long if none is stored, so that no one can find out who has an
    account."""
    try:
        with _AT_ONCE:
            is_correct = _HASHER.verify(stored or _NOBODY, password[: LONGEST + 1])
    except (VerificationError, InvalidHashError):
        return False
    return is_correct and stored is not None


def outdated(stored: str) -> bool:
    """Whether it was stored with less effort than is standard now."""
    return _HASHER.check_needs_rehash(stored)
